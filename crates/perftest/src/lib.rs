//! perftest's programs as something to measure beside: their arguments for a case, what they print, and their
//! processes.

mod job;
mod options;
mod process;
mod program;

pub use job::{
    Job, JobError, LONGEST_LIMIT, MIN_MESSAGES, Misfit, Needed, Place, arguments, fits, measuring,
    note,
};
pub use options::{Here, Meaning, OPTIONS, Output, PerftestOption, RateLimit};
pub use process::{Child, Ended, Launch, free_port, listens};
pub use program::{Figure, LibraryError, MissingProgram, Program, TextError, figure, find_library};
