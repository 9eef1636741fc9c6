//! Running a sweep from the command line: what is asked for becomes a plan, which is executed and written down.

mod against;
#[cfg(test)]
mod any_words_tests;
pub mod dry_run;
pub mod execute;
mod fail_if;
mod format;
mod output;
pub mod plan;
mod searches;
pub mod sink;
mod victims;
