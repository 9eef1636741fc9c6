//! Parses the tables that perftest prints.

use crate::pair::{Pair, succeed};

/// The rows of numbers in the output.
pub fn rows(text: &str) -> Vec<Vec<f64>> {
    text.lines()
        .skip_while(|line| !line.starts_with(" #bytes"))
        .filter_map(|line| line.split_whitespace().map(|it| it.parse().ok()).collect())
        .filter(|row: &Vec<f64>| row.len() >= 4)
        .collect()
}

/// Runs both ends and returns the client's rows, of which there must be some.
pub fn figures(program: &str, arguments: &str) -> (Pair, Vec<Vec<f64>>) {
    // -F: a changing CPU frequency is no error.
    let pair = succeed(program, &format!("-F {arguments}"));
    let rows = rows(&pair.client.stdout);
    assert!(!rows.is_empty(), "no figures\n{}", pair.report());
    (pair, rows)
}

/// Sizes of `-a`: 2 bytes to 8 MiB. perftest spends up to half a second on each row.
pub fn all_sizes() -> Vec<f64> {
    (1..=23_u32).map(|bit| f64::from(1_u32 << bit)).collect()
}

/// A byte more than a packet, and the largest of `-a`.
pub fn some_sizes() -> [u32; 2] {
    [4097, 1 << 23]
}
