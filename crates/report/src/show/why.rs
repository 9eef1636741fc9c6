//! What limits a case, for a terminal: the answer, what to do, the changes that were tried, and what they ruled out.

use std::io::{self, Write};

use results::model::{ChangeTrial, Diagnosis, FoundCause, ResultFile};
use results::numbers::fixed;
use results::text::{Mark, Screen, wrapped};

/// Most changes in the table: those that decided, and those with an expectation.
const MOST_ROWS: usize = 8;

/// Heads of the table of changes.
pub(super) const HEAD: [&str; 4] = ["changed", "expected if so", "measured", "so it is"];

/// Writes each diagnosis of a file; nothing where it has none.
///
/// # Errors
/// The stream's.
pub fn write(result: &ResultFile, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    for case in &result.cases {
        if let Some(diagnosis) = &case.diagnosis {
            let name = (result.cases.len() > 1).then_some(&*case.id);
            write_diagnosis(name, diagnosis, screen, out)?;
        }
    }
    Ok(())
}

fn write_diagnosis(
    name: Option<&str>,
    diagnosis: &Diagnosis,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = screen.columns.saturating_add(1);
    let answer = match name {
        Some(name) => format!("{name}: {}", diagnosis.answer),
        None => diagnosis.answer.clone(),
    };
    writeln!(out)?;
    for line in wrapped(&answer, width) {
        writeln!(out, "{}", screen.painted(Mark::Doubtful, &line))?;
    }
    for line in remedies(diagnosis).iter().flat_map(|text| wrapped(text, width)) {
        writeln!(out, "{line}")?;
    }
    let rows = rows(diagnosis);
    if !rows.is_empty() {
        writeln!(out)?;
        write_table(&rows, screen.columns.min(100), out)?;
        writeln!(out)?;
    }
    for line in remarks(diagnosis).iter().flat_map(|text| wrapped(text, width)) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// What to do about each cause.
pub(super) fn remedies(diagnosis: &Diagnosis) -> Vec<String> {
    let of_causes =
        diagnosis.causes.iter().map(|cause: &FoundCause| match diagnosis.causes.len() {
            1 => format!("What to do: {}", cause.remedy),
            _ => format!("If {}: {}", words(&cause.id), cause.remedy),
        });
    of_causes.collect()
}

/// The cells of the changes that have figures, those that decided first.
pub(super) fn rows(diagnosis: &Diagnosis) -> Vec<[String; 4]> {
    let measured = diagnosis.trials.iter().filter(|trial| trial.failure.is_none());
    measured.map(cells).take(MOST_ROWS).collect()
}

fn cells(trial: &ChangeTrial) -> [String; 4] {
    [
        trial.changed.clone(),
        trial.expected.clone().unwrap_or_default(),
        measured(trial),
        trial.held().to_owned(),
    ]
}

/// `1.82 times [1.76, 1.90]`; of an expectation of losses `lost 812 ppm, then 0`.
fn measured(trial: &ChangeTrial) -> String {
    let is_of_losses = trial.expected.as_ref().is_some_and(|it| it.ends_with("losses"));
    match (trial.lost_ppm.filter(|_| is_of_losses), trial.ratio, trial.low.zip(trial.high)) {
        (Some([before, with]), ..) => {
            format!("lost {} ppm, then {}", fixed(before, 0), fixed(with, 0))
        }
        (_, Some(ratio), Some((low, high))) => {
            format!("{} times [{}, {}]", fixed(ratio, 2), fixed(low, 2), fixed(high, 2))
        }
        (_, Some(ratio), None) => format!("{} times", fixed(ratio, 2)),
        (_, None, _) => String::new(),
    }
}

fn write_table(rows: &[[String; 4]], columns: usize, out: &mut dyn Write) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEAD[column].chars().count()]).max().unwrap_or(0)
    };
    let [changed, expected, measured, holds] = [0, 1, 2, 3].map(width);
    let room = columns.saturating_sub(expected + measured + holds + 6).max(16);
    let first = changed.min(room);
    let head = HEAD.map(str::to_owned);
    for [change, expectation, figure, verdict] in std::iter::once(&head).chain(rows) {
        let mut lines = wrapped(change, first + 1).into_iter();
        let start = lines.next().unwrap_or_default();
        let row =
            format!("{start:<first$}  {expectation:<expected$}  {figure:<measured$}  {verdict}");
        writeln!(out, "{}", row.trim_end())?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// What else is known: what was ruled out, what would tell, what was not tried, and why it ended.
pub(super) fn remarks(diagnosis: &Diagnosis) -> Vec<String> {
    let mut remarks = Vec::new();
    if !diagnosis.ruled_out.is_empty() {
        let causes = diagnosis.ruled_out.iter().map(|cause| words(&cause.id));
        remarks.push(format!("Ruled out: {}.", causes.collect::<Vec<_>>().join(", ")));
    }
    if !diagnosis.would_tell.is_empty() {
        remarks.push(format!("Would tell more: {}.", diagnosis.would_tell.join("; ")));
    }
    let failed = diagnosis
        .trials
        .iter()
        .filter_map(|trial| Some(format!("{} ({})", trial.changed, trial.failure.as_ref()?)));
    let left_out = diagnosis.left_out.iter().map(|it| format!("{} ({})", it.change, it.why));
    let missing: Vec<String> = failed.chain(left_out).collect();
    if !missing.is_empty() {
        remarks.push(format!("Left out: {}.", missing.join("; ")));
    }
    if let Some(reason) = &diagnosis.ended_by {
        remarks.push(format!("Not decided: {reason}."));
    }
    remarks
}

/// The name of a cause, in words.
pub(super) fn words(id: &str) -> String {
    id.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use results::model::{CaseResult, Certainty};
    use results::sample::{cases, diagnosis};

    use super::*;

    /// What a terminal of 80 columns shows of a cause, of several that cannot be told apart, and of none.
    #[test]
    fn an_answer_comes_first_and_then_what_shows_it() {
        let proven = diagnosis();
        let second = FoundCause { id: "qp_window".to_owned(), ..proven.causes[0].clone() };
        let several = Diagnosis {
            certainty: Certainty::OneOfSeveral,
            answer: "These cannot be told apart: one. Or: the other.".to_owned(),
            causes: [proven.causes.clone(), vec![second]].concat(),
            ended_by: None,
            ..proven.clone()
        };
        let unknown = Diagnosis {
            certainty: Certainty::Unknown,
            answer: "Unknown: no known cause explains it.".to_owned(),
            causes: Vec::new(),
            trials: Vec::new(),
            would_tell: Vec::new(),
            left_out: Vec::new(),
            ..several.clone()
        };
        let of_cases = [("a", proven), ("b", several), ("c", unknown)].map(|(id, diagnosis)| {
            CaseResult { id: id.to_owned(), diagnosis: Some(diagnosis), ..CaseResult::default() }
        });
        let mut text = Vec::new();
        let screen = Screen { columns: 80, is_coloured: false };
        write(&cases(of_cases.into()), screen, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }
}
