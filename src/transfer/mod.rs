//! Files sent for real: chunks of them by RDMA WRITE over many QPs, from `sender` to `receiver`. `place` is where
//! they land, `name` what they may be called, `digest` how they are checked, `window` which slots are free, `channel`
//! the verbs objects, `lanes` what a worker does with them, and `plain_tcp` the same file over one TCP connection. It
//! must not know the command line.

pub mod digest;
pub mod name;
pub mod place;
mod window;
