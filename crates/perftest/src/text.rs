//! What perftest prints, of both generations (4.5 of Debian 12, and 6.2x): a head that begins with ` #bytes` and
//! below it one row of figures between blanks. Of the row, peak, deviation and maximum are never used: the first
//! is not measured in a timed run, the other two are computed wrongly.

use super::program::Program;
use results::text::printable;

/// Resolutions with which it prints, as half the last digit: Gb/s with two decimals, or six below 0.1, and
/// 10^6 messages a second with six.
const GBIT_HALF_DIGIT: f64 = 0.005;
const SMALL_GBIT_HALF_DIGIT: f64 = 0.000_000_5;
const RATE_HALF_DIGIT: f64 = 0.000_000_5;

/// By how much rate times size may differ from the bandwidth of the same row, besides rounding.
const AGREEMENT: f64 = 0.01;

/// The most characters of what it printed that an error quotes.
const MAX_QUOTED_CHARS: usize = 100;

/// What a run of perftest measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// Of `_bw`: both directions of a bidirectional run together.
    Bandwidth {
        /// Payload throughput, in 10^9 bits a second.
        gbit_per_s: f64,
        /// Message rate, in 10^6 a second.
        mmsg_per_s: f64,
    },
    /// Of `_lat`.
    Latency {
        /// The median (`t_typical`), in nanoseconds.
        median_ns: f64,
    },
}

/// Text that no figure can be taken from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum TextError {
    #[error("it printed no table")]
    NoTable,
    #[error("its table has an unexpected heading: `{0}`")]
    Head(String),
    #[error("its table has no row")]
    NoRow,
    #[error("its table has {0} rows instead of one")]
    Rows(usize),
    #[error("its table says {what} {value}")]
    Nonsense { what: &'static str, value: String },
}

/// The figure in what `program` printed about messages of `size_bytes`.
///
/// # Errors
/// There is none, or one that cannot be true.
pub fn figure(program: Program, size_bytes: u32, text: &str) -> Result<Figure, TextError> {
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with("#bytes"));
    let head = lines.next().ok_or(TextError::NoTable)?;
    let known = if program.is_latency() {
        head.contains("t_typical[usec]")
    } else {
        head.contains("average[Gb/sec]") && head.contains("MsgRate[Mpps]") && !head.contains("#sl")
    };
    if !known {
        return Err(TextError::Head(printable(head.trim(), MAX_QUOTED_CHARS)));
    }
    let least = if program.is_latency() { 6 } else { 5 };
    let rows: Vec<Vec<&str>> = lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.len() >= least && is_numeric(row))
        .collect();
    let row = match rows.as_slice() {
        [] => return Err(TextError::NoRow),
        [row] => row,
        rows => return Err(TextError::Rows(rows.len())),
    };
    if number(row, 0) != Some(f64::from(size_bytes)) {
        return Err(nonsense("a size of", row, 0));
    }
    positive(row, "iterations", 1)?;
    if program.is_latency() {
        let median_ns = positive(row, "a typical latency of", 4)? * 1e3;
        return Ok(Figure::Latency { median_ns });
    }
    let mmsg_per_s = positive(row, "a message rate of", 4)?;
    let gbit_per_s = number(row, 3)
        .filter(|value| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| nonsense("a bandwidth of", row, 3))?;
    let by_rate = mmsg_per_s * f64::from(size_bytes) * 8.0 * 1e-3;
    let half_digit =
        if gbit_per_s < 0.1 && row[3].len() > 5 { SMALL_GBIT_HALF_DIGIT } else { GBIT_HALF_DIGIT };
    let by_rate_half_digit = RATE_HALF_DIGIT * by_rate / mmsg_per_s;
    let apart = (gbit_per_s - by_rate).abs();
    if apart > half_digit + by_rate_half_digit + AGREEMENT * by_rate {
        return Err(nonsense("with another rate a bandwidth of", row, 3));
    }
    // Whichever was printed with more digits that count.
    let finer = if half_digit < by_rate_half_digit { gbit_per_s } else { by_rate };
    Ok(Figure::Bandwidth { gbit_per_s: finer, mmsg_per_s })
}

fn positive(row: &[&str], what: &'static str, index: usize) -> Result<f64, TextError> {
    number(row, index)
        .filter(|value| value.is_finite() && *value > 0.0)
        .ok_or_else(|| nonsense(what, row, index))
}

/// Whether every word looks like a number, be it one that cannot be a figure, such as `nan` or `inf`.
fn is_numeric(row: &[&str]) -> bool {
    row.iter().all(|word| word.parse::<f64>().is_ok())
}

fn number(row: &[&str], index: usize) -> Option<f64> {
    row.get(index)?.parse().ok()
}

fn nonsense(what: &'static str, row: &[&str], index: usize) -> TextError {
    TextError::Nonsense { what, value: printable(row.get(index).unwrap_or(&""), MAX_QUOTED_CHARS) }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
