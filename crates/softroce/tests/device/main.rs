//! The embedded device: through its transport against a model and by packets, and through the C functions of libibverbs
//! and librdmacm. Both ends are in this process, or in a child of it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod fuzz;
mod load;
mod memory;
mod model;
mod process;
mod rdmacm;
mod scripts;
mod sockets;
mod support;
mod verbs;
