//! Runs in turns with perftest. It must not know how either program measures.

mod metric;
pub mod pairs;
mod perftest_run;
