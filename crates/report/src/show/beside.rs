//! A victim alone and beside attackers as a table for a person: a row an attacker. It must not know how the figures came about.

use std::io::{self, Write};

use super::against::write_in_turns;
use crate::observe::format::{NOT_MEASURED, exact, time_text};
use crate::results::model::{BesideAttacker, HarmFactor, ResultFile};

const HEAD: [&str; 9] = [
    "attacker",
    "its Gb/s",
    "Gb/s alone",
    "beside",
    "factor [95 %]",
    "p99 alone",
    "beside",
    "factor [95 %]",
    "rounds",
];

/// Writes the table; nothing where there is no victim.
///
/// # Errors
/// The stream's.
pub fn write(result: &ResultFile, out: &mut impl Write) -> io::Result<()> {
    if result.beside.is_empty() {
        return Ok(());
    }
    let head = HEAD.map(str::to_owned).to_vec();
    let rows = result.beside.iter().map(cells);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let ends = result.beside.iter();
    let ends: Vec<_> = ends.map(|it| (&*it.verdict, it.note.as_ref())).collect();
    let are_words = HEAD.map(|head| head == HEAD[0]);
    write_in_turns(&rows, &are_words, ("the victim is", &ends), out)
}

fn cells(told: &BesideAttacker) -> Vec<String> {
    let known = |text: Option<String>| text.unwrap_or_else(|| NOT_MEASURED.to_owned());
    let (counted, all) = (told.counted(), told.rounds.len());
    let rounds = match counted == all {
        true => all.to_string(),
        false => format!("{counted} of {all}"),
    };
    let mut cells = vec![
        told.attacker.clone(),
        known(told.attacker_gbit_per_s.map(exact)),
    ];
    let texts: [fn(f64) -> String; 2] = [exact, time_text];
    for ((_, factor), text) in told.factors().into_iter().zip(texts) {
        let sides = [factor.alone, factor.beside].map(|value| known(value.map(text)));
        cells.extend(sides);
        cells.push(known(factor_text(factor)));
    }
    cells.push(rounds);
    cells
}

/// `1.52 [1.48, 1.57]`; without an interval where few rounds count.
pub fn factor_text(told: &HarmFactor) -> Option<String> {
    let interval = told.factor_low.zip(told.factor_high);
    let interval = interval.map(|(low, high)| format!(" [{low:.2}, {high:.2}]"));
    let factor = told.factor?;
    Some(format!("{factor:.2}{}", interval.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    #[test]
    fn a_row_an_attacker_with_both_factors() {
        let mut result = sample::cases(Vec::new());
        let text = |result: &ResultFile| sample::text(|out| write(result, out));
        assert_eq!(text(&result), "");
        result.beside = sample::beside();
        insta::assert_snapshot!(text(&result));
    }
}
