//! perftest's programs as something to measure beside: their arguments for a case, what they print, and their
//! processes.

mod arguments;
mod check;
mod child;
mod fits;
mod library;
mod listen;
mod options;
mod program;
mod tail;
mod text;

pub use arguments::{Place, arguments, measuring};
pub use check::{Job, JobError, LONGEST_LIMIT};
pub use child::{Child, Ended, Launch};
pub use fits::{MIN_MESSAGES, Misfit, fits, note};
pub use library::{LibraryError, find_library};
pub use listen::{free_port, listens};
pub use options::{Here, Meaning, OPTIONS, PerftestOption};
pub use program::{MissingProgram, Program};
pub use text::{Figure, TextError, figure};
