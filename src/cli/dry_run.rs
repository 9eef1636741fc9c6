//! `--dry-run`: the cases as a table, and how long they would take.

use std::io::{self, Write};
use std::time::Duration;

use crate::coordinator::options::{Against, Target};
use crate::node::memory_needs::{DeviceKind, MemoryNeeds};
use crate::perftest::{Program, measuring};
use crate::plan::{Case, Goal, Nodes, Searches, Sweep};
use settings::{Applies, ROWS, Row, Settings};

use super::errors::Failure;
use super::run::RunPlan;

mod flows;

/// A setting that does not apply to the case is a dash.
fn cell(settings: &Settings, row: &Row) -> String {
    let text = row.text(settings);
    match (row.applies)(settings) {
        Applies::Yes if text.is_empty() => "auto".to_owned(),
        Applies::Yes => text,
        Applies::Ignored | Applies::Not(_) => "-".to_owned(),
    }
}

/// `1 h 5 min`, `2 min 30 s`, `45 s`, `1.5 s`.
fn for_people(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{} s", span.as_millis() as f64 / 1e3),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

fn footer(plan: &RunPlan) -> String {
    let sweep = &plan.sweep;
    let cases = sweep.cases.len();
    let plural =
        |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text = plural(u64::try_from(cases).unwrap_or(u64::MAX), "case");
    if let Some(against) = &plan.against {
        text += &format!(
            " x {} to {} pairs with perftest ({})",
            against.pairs,
            against.max_pairs,
            programs(sweep).join(", ")
        );
    } else if let Some(searches) = &plan.searches {
        let goals: Vec<String> = searches.goals.iter().map(Goal::to_string).collect();
        text += &format!(
            " x the closed loop, and searches for {}: each about {} trials, at most {}",
            goals.join(" and "),
            Searches::USUAL_TRIALS,
            Searches::MOST_TRIALS
        );
    } else if sweep.runs() > 1 {
        text += &format!(" x {}", plural(sweep.runs().into(), "run"));
    }
    if let Some(case) = sweep.cases.first() {
        text += &format!(
            ", {} each after a warm-up of {}",
            case.stop_text(),
            case.warmup
        );
    }
    let longest = match (&plan.against, &plan.searches) {
        (Some(against), _) => longest_of_pairs(sweep, against),
        (None, Some(searches)) => longest_of_searches(sweep, searches),
        (None, None) => sweep.longest(),
    };
    if let Some(longest) = longest {
        text += &format!("; at most {} and the time to connect", for_people(longest));
    }
    text
}

/// What the largest case takes of memory, with all results.
fn memory(plan: &RunPlan) -> Option<String> {
    // Open loops keep more histograms.
    let largest = plan.searches.as_ref().map(|it| it.as_sweep(&plan.sweep));
    let sweep = largest.as_ref().unwrap_or(&plan.sweep);
    // No device is opened for this; an adapter's queues are larger than the embedded device's.
    let is_embedded = |name: &str| name.starts_with("soft");
    let device = &plan.ends.resources.request.device;
    let device = match device.as_deref().is_some_and(is_embedded) {
        true => DeviceKind::Embedded,
        false => DeviceKind::System,
    };
    let is_remote = matches!(plan.ends.target, Target::Remote(..));
    let nodes_here = match &plan.sweep.nodes {
        Nodes::TwoEnds if is_remote => 1,
        Nodes::TwoEnds => 2,
        Nodes::Local(nodes) => *nodes,
        Nodes::Hosts(_) | Nodes::Ranks(_) => return memory_of_servers(sweep, device),
    };
    let here: Vec<_> = (0..nodes_here).map(|node| (node, device)).collect();
    let (case, needs) = MemoryNeeds::of_sweep(sweep, &here)?;
    let here = format!("memory: {} takes {needs}", case.id);
    Some(match nodes_here {
        1 => {
            let server = MemoryNeeds::of(case, 1, device);
            format!("{here}, and {server} at the server")
        }
        2 => format!("{here}, both ends together"),
        nodes => format!("{here}, all {nodes} nodes together"),
    })
}

/// What the largest case takes at the server that needs most, without results, which are kept here.
fn memory_of_servers(sweep: &Sweep, device: DeviceKind) -> Option<String> {
    let names = sweep.nodes.names();
    let ends = sweep.cases.iter().flat_map(|case| {
        let names = (0..).zip(&names);
        names.map(move |(node, name)| (case, name, MemoryNeeds::of(case, node, device)))
    });
    let (case, name, needs) = ends.max_by_key(|(_, _, needs)| needs.total())?;
    Some(format!(
        "memory: {} takes {needs} at {name}, the node that needs most",
        case.id
    ))
}

/// perftest's programs that the cases need.
fn programs(sweep: &Sweep) -> Vec<&'static str> {
    let mut names: Vec<_> = sweep
        .cases
        .iter()
        .map(|case| Program::for_case(case).name())
        .collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// As [`Sweep::longest`], with all trials that there may be.
fn longest_of_searches(sweep: &Sweep, searches: &Searches) -> Option<Duration> {
    let closed = sweep.longest()?;
    let trials = u32::try_from(searches.goals.len()).ok()? * Searches::MOST_TRIALS;
    let once = searches.as_sweep(sweep).longest()? / sweep.runs();
    Some(closed.saturating_add(once.saturating_mul(trials)))
}

/// As [`Sweep::longest`], of all pairs that there may be; `None` where perftest counts messages.
fn longest_of_pairs(sweep: &Sweep, against: &Against) -> Option<Duration> {
    let once = sweep.longest()? / sweep.runs();
    let theirs = sweep
        .cases
        .iter()
        .map(measuring)
        .sum::<Option<Duration>>()?;
    Some(
        once.saturating_add(theirs)
            .saturating_mul(against.max_pairs),
    )
}

fn write_table(cases: &[Case], out: &mut impl Write) -> io::Result<()> {
    let usual = Settings::default();
    let columns: Vec<&Row> = (ROWS.iter().filter(|row| !row.column.is_empty()))
        .filter(|row| {
            let is_unusual = |case: &Case| !row.is_equal(case, &usual);
            !row.column_if_used || cases.iter().any(is_unusual)
        })
        .collect();
    let header = std::iter::once("case").chain(columns.iter().map(|row| row.column));
    let mut table: Vec<Vec<String>> = vec![header.map(str::to_owned).collect()];
    table.extend(cases.iter().map(|case| {
        let cells = columns.iter().map(|row| cell(case, row));
        std::iter::once(case.id.clone()).chain(cells).collect()
    }));
    let mut widths = vec![0; columns.len() + 1];
    for line in &table {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.len());
        }
    }
    for cells in &table {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            // Words to the left, numbers to the right.
            line += &if column < 3 {
                format!("{cell:<width$}  ")
            } else {
                format!("{cell:>width$}  ")
            };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn write(plan: &RunPlan, out: &mut impl Write) -> io::Result<()> {
    match flows::are_shown(&plan.sweep) {
        true => flows::write(&plan.sweep, out)?,
        false => write_table(&plan.sweep.cases, out)?,
    }
    writeln!(out, "\n{}", footer(plan))?;
    if let Some(memory) = memory(plan) {
        writeln!(out, "{memory}")?;
    }
    out.flush()
}

/// Prints the table. A reader that closes the pipe early has seen enough: that is no error.
///
/// # Errors
/// When `out` cannot be written for another reason.
pub fn print(plan: &RunPlan, out: &mut impl Write) -> Result<(), Failure> {
    match write(plan, &mut io::BufWriter::new(out)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write the table: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        for (ms, text) in [
            (1_500, "1.5 s"),
            (45_000, "45 s"),
            (150_000, "2 min 30 s"),
            (3_900_000, "1 h 5 min"),
        ] {
            assert_eq!(for_people(Duration::from_millis(ms)), text);
        }
    }
}
