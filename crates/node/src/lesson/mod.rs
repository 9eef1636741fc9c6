//! Runs one transfer on one QP step by step, optionally with one real mistake, and reports each step as typed facts.
//!
//! Client `prepare` → `endpoints` both ways → both to RTS → server `ready` → the transfer → client
//! `look` → server `seen`.

mod calls;
mod client;
mod connection;
mod objects;
mod outcome;
mod server;
mod step;
mod transfer;

pub use client::LessonClient;
pub use outcome::{ObservedError, Outcome};
pub(crate) use server::serve_lesson;
pub use step::{Array, Begin, Call, End, Event, Field, Note, Part, Step, Topic};
