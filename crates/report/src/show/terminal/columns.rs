//! The columns of a sweep's table: a setting in which its flows differ has one, and the others are told once, above. It
//! must not know rows to come.

use settings::{Row, Settings, Timestamps, telling_apart};

use super::figures::{CLOSED, Figure, OPEN, Of, RowOf, SEEN, SET_UP};
use crate::observe::Metric;
use crate::observe::setting_words::{alike, cell};
use crate::results::model::{CaseConfig, FlowResult, Run};

/// One column.
pub(super) struct Column {
    pub(super) head: String,
    pub(super) width: usize,
    pub(super) is_word: bool,
    cell: Cell,
}

#[derive(Clone, Copy)]
enum Cell {
    Setting(&'static Row),
    /// Which way a flow of traffic both ways goes.
    Direction,
    /// Number of the run, where cases have several.
    Run,
    Figure(Figure),
}

impl Column {
    fn new(head: impl Into<String>, width: usize, is_word: bool, cell: Cell) -> Column {
        let head = head.into();
        Column {
            width: width.max(head.chars().count()),
            head,
            is_word,
            cell,
        }
    }

    pub(super) fn cell(&self, row: &RowOf<'_>) -> String {
        match self.cell {
            Cell::Setting(setting) => cell(setting, row.settings),
            Cell::Direction => row.direction.to_owned(),
            Cell::Run => row.run.run.to_string(),
            Cell::Figure(figure) => figure.cell(row),
        }
    }

    /// Whether it is of a figure, and not of what was measured.
    pub(super) fn is_figure(&self) -> bool {
        matches!(self.cell, Cell::Figure(_))
    }

    /// The column of a setting, as wide as its widest value.
    fn of_setting(row: &'static Row, all: &[Settings]) -> Column {
        let widest = all
            .iter()
            .map(|settings| cell(row, settings).chars().count());
        let width = widest.max().unwrap_or(0);
        let is_word = all.iter().all(|settings| row.number(settings).is_none());
        Column::new(row.heading_of_column(), width, is_word, Cell::Setting(row))
    }

    fn of_figure(figure: Figure) -> Column {
        let (head, is_word) = (figure.head(), figure.is_word());
        Column::new(head, figure.width, is_word, Cell::Figure(figure))
    }
}

/// Room behind the figures for what a row says of them.
const REMARK: usize = " window length".len();

/// The columns of a sweep.
pub(super) struct Columns {
    pub(super) all: Vec<Column>,
    /// What all rows have alike, in words.
    pub(super) same: String,
    /// There are open loops, and columns of them, which say whether the schedule was kept.
    pub(super) are_of_loads: bool,
    /// All cases measure set-up, and their figures have columns.
    pub(super) are_of_set_up: bool,
}

impl Columns {
    /// The columns for flows with these settings where a line has so many characters. The first run, of the first case,
    /// tells what no setting does: the path MTU, and whether the link's speed is known.
    pub(super) fn of(all: &[Settings], first: (&CaseConfig, &Run), characters: usize) -> Columns {
        let has = |is_it: fn(&Settings) -> bool| all.iter().any(is_it);
        let are_of_loads = has(|it| !it.is_closed_loop());
        let are_of_set_up = !has(|it| !it.is_set_up()) && !all.is_empty();
        let of_kind: &[Figure] = match (are_of_loads, are_of_set_up) {
            (_, true) => &SET_UP,
            (true, _) => &OPEN,
            _ => &CLOSED,
        };
        let told = telling_apart(all);
        let settings = told.iter().filter(|row| row.field != "bidirectional");
        let mut columns: Vec<Column> = settings.map(|row| Column::of_setting(row, all)).collect();
        let is_both_ways = has(|it| it.bidirectional);
        columns.extend(is_both_ways.then(|| Column::new("dir", 3, true, Cell::Direction)));
        columns.extend(has(|it| it.runs > 1).then(|| Column::new("run", 3, false, Cell::Run)));
        let mut figures: Vec<Figure> = of_kind.to_vec();
        figures.extend(has(|it| it.timestamps == Timestamps::Device).then_some(SEEN));
        figures.retain(|figure| match figure.of {
            Of::Metric(Metric::PercentOfLimit) => has_limit(first.1),
            Of::Metric(Metric::MachineCpuSecondsPerGb) => has_machine(first.1),
            Of::Metric(metric) => !metric.is_of_latency() || has(|it| !it.no_latency),
            Of::Schedule => true,
        });
        fit(&columns, &mut figures, characters.saturating_sub(REMARK));
        columns.extend(figures.into_iter().map(Column::of_figure));
        Columns {
            all: columns,
            same: same(all, first.0, &told),
            are_of_loads,
            are_of_set_up,
        }
    }

    /// Whether rows have a column for the number of the run.
    pub(super) fn have_runs(&self) -> bool {
        self.all
            .iter()
            .any(|column| matches!(column.cell, Cell::Run))
    }
}

/// Leaves figures out until a line has room for the others.
fn fit(columns: &[Column], figures: &mut Vec<Figure>, characters: usize) {
    let settings: usize = columns.iter().map(|column| column.width + 1).sum();
    loop {
        let of_figure = |figure: &Figure| figure.width.max(figure.head().chars().count()) + 1;
        let width: usize = figures.iter().map(of_figure).sum();
        let least = figures.iter().max_by_key(|figure| figure.rank);
        match least.map(|figure| figure.rank).filter(|rank| *rank > 0) {
            Some(rank) if settings + width > characters.saturating_add(1) => {
                figures.retain(|figure| figure.rank < rank);
            }
            _ => return,
        }
    }
}

/// Whether the kernel may do a part of the work outside of the workers, and the machine's CPU time is known. The embedded
/// device tells all of its own.
fn has_machine(run: &Run) -> bool {
    let flow = run.flows.first();
    let node = flow.and_then(|flow| run.node(&flow.from));
    node.is_some_and(|node| node.engine_cpu_seconds.is_none() && node.machine_cpu_seconds.is_some())
}

/// Whether the link's speed is known, or was not to be learnt from a run that failed.
fn has_limit(first: &Run) -> bool {
    let limit = |flow: &FlowResult| flow.limits.is_some();
    let has_no_flow = first.connect.is_some() && first.flows.is_empty();
    !first.complete || has_no_flow || first.flows.iter().any(limit)
}

/// What all have alike, in words, but for what rows say themselves; and the path MTU.
fn same(all: &[Settings], first: &CaseConfig, told: &[&Row]) -> String {
    let mut words = alike(all, false);
    if let (Some(row), Some(one)) = (Settings::row("verify"), all.first()) {
        words.retain(|it| *it != row.words(one, "true"));
    }
    let mtu = first.flows.first().and_then(|flow| flow.path_mtu);
    let mtu = mtu.filter(|_| {
        first.flows.windows(2).all(|pair| match pair {
            [one, other] => one.path_mtu == other.path_mtu,
            _ => true,
        })
    });
    if let Some(mtu) = mtu.filter(|_| !all.is_empty() && told.iter().all(|row| row.flag != "mtu")) {
        words.push(format!("MTU {mtu}"));
    }
    words.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::standing::Standing;
    use crate::results::model::NodeResult;

    fn heads(all: &[Settings], characters: usize) -> Vec<String> {
        let config = CaseConfig::default();
        let columns = Columns::of(all, (&config, &Run::default()), characters).all;
        columns.into_iter().map(|column| column.head).collect()
    }

    #[test]
    fn figures_that_matter_least_go_first() {
        let all = ["1", "4"].map(|qps| Settings::from([("qps", qps)]));
        let wide = [
            "qps",
            "Gb/s",
            "Mmsg/s",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "max µs",
            "CPU s/GB",
            "limit %",
        ];
        assert_eq!(heads(&all, usize::MAX), wide);
        let at_80: Vec<&str> = wide.into_iter().filter(|it| *it != "max µs").collect();
        assert_eq!(heads(&all, 82), at_80);
        assert_eq!(heads(&all, 46), ["qps", "Gb/s", "p50 µs", "p99 µs"]);
        assert_eq!(heads(&all, 1), ["qps", "Gb/s"]);
    }

    #[test]
    fn columns_without_figures_are_left_out() {
        let quiet = [Settings::from([("no-latency", "true")])];
        let told = ["Gb/s", "Mmsg/s", "CPU s/GB", "limit %"];
        assert_eq!(heads(&quiet, usize::MAX), told);
        let run = Run {
            complete: true,
            ..Run::default()
        };
        let columns = Columns::of(&quiet, (&CaseConfig::default(), &run), usize::MAX);
        assert!(columns.all.iter().all(|column| column.head != "limit %"));
        for (engine, machine, is_there) in [
            (None, None, false),
            (None, Some(1.0), true),
            (Some(0.1), Some(1.0), false),
        ] {
            let node = NodeResult {
                engine_cpu_seconds: engine,
                machine_cpu_seconds: machine,
                ..NodeResult::named("a")
            };
            let flow = FlowResult {
                from: "a".to_owned(),
                ..FlowResult::default()
            };
            let run = Run {
                nodes: vec![node],
                flows: vec![flow],
                ..Run::default()
            };
            let columns = Columns::of(&quiet, (&CaseConfig::default(), &run), usize::MAX);
            let found = columns.all.iter().any(|column| column.head == "host s/GB");
            assert_eq!(found, is_there);
        }
    }

    #[test]
    fn rows_that_differ_in_one_setting_look_different() {
        for (flag, values, cells) in [
            ("memory", ["1M", "1G"], ["1 MiB", "1 GiB"]),
            ("sges", ["1", "4"], ["1", "4"]),
            ("offset", ["0", "64"], ["0 B", "64 B"]),
            ("mtu", ["1024", "4096"], ["1024", "4096"]),
            ("poll", ["busy", "event"], ["busy", "event"]),
        ] {
            let all = values.map(|value| Settings::from([(flag, value)]));
            let columns = Columns::of(&all, (&CaseConfig::default(), &Run::default()), 80);
            let cell = |settings: &Settings| {
                let row = RowOf {
                    settings,
                    run: &Run::default(),
                    flow: &FlowResult::default(),
                    standing: Standing::Counts,
                    direction: "",
                };
                columns.all[0].cell(&row)
            };
            assert_eq!([&all[0], &all[1]].map(cell), cells);
        }
    }
}
