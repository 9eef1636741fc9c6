//! The file of QPs: one row for each QP of a case, flow and run.

use std::io::{self, Write};

use super::rows::{self, Row, places};
use results::model::ResultFile;

/// Writes header and rows to a stream.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, out: impl Write) -> io::Result<()> {
    rows::write(out, |take| {
        for (flow, observation) in places(result) {
            let key = Row::key(&flow, observation.run)?;
            for qp in observation.moved.iter().flat_map(|flow| &flow.qps) {
                let mut row = key.clone();
                row.add("", qp)?;
                take(row)?;
            }
        }
        Ok(())
    })
}
