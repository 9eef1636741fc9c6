//! `--dry-run`: the cases as a table, and how long they would take.

use std::io::{self, Write};
use std::time::Duration;

use crate::coordinator::interface::{Against, Target};
use node::memory_needs::MemoryNeeds;
use perftest::{Program, measuring};
use plan::{Case, Devices, Goal, Nodes, Searches, Sweep, quick};
use protocol::memory_offer::DeviceKind;
use report::observe::format::counted;
use report::observe::format::{alike, cell};
use results::text::wrapped;
use settings::{Settings, differing};

use crate::cli::sweep::plan::RunPlan;
use crate::cli::terminal::errors::Failure;
use crate::cli::terminal::progress::for_people;
use crate::cli::terminal::screen;

mod flows;

fn footer(plan: &RunPlan) -> String {
    let sweep = &plan.options.sweep;
    let cases = sweep.cases.len();
    let mut text = counted(cases, "case");
    if let Some(against) = &plan.options.against {
        text += &format!(
            " x {} to {} pairs with perftest ({})",
            against.pairs,
            against.max_pairs,
            programs(sweep).join(", ")
        );
    } else if let Some(rounds) = &plan.options.beside {
        text += &format!(" x {} to {} rounds", rounds.least, rounds.most);
    } else if let Some(searches) = &plan.options.searches {
        let goals: Vec<String> = searches.goals.iter().map(Goal::to_string).collect();
        text += &format!(
            " x the closed loop, and searches for {}: each about {} trials, at most {}",
            goals.join(" and "),
            Searches::USUAL_TRIALS,
            Searches::MOST_TRIALS
        );
    } else if sweep.runs() > 1 {
        text += &format!(" x {}", counted(sweep.runs() as usize, "run"));
    }
    if let Some(case) = sweep.cases.first() {
        text += &format!(", {} each after a warm-up of {}", case.stop_text(), case.warmup);
    }
    let further = if plan.options.quick { quick::most_of(sweep) } else { 0 };
    if further > 0 {
        text += &format!(", then at most {further} more of what looks slow");
    }
    let longest = match (&plan.options.against, &plan.options.searches) {
        (Some(against), _) => longest_of_pairs(sweep, against),
        (None, Some(searches)) => longest_of_searches(sweep, searches),
        (None, None) => match &plan.options.beside {
            Some(rounds) => sweep.longest().map(|span| span / sweep.runs() * rounds.most),
            // All cases take as long.
            None => sweep.longest().map(|span| {
                let [further, cases] = [further, cases].map(|it| u32::try_from(it).unwrap_or(1));
                span.saturating_add((span / cases.max(1)).saturating_mul(further))
            }),
        },
    };
    if let Some(longest) = longest {
        text += &format!("; at most {} and the time to connect", for_people(longest));
    }
    text
}

/// What the largest case takes of memory, with all results.
fn memory(plan: &RunPlan) -> Option<String> {
    // Open loops keep more histograms.
    let largest = plan.options.searches.as_ref().map(|it| it.as_sweep(&plan.options.sweep));
    let sweep = largest.as_ref().unwrap_or(&plan.options.sweep);
    let resources = &plan.options.ends.resources;
    let first = match &resources.rails {
        Some(Devices::Named(names)) => names.first(),
        Some(Devices::All) => None,
        None => resources.request.device.as_ref(),
    };
    // No device is opened for this; an adapter's queues are larger than the embedded device's.
    let device = if first.is_some_and(|name| name.starts_with("soft")) {
        DeviceKind::Embedded
    } else {
        DeviceKind::System
    };
    let is_remote = matches!(plan.options.ends.target, Target::Remote(..));
    let nodes_here = match &plan.options.sweep.nodes {
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
            let server = MemoryNeeds::new(case, 1, device);
            format!("{here}, and {server} at the server")
        }
        2 => format!("{here}, both ends together"),
        nodes => format!("{here}, all {nodes} nodes together"),
    })
}

/// What the largest case takes at the server that needs most, without results, which are kept here.
fn memory_of_servers(sweep: &Sweep, device: DeviceKind) -> Option<String> {
    let names = sweep.nodes.names();
    let (case, name, needs) = sweep
        .cases
        .iter()
        .flat_map(|case| {
            (0..)
                .zip(&names)
                .map(move |(node, name)| (case, name, MemoryNeeds::new(case, node, device)))
        })
        .max_by_key(|(_, _, needs)| needs.total())?;
    Some(format!("memory: {} takes {needs} at {name}, the node that needs most", case.id))
}

/// perftest's programs that the cases need.
fn programs(sweep: &Sweep) -> Vec<&'static str> {
    let mut names: Vec<_> = sweep.cases.iter().map(|case| Program::for_case(case).name()).collect();
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
    let theirs = sweep.cases.iter().map(measuring).sum::<Option<Duration>>()?;
    Some(once.saturating_add(theirs).saturating_mul(against.max_pairs))
}

/// What all cases have alike in words, and a column for each setting in which they differ.
fn write_table(cases: &[Case], columns: usize, out: &mut impl Write) -> io::Result<()> {
    let settings: Vec<Settings> = cases.iter().map(|case| case.settings.clone()).collect();
    for line in wrapped(&alike(&settings, true).join(" · "), columns) {
        writeln!(out, "{line}")?;
    }
    let rows = differing(&settings);
    let of_rows = rows.iter().map(|row| {
        let is_word = settings.iter().all(|it| row.number(it).is_none());
        (row.heading_of_column(), is_word)
    });
    let heads: Vec<(&str, bool)> = std::iter::once(("case", true)).chain(of_rows).collect();
    let mut table: Vec<Vec<String>> =
        vec![heads.iter().map(|(head, _)| (*head).to_owned()).collect()];
    table.extend(cases.iter().map(|case| {
        let cells = rows.iter().map(|row| cell(row, case));
        std::iter::once(case.id.clone()).chain(cells).collect()
    }));
    let mut widths = vec![0; heads.len()];
    for line in &table {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for cells in &table {
        let mut line = String::new();
        for ((cell, width), (_, is_word)) in cells.iter().zip(&widths).zip(&heads) {
            line +=
                &if *is_word { format!("{cell:<width$}  ") } else { format!("{cell:>width$}  ") };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn write(plan: &RunPlan, columns: usize, out: &mut impl Write) -> io::Result<()> {
    let width = columns.saturating_add(1);
    if flows::are_shown(&plan.options.sweep) {
        flows::write(&plan.options.sweep, out)?;
    } else {
        write_table(&plan.options.sweep.cases, width, out)?;
    }
    writeln!(out)?;
    for line in std::iter::once(footer(plan)).chain(memory(plan)) {
        for line in wrapped(&line, width) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}

/// Prints the table on stdout. A reader that closes the pipe early has seen enough: that is no error.
pub fn print(plan: &RunPlan) -> Result<(), Failure> {
    let stdout = io::stdout();
    let columns = screen(&stdout).columns;
    match write(plan, columns, &mut io::BufWriter::new(stdout.lock())) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write the table: {error}")))
        }
        _ => Ok(()),
    }
}
