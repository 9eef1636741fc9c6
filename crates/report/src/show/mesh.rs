//! Matrices, fans and what they say, for a terminal of 80 columns. It must not judge, nor know what writes it.

mod heads;

use std::io::{self, Write};

use crate::judge::mesh::Fan;
use crate::judge::mesh::Outlier;
use crate::judge::mesh::Place;
use crate::judge::mesh::words::number;
use crate::judge::mesh::{Cell, Matrix};
use crate::observe::Metric;
use crate::observe::format::{NOT_MEASURED, plural};
use crate::results::model::ResultFile;
use crate::text::wrapped;
use heads::Heads;

/// Columns of the terminal.
const COLUMNS: usize = 80;
/// Flows of a pattern with few of them that are listed, all or the slowest.
const MOST_FLOWS: usize = 16;
/// Nodes that are told each in the strip; of more of them the slowest.
const MOST_NODES: usize = 96;
/// Slowest pairs below the strip.
const SLOWEST: usize = 5;
/// A cell all of whose runs failed or were stopped.
const LOST: &str = "lost";
/// A cell all of whose runs do not count, of which some are complete.
const DOUBTFUL: &str = "?";

/// Writes what the patterns of a file say: of each its matrix, or where that is too wide a strip of its nodes, and
/// sentences. Nothing where the file has no pattern.
///
/// # Errors
/// The stream's.
pub fn write(file: &ResultFile, out: &mut dyn Write) -> io::Result<()> {
    let fans = Fan::all(file);
    for matrix in Matrix::all(file) {
        let outliers = matrix.outliers();
        let is_fan = fans.iter().any(|fan| {
            let mut points = fan.points.iter();
            points.any(|point| matrix.cases.contains(&point.case))
        });
        // Of an incast the fan tells the rest.
        let sentences = match is_fan && outliers.is_empty() {
            true => matrix.without_figures(),
            false => matrix.sentences_of(&outliers),
        };
        if is_fan && sentences.is_empty() {
            continue;
        }
        writeln!(out)?;
        writeln!(out, "{}", matrix.title())?;
        let picture = match is_fan {
            true => Vec::new(),
            false => picture(&matrix, &outliers),
        };
        write_all(out, &picture, &sentences)?;
    }
    for fan in fans {
        let sentences = fan.sentences();
        if !sentences.is_empty() {
            writeln!(out)?;
            write_all(out, &[], &sentences)?;
        }
    }
    Ok(())
}

fn write_all(out: &mut dyn Write, lines: &[String], sentences: &[String]) -> io::Result<()> {
    for line in lines {
        writeln!(out, "{line}")?;
    }
    for sentence in sentences {
        for line in wrapped(sentence, COLUMNS) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
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
    let mut slowest: Vec<&Cell> = matrix.cells.iter().collect();
    let quantity = matrix.quantity();
    slowest.retain(|cell| cell.figures.of(quantity).is_some());
    slowest.sort_by(|one, two| {
        let [one, two] = [one, two].map(|cell| cell.figures.of(quantity).unwrap_or(0.0));
        match quantity.higher_is_better() {
            true => one.total_cmp(&two),
            false => two.total_cmp(&one),
        }
    });
    slowest.truncate(SLOWEST);
    lines.push(format!(
        "slowest of {flows} flows; all are in the CSV file:"
    ));
    lines.extend(list(matrix, outliers, &slowest));
    lines
}

/// `Gb/s`, `p50 µs`.
fn unit(quantity: Metric) -> &'static str {
    match quantity {
        Metric::P50Ns => "p50 µs",
        Metric::P99Ns => "p99 µs",
        rate => rate.unit(),
    }
}

/// What stands behind a figure of which something is told.
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
        format!(
            "{text:>width$}{}",
            mark(from != to && is_told(outliers, from, to))
        )
    };
    let median = |value: Option<f64>| match value {
        Some(value) => number(quantity, value),
        None => NOT_MEASURED.to_owned(),
    };
    let unit = unit(quantity);
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
    let receiving = matrix.receiving(quantity).into_iter();
    let receiving: String = receiving
        .map(|it| format!("{:>width$} ", median(it)))
        .collect();
    let all = median(matrix.median(quantity));
    lines.push(format!("{:<label$} {receiving}{all:>8}", "median"));
    lines.extend(legend(matrix, outliers));
    lines
}

/// What marks mean, as far as there are some.
fn legend(matrix: &Matrix, outliers: &[Outlier]) -> Option<String> {
    let told = (!outliers.is_empty()).then_some("* slow, see below");
    let quantity = matrix.quantity();
    let has = |text_of: &str| {
        matrix
            .cells
            .iter()
            .any(|cell| text(cell, quantity) == text_of)
    };
    let lost = has(LOST).then_some("lost: each run failed or was stopped");
    let doubtful = has(DOUBTFUL).then_some("?: each run is doubtful");
    let parts: Vec<&str> = [told, lost, doubtful].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn text(cell: &Cell, quantity: Metric) -> String {
    match cell.figures.of(quantity) {
        Some(value) => number(quantity, value),
        None if cell.doubtful > 0 => DOUBTFUL.to_owned(),
        None if cell.lost > 0 => LOST.to_owned(),
        None => NOT_MEASURED.to_owned(),
    }
}

/// A row a flow.
fn list(matrix: &Matrix, outliers: &[Outlier], cells: &[&Cell]) -> Vec<String> {
    let name = |cell: &Cell| match cell.from == cell.to {
        true => matrix.name(cell.from).to_owned(),
        false => format!("{}>{}", matrix.name(cell.from), matrix.name(cell.to)),
    };
    let names: Vec<String> = cells.iter().map(|cell| name(cell)).collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let head = format!(
        "{:<width$} {:>8}  {:>8} {:>8}",
        "flow", "Gb/s", "p50 µs", "p99 µs"
    );
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
    let sides: Vec<(Option<f64>, Option<f64>)> = (matrix.sending(quantity).into_iter())
        .zip(matrix.receiving(quantity))
        .collect();
    let names = heads::cut(&matrix.nodes);
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let told = |is: &dyn Fn(Place) -> bool| mark(outliers.iter().any(|outlier| is(outlier.place)));
    let sends_less = |node| told(&|place| place == Place::From(node) || place == Place::Node(node));
    let receives_less =
        |node| told(&|place| place == Place::To(node) || place == Place::Node(node));
    let mut nodes: Vec<usize> = (0..matrix.nodes.len()).collect();
    let mut lines = Vec::new();
    if nodes.len() > MOST_NODES {
        let worse = |node: &usize| {
            let (sends, receives) = sides.get(*node).copied().unwrap_or_default();
            let sides = [sends, receives].into_iter().flatten();
            match quantity.higher_is_better() {
                true => sides.fold(f64::INFINITY, f64::min),
                false => -sides.fold(0.0, f64::max),
            }
        };
        nodes.sort_by(|one, two| worse(one).total_cmp(&worse(two)));
        nodes.truncate(MOST_FLOWS);
        let all = matrix.nodes.len();
        lines.push(format!(
            "the slowest {} of {all} {}:",
            nodes.len(),
            plural(all, "node")
        ));
    }
    let figure = |value: Option<f64>| match value {
        Some(value) => number(quantity, value),
        None => NOT_MEASURED.to_owned(),
    };
    let each = width + 1 + 7 + 2 + 7 + 1;
    let columns = ((COLUMNS + 2) / (each + 2)).clamp(1, nodes.len().max(1));
    let rows = nodes.len().div_ceil(columns);
    let head = format!("{:<width$} {:>7}  {:>7} ", "node", "from", "to");
    let columns = nodes.len().div_ceil(rows.max(1));
    lines.push(format!(
        "medians over each node's peers, {}",
        unit(quantity)
    ));
    lines.push(vec![head; columns].join("  ").trim_end().to_owned());
    for row in 0..rows {
        let own = nodes.iter().skip(row).step_by(rows);
        let cells = own.map(|&node| {
            let (sends, receives) = sides.get(node).copied().unwrap_or_default();
            let name = names.get(node).map_or("", |name| name);
            let (sends, receives) = (figure(sends), figure(receives));
            let marks = (sends_less(node), receives_less(node));
            format!(
                "{name:<width$} {sends:>7}{} {receives:>7}{}",
                marks.0, marks.1
            )
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        lines.push(line.trim_end().to_owned());
    }
    lines.extend(legend(matrix, outliers));
    lines
}

#[cfg(test)]
mod tests;
