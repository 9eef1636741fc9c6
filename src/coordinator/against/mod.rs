//! Runs in turns: with perftest (`pairs`), and of a victim alone and beside attackers (`beside`).

pub mod beside;
mod interim;
mod metric;
pub mod pairs;
mod perftest_run;
