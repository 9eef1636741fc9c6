//! Many nodes as text of 80 columns: what all have in common, a row for each node with what differs, and the findings.

use crate::doctor::text::{counted, finding_text, wrapped};
use protocol::node_report::{Finding, State};

use super::differences::{Spread, named};
use super::{Clock, NodesReport, Scope};

/// The most columns of a line.
const WIDTH: usize = 80;
/// Columns of a cell; what is longer is cut.
const CELL: usize = 24;
/// Columns of a node's name; what is longer is cut.
const NAME: usize = 40;
const GAP: &str = "  ";

/// The whole text. With `all_reasons` every finding has its reason, and what is well is told too; `quiet` is only what is
/// not well.
pub fn text(report: &NodesReport, all_reasons: bool, quiet: bool) -> String {
    let mut text = String::new();
    if !quiet {
        text += &common(report);
        text += &table(report);
    }
    for (scope, heading) in [
        (Scope::Reach, "Not examined"),
        (Scope::Difference, "Between the nodes"),
        (Scope::Own, "At the nodes"),
    ] {
        let texts: String = report
            .findings
            .iter()
            .filter(|it| it.scope == scope)
            .filter(|it| all_reasons || it.finding.state >= State::Warning)
            .map(|it| whose(report, scope, &it.nodes, &it.finding))
            .map(|finding| finding_text(&finding, all_reasons, WIDTH))
            .collect();
        if !texts.is_empty() {
            text += &format!("\n{heading}\n{texts}");
        }
    }
    if !quiet {
        let answered = report.answered();
        text += &format!(
            "\n{} nodes, {answered} examined{}\n",
            report.nodes.len(),
            match counted(|state| report.count(state)).trim() {
                "" => String::new(),
                counts => format!(": {counts}"),
            }
        );
    }
    text
}

/// The finding with the names of the nodes before it, unless it is a sentence that has them.
fn whose(report: &NodesReport, scope: Scope, nodes: &[String], finding: &Finding) -> Finding {
    let who = match scope {
        Scope::Difference => return finding.clone(),
        Scope::Own if nodes.len() > 1 && nodes.len() == report.answered() => {
            format!("all {} nodes", nodes.len())
        }
        _ => named(nodes, &(0..nodes.len()).collect::<Vec<_>>()),
    };
    Finding { found: format!("{who}: {}", finding.found), ..finding.clone() }
}

fn common(report: &NodesReport) -> String {
    let answered = report.answered();
    if answered == 0 {
        return String::new();
    }
    let facts: Vec<String> = report
        .spreads
        .iter()
        .filter_map(|spread| {
            let group = spread.common()?;
            let unknown = answered - group.nodes.len();
            let unknown = match unknown {
                0 => String::new(),
                unknown => format!(" (unknown at {unknown})"),
            };
            Some(format!("{} {}{unknown}", spread.aspect.name, group.value))
        })
        .collect();
    let who = match answered {
        1 => "the node that answered".to_owned(),
        _ if answered < report.nodes.len() => format!("all {answered} nodes that answered"),
        _ => format!("all {answered} nodes"),
    };
    let mut text = String::new();
    for line in wrapped(&format!("{who}: {}", facts.join(", ")), WIDTH) {
        text += &(line + "\n");
    }
    if !report.unknown.is_empty() {
        let unknown = format!("unknown at all: {}", report.unknown.join(", "));
        for line in wrapped(&unknown, WIDTH) {
            text += &(line + "\n");
        }
    }
    text
}

/// A column: its heading, and a cell for each node.
struct Column {
    cells: Vec<String>,
}

impl Column {
    fn new(heading: &str, cells: impl Iterator<Item = String>, most: usize) -> Column {
        let heading = std::iter::once(heading.to_owned());
        Column { cells: heading.chain(cells).map(|cell| cut(&cell, most)).collect() }
    }

    fn from_spread(spread: &Spread) -> Column {
        let cells = spread.values.iter().enumerate().map(|(node, value)| {
            let mark = if spread.is_odd(node) && spread.aspect.difference != State::Ok {
                " *"
            } else {
                ""
            };
            format!("{}{mark}", value.as_deref().unwrap_or("?"))
        });
        Column::new(spread.aspect.heading, cells, CELL)
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

/// A text of at most so many columns; a mark at its end stays.
fn cut(cell: &str, most: usize) -> String {
    if cell.chars().count() <= most {
        return cell.to_owned();
    }
    let (body, mark) = match cell.strip_suffix(" *") {
        Some(body) => (body, " *"),
        None => (cell, ""),
    };
    let kept: String = body.chars().take(most - 1 - mark.len()).collect();
    format!("{kept}…{mark}")
}

fn table(report: &NodesReport) -> String {
    let names = report.nodes.iter().map(|node| node.name.clone());
    let names = Column::new("node", names, NAME);
    let offsets = report.nodes.iter().map(|node| match node.clock {
        Some(clock) => offset(clock),
        None => "?".to_owned(),
    });
    let mut columns = vec![Column::new("clock offset", offsets, CELL)];
    let differing = report.spreads.iter().filter(|spread| spread.differs());
    columns.extend(differing.map(Column::from_spread));
    let has_marks =
        columns.iter().any(|column| column.cells.iter().any(|cell| cell.ends_with(" *")));
    let mut text = String::new();
    let mut left = columns.as_slice();
    let mut is_first = true;
    // Columns that do not fit stand in a further table below.
    while !left.is_empty() {
        let mut width = names.width();
        let fit = left
            .iter()
            .take_while(|column| {
                width += GAP.len() + column.width();
                width <= WIDTH
            })
            .count()
            .max(1);
        let (block, rest) = left.split_at(fit);
        text += &block_text(report, &names, block, is_first);
        (left, is_first) = (rest, false);
    }
    if has_marks {
        text += "* differs from most\n";
    }
    text
}

fn block_text(report: &NodesReport, names: &Column, block: &[Column], is_first: bool) -> String {
    let mut text = "\n".to_owned();
    for (row, name) in names.cells.iter().enumerate() {
        let node = row.checked_sub(1);
        let is_silent = node
            .and_then(|node| report.nodes.get(node))
            .is_some_and(|node| node.examination.is_none());
        let mut line = format!("{name:<width$}", width = names.width());
        if is_silent && !is_first {
            continue;
        }
        if is_silent {
            line += GAP;
            line += &silence(report, node.unwrap_or_default(), WIDTH - names.width() - GAP.len());
        } else {
            for column in block {
                let cell = column.cells.get(row).map_or("", String::as_str);
                line += &format!("{GAP}{cell:<width$}", width = column.width());
            }
        }
        text += line.trim_end();
        text += "\n";
    }
    text
}

/// Why a node has no row of its own: wrapped, with what follows under its beginning.
fn silence(report: &NodesReport, node: usize, width: usize) -> String {
    let name = report.nodes.get(node).map(|node| &node.name);
    let finding =
        report.findings.iter().find(|it| it.scope == Scope::Reach && it.nodes.first() == name);
    let reason = finding.map_or("not examined", |it| it.finding.found.as_str());
    let lines = wrapped(reason, width);
    lines.join(&format!("\n{}", " ".repeat(WIDTH - width)))
}

/// A clock's offset and its uncertainty: `+0.02 ±0.11 ms`.
fn offset(clock: Clock) -> String {
    let (offset, within) = (clock.offset_ns as f64 / 1e6, clock.uncertainty_ns as f64 / 1e6);
    if offset.abs() < 1000.0 {
        format!("{offset:+.2} ±{within:.2} ms")
    } else {
        format!("{:+.1} ±{:.1} s", offset / 1e3, within / 1e3)
    }
}
