//! What `--dry-run` shows of cases with flows of a file: each flow, its way and its settings, in lines of 80 columns.
//! Settings beside operation, size, QPs and depth are shown where they are not the default, by the keys of a file.

use std::io::{self, Write};

use settings::{ROWS, Row, Scope, Settings, Takes};

use plan::{Case, Flow, Sweep};

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

/// Settings of a flow that are not the default, but for those that are always told.
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
    // How long it measures is told of all cases together.
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
pub(in crate::cli) fn are_shown(sweep: &Sweep) -> bool {
    let mut cases = sweep.cases.iter();
    cases.any(|case| {
        case.flows.len() > 1
            || !case.flows.iter().all(|flow| {
                (flow.from, flow.to, &flow.from_device, &flow.to_device) == (0, 1, &None, &None)
            })
    })
}

pub(in crate::cli) fn write(sweep: &Sweep, out: &mut impl Write) -> io::Result<()> {
    let nodes = sweep.nodes.names();
    sweep.cases.iter().try_for_each(|case| write_case(case, &nodes, out))
}
