//! All flows of all cases in one table: what was measured, what to know about it, and the settings in which they differ.

use std::ops::Range;

use crate::observe::{Metric, Observed};
use crate::show::page::doubts;
use crate::show::plot::figure::{Cell, Table};
use crate::show::plot::rows::groups::joined;
use results::load::Loaded;
use results::model::LoadVerdict;
use results::rates;
use settings::{ROWS, Row, Settings, Takes};

pub(crate) struct Cases {
    pub(crate) table: Table,
    /// Rows without a run that counts.
    pub(super) uncounted: Vec<bool>,
    /// Columns of settings, which are not printed: names of cases contain most of them.
    pub(super) settings: Range<usize>,
}

fn of_row(row: &Row, config: &Settings) -> Cell {
    if !row.has_effect(config) {
        return Cell::Missing;
    }
    match (row.number(config), row.text(config)) {
        (Some(number), _) => Cell::Number(number, 0),
        (None, text) if text.is_empty() => Cell::Missing,
        (None, text) if row.takes == Takes::Switch => {
            Cell::Text(if text == "true" { "yes" } else { "no" }.to_owned())
        }
        (None, text) => Cell::Text(text),
    }
}

/// Every case of every file, in their order.
pub(crate) fn of_results(results: &[Loaded]) -> Cases {
    let flows: Vec<(usize, Observed<'_>)> = results
        .iter()
        .enumerate()
        .flat_map(|(file, loaded)| {
            Observed::of_file(&loaded.result).map(move |observed| (file + 1, observed))
        })
        .collect();
    let mut columns =
        Columns { flows: &flows, names: Vec::new(), rows: vec![Vec::new(); flows.len()] };
    columns.add("case", |_| true, |_, it| Cell::Text(name(it)));
    // Of closed loops the message rate says it.
    let has_loads = flows.iter().any(|(_, it)| it.median(Metric::OfferedPerS).is_some());
    for metric in Metric::ALL
        .iter()
        .filter(|metric| !metric.is_on_request() && (has_loads || **metric != Metric::AchievedPerS))
    {
        columns.add(
            metric.column().0,
            |cells: &[Cell]| cells.iter().any(|cell| *cell != Cell::Missing),
            |_, it| {
                let [median, ..] = Cell::of_spread(*metric, it.spread(*metric));
                median
            },
        );
    }
    let first = columns.add(
        "remarks",
        |cells: &[Cell]| cells.iter().any(|cell| *cell != Cell::Text(String::new())),
        |_, it| Cell::Text(remarks(it)),
    );
    columns.add("file", differs, |file, _| Cell::Number(file as f64, 0));
    for row in ROWS.iter().filter(|row| !row.title.is_empty()) {
        columns.add(row.title, differs, |_, it| of_row(row, &it.flow.settings));
    }
    columns.add("MTU", differs, |_, it| {
        let mtu = it.flow.config.and_then(|flow| flow.path_mtu);
        mtu.map_or(Cell::Missing, |mtu| Cell::Number(mtu.into(), 0))
    });
    let end = columns.add("device", differs, |_, it| {
        let device = it.flow.config.and_then(|flow| flow.from_device.clone());
        device.map_or(Cell::Missing, Cell::Text)
    });
    let Columns { names, rows, .. } = columns;
    Cases {
        uncounted: flows.iter().map(|(_, it)| is_uncounted(it)).collect(),
        settings: first..end,
        table: Table::new("Medians of the runs that count; - was not measured", names, rows),
    }
}

/// The table as it grows, a column at a time.
struct Columns<'f, 'a> {
    flows: &'f [(usize, Observed<'a>)],
    names: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl<'a> Columns<'_, 'a> {
    /// Adds a column if it is worth showing; returns how many columns there are.
    fn add(
        &mut self,
        name: &str,
        is_shown: fn(&[Cell]) -> bool,
        cell: impl Fn(usize, &Observed<'a>) -> Cell,
    ) -> usize {
        let cells: Vec<Cell> = self.flows.iter().map(|(file, it)| cell(*file, it)).collect();
        if is_shown(&cells) {
            self.names.push(name.to_owned());
            self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
        self.names.len()
    }
}

/// Leaves out what no case has, and what all cases share.
fn differs(cells: &[Cell]) -> bool {
    cells.windows(2).any(|pair| pair[0] != pair[1])
}

fn is_uncounted(observed: &Observed<'_>) -> bool {
    observed.counted().next().is_none()
}

/// The case and its flow, and why it has no figures.
fn name(observed: &Observed<'_>) -> String {
    let reason = doubts::remark(&observed.left_out());
    if is_uncounted(observed) && !reason.is_empty() {
        format!("{}: {reason}", observed.flow.subject())
    } else {
        observed.flow.subject()
    }
}

fn remarks(observed: &Observed<'_>) -> String {
    let moved = observed.runs.iter().filter_map(|it| it.moved);
    let counted: Vec<_> = observed.counted().filter_map(|it| it.moved).collect();
    let mut remarks = Vec::new();
    if !is_uncounted(observed) {
        remarks.push(doubts::remark(&observed.left_out()));
    }
    if observed.runs.is_empty() {
        remarks.push("not run".to_owned());
    }
    let counts = [
        (
            counted.iter().filter(|moved| moved.verdict() == Some(LoadVerdict::Overloaded)).count()
                as u64,
            "overloaded",
        ),
        (rates::sum(moved.map(|moved| moved.totals.errors)), "errors"),
        (
            counted.iter().filter(|moved| moved.window.warmup_steady == Some(false)).count() as u64,
            "unsteady",
        ),
    ];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    remarks.extend(some.map(|(count, what)| format!("{count} {what}")));
    joined(remarks)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use results::model::CaseResult;
    use results::sample;

    pub(crate) fn case(op: &str, qps: u32, gbit_per_s: f64, complete: bool) -> CaseResult {
        let settings = Settings { qps, ..Settings::from([("op", op)]) };
        let mut case = sample::moved(settings, Some(gbit_per_s));
        case.id = format!("{op}-{qps}");
        case.runs[0].complete = complete;
        case
    }

    fn value(table: &Table, row: usize, name: &str) -> Cell {
        let mut names = table.columns.iter().map(|column| &*column.name);
        table.rows[row][names.position(|it| it == name).unwrap()].clone()
    }

    #[test]
    fn what_was_measured_comes_first_and_settings_have_a_column_where_they_differ() {
        let mut cases = vec![case("send", 1, 1.0, true), case("send", 4, 2.0, false)];
        cases[1].config.tx_depth = 64;
        let cases = of_results(&[sample::file(cases)]);
        let names: Vec<&str> = cases.table.columns.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["case", "Gb/s", "QPs", "send depth"]);
        assert_eq!((cases.settings, cases.uncounted), (2..4, vec![false, true]));
        let table = cases.table;
        assert_eq!(value(&table, 0, "Gb/s"), Cell::Number(1.0, 3));
        assert_eq!(value(&table, 1, "Gb/s"), Cell::Missing);
        let name = Cell::Text("send-4: the run failed".to_owned());
        assert_eq!(value(&table, 1, "case"), name);
        let mut rows = table.rows.iter();
        assert!(rows.all(|row| row.len() == table.columns.len()));
    }

    #[test]
    fn each_flow_has_a_row() {
        let table = of_results(&[sample::loaded(sample::mixed())]).table;
        let text = |text: &str| Cell::Text(text.to_owned());
        let flows = [
            ("mixed, flow small", "write", 3.0),
            ("mixed, flow large", "read", 2.0),
            ("mixed, flow back", "send", 1.0),
        ];
        for (row, (name, op, qps)) in flows.into_iter().enumerate() {
            let cells = ["case", "operation", "QPs"].map(|it| value(&table, row, it));
            assert_eq!(cells, [text(name), text(op), Cell::Number(qps, 0)]);
        }
    }
}
