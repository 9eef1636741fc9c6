//! The client: steers a sweep, case by case and run by run, and turns counts of both ends into results. It must not know
//! options of the command line, nor how results are written.

mod admission;
pub mod against;
mod drain;
pub mod lesson;
pub mod observer;
pub mod options;
mod run;
pub mod session;
mod setup_run;
mod stage;
pub mod sweep;
pub mod sweeper;
