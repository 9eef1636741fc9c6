//! What limits a case. rocebench owns the traffic, so it can change one thing and look.
//!
//! A cause ([`CAUSES`]) is a row: the evidence that makes it likely, what each change ([`CHANGES`]) of the case would do if it were
//! right, its sentence and its remedy. [`diagnose`] measures the case, chooses the changes that tell most of the causes apart
//! that are left, measures these in turns with the case, and crosses out each cause that a result contradicts, until one is
//! proven or nothing is left to try. Who runs cases, and what time it is, is the caller's ([`Laboratory`]).

mod causes;
mod changes;
mod diagnose;
mod effect;
mod evidence;
mod signs;
mod states;
mod verdict;

pub use causes::{CAUSES, Cause, Weight};
pub use changes::{CHANGES, Change, changed_options};
pub use diagnose::{FIRST_RUNS, Laboratory, Request, Step, diagnose, planned};
pub use effect::{Effect, Losses, Outcome};
pub use evidence::{Evidence, Port, Situation};
