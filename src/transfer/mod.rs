//! Files sent for real: chunks of them by RDMA WRITE over many QPs, from `sender` to `receiver`. `source` is what is
//! sent, `place` where it lands, `name` what it may be called, `digest` how it is checked, `window` which slots are
//! free, `channel` the verbs objects, `lanes` what a worker does with them, `crew` the workers' threads, and
//! `plain_tcp` the same file over one TCP connection. It must not know the command line.

mod channel;
mod crew;
pub mod digest;
mod lanes;
pub mod name;
pub mod place;
mod plain_tcp;
pub mod receiver;
pub mod sender;
pub mod source;
mod window;

pub use channel::memory_bytes;
