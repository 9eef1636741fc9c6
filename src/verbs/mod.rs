//! Verbs objects with owners and errors. The only module with `unsafe` code: what it exports is safe
//! to call in any order and from any thread. It must not know cases, sockets or results.

mod ffi;
mod library;

pub use library::VerbsLibrary;
