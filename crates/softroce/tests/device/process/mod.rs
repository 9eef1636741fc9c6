//! Devices of processes that exit and fork. Each test runs itself again as a child process, which plays the other part.

mod child;
mod exit;
mod fork;
