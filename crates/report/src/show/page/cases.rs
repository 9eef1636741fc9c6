//! All flows of all cases in one table.

use crate::observe::Metric;
use crate::observe::standing::{self, LeftOut, counted_flows, counted_runs};
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, CaseResult, FlowConfig, FlowResult, LoadVerdict};
use crate::show::plot::figure::{Cell, Column, Table};
use crate::show::plot::median;
use settings::{Applies, ROWS, Row, Settings, Takes};

/// A figure of a flow, the median over the runs that count.
#[derive(Clone, Copy)]
enum Measured {
    Metric(Metric),
    ShareOfLimit,
}

impl Measured {
    fn all() -> impl Iterator<Item = Measured> {
        let of_runs = Metric::ALL.iter().copied().filter(|it| !it.is_of_search());
        of_runs
            .map(Measured::Metric)
            .chain([Measured::ShareOfLimit])
    }

    fn name(self) -> &'static str {
        match self {
            Measured::Metric(metric) => metric.column().0,
            Measured::ShareOfLimit => "of limit (%)",
        }
    }

    fn digits(self) -> usize {
        match self {
            Measured::Metric(metric) => metric.column().1,
            Measured::ShareOfLimit => 1,
        }
    }

    fn of(self, flow: &CaseFlow<'_>) -> Option<f64> {
        match self {
            Measured::Metric(metric) if metric.is_of_setup() && !flow.is_first() => None,
            Measured::Metric(metric) => Some(median::metric(flow, metric)? / metric.column().2),
            Measured::ShareOfLimit => Some(100.0 * median::share_of_limit(flow)?),
        }
    }
}

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

fn figure(value: Option<f64>, digits: usize) -> Cell {
    value.map_or(Cell::Missing, |value| Cell::Number(value, digits))
}

/// Columns of settings behind the case's name, which are not printed: names of cases tell most of them.
pub fn settings_columns(table: &Table) -> std::ops::Range<usize> {
    let mut runs = table.columns.iter();
    let runs = runs.position(|it| it.name == COUNTED_RUNS);
    1..runs.unwrap_or(1)
}

/// Every case of every file, in their order.
pub fn all(results: &[Loaded]) -> Table {
    let cases = || {
        results.iter().enumerate().flat_map(|(file, loaded)| {
            let flows = loaded.result.cases.iter().flat_map(CaseResult::flows);
            flows.map(move |flow| (file, flow))
        })
    };
    let differ: Vec<Setting> = settings()
        .into_iter()
        .filter(|(_, setting)| {
            let mut values = cases().map(|(_, flow)| setting(&flow));
            let first = values.next();
            values.any(|value| Some(value) != first)
        })
        .collect();
    // Figures of set-up are there where set-up was measured.
    let has = |measured: &Measured| {
        let is_of_setup = matches!(measured, Measured::Metric(metric) if metric.is_of_setup());
        !is_of_setup || cases().any(|(_, flow)| measured.of(&flow).is_some())
    };
    let measured: Vec<Measured> = Measured::all().filter(has).collect();
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
    columns.extend(measured.iter().map(|it| column(it.name(), true)));
    columns.push(column("remarks", false));
    let rows = cases()
        .map(|(file, flow)| {
            let (case, config) = (flow.case, &flow.settings);
            let mut row = vec![Cell::Text(case.id.clone())];
            if many_files {
                row.push(Cell::Number((file + 1) as f64, 0));
            }
            row.extend([
                Cell::Text(config.op.to_string()),
                Cell::Text(config.cq.to_string()),
                number(config.qps),
                Cell::Number(f64::from(config.size_bytes), 0),
                number(config.workers),
            ]);
            row.extend(differ.iter().map(|(_, setting)| setting(&flow)));
            row.push(Cell::Number(counted_runs(&flow).count() as f64, 0));
            row.extend(measured.iter().map(|it| figure(it.of(&flow), it.digits())));
            row.push(Cell::Text(remarks(&flow)));
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
fn remarks(flow: &CaseFlow<'_>) -> String {
    let case = flow.case;
    let standings = standing::of_case_flow(flow).map(|(_, standing)| standing);
    let left_out = LeftOut::of(standings);
    let moved = case.runs.iter().filter_map(|run| flow.result(run));
    let errors: u64 = moved.map(|moved| moved.totals.errors).sum();
    let unsteady = counted_flows(flow)
        .filter(|moved| moved.window.warmup_steady == Some(false))
        .count();
    let mut remarks = Vec::new();
    if case.runs.is_empty() {
        remarks.push("not run".to_owned());
    }
    let counted = left_out.all - left_out.count();
    if counted < left_out.all {
        remarks.push(format!("{counted} of {} runs", left_out.all));
        remarks.extend(left_out.reasons());
    }
    let is_overloaded = |moved: &&FlowResult| {
        let load = moved.load.as_ref();
        load.is_some_and(|load| load.verdict == LoadVerdict::Overloaded)
    };
    let overloaded = counted_flows(flow).filter(is_overloaded).count();
    if overloaded > 0 {
        remarks.push(format!("{overloaded} overloaded"));
    }
    if errors > 0 {
        remarks.push(format!("{errors} errors"));
    }
    if unsteady > 0 {
        remarks.push(format!("{unsteady} unsteady"));
    }
    remarks.join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
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
