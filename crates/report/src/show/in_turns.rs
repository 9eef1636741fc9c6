//! What was measured in turns as tables for a person: cases beside perftest, a row a case, and a victim alone and
//! beside attackers, a row an attacker. Below stands what is to be known of some rows.

use std::io::{self, Write};

use results::model::{BesideAttacker, HarmFactor, PerftestComparison, PerftestPair, ResultFile};
use settings::{Settings, telling_apart};

use crate::observe::format::{NOT_MEASURED, cell, exact, time_text};

/// Columns of each case behind its settings.
const AGAINST_HEAD: [&str; 5] = ["metric", "rocebench", "perftest", "ratio [95 %]", "pairs"];

/// Writes the table, with a column for each setting in which the cases differ; nothing where nothing was compared. Words are
/// flush left, figures flush right; the verdict comes last.
///
/// # Errors
/// The stream's.
pub fn write_against_perftest(result: &ResultFile, out: &mut impl Write) -> io::Result<()> {
    let compared = result.cases.iter().filter_map(|case| {
        let comparison = case.perftest.as_ref()?;
        Some((case.config.settings.clone(), comparison))
    });
    let (cases, compared): (Vec<Settings>, Vec<&PerftestComparison>) = compared.unzip();
    if compared.is_empty() {
        return Ok(());
    }
    let settings = telling_apart(&cases);
    let head = settings
        .iter()
        .map(|row| row.heading_of_column())
        .chain(AGAINST_HEAD)
        .map(str::to_owned)
        .collect();
    let rows = cases.iter().zip(&compared).map(|(of_case, comparison)| {
        settings.iter().map(|row| cell(row, of_case)).chain(pair_cells(comparison)).collect()
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let are_words: Vec<bool> = settings
        .iter()
        .map(|row| cases.iter().all(|it| row.number(it).is_none()))
        .chain(AGAINST_HEAD.iter().map(|heading| *heading == "metric"))
        .collect();
    let ends: Vec<_> = compared.iter().map(|it| (&*it.verdict, it.note.as_ref())).collect();
    write_in_turns(&rows, &are_words, ("rocebench is", &ends), out)
}

/// Writes rows below their head, of which `are_words` are flush left; at their ends a verdict each below its head, with notes
/// by number.
fn write_in_turns(
    rows: &[Vec<String>],
    are_words: &[bool],
    (verdict_head, ends): (&str, &[(&str, Option<&String>)]),
    out: &mut impl Write,
) -> io::Result<()> {
    let columns: Vec<(usize, bool)> = (are_words.iter().enumerate())
        .map(|(place, is_word)| {
            let widths = rows.iter().map(|row| row[place].chars().count());
            (widths.max().unwrap_or(0), *is_word)
        })
        .collect();
    let mut notes: Vec<&String> = Vec::new();
    let verdicts: Vec<String> = ends
        .iter()
        .map(|(word, note)| {
            let Some(note) = note else {
                return (*word).to_owned();
            };
            if !notes.contains(note) {
                notes.push(note);
            }
            let number = notes.iter().position(|known| known == note);
            format!("{word} ({})", number.map_or(0, |number| number + 1))
        })
        .collect();
    writeln!(out)?;
    let last_cells = std::iter::once(verdict_head).chain(verdicts.iter().map(String::as_str));
    for (row, last) in rows.iter().zip(last_cells) {
        for (cell, (width, is_word)) in row.iter().zip(&columns) {
            if *is_word { write!(out, "{cell:<width$} ")? } else { write!(out, "{cell:>width$} ")? }
        }
        writeln!(out, "{last}")?;
    }
    for (number, note) in (1..).zip(notes) {
        writeln!(out, "({number}) {note}")?;
    }
    writeln!(out)?;
    out.flush()
}

/// The metric of latency, whose figures have a unit each.
const LATENCY: &str = "latency_ns";

/// What a comparison's `metric` is called.
fn name(metric: &str) -> &str {
    match metric {
        "gbit_per_s" => "Gb/s",
        "mmsg_per_s" => "Mmsg/s",
        LATENCY => "p50",
        other => other,
    }
}

fn figure(metric: &str, value: f64) -> String {
    match metric {
        LATENCY => time_text(value),
        _ => exact(value),
    }
}

/// Both figures of a pair as a person reads them.
pub fn figures(metric: &str, rocebench: f64, perftest: f64) -> String {
    let [own, theirs] = [rocebench, perftest].map(|value| figure(metric, value));
    match metric {
        LATENCY => format!("{}: rocebench {own}, perftest {theirs}", name(metric)),
        _ => format!("rocebench {own}, perftest {theirs} {}", name(metric)),
    }
}

fn pair_cells(comparison: &PerftestComparison) -> [String; AGAINST_HEAD.len()] {
    let metric = &comparison.metric;
    let [own, theirs] = [comparison.rocebench_median, comparison.perftest_median]
        .map(|median| or_not_measured(median.map(|value| figure(metric, value))));
    let interval = comparison
        .ratio_low
        .zip(comparison.ratio_high)
        .map(|(low, high)| format!(" [{low:.3}, {high:.3}]"))
        .unwrap_or_default();
    let ratio = or_not_measured(comparison.ratio.map(|ratio| format!("{ratio:.3}{interval}")));
    let counted = comparison.pairs.iter().filter_map(PerftestPair::counted).count();
    let pairs = match comparison.pairs.len() {
        pairs if pairs == counted => pairs.to_string(),
        pairs => format!("{counted} of {pairs}"),
    };
    [name(metric).to_owned(), own, theirs, ratio, pairs]
}

fn or_not_measured(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOT_MEASURED.to_owned())
}

const BESIDE_HEAD: &str =
    "attacker|its Gb/s|Gb/s alone|beside|factor [95 %]|p99 alone|beside|factor [95 %]|rounds";

/// Writes the table; nothing where there is no victim.
///
/// # Errors
/// The stream's.
pub fn write_beside_attackers(result: &ResultFile, out: &mut impl Write) -> io::Result<()> {
    if result.beside.is_empty() {
        return Ok(());
    }
    let head: Vec<String> = BESIDE_HEAD.split('|').map(str::to_owned).collect();
    let are_words: Vec<bool> = (0..head.len()).map(|place| place == 0).collect();
    let rows = result.beside.iter().map(attacker_cells);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let ends: Vec<_> = result.beside.iter().map(|it| (&*it.verdict, it.note.as_ref())).collect();
    write_in_turns(&rows, &are_words, ("the victim is", &ends), out)
}

fn attacker_cells(beside: &BesideAttacker) -> Vec<String> {
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
    use results::sample::{self, with};

    use super::*;

    fn comparison(verdict: &str, note: Option<&str>) -> PerftestComparison {
        let pair = with(&PerftestPair::default(), "rocebench=93.3; perftest=92.1");
        let fields = "program=ib_send_bw; metric=gbit_per_s; rocebench_median=93.3; perftest_median=92.1; ratio=1.013; \
                    ratio_low=1.008; ratio_high=1.021";
        PerftestComparison {
            pairs: vec![pair; 5],
            verdict: verdict.into(),
            note: note.map(str::to_owned),
            ..with(&PerftestComparison::default(), fields)
        }
    }

    fn table(result: &ResultFile) -> String {
        sample::text(|out| write_against_perftest(result, out))
    }

    #[test]
    fn a_pair_reads_as_the_table_does() {
        let text = figures("latency_ns", 12_060.0, 9_110.0);
        assert_eq!(text, "p50: rocebench 12.1 µs, perftest 9.11 µs");
    }

    #[test]
    fn a_row_a_case_and_each_note_once() {
        assert_eq!(table(&sample::mixed()), "");
        let mut result = sample::result();
        result.cases.push(result.cases[0].clone());
        result.cases[0].perftest = Some(comparison("equal", None));
        let note = "perftest has one CQ for all QPs";
        let mut failed = comparison("unclear", Some(note));
        (failed.rocebench_median, failed.perftest_median) = (None, None);
        failed.ratio = None;
        failed.metric = "latency_ns".into();
        failed.pairs[0].failure = Some("it hung".into());
        result.cases[1].perftest = Some(failed);
        let mut latency = comparison("slower", Some(note));
        latency.metric = "latency_ns".into();
        (latency.rocebench_median, latency.perftest_median) = (Some(12_060.0), Some(9_110.0));
        result.cases[2].perftest = Some(latency);
        insta::assert_snapshot!(table(&result));
    }

    #[test]
    fn a_row_an_attacker_with_both_factors() {
        let mut result = sample::cases(Vec::new());
        let text = |file: &ResultFile| sample::text(|out| write_beside_attackers(file, out));
        assert_eq!(text(&result), "");
        result.beside = sample::beside();
        insta::assert_snapshot!(text(&result));
    }
}
