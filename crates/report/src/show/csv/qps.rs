//! The file of QPs: one row for each QP of a case, run and flow. It must not know totals.

use std::io::{self, Write};

use serde_json::to_value;

use super::rows::{self, places};
use crate::results::model::ResultFile;

/// Writes header and rows to a stream.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, out: impl Write) -> io::Result<()> {
    rows::write(out, |take| {
        for place in places(result) {
            let key = place.key()?;
            for qp in place.result.iter().flat_map(|flow| &flow.qps) {
                let mut row = key.clone();
                row.add("", &to_value(qp)?);
                take(row)?;
            }
        }
        Ok(())
    })
}
