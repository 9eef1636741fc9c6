//! The comparison as JSON: [`Comparison`] as it is.

use std::io::{self, Write};

use crate::judge::compare::model::Comparison;

/// Writes the document.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, comparison)?;
    writeln!(out)
}
