//! Results of rocebench and all that is told from them: the model with its JSON and CSV, the terminal's table,
//! comparisons, figures. It must not know verbs, sockets or how anything is run, and builds without libibverbs.
//!
//! Arrows go one way: `plot` uses `compare`, `headlines`, `mesh` and `evenness`, `headlines` uses `compare` and `evenness`, all
//! of them use `observe`, which decides what counts, and `results`; `results` makes its files with `new_file`; all may use `text`.

pub mod compare;
pub mod evenness;
pub mod headlines;
mod junit;
pub mod mesh;
pub mod new_file;
pub mod observe;
pub mod plot;
pub mod results;
pub mod text;
pub mod threshold;
