//! All flows of all cases in one table.

use crate::observe::{Metric, Observed};
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, FlowConfig, FlowResult, LoadVerdict};
use crate::show::plot::figure::{Cell, Column, Table};
use settings::{Applies, ROWS, Row, Settings, Takes};

/// The column behind those of settings.
const COUNTED_RUNS: &str = "runs that count";

/// Settings that every table has.
const SHOWN: [&str; 5] = ["op", "cq", "qps", "size", "workers"];

/// What has a column where flows differ in it: its name, and its value of a flow.
type Setting = (&'static str, Box<dyn Fn(&CaseFlow<'_>) -> Cell>);

fn settings() -> Vec<Setting> {
    let rows = ROWS
        .iter()
        .filter(|row| !row.title.is_empty() && !SHOWN.contains(&row.flag));
    let rows = rows.map(|row| -> Setting {
        let value = |flow: &CaseFlow<'_>| of_row(row, &flow.settings);
        (row.title, Box::new(value))
    });
    let of_flow = |name, value: fn(&FlowConfig) -> Cell| -> Setting {
        let value = move |flow: &CaseFlow<'_>| flow.config.map_or(Cell::Missing, value);
        (name, Box::new(value))
    };
    let name: Setting = (
        "flow",
        Box::new(|flow| match flow.label() {
            "" => Cell::Missing,
            label => Cell::Text(label.to_owned()),
        }),
    );
    let mtu = of_flow("MTU", |flow| flow.path_mtu.map_or(Cell::Missing, number));
    let device = of_flow("device", |flow| {
        flow.from_device.clone().map_or(Cell::Missing, Cell::Text)
    });
    [name]
        .into_iter()
        .chain(rows)
        .chain([mtu, device])
        .collect()
}

fn of_row(row: &Row, config: &Settings) -> Cell {
    if (row.applies)(config) != Applies::Yes {
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

fn number(value: u32) -> Cell {
    Cell::Number(f64::from(value), 0)
}

pub(super) fn column(name: &str, numeric: bool) -> Column {
    Column {
        name: name.to_owned(),
        numeric,
    }
}

fn figure(metric: Metric, value: Option<f64>) -> Cell {
    let cell = |value| Cell::Number(metric.in_column(value), metric.column().1);
    value.map_or(Cell::Missing, cell)
}

/// Columns of settings behind the case's name, which are not printed: names of cases tell most of them.
pub fn settings_columns(table: &Table) -> std::ops::Range<usize> {
    let mut runs = table.columns.iter();
    let runs = runs.position(|it| it.name == COUNTED_RUNS);
    1..runs.unwrap_or(1)
}

/// Every case of every file, in their order.
pub fn all(results: &[Loaded]) -> Table {
    let flows: Vec<(usize, Observed<'_>)> = (results.iter().enumerate())
        .flat_map(|(file, loaded)| {
            Observed::of_file(&loaded.result).map(move |observed| (file, observed))
        })
        .collect();
    let differ: Vec<Setting> = settings()
        .into_iter()
        .filter(|(_, setting)| {
            let mut values = flows.iter().map(|(_, it)| setting(&it.flow));
            let first = values.next();
            values.any(|value| Some(value) != first)
        })
        .collect();
    // What no case has is not there.
    let has = |metric: &Metric| {
        let mut flows = flows.iter();
        flows.any(|(_, observed)| observed.median(*metric).is_some())
    };
    let measured: Vec<Metric> = Metric::ALL.iter().copied().filter(has).collect();
    let many_files = results.len() > 1;
    let mut columns = vec![column("case", false)];
    if many_files {
        columns.push(column("file No", true));
    }
    columns.extend([
        column("op", false),
        column("CQ", false),
        column("QPs", true),
        column("size (B)", true),
        column("workers", true),
    ]);
    columns.extend(differ.iter().map(|(name, _)| column(name, true)));
    columns.push(column(COUNTED_RUNS, true));
    columns.extend(measured.iter().map(|it| column(it.column().0, true)));
    columns.push(column("remarks", false));
    let rows = flows
        .iter()
        .map(|(file, observed)| {
            let flow = &observed.flow;
            let (case, config) = (flow.case, &flow.settings);
            let mut row = vec![Cell::Text(case.id.clone())];
            if many_files {
                row.push(Cell::Number((*file + 1) as f64, 0));
            }
            row.extend([
                Cell::Text(config.op.to_string()),
                Cell::Text(config.cq.to_string()),
                number(config.qps),
                Cell::Number(f64::from(config.size_bytes), 0),
                number(config.workers),
            ]);
            row.extend(differ.iter().map(|(_, setting)| setting(flow)));
            row.push(Cell::Number(observed.counted().count() as f64, 0));
            row.extend(measured.iter().map(|it| figure(*it, observed.median(*it))));
            row.push(Cell::Text(remarks(observed)));
            row
        })
        .collect();
    Table {
        caption: "All cases: medians over the runs that count; – was not measured".to_owned(),
        columns,
        rows,
    }
}

/// What the figures do not say.
fn remarks(observed: &Observed<'_>) -> String {
    let left_out = observed.left_out();
    let moved = || observed.runs.iter().filter_map(|it| it.moved);
    let counted = || observed.counted().filter_map(|it| it.moved);
    let mut remarks = Vec::new();
    if observed.runs.is_empty() {
        remarks.push("not run".to_owned());
    }
    if left_out.count() > 0 {
        let counted = left_out.all - left_out.count();
        remarks.push(format!("{counted} of {} runs", left_out.all));
        remarks.extend(left_out.reasons());
    }
    let is_overloaded = |moved: &&FlowResult| {
        let load = moved.load.as_ref();
        load.is_some_and(|load| load.verdict == LoadVerdict::Overloaded)
    };
    let is_unsteady = |moved: &&FlowResult| moved.window.warmup_steady == Some(false);
    let errors: u64 = moved().map(|moved| moved.totals.errors).sum();
    for (count, what) in [
        (counted().filter(is_overloaded).count() as u64, "overloaded"),
        (errors, "errors"),
        (counted().filter(is_unsteady).count() as u64, "unsteady"),
    ] {
        if count > 0 {
            remarks.push(format!("{count} {what}"));
        }
    }
    remarks.join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::results::model::CaseResult;
    use crate::results::sample;

    pub(crate) fn case(op: &str, qps: u32, gbit_per_s: f64, complete: bool) -> CaseResult {
        let settings = Settings {
            qps,
            ..Settings::from([("op", op)])
        };
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
    fn settings_have_a_column_where_they_differ() {
        let mut cases = vec![case("send", 1, 1.0, true), case("send", 4, 2.0, false)];
        cases[1].config.tx_depth = 64;
        let table = all(&[sample::file(cases)]);
        let has = |name: &str| table.columns.iter().any(|column| column.name == name);
        let names = ["send depth", "receive depth", "file No"];
        assert_eq!(names.map(has), [true, false, false]);
        assert_eq!(value(&table, 0, "Gb/s"), Cell::Number(1.0, 3));
        assert_eq!(value(&table, 1, "Gb/s"), Cell::Missing);
        let remarks = Cell::Text("0 of 1 runs, 1 failed".to_owned());
        assert_eq!(value(&table, 1, "remarks"), remarks);
        let mut rows = table.rows.iter();
        assert!(rows.all(|row| row.len() == table.columns.len()));
    }

    #[test]
    fn each_flow_has_a_row() {
        let table = all(&[sample::loaded(sample::mixed())]);
        let text = |text: &str| Cell::Text(text.to_owned());
        let flows = [
            ("small", "write", 3),
            ("large", "read", 2),
            ("back", "send", 1),
        ];
        for (row, (name, op, qps)) in flows.into_iter().enumerate() {
            let cells = ["case", "flow", "op", "QPs"].map(|it| value(&table, row, it));
            assert_eq!(cells, [text("mixed"), text(name), text(op), number(qps)]);
        }
    }
}
