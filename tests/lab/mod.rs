//! What tests on real devices share: the program as a child process, a server, checks of its results, a
//! man in the middle. It must not know single tests.
#![allow(
    dead_code,
    clippy::expect_used,
    reason = "each test binary uses a part"
)]

pub mod capture;
pub mod cells;
pub mod check;
pub mod deaths;
pub mod lag;
pub mod namespace;
pub mod netem;
pub mod perftest;
pub mod program;
pub mod proxy;
pub mod quiet;
pub mod server;
pub mod short;
pub mod traffic;
pub mod wire;

use std::time::Duration;

/// The program under test.
pub const ROCEBENCH: &str = env!("CARGO_BIN_EXE_rocebench");

/// The words of a command line.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A dead or silent peer is noticed within this time.
pub const NOTICED: Duration = Duration::from_secs(2);
