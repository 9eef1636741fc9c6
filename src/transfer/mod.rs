//! File transfer: sends chunks by RDMA WRITE over many QPs from `sender` to `receiver`. `files` opens, names and
//! stores files, and has their checksum; `channel` has the options and the verbs objects, `chunks` the workers' loops,
//! threads and free slots; `plain_tcp` sends the same file over one TCP connection.

mod channel;
mod chunks;
pub mod files;
mod plain_tcp;
pub mod receiver;
pub mod sender;

pub use channel::memory_bytes;
