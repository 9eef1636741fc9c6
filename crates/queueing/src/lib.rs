//! Queues whose waits are known: M/D/1 by formula (`Md1`), and one server message by message (`Queue`). Tests compare
//! what the program says with them.

mod md1;
mod queue;

pub use md1::Md1;
pub use queue::Queue;
