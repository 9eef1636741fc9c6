//! The program: see the library crate.
fn main() {}
