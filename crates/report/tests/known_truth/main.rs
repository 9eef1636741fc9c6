//! Comparisons of made-up figures: whether they find what was put in, and nothing else.
#![allow(missing_docs, clippy::unwrap_used)]

mod gates;
mod in_turns;
mod verdicts;
