//! The comparison with perftest as a table for a person: a row a case, and below it what is to be known of some. It
//! must not know how the figures came about.

use std::io::{self, Write};

use settings::{Row, Settings, telling_apart};

use crate::observe::format::{exact, time_text};
use crate::observe::setting_words::cell;
use crate::results::model::{PerftestComparison, PerftestPair, ResultFile};

/// A cell without a figure.
const NONE: &str = "-";

/// What is told of each case behind its settings.
const HEAD: [&str; 5] = ["metric", "rocebench", "perftest", "ratio [95 %]", "pairs"];

/// Words are flush left, figures flush right; the verdict comes last.
struct Columns {
    widths: Vec<usize>,
    are_words: Vec<bool>,
}

/// Writes the table, with a column for each setting in which the cases differ; nothing where nothing was compared.
///
/// # Errors
/// The stream's.
pub fn write(result: &ResultFile, out: &mut impl Write) -> io::Result<()> {
    let compared: Vec<_> = result
        .cases
        .iter()
        .filter_map(|case| Some((&case.config.settings, case.perftest.as_ref()?)))
        .collect();
    if compared.is_empty() {
        return Ok(());
    }
    let all: Vec<Settings> = compared
        .iter()
        .map(|(settings, _)| (*settings).clone())
        .collect();
    let settings = telling_apart(&all);
    let heads = settings
        .iter()
        .map(|row| row.heading_of_column())
        .chain(HEAD);
    let head: Vec<String> = heads.map(str::to_owned).collect();
    let rows = compared.iter().map(|(of_case, comparison)| {
        let values = settings.iter().map(|row| cell(row, of_case));
        values.chain(cells(comparison)).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let is_word = |row: &&Row| all.iter().all(|it| row.number(it).is_none());
    let are_words = settings.iter().map(is_word);
    let mut columns = Columns {
        widths: head.iter().map(|head| head.chars().count()).collect(),
        are_words: are_words
            .chain(HEAD.iter().map(|head| *head == "metric"))
            .collect(),
    };
    for row in &rows {
        for (width, cell) in columns.widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut notes: Vec<&str> = Vec::new();
    writeln!(out)?;
    line(out, &head, &columns, "rocebench is")?;
    for (row, (_, comparison)) in rows.iter().zip(&compared) {
        let mut word = comparison.verdict.clone();
        if let Some(note) = &comparison.note {
            let known = notes.iter().position(|known| known == note);
            let number = known.unwrap_or_else(|| {
                notes.push(note);
                notes.len() - 1
            });
            word += &format!(" ({})", number + 1);
        }
        line(out, row, &columns, &word)?;
    }
    for (index, note) in notes.iter().enumerate() {
        writeln!(out, "({}) {note}", index + 1)?;
    }
    writeln!(out)?;
    out.flush()
}

fn line(out: &mut impl Write, cells: &[String], columns: &Columns, word: &str) -> io::Result<()> {
    let widths = columns.widths.iter().zip(&columns.are_words);
    let mut line = String::new();
    for (cell, (width, is_word)) in cells.iter().zip(widths) {
        line += &match is_word {
            true => format!("{cell:<width$} "),
            false => format!("{cell:>width$} "),
        };
    }
    writeln!(out, "{line}{word}")
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

fn cells(comparison: &PerftestComparison) -> [String; HEAD.len()] {
    let metric = &comparison.metric;
    let figure =
        |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| figure(metric, value));
    let ratio = match (
        comparison.ratio,
        comparison.ratio_low,
        comparison.ratio_high,
    ) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.3} [{low:.3}, {high:.3}]"),
        (Some(ratio), ..) => format!("{ratio:.3}"),
        _ => NONE.to_owned(),
    };
    let counted = comparison.pairs.iter().filter_map(PerftestPair::counted);
    let counted = counted.count();
    let pairs = match comparison.pairs.len() {
        all if all == counted => all.to_string(),
        all => format!("{counted} of {all}"),
    };
    [
        name(metric).to_owned(),
        figure(comparison.rocebench_median),
        figure(comparison.perftest_median),
        ratio,
        pairs,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn comparison(verdict: &str, note: Option<&str>) -> PerftestComparison {
        PerftestComparison {
            program: "ib_send_bw".into(),
            metric: "gbit_per_s".into(),
            pairs: vec![PerftestPair::default(); 5],
            rocebench_median: Some(93.3),
            perftest_median: Some(92.1),
            ratio: Some(1.013),
            ratio_low: Some(1.008),
            ratio_high: Some(1.021),
            verdict: verdict.into(),
            note: note.map(str::to_owned),
            ..PerftestComparison::default()
        }
    }

    fn table(result: &ResultFile) -> String {
        sample::text(|out| write(result, out))
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
}
