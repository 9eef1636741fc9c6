//! Sweeps so short that what is added shows its own effect.

use report::results::model::{ResultFile, Run};

use crate::check;
use crate::server::Server;

/// What a sweep has unless other values are added.
pub const BASE: [&str; 6] = ["-n", "40", "--warmup", "0", "-s", "64"];

/// A sweep of all runs complete, with more options, or with others in place of those of [`BASE`].
pub fn result(server: &Server, more: &[&str]) -> ResultFile {
    let usual = BASE.chunks(2).filter(|pair| !more.contains(&pair[0]));
    let all: Vec<&str> = usual.flatten().chain(more).copied().collect();
    let ended = server.sweep(&all).exits(0);
    check::complete(&ended)
}

/// Its first run.
pub fn run(server: &Server, more: &[&str]) -> Run {
    result(server, more).cases.remove(0).runs.remove(0)
}
