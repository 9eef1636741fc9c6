//! Lines and the empty lines between the parts of a step.

use std::fmt::Write as _;

use crate::lesson::{Call, Part};

use super::columns::width;

/// Calls longer than this take several lines.
const WIDEST_SHORT: usize = 64;

/// A call without structs takes one line.
pub(super) fn is_short(call: &Call) -> bool {
    call.given.is_empty() && call.came.is_empty() && width(&call.code) <= WIDEST_SHORT
}

/// Whether an empty line stands before a part of a step.
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

/// Adds a line, without spaces at its end.
pub(super) fn line_at(out: &mut String, indent: usize, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{}", " ".repeat(indent), line.trim_end());
}
