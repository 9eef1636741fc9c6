//! Runs in turns: with perftest (`pairs`), and of a victim alone and beside attackers (`beside`). It must not know how any of
//! them measures.

pub mod beside;
mod interim;
mod metric;
pub mod pairs;
mod perftest_run;
