//! The comparison with perftest as a table for a person: a row a case, and below it what is to be known of some. It
//! must not know how the figures came about.

use std::io::{self, Write};

use super::model::{CaseConfig, PerftestComparison, ResultFile};
use super::number::{digits, human_size};

/// A cell without a figure.
const NONE: &str = "-";

/// Words are flush left, figures flush right; the verdict comes last.
const HEAD: [&str; 10] = [
    "op",
    "cq",
    "QPs",
    "size",
    "wrk",
    "unit",
    "rocebench",
    "perftest",
    "ratio [95 %]",
    "pairs",
];

/// Writes the table; nothing where nothing was compared.
///
/// # Errors
/// The stream's.
pub fn write(result: &ResultFile, out: &mut impl Write) -> io::Result<()> {
    let compared: Vec<_> = result
        .cases
        .iter()
        .filter_map(|case| Some((&case.config, case.perftest.as_ref()?)))
        .collect();
    if compared.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; HEAD.len()]> = compared
        .iter()
        .map(|(config, comparison)| cells(config, comparison))
        .collect();
    let mut widths = HEAD.map(|head| head.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut notes: Vec<&str> = Vec::new();
    writeln!(out)?;
    line(out, &HEAD.map(str::to_owned), widths, "rocebench is")?;
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
        line(out, row, widths, &word)?;
    }
    for (index, note) in notes.iter().enumerate() {
        writeln!(out, "({}) {note}", index + 1)?;
    }
    writeln!(out)?;
    out.flush()
}

fn line(
    out: &mut impl Write,
    cells: &[String; HEAD.len()],
    widths: [usize; HEAD.len()],
    word: &str,
) -> io::Result<()> {
    let mut line = String::new();
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        line += &if index < 2 || index == 5 {
            format!("{cell:<width$} ")
        } else {
            format!("{cell:>width$} ")
        };
    }
    writeln!(out, "{line}{word}")
}

/// Unit for a person of a comparison's `metric`, and the factor into it.
fn unit(metric: &str) -> (&str, f64) {
    match metric {
        "gbit_per_s" => ("Gbit/s", 1.0),
        "mmsg_per_s" => ("Mmsg/s", 1.0),
        "latency_ns" => ("p50 µs", 1e-3),
        other => (other, 1.0),
    }
}

/// Both figures of a pair as a person reads them.
pub fn figures(metric: &str, rocebench: f64, perftest: f64) -> String {
    let (unit, scale) = unit(metric);
    let [own, theirs] = [rocebench, perftest]
        .map(|figure| figure * scale)
        .map(|figure| format!("{figure:.*}", digits(figure)));
    format!("rocebench {own}, perftest {theirs} {unit}")
}

fn cells(config: &CaseConfig, comparison: &PerftestComparison) -> [String; HEAD.len()] {
    let (unit, scale) = unit(&comparison.metric);
    let figure = |value: Option<f64>| match value.map(|value| value * scale) {
        Some(value) => format!("{value:.*}", digits(value)),
        None => NONE.to_owned(),
    };
    let ratio = match (
        comparison.ratio,
        comparison.ratio_low,
        comparison.ratio_high,
    ) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.3} [{low:.3}, {high:.3}]"),
        (Some(ratio), ..) => format!("{ratio:.3}"),
        _ => NONE.to_owned(),
    };
    let counted = comparison.pairs.iter().filter(|it| it.failure.is_none());
    let counted = counted.count();
    let pairs = match comparison.pairs.len() {
        all if all == counted => all.to_string(),
        all => format!("{counted} of {all}"),
    };
    [
        match config.bidirectional {
            true => format!("{} both", config.op),
            false => config.op.to_string(),
        },
        config.cq.to_string(),
        config.qps.to_string(),
        human_size(config.size_bytes.into()),
        config.workers.to_string(),
        unit.to_owned(),
        figure(comparison.rocebench_median),
        figure(comparison.perftest_median),
        ratio,
        pairs,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::model::PerftestPair;
    use super::super::sample;
    use super::*;

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
        let mut out = Vec::new();
        write(result, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_pair_reads_as_the_table_does() {
        let text = figures("latency_ns", 12_060.0, 9_110.0);
        assert_eq!(text, "rocebench 12.060, perftest 9.110 p50 µs");
    }

    #[test]
    fn without_a_comparison_there_is_no_table() {
        let mut result = sample::result();
        result
            .cases
            .iter_mut()
            .for_each(|case| case.perftest = None);
        assert_eq!(table(&result), "");
    }

    #[test]
    fn a_row_a_case_and_each_note_once() {
        let mut result = sample::result();
        result.cases.truncate(2);
        result.cases.push(result.cases[0].clone());
        result.cases[0].perftest = Some(comparison("equal", None));
        let note = "perftest has one CQ for all QPs";
        let mut failed = comparison("unclear", Some(note));
        (
            failed.ratio,
            failed.rocebench_median,
            failed.perftest_median,
        ) = (None, None, None);
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
