//! A victim alone and beside attackers as a table for a person: a row an attacker.

use std::io::{self, Write};

use super::against::{or_not_measured, write_in_turns};
use crate::observe::format::{exact, time_text};
use results::model::{BesideAttacker, HarmFactor, ResultFile};

const HEAD: &str =
    "attacker|its Gb/s|Gb/s alone|beside|factor [95 %]|p99 alone|beside|factor [95 %]|rounds";

/// Writes the table; nothing where there is no victim.
///
/// # Errors
/// The stream's.
pub fn write(result: &ResultFile, out: &mut impl Write) -> io::Result<()> {
    if result.beside.is_empty() {
        return Ok(());
    }
    let head: Vec<String> = HEAD.split('|').map(str::to_owned).collect();
    let are_words: Vec<bool> = (0..head.len()).map(|place| place == 0).collect();
    let rows = result.beside.iter().map(cells);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let ends: Vec<_> = result.beside.iter().map(|it| (&*it.verdict, it.note.as_ref())).collect();
    write_in_turns(&rows, &are_words, ("the victim is", &ends), out)
}

fn cells(beside: &BesideAttacker) -> Vec<String> {
    let rounds = match (beside.counted, beside.rounds) {
        (counted, rounds) if counted == rounds => rounds.to_string(),
        (counted, rounds) => format!("{counted} of {rounds}"),
    };
    let first = [beside.attacker.clone(), or_not_measured(beside.attacker_gbit_per_s.map(exact))];
    let factors =
        [factor_cells(&beside.gbit_per_s, exact), factor_cells(&beside.p99_ns, time_text)];
    [&first[..], factors.as_flattened(), &[rounds]].concat()
}

fn factor_cells(factor: &HarmFactor, text: fn(f64) -> String) -> [String; 3] {
    [factor.alone.map(text), factor.beside.map(text), factor_text(factor)].map(or_not_measured)
}

/// `1.52 [1.48, 1.57]`; without an interval where few rounds count.
pub fn factor_text(factor: &HarmFactor) -> Option<String> {
    let interval = factor
        .factor_low
        .zip(factor.factor_high)
        .map(|(low, high)| format!(" [{low:.2}, {high:.2}]"));
    let median = factor.factor?;
    Some(format!("{median:.2}{}", interval.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample;

    #[test]
    fn a_row_an_attacker_with_both_factors() {
        let mut result = sample::cases(Vec::new());
        let text = |result: &ResultFile| sample::text(|out| write(result, out));
        assert_eq!(text(&result), "");
        result.beside = sample::beside();
        insta::assert_snapshot!(text(&result));
    }
}
