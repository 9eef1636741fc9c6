//! Lines, and empty lines between the parts of a step.

use std::fmt::Write as _;

use crate::lesson::{Call, Part};

use super::columns::width;

/// Indentation of a step's contents.
pub(super) const INDENT: usize = 4;
pub(super) const CALL: usize = 6;

/// Calls longer than this take several lines.
const WIDEST_SHORT: usize = 64;

/// Whether a call fits one line: it is short and has no structs.
pub(super) fn is_short(call: &Call) -> bool {
    call.given.is_empty() && call.came.is_empty() && width(&call.code) <= WIDEST_SHORT
}

/// Whether to put an empty line before this part of a step.
pub(super) fn stands_apart(part: &Part, previous: Option<&Part>) -> bool {
    match (part, previous) {
        (Part::Call(call), Some(Part::Call(before))) => !(is_short(call) && is_short(before)),
        (Part::States(..), Some(Part::Memory { .. }) | None) => true,
        (Part::States(..) | Part::Waited { .. } | Part::Theirs(_) | Part::Unseen { .. }, _) => {
            false
        }
        _ => true,
    }
}

/// Adds an indented line without trailing spaces.
pub(super) fn line_at(out: &mut String, indent: usize, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{}", " ".repeat(indent), line.trim_end());
}
