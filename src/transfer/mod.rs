//! Files sent for real: chunks of them by RDMA WRITE over many QPs, from `sender` to `receiver`. `source` is what is
//! sent, `place` where it lands, `name` what it may be called, `digest` how it is checked, `window` which slots are
//! free, `settings` what may be asked for, `channel` the verbs objects, `qps` what a worker does with them, `worker_pool` the
//! workers' threads, `peer` how either end waits for the other, `arrival` what the receiver does with a file whichever
//! way it comes, and `plain_tcp` the same file over one TCP connection. It must not know the command line.

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
