//! The client: steers a sweep, case by case and run by run, and turns counts of both ends into results. It must not know
//! options of the command line, nor how results are written.

mod admission;
pub mod against;
mod drain;
mod run;
pub mod session;
mod setup_run;
pub mod sweep;
