//! Text that somebody else wrote (a peer, a file, another program), made fit for a terminal, a log and a page; and how
//! text is broken into lines and coloured.
//!
//! Documents are cleaned as a whole where they come in ([`json::cleaned`]), so that what is printed later needs no
//! thought. Other text is cleaned by [`printable`] where it is put into words.

pub mod json;
mod screen;
mod seconds;
mod shown;
mod wrapped;

pub use screen::{Mark, Screen};
pub use seconds::seconds_text;
pub use shown::{MAX_CHARS, path, printable, printable_lines, short_path};
pub use wrapped::{unbroken, wrapped};
