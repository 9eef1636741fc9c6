//! Matrices, fans and what they say, for a terminal of 80 columns.

use std::collections::BTreeSet;
use std::io::{self, Write};

use results::text::wrapped;

use crate::judge::{
    finding::Finding,
    findings::Findings,
    mesh::{Cell, Matrix, Outlier, Place},
};
use crate::observe::{
    Metric,
    format::{NOT_MEASURED, exact},
};

const COLUMNS: usize = 80;
/// Flows of a pattern with few of them that are listed, all or the slowest.
const MOST_FLOWS: usize = 16;
/// Most nodes in the strip; of more nodes it shows the slowest.
const MOST_NODES: usize = 96;
/// Slowest pairs below the strip.
const SLOWEST: usize = 5;
/// A cell all of whose runs failed or were stopped.
const LOST: &str = "lost";
/// A cell all of whose runs do not count, of which some are complete.
const DOUBTFUL: &str = "?";

/// Writes what the patterns of a file say: of each its matrix, or where that is too wide a strip of its nodes, and
/// sentences; of an incast or outcast sentences alone. Nothing where the file has no pattern.
///
/// # Errors
/// The stream's.
pub fn write(report: &Findings, out: &mut dyn Write) -> io::Result<()> {
    for mesh in &report.meshes {
        let matrix = &mesh.matrix;
        let is_fan = matrix.is_fan();
        if is_fan && mesh.findings.is_empty() {
            continue;
        }
        write!(out, "\n{}\n", matrix.title)?;
        if !is_fan && !matrix.settings.lock_step {
            for line in picture(matrix, &mesh.outliers) {
                writeln!(out, "{line}")?;
            }
        }
        write_all(out, &mesh.findings)?;
    }
    if !report.fans.is_empty() {
        writeln!(out)?;
    }
    write_all(out, &report.fans)
}

fn write_all(out: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    let mut lines = findings.iter().flat_map(|finding| wrapped(&finding.text, COLUMNS));
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

/// The matrix, where it fits; of a pattern with few flows a list; else a strip of its nodes and the slowest flows.
fn picture(matrix: &Matrix, outliers: &[Outlier]) -> Vec<String> {
    let flows = matrix.cells.len();
    let is_sparse = !matrix.is_full();
    if is_sparse && flows <= MOST_FLOWS {
        return list(matrix, outliers, &matrix.cells.iter().collect::<Vec<_>>());
    }
    if let (false, Some(heads)) = (is_sparse, fitting(matrix, COLUMNS)) {
        return table(matrix, outliers, &heads);
    }
    let mut lines = strip(matrix, outliers);
    let quantity = matrix.quantity();
    let mut slowest: Vec<(f64, &Cell)> =
        matrix.cells.iter().filter_map(|cell| Some((cell.figures.of(quantity)?, cell))).collect();
    slowest.sort_by(|(one, _), (two, _)| one.total_cmp(two));
    if !quantity.higher_is_better() {
        slowest.reverse();
    }
    let slowest_cells: Vec<&Cell> = slowest.iter().take(SLOWEST).map(|(_, cell)| *cell).collect();
    lines.push(format!("slowest of {flows} flows; all are in the CSV file:"));
    lines.extend(list(matrix, outliers, &slowest_cells));
    lines
}

fn figure_or_missing(value: Option<f64>, quantity: Metric) -> String {
    value.map_or_else(|| NOT_MEASURED.to_owned(), |it| exact(quantity.in_column(it)))
}

/// Marks a figure that a sentence names.
fn mark(is_told: bool) -> char {
    if is_told { '*' } else { ' ' }
}

fn is_told(outliers: &[Outlier], from: usize, to: usize) -> bool {
    outliers.iter().any(|it| it.place.has(from, to))
}

/// Rows post, columns are the other ends.
fn table(matrix: &Matrix, outliers: &[Outlier], heads: &Heads) -> Vec<String> {
    let quantity = matrix.quantity();
    let (label, width) = (heads.label, heads.cell);
    let unit = quantity.heading();
    let head = heads.columns.iter().map(|head| format!("{head:>width$} "));
    let mut lines = vec![format!(
        "{:<label$} {}{:>8}",
        format!("{unit} from\\to"),
        head.collect::<String>(),
        "median"
    )];
    let sending = matrix.sending(quantity);
    for (from, (name, sends)) in heads.rows.iter().zip(sending).enumerate() {
        let cells: String = (0..matrix.nodes.len())
            .map(|to| {
                let text = match matrix.cell(from, to) {
                    None if from == to => "·".to_owned(),
                    None => NOT_MEASURED.to_owned(),
                    Some(cell) => text(cell, quantity),
                };
                format!("{text:>width$}{}", mark(from != to && is_told(outliers, from, to)))
            })
            .collect();
        lines.push(format!("{name:<label$} {cells}{:>8}", figure_or_missing(sends, quantity)));
    }
    let receiving: String = matrix
        .receiving(quantity)
        .into_iter()
        .map(|it| format!("{:>width$} ", figure_or_missing(it, quantity)))
        .collect();
    let of_all = figure_or_missing(matrix.median(quantity), quantity);
    lines.push(format!("{:<label$} {receiving}{of_all:>8}", "median"));
    lines.extend(legend(matrix, outliers));
    lines
}

fn legend(matrix: &Matrix, outliers: &[Outlier]) -> Option<String> {
    let slow = (!outliers.is_empty()).then_some("* slow, see below");
    let quantity = matrix.quantity();
    let texts: BTreeSet<String> = matrix.cells.iter().map(|cell| text(cell, quantity)).collect();
    let lost = texts.contains(LOST).then_some("lost: each run failed or was stopped");
    let doubtful = texts.contains(DOUBTFUL).then_some("?: each run is doubtful");
    let parts: Vec<&str> = [slow, lost, doubtful].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn text(cell: &Cell, quantity: Metric) -> String {
    match cell.figures.of(quantity) {
        None if cell.doubtful > 0 => DOUBTFUL.to_owned(),
        None if cell.lost > 0 => LOST.to_owned(),
        figure => figure_or_missing(figure, quantity),
    }
}

fn list(matrix: &Matrix, outliers: &[Outlier], cells: &[&Cell]) -> Vec<String> {
    let names: Vec<String> = cells
        .iter()
        .map(|cell| {
            if cell.from == cell.to {
                matrix.name(cell.from).to_owned()
            } else {
                format!("{}>{}", matrix.name(cell.from), matrix.name(cell.to))
            }
        })
        .collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let head = format!("{:<width$} {:>8}  {:>8} {:>8}", "flow", "Gb/s", "p50 µs", "p99 µs");
    let rows = cells.iter().zip(&names).map(|(cell, name)| {
        let [rate, p50, p99] =
            [Metric::GbitPerS, Metric::P50Ns, Metric::P99Ns].map(|quantity| text(cell, quantity));
        let mark = mark(is_told(outliers, cell.from, cell.to));
        format!("{name:<width$} {rate:>8}{mark} {p50:>8} {p99:>8}")
    });
    std::iter::once(head).chain(rows).collect()
}

/// Each node's median of what it sends and of what it receives, in as many columns as there is room for.
fn strip(matrix: &Matrix, outliers: &[Outlier]) -> Vec<String> {
    let quantity = matrix.quantity();
    let sides: Vec<(Option<f64>, Option<f64>)> =
        (matrix.sending(quantity).into_iter()).zip(matrix.receiving(quantity)).collect();
    let names = cut(&matrix.nodes);
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let mut nodes: Vec<usize> = (0..matrix.nodes.len()).collect();
    let mut lines = Vec::new();
    if nodes.len() > MOST_NODES {
        nodes.sort_by(|one, other| {
            let [one, other] = [one, other]
                .map(|node| worse_side(quantity, sides.get(*node).copied().unwrap_or_default()));
            one.total_cmp(&other)
        });
        nodes.truncate(MOST_FLOWS);
        let count = matrix.nodes.len();
        lines.push(format!("the slowest {} of {count} nodes:", nodes.len()));
    }
    let each = width + 1 + 7 + 2 + 7 + 1;
    let most_columns = ((COLUMNS + 2) / (each + 2)).clamp(1, nodes.len().max(1));
    let rows = nodes.len().div_ceil(most_columns);
    let head = format!("{:<width$} {:>7}  {:>7} ", "node", "from", "to");
    let columns = nodes.len().div_ceil(rows.max(1));
    let unit = quantity.heading();
    lines.push(format!("medians over each node's peers, {unit}"));
    lines.push(vec![head; columns].join("  ").trim_end().to_owned());
    for row in 0..rows {
        let line = nodes
            .iter()
            .skip(row)
            .step_by(rows)
            .map(|&node| {
                let (sends, receives) = sides.get(node).copied().unwrap_or_default();
                let name = names.get(node).map_or("", |name| name);
                let [sends, receives] = [sends, receives].map(|it| figure_or_missing(it, quantity));
                let [sent, received] = [Place::From(node), Place::To(node)]
                    .map(|side| [side, Place::Node(node)])
                    .map(|places| mark(outliers.iter().any(|it| places.contains(&it.place))));
                format!("{name:<width$} {sends:>7}{sent} {receives:>7}{received}")
            })
            .collect::<Vec<_>>()
            .join("  ");
        lines.push(line.trim_end().to_owned());
    }
    lines.extend(legend(matrix, outliers));
    lines
}

/// The worse of what a node sends and what it receives, negated for latency: the less, the worse.
fn worse_side(quantity: Metric, (sends, receives): (Option<f64>, Option<f64>)) -> f64 {
    let sides = [sends, receives].into_iter().flatten();
    if quantity.higher_is_better() {
        sides.fold(f64::INFINITY, f64::min)
    } else {
        -sides.fold(0.0, f64::max)
    }
}

/// Widest name that is shown whole.
const WIDEST: usize = 16;
/// Narrowest column, for a figure.
const NARROWEST: usize = 6;
/// A column of medians at the right.
const MEDIAN: usize = 8;
/// What stands in the corner.
const CORNER: usize = 14;

/// Names of nodes that fit above columns.
struct Heads {
    rows: Vec<String>,
    columns: Vec<String>,
    label: usize,
    cell: usize,
}

/// Heads with which a matrix fits into so many columns: names, or numbers at both sides; `None` where there are none.
fn fitting(matrix: &Matrix, columns: usize) -> Option<Heads> {
    let names = cut(&matrix.nodes);
    let numbers: Vec<String> = (1..=names.len()).map(|it| format!("#{it}")).collect();
    let numbered: Vec<String> =
        numbers.iter().zip(&names).map(|(number, name)| format!("{number} {name}")).collect();
    let heads = [(names.clone(), names), (numbered, numbers)].map(|(rows, above)| Heads {
        label: widest(&rows).max(CORNER),
        cell: widest(&above).max(NARROWEST),
        rows,
        columns: above,
    });
    // A figure has a mark behind it.
    heads.into_iter().find(|it| it.label + 1 + it.columns.len() * (it.cell + 1) + MEDIAN <= columns)
}

/// Names that are not too wide: of the others the end, which distinguishes nodes.
fn cut(names: &[String]) -> Vec<String> {
    // Domains are the same mostly.
    let hosts: Vec<String> = names.iter().map(|name| host(name).to_owned()).collect();
    let are_unique = hosts.iter().collect::<BTreeSet<_>>().len() == names.len();
    let unique = if are_unique { &hosts } else { names };
    unique
        .iter()
        .map(|name| match name.chars().count().saturating_sub(WIDEST) {
            0 => name.clone(),
            more => "…".chars().chain(name.chars().skip(more + 1)).collect(),
        })
        .collect()
}

/// A host's name without its domain; an address stays.
fn host(name: &str) -> &str {
    match name.split_once('.') {
        Some((host, rest))
            if host.contains(char::is_alphabetic) && rest.contains(char::is_alphabetic) =>
        {
            host
        }
        _ => name,
    }
}

fn widest(names: &[String]) -> usize {
    names.iter().map(|name| name.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "mesh_tests.rs"]
mod tests;
