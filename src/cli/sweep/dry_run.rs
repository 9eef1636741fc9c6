//! `--dry-run`: the cases as a table, or flow by flow, and how long they would take.

use std::io::{self, Write};
use std::time::Duration;

use crate::{
    cli::{
        sweep::plan::{RunPlan, nodes_here},
        terminal::{Failure, screen},
    },
    coordinator::interface::Against,
};
use node::memory_needs::MemoryNeeds;
use perftest::{Program, measuring};
use plan::check::{self, CheckRequest};
use plan::stages::BESIDES;
use plan::{Case, Devices, Flow, Goal, Searches, Sweep, quick};
use protocol::node_report::DeviceKind;
use report::observe::format::{alike, cell, counted};
use results::{numbers::for_people, text::wrapped};
use settings::{CrossRail, ROWS, Row, Scope, Settings, Takes, differing};

/// Prints the table on stdout, with what a person should know of the plan. A reader that closes the pipe early has seen enough: that is no error.
pub fn print(plan: &RunPlan, note: Option<String>) -> Result<(), Failure> {
    let stdout = io::stdout();
    let columns = screen(&stdout).columns;
    match write(plan, note, columns, &mut io::BufWriter::new(stdout.lock())) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write the table: {error}")))
        }
        _ => Ok(()),
    }
}

fn write(
    plan: &RunPlan,
    note: Option<String>,
    columns: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let width = columns.saturating_add(1);
    if flows_are_shown(&plan.options.sweep) {
        write_flows(&plan.options.sweep, out)?;
    } else {
        write_table(&plan.options.sweep.cases, width, out)?;
    }
    writeln!(out)?;
    for sentence in std::iter::once(footer(plan)).chain(memory(plan)).chain(note) {
        for line in wrapped(&sentence, width) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}

fn footer(plan: &RunPlan) -> String {
    if let Some(request) = plan.options.check {
        return check_footer(plan, request);
    }
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
        text += &format!(
            " x {} (at most {}: one that does not count is measured again)",
            counted(sweep.runs() as usize, "run"),
            sweep.most_runs()
        );
    }
    if let Some(case) = sweep.cases.first() {
        text += &format!(", {} each after a warm-up of {}", case.stop_text(), case.warmup);
    }
    let further = if plan.options.quick { quick::most_of(&sweep.cases) } else { 0 };
    if further > 0 {
        text += &format!(", then at most {further} more of what looks slow");
    }
    let longest = match (&plan.options.against, &plan.options.searches) {
        (Some(against), _) => longest_of_pairs(sweep, against),
        (None, Some(searches)) => longest_of_searches(sweep, searches),
        (None, None) => match &plan.options.beside {
            Some(rounds) => sweep.longest(rounds.most),
            // All cases take as long.
            None => sweep.longest(sweep.most_runs()).map(|span| {
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

/// Rounds of a check, and how long they take.
fn check_footer(plan: &RunPlan, request: CheckRequest) -> String {
    let sweep = &plan.options.sweep;
    let own = plan.options.ends.resources.rails.as_ref();
    let rails = match sweep.nodes.devices(0).or(own) {
        Some(Devices::Named(names)) => Some(names.len()),
        Some(Devices::All) | None => None,
    };
    let count = rails.unwrap_or(1);
    let rounds = sweep.cases.len() * check::rounds_of_pair(count, request);
    let mut text =
        format!("{} of pairs, in which each rail has one partner", counted(rounds, "round"));
    if rails.is_none() && request.cross_rail != CrossRail::Ignore {
        text += ", and as many for each further rail of a node";
    }
    let (windows, factor) = (sweep.longest(1), u32::try_from(rounds / sweep.cases.len().max(1)));
    if let (Some(windows), Ok(factor), Ok(of_all)) = (windows, factor, u32::try_from(rounds)) {
        let takes = windows.saturating_mul(factor) + BESIDES.saturating_mul(of_all);
        let [all, of_rail] = [1, count].map(|divisor| {
            let ms = takes.as_millis() / divisor as u128;
            for_people(Duration::from_millis(u64::try_from(ms / 100 * 100).unwrap_or(u64::MAX)))
        });
        text += &format!("; about {all}, {of_rail} a rail");
        text += ", and the time to connect; rounds with a slow path run twice";
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
    let nodes = nodes_here(&plan.options.sweep.nodes, &plan.options.ends.target);
    if nodes == 0 {
        return memory_of_servers(sweep, device);
    }
    let own: Vec<_> = (0..nodes).map(|node| (node, device)).collect();
    let (case, needs) = MemoryNeeds::of_sweep(sweep, &own)?;
    let here = format!("memory: {} takes {needs}", case.id);
    Some(match nodes {
        1 => {
            let server = MemoryNeeds::new(case, 1, device);
            format!("{here}, and {server} at the server")
        }
        2 => format!("{here}, both ends together"),
        _ => format!("{here}, all {nodes} nodes together"),
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
    let closed = sweep.longest(sweep.most_runs())?;
    let trials = u32::try_from(searches.goals.len()).ok()? * Searches::MOST_TRIALS;
    let once = searches.as_sweep(sweep).longest(1)?;
    Some(closed.saturating_add(once.saturating_mul(trials)))
}

/// As [`Sweep::longest`], of all pairs that there may be; `None` where perftest counts messages.
fn longest_of_pairs(sweep: &Sweep, against: &Against) -> Option<Duration> {
    let once = sweep.longest(1)?;
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

const COLUMNS: usize = 80;

/// How far lines after the first of a flow stand to the right.
const INDENT: usize = 6;

/// Flows of a pattern that are shown by name.
const NAMED_FLOWS: usize = 16;

/// Cells of a flow that stand below each other: name, way, and these settings.
const ALIGNED: [&str; 4] = ["op", "size", "qps", "tx-depth"];

/// `tx-depth 64`, `verify`, and of some settings the value alone.
fn setting_text(settings: &Settings, row: &Row) -> String {
    let text = row.text(settings);
    match (row.flag, row.takes) {
        ("op" | "size", _) => text,
        ("qps", _) => row.words(settings, &text),
        (flag, Takes::Switch) => flag.to_owned(),
        (flag, _) => format!("{flag} {text}"),
    }
}

/// Settings of a flow that are not the default, but for those that are always shown.
fn unusual(settings: &Settings) -> impl Iterator<Item = String> {
    let usual = Settings { signal_every: 1, ..Settings::default() };
    ROWS.iter()
        .filter(move |row| row.scope == Scope::Flow && !ALIGNED.contains(&row.flag))
        .filter(move |row| row.has_effect(settings))
        .filter(move |row| !row.is_equal(settings, &usual))
        .map(move |row| setting_text(settings, row))
}

fn cells(flow: &Flow, nodes: &[String]) -> Vec<String> {
    let mut cells = vec![
        flow.name.clone(),
        format!("{} -> {}", name_of(nodes, flow.from), name_of(nodes, flow.to)),
    ];
    let rows = ALIGNED.iter().filter_map(|flag| Settings::row(flag));
    cells.extend(rows.map(|row| setting_text(flow, row)));
    for (end, device) in [("from", &flow.from_device), ("to", &flow.to_device)] {
        if let Some(device) = device {
            cells.push(format!("{end}-device {}", device.name));
            let port = device.ib_port.map(|port| format!("{end}-ib-port {port}"));
            cells.extend(port);
        }
    }
    cells.extend(unusual(flow));
    cells
}

fn name_of(nodes: &[String], number: u32) -> &str {
    nodes.get(number as usize).map_or("", String::as_str)
}

/// Cells in one line, or in several where they do not fit.
fn write_line(out: &mut impl Write, indent: usize, cells: &[String]) -> io::Result<()> {
    let mut line = " ".repeat(indent);
    let mut is_begun = false;
    for cell in cells {
        let length = line.chars().count() + cell.trim_end().chars().count();
        if is_begun && length > COLUMNS {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(INDENT);
        }
        line += cell;
        line += "  ";
        is_begun = true;
    }
    writeln!(out, "{}", line.trim_end())
}

fn write_case(case: &Case, nodes: &[String], out: &mut impl Write) -> io::Result<()> {
    // How long it measures is said of all cases together.
    let usual = Settings::default();
    let of_case = ["workers", "poll"]
        .iter()
        .filter_map(|flag| Settings::row(flag))
        .filter(|row| !row.is_equal(case, &usual));
    let head: Vec<String> = std::iter::once(format!("case {}", case.id))
        .chain(of_case.map(|row| setting_text(case, row)))
        .collect();
    write_line(out, 0, &head)?;
    if let (Some(_), Some(first)) = (&case.pattern, case.flows.first()) {
        return write_pattern(case, first, out);
    }
    let mut lines: Vec<Vec<String>> = case.flows.iter().map(|it| cells(it, nodes)).collect();
    for column in 0..ALIGNED.len() + 2 {
        let width = lines.iter().map(|cells| cells[column].len()).max();
        for cells in &mut lines {
            let cell = &mut cells[column];
            *cell = format!("{cell:<width$}", width = width.unwrap_or_default());
        }
    }
    lines.iter().try_for_each(|cells| write_line(out, 2, cells))
}

/// The flows of a pattern: their settings, which all of them have, and the first of their names.
fn write_pattern(case: &Case, first: &Flow, out: &mut impl Write) -> io::Result<()> {
    let settings = ALIGNED
        .iter()
        .filter_map(|flag| Settings::row(flag))
        .map(|row| setting_text(first, row))
        .chain(unusual(first));
    let count = match case.flows.len() {
        1 => "1 flow:".to_owned(),
        flows => format!("{flows} flows, each:"),
    };
    write_line(out, 2, &std::iter::once(count).chain(settings).collect::<Vec<_>>())?;
    let mut names: Vec<String> =
        case.flows.iter().map(|flow| flow.name.clone()).take(NAMED_FLOWS).collect();
    if let Some(more) = case.flows.len().checked_sub(NAMED_FLOWS + 1) {
        names.push(format!("and {} more", more + 1));
    }
    write_line(out, 2, &names)
}

/// Whether the cases of a sweep are shown flow by flow: the table of cases does not tell what theirs are.
fn flows_are_shown(sweep: &Sweep) -> bool {
    let mut cases = sweep.cases.iter();
    cases.any(|case| {
        case.flows.len() > 1
            || !case.flows.iter().all(|flow| {
                (flow.from, flow.to, &flow.from_device, &flow.to_device) == (0, 1, &None, &None)
            })
    })
}

/// Each flow, its way and its settings, in lines of 80 columns. Settings beside operation, size, QPs and depth are shown
/// where they are not the default, by the keys of a file.
fn write_flows(sweep: &Sweep, out: &mut impl Write) -> io::Result<()> {
    let nodes = sweep.nodes.names();
    sweep.cases.iter().try_for_each(|case| write_case(case, &nodes, out))
}
