//! File transfer: sends chunks by RDMA WRITE over many QPs from `sender` to `receiver`. `source` opens the files,
//! `place` stores them, `name` checks their names, `digest` is their checksum, `window` tracks free slots, `settings`
//! checks the options, `channel` has the verbs objects, `chunks` the workers' loops, `worker_pool` their threads,
//! `peer` waits for the other end, `arrival` has the receiver's steps common to both ways, and `plain_tcp` sends the
//! same file over one TCP connection.

mod arrival;
mod channel;
mod chunks;
pub mod digest;
pub mod name;
mod peer;
pub mod place;
mod place_error;
mod plain_tcp;
pub mod receiver;
pub mod sender;
mod settings;
pub mod source;
mod window;
mod worker_pool;

pub use settings::memory_bytes;
