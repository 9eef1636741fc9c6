//! Matrices, fans and what they say, for a terminal of 80 columns. It must not judge, nor know what writes it.

mod heads;

use std::io::{self, Write};

use crate::judge::findings::Said;
use crate::judge::mesh::{Cell, Matrix, NodesFinding, Outlier, Place};
use crate::observe::Metric;
use crate::observe::format::NOT_MEASURED;
use crate::show::sentences::{number, of_nodes};
use crate::text::wrapped;
use heads::Heads;

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
pub fn write(said: &Said, out: &mut dyn Write) -> io::Result<()> {
    for mesh in &said.meshes {
        let matrix = &mesh.matrix;
        let is_fan = matrix.is_fan();
        if is_fan && mesh.findings.is_empty() {
            continue;
        }
        write!(out, "\n{}\n", matrix.title)?;
        if !is_fan {
            for line in picture(matrix, &mesh.outliers) {
                writeln!(out, "{line}")?;
            }
        }
        write_all(out, &mesh.findings)?;
    }
    for fan in &said.fans {
        writeln!(out)?;
        write_all(out, &[NodesFinding::Fan(fan.clone())])?;
    }
    Ok(())
}

fn write_all(out: &mut dyn Write, findings: &[NodesFinding]) -> io::Result<()> {
    let mut lines = findings.iter().flat_map(|it| wrapped(&of_nodes(it), COLUMNS));
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

/// The matrix, where it fits; of a pattern with few flows a list; else a strip of its nodes and the slowest flows.
fn picture(matrix: &Matrix, outliers: &[Outlier]) -> Vec<String> {
    let flows = matrix.cells.len();
    let is_sparse = !matrix.is_full();
    if is_sparse && flows <= MOST_FLOWS {
        return list(matrix, outliers, &matrix.cells.iter().collect::<Vec<_>>());
    }
    if let (false, Some(heads)) = (is_sparse, heads::fitting(matrix, COLUMNS)) {
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
    let slowest: Vec<&Cell> = slowest.iter().take(SLOWEST).map(|(_, cell)| *cell).collect();
    lines.push(format!("slowest of {flows} flows; all are in the CSV file:"));
    lines.extend(list(matrix, outliers, &slowest));
    lines
}

fn told(value: Option<f64>, quantity: Metric) -> String {
    value.map_or_else(|| NOT_MEASURED.to_owned(), |it| number(quantity, it))
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
    let cell = |from: usize, to: usize| {
        let text = match matrix.cell(from, to) {
            None if from == to => "·".to_owned(),
            None => NOT_MEASURED.to_owned(),
            Some(cell) => text(cell, quantity),
        };
        format!("{text:>width$}{}", mark(from != to && is_told(outliers, from, to)))
    };
    let median = |value: Option<f64>| told(value, quantity);
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
        let cells: String = (0..matrix.nodes.len()).map(|to| cell(from, to)).collect();
        lines.push(format!("{name:<label$} {cells}{:>8}", median(sends)));
    }
    let receiving: String = matrix
        .receiving(quantity)
        .into_iter()
        .map(|it| format!("{:>width$} ", median(it)))
        .collect();
    let all = median(matrix.median(quantity));
    lines.push(format!("{:<label$} {receiving}{all:>8}", "median"));
    lines.extend(legend(matrix, outliers));
    lines
}

fn legend(matrix: &Matrix, outliers: &[Outlier]) -> Option<String> {
    let told = (!outliers.is_empty()).then_some("* slow, see below");
    let quantity = matrix.quantity();
    let texts = matrix.cells.iter().map(|cell| text(cell, quantity));
    let has = |text: &str| texts.clone().any(|it| it == text);
    let lost = has(LOST).then_some("lost: each run failed or was stopped");
    let doubtful = has(DOUBTFUL).then_some("?: each run is doubtful");
    let parts: Vec<&str> = [told, lost, doubtful].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn text(cell: &Cell, quantity: Metric) -> String {
    match cell.figures.of(quantity) {
        None if cell.doubtful > 0 => DOUBTFUL.to_owned(),
        None if cell.lost > 0 => LOST.to_owned(),
        figure => told(figure, quantity),
    }
}

fn list(matrix: &Matrix, outliers: &[Outlier], cells: &[&Cell]) -> Vec<String> {
    let name = |cell: &Cell| {
        if cell.from == cell.to {
            matrix.name(cell.from).to_owned()
        } else {
            format!("{}>{}", matrix.name(cell.from), matrix.name(cell.to))
        }
    };
    let names: Vec<String> = cells.iter().map(|cell| name(cell)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let head = format!("{:<width$} {:>8}  {:>8} {:>8}", "flow", "Gb/s", "p50 µs", "p99 µs");
    let rows = cells.iter().zip(&names).map(|(cell, name)| {
        let figure = |quantity| text(cell, quantity);
        format!(
            "{name:<width$} {:>8}{} {:>8} {:>8}",
            figure(Metric::GbitPerS),
            mark(is_told(outliers, cell.from, cell.to)),
            figure(Metric::P50Ns),
            figure(Metric::P99Ns),
        )
    });
    std::iter::once(head).chain(rows).collect()
}

/// Each node's median of what it sends and of what it receives, in as many columns as there is room for.
fn strip(matrix: &Matrix, outliers: &[Outlier]) -> Vec<String> {
    let quantity = matrix.quantity();
    let sides: Vec<(Option<f64>, Option<f64>)> =
        (matrix.sending(quantity).into_iter()).zip(matrix.receiving(quantity)).collect();
    let names = heads::cut(&matrix.nodes);
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let marked = |places: [Place; 2]| mark(outliers.iter().any(|it| places.contains(&it.place)));
    let mut nodes: Vec<usize> = (0..matrix.nodes.len()).collect();
    let mut lines = Vec::new();
    if nodes.len() > MOST_NODES {
        let worse = |node: &usize| {
            let (sends, receives) = sides.get(*node).copied().unwrap_or_default();
            let sides = [sends, receives].into_iter().flatten();
            if quantity.higher_is_better() {
                sides.fold(f64::INFINITY, f64::min)
            } else {
                -sides.fold(0.0, f64::max)
            }
        };
        nodes.sort_by(|one, two| worse(one).total_cmp(&worse(two)));
        nodes.truncate(MOST_FLOWS);
        let all = matrix.nodes.len();
        lines.push(format!("the slowest {} of {all} nodes:", nodes.len()));
    }
    let each = width + 1 + 7 + 2 + 7 + 1;
    let columns = ((COLUMNS + 2) / (each + 2)).clamp(1, nodes.len().max(1));
    let rows = nodes.len().div_ceil(columns);
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
                let [sends, receives] = [sends, receives].map(|it| told(it, quantity));
                let [sent, received] = [Place::From(node), Place::To(node)]
                    .map(|side| marked([side, Place::Node(node)]));
                format!("{name:<width$} {sends:>7}{sent} {receives:>7}{received}")
            })
            .collect::<Vec<_>>()
            .join("  ");
        lines.push(line.trim_end().to_owned());
    }
    lines.extend(legend(matrix, outliers));
    lines
}

#[cfg(test)]
mod tests;
