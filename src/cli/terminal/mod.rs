//! What a person sees while the program runs, and how it reaches the terminal. It must not know what commands do.

pub mod errors;
pub mod live;
pub mod logging;
pub mod pager;
pub mod print;
pub mod progress;
pub mod screen;
mod spark;
pub mod time_left;
