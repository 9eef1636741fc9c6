//! The program as a person or a CI job meets it: what is typed, files that are read, what is printed. No device.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod compare;
mod compare_files;
mod hostile_text;
mod input;
mod manual;
mod perftest;
mod pictures;
mod plot;
