//! The columns of a sweep's table: each setting in which its flows differ has one; the others stand once, above.
//! Behind the figures of a row are remarks.

use std::collections::{BTreeMap, BTreeSet};

use results::{
    model::{
        CaseConfig, DoubtKind, FORWARD, FlowResult, LoadVerdict, PathEventKind, REVERSE, Run,
        WireKind,
    },
    text::Mark,
};
use settings::{Row, Settings, Timestamps, telling_apart};

use crate::judge::evenness::TOLD_BELOW;
use crate::observe::{
    Metric::{
        self, AchievedPerS, AloneGbitPerS, ConnectionsPerS, CpuSecondsPerGb, GbitPerS, LateP99Ns,
        MachineCpuSecondsPerGb, MaxNs, MmsgPerS, OfferedPerS, P50Ns, P99_9Ns, P99Ns,
        PercentOfLimit, SeenP99Ns, SetupP50Ns, SetupP99Ns, SetupRounds,
    },
    format::{NOT_MEASURED, alike, cell, counted, fixed},
    standing::Standing,
};

pub(super) struct RowOf<'a> {
    pub(super) settings: &'a Settings,
    pub(super) run: &'a Run,
    pub(super) flow: &'a FlowResult,
    /// Whether its figures count; those that do not stand in brackets.
    pub(super) standing: Standing,
    /// `out` and `in` where a case has traffic both ways, else empty.
    pub(super) direction: &'static str,
}

impl<'a> RowOf<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        (run, flow): (&'a Run, &'a FlowResult),
        standing: Standing,
    ) -> RowOf<'a> {
        RowOf { settings, run, flow, standing, direction: "" }
    }
}

/// One column. A cell that is wider pushes its row, nothing is cut.
pub(super) struct Column {
    pub(super) head: String,
    pub(super) width: usize,
    /// Words are flush left, figures flush right.
    pub(super) is_word: bool,
    /// Where a line is short the largest go first; 0 stays.
    rank: u8,
    cell: Cell,
}

impl Column {
    fn new(words: impl Into<String>, is_word: bool, (cell, width, rank): Figure) -> Column {
        let head: String = words.into();
        Column { width: width.max(head.chars().count()), head, is_word, rank, cell }
    }

    pub(super) fn cell(&self, row: &RowOf<'_>) -> String {
        let text = match self.cell {
            Cell::Setting(setting) => return cell(setting, row.settings),
            Cell::Direction => return row.direction.to_owned(),
            Cell::Run => return row.run.run.to_string(),
            Cell::Metric(metric) => {
                let figure = metric.of(row.run, Some(row.flow));
                figure.map(|figure| metric.cell(figure))
            }
            Cell::Schedule => row.flow.load.as_ref().map(|load| match load.verdict {
                // The column's head says of what.
                LoadVerdict::NotKept => "not kept".to_owned(),
                verdict => verdict.name().to_owned(),
            }),
        };
        text.unwrap_or_else(|| NOT_MEASURED.to_owned())
    }

    /// Whether it is of a figure, and not of what was measured.
    pub(super) fn is_figure(&self) -> bool {
        matches!(self.cell, Cell::Metric(_) | Cell::Schedule)
    }

    fn of_setting(row: &'static Row, cases: &[Settings]) -> Column {
        let widths = cases.iter().map(|settings| cell(row, settings).chars().count());
        let of_row = (Cell::Setting(row), widths.max().unwrap_or(0), 0);
        let is_word = cases.iter().all(|settings| row.number(settings).is_none());
        Column::new(row.heading_of_column(), is_word, of_row)
    }

    fn of_figure(figure: &Figure) -> Column {
        match figure.0 {
            Cell::Metric(metric) => Column::new(metric.heading(), false, *figure),
            _ => Column::new(SCHEDULE, true, *figure),
        }
    }
}

/// Room behind the figures for what a row says of them.
const REMARK: usize = " window length".len();

pub(super) struct Columns {
    pub(super) columns: Vec<Column>,
    /// What all rows have alike, in words.
    pub(super) same: String,
    /// There are open loops, and columns of them, which say whether the schedule was kept.
    pub(super) are_of_loads: bool,
    /// All cases measure set-up, and their figures have columns.
    pub(super) are_of_set_up: bool,
}

impl Columns {
    /// The columns for flows with these settings, and of the metrics that were asked for, where a line has so many characters. The
    /// first run, of the first case,
    /// shows what no setting does: the path MTU, and whether the link's speed is known.
    pub(super) fn new(
        (cases, requested): (&[Settings], &[Metric]),
        first: (&CaseConfig, &Run),
        characters: usize,
    ) -> Columns {
        let differing = telling_apart(cases);
        let mut columns: Vec<Column> = differing
            .iter()
            .filter(|row| row.field != "bidirectional")
            .map(|row| Column::of_setting(row, cases))
            .collect();
        if cases.iter().any(|it| it.bidirectional) {
            columns.push(Column::new("dir", true, (Cell::Direction, 3, 0)));
        }
        if cases.iter().any(|it| it.runs > 1) {
            columns.push(Column::new("run", false, (Cell::Run, 3, 0)));
        }
        let are_of_loads = are_of_loads(cases);
        let are_of_set_up = are_of_set_up(cases);
        let figures = figures(cases).filter(|(cell, ..)| match cell {
            Cell::Metric(PercentOfLimit) => has_limit(first.1),
            Cell::Metric(MachineCpuSecondsPerGb) => has_machine(first.1),
            _ => true,
        });
        // Those that are there anyway stay too.
        let ranked: Vec<Figure> = figures
            .map(|(cell, width, rank)| match cell {
                Cell::Metric(it) if requested.contains(&it) => (cell, width, 0),
                _ => (cell, width, rank),
            })
            .collect();
        let more = requested
            .iter()
            .filter(|metric| {
                let mut cells = ranked.iter().map(|(cell, ..)| cell);
                !cells.any(|cell| matches!(cell, Cell::Metric(it) if it == *metric))
            })
            .map(|metric| (Cell::Metric(*metric), 9, 0));
        columns.extend(ranked.iter().copied().chain(more).map(|it| Column::of_figure(&it)));
        fit(&mut columns, characters.saturating_sub(REMARK));
        Columns { columns, same: same(cases, first.0, &differing), are_of_loads, are_of_set_up }
    }

    pub(super) fn have_runs(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| matches!(column.cell, Cell::Run))
    }
}

/// Whether any case is an open loop, whose lateness has columns.
fn are_of_loads(cases: &[Settings]) -> bool {
    cases.iter().any(|settings| !settings.is_closed_loop())
}

/// Whether all cases measure set-up (`--op connect`).
fn are_of_set_up(cases: &[Settings]) -> bool {
    cases.iter().all(Settings::is_set_up) && !cases.is_empty()
}

/// The figures that the table has for flows with these settings, where there is room for all.
fn figures(cases: &[Settings]) -> impl Iterator<Item = Figure> {
    let of_kind: &[Figure] = match (are_of_loads(cases), are_of_set_up(cases)) {
        (_, true) => &SET_UP,
        (true, _) => &OPEN,
        _ => &CLOSED,
    };
    let has_stamps = cases.iter().any(|settings| settings.timestamps == Timestamps::Device);
    let has_latency = cases.iter().any(|settings| !settings.no_latency);
    of_kind.iter().copied().chain(has_stamps.then_some(SEEN)).filter(move |(cell, ..)| match cell {
        Cell::Metric(metric) => !metric.is_of_latency() || has_latency,
        _ => true,
    })
}

/// The metrics of [`figures`], and whether the table says if the schedule was kept.
pub(in crate::show) fn metrics(cases: &[Settings]) -> (Vec<Metric>, bool) {
    let metrics = figures(cases).filter_map(|(cell, ..)| match cell {
        Cell::Metric(metric) => Some(metric),
        _ => None,
    });
    (metrics.collect(), figures(cases).any(|(cell, ..)| matches!(cell, Cell::Schedule)))
}

/// Leaves figures out until a line has room for the others.
fn fit(columns: &mut Vec<Column>, characters: usize) {
    loop {
        let width: usize = columns.iter().map(|column| column.width + 1).sum();
        match columns.iter().map(|column| column.rank).max() {
            Some(rank) if rank > 0 && width > characters.saturating_add(1) => {
                columns.retain(|column| column.rank < rank);
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
    let has_no_flow = first.connect.is_some() && first.flows.is_empty();
    !first.complete || has_no_flow || first.flows.iter().any(|flow| flow.limits.is_some())
}

/// What all have alike, in words, but for what rows say themselves; and the path MTU.
fn same(settings: &[Settings], first: &CaseConfig, differing: &[&Row]) -> String {
    let mut words = alike(settings, false);
    if let (Some(row), Some(one)) = (Settings::row("verify"), settings.first()) {
        words.retain(|it| *it != row.words(one, "true"));
    }
    let mtu = first.flows.first().and_then(|flow| flow.path_mtu);
    let has_one = first.flows.iter().all(|flow| flow.path_mtu == mtu);
    if let Some(mtu) = mtu.filter(|_| {
        has_one && !settings.is_empty() && differing.iter().all(|row| row.flag != "mtu")
    }) {
        words.push(format!("MTU {mtu}"));
    }
    if first.flows.iter().any(|flow| flow.wire == Some(WireKind::Memory)) {
        words.push("packets through memory".to_owned());
    }
    words.join(" · ")
}

#[derive(Clone, Copy)]
enum Cell {
    Setting(&'static Row),
    /// Which way a flow of traffic both ways goes.
    Direction,
    /// Number of the run, where cases have several.
    Run,
    Metric(Metric),
    /// Whether an open loop kept its schedule.
    Schedule,
}

/// The head of the column that says whether an open loop kept its schedule.
pub(in crate::show) const SCHEDULE: &str = "schedule";

/// A column of figures: its characters, at least, and its rank. Where a line is short the largest ranks go first; 0 stays.
type Figure = (Cell, usize, u8);

static CLOSED: [Figure; 9] = [
    (Cell::Metric(GbitPerS), 7, 0),
    (Cell::Metric(MmsgPerS), 8, 3),
    (Cell::Metric(P50Ns), 9, 2),
    (Cell::Metric(P99Ns), 9, 1),
    (Cell::Metric(P99_9Ns), 9, 4),
    (Cell::Metric(MaxNs), 9, 7),
    (Cell::Metric(CpuSecondsPerGb), 8, 6),
    (Cell::Metric(MachineCpuSecondsPerGb), 9, 8),
    (Cell::Metric(PercentOfLimit), 7, 5),
];

/// Figures where there are open loops. Latency is from the planned time, lateness how late messages were posted.
static OPEN: [Figure; 8] = [
    (Cell::Metric(OfferedPerS), 11, 1),
    (Cell::Metric(AchievedPerS), 8, 0),
    (Cell::Metric(GbitPerS), 6, 6),
    (Cell::Metric(P50Ns), 8, 2),
    (Cell::Metric(P99Ns), 8, 0),
    (Cell::Metric(P99_9Ns), 8, 4),
    (Cell::Metric(LateP99Ns), 11, 3),
    (Cell::Schedule, 10, 0),
];

/// Figures of set-up: how fast QPs are connected, how long a round takes, and what the traffic moves meanwhile.
static SET_UP: [Figure; 6] = [
    (Cell::Metric(ConnectionsPerS), 13, 0),
    (Cell::Metric(SetupRounds), 6, 3),
    (Cell::Metric(SetupP50Ns), 13, 2),
    (Cell::Metric(SetupP99Ns), 13, 0),
    (Cell::Metric(GbitPerS), 7, 1),
    (Cell::Metric(AloneGbitPerS), 10, 4),
];

/// Where latencies end at the device's stamps: how long after those 99 % of completions were seen.
static SEEN: Figure = (Cell::Metric(SeenP99Ns), 11, 3);

/// A remark and how grave it is.
pub(super) type Remark = (Mark, String);

/// Whether the flows are the two directions of one flow without a name.
pub(super) fn is_both_ways(config: &CaseConfig) -> bool {
    config.flows.iter().map(|flow| &*flow.name).eq([FORWARD, REVERSE])
}

/// The flow's own name, with its nodes if there are more than two.
pub(super) fn name(config: &CaseConfig, flow: &FlowResult) -> String {
    let label = if is_both_ways(config) { "" } else { config.flow_label(&flow.name) };
    if config.flows.iter().flat_map(|it| [&it.from, &it.to]).collect::<BTreeSet<_>>().len() > 2 {
        format!("{label} {} → {}", flow.from, flow.to)
    } else {
        label.to_owned()
    }
}

/// How the run went, and what its figures do not say.
pub(super) fn of_row(row: &RowOf<'_>, columns: &Columns) -> Vec<Remark> {
    let (settings, run, flow) = (row.settings, row.run, row.flow);
    let mut remarks: Vec<Remark> = Vec::new();
    if run.interrupted {
        remarks.push((Mark::Bad, "interrupted".to_owned()));
    } else if run.failure.is_some() {
        remarks.push((Mark::Bad, "failed".to_owned()));
    } else if !run.complete {
        remarks.push((Mark::Bad, "incomplete".to_owned()));
    }
    let errors = flow.totals.errors;
    if errors > 0 {
        remarks.push((Mark::Bad, counted(errors as usize, "error")));
    } else if settings.verify && run.complete {
        remarks.push((Mark::Good, "verify ok".to_owned()));
    }
    if flow.window.warmup_steady == Some(false) {
        remarks.push((Mark::Doubtful, "unsteady".to_owned()));
    }
    let mut doubts: Vec<DoubtKind> = flow
        .window
        .doubts
        .iter()
        .map(|it| it.kind)
        .filter(|kind| !columns.are_of_loads || *kind != DoubtKind::ScheduleNotKept)
        .collect();
    doubts.dedup();
    for kind in doubts {
        remarks.push((Mark::Doubtful, kind.name().to_owned()));
    }
    if let Some(delivery) = flow.delivery.as_ref().filter(|it| it.lost > 0) {
        let share = fixed(delivery.lost_share * 100.0, 1);
        remarks.push((Mark::Doubtful, format!("lost {share} %")));
    } else if flow.delivery.is_none() && !settings.service.is_reliable() && run.complete {
        remarks.push((Mark::Plain, "losses not known".to_owned()));
    }
    if let Some(share) = flow.received_otherwise() {
        remarks.push((Mark::Doubtful, format!("received {share:.2}×")));
    }
    let fairness = flow.fairness.as_ref().filter(|_| settings.qps > 1);
    if let Some(fairness) =
        fairness.filter(|it| it.jain < TOLD_BELOW && settings.qp_weights.is_none())
    {
        remarks.push((Mark::Doubtful, format!("Jain {:.2}", fairness.jain)));
    }
    if run.run > 1 && !columns.have_runs() {
        remarks.push((Mark::Plain, format!("run {}", run.run)));
    }
    remarks
}

/// Path events of all nodes' devices. Congestion is normal, so it is left out.
pub(super) fn of_path(run: &Run) -> Vec<Remark> {
    let mut counts: BTreeMap<PathEventKind, u64> = BTreeMap::new();
    for event in &run.path_events {
        let count = counts.entry(event.kind).or_default();
        *count = count.saturating_add(event.count);
    }
    counts.remove(&PathEventKind::Congestion);
    counts
        .into_iter()
        .map(|(kind, count)| {
            let is_pause =
                matches!(kind, PathEventKind::PausedByNetwork | PathEventKind::PausedByHost);
            let mark = if is_pause { Mark::Plain } else { Mark::Doubtful };
            (mark, format!("{} {count}", kind.name()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use results::sample::{self, rows};

    use super::*;

    fn heads_within(characters: usize, shown: (&[Settings], &[Metric]), run: &Run) -> String {
        let columns = Columns::new(shown, (&CaseConfig::default(), run), characters).columns;
        let heads: Vec<String> = columns.into_iter().map(|column| column.head).collect();
        heads.join(", ")
    }

    fn heads_of(settings: &[Settings], run: &Run) -> String {
        heads_within(usize::MAX, (settings, &[]), run)
    }

    #[test]
    fn figures_that_matter_least_go_first() {
        let settings = ["1", "4"].map(|qps| Settings::from([("qps", qps)]));
        for [characters, heads] in rows(
            "
1000 | qps, Gb/s, Mmsg/s, p50 µs, p99 µs, p99.9 µs, max µs, CPU s/GB, limit %
82 | qps, Gb/s, Mmsg/s, p50 µs, p99 µs, p99.9 µs, CPU s/GB, limit %
46 | qps, Gb/s, p50 µs, p99 µs
1 | qps, Gb/s
",
        ) {
            let characters = characters.parse().unwrap();
            assert_eq!(heads_within(characters, (&settings, &[]), &Run::default()), heads);
        }
    }

    #[test]
    fn what_was_asked_for_is_there_and_stays() {
        let metrics = [MaxNs, Metric::MinNs, Metric::MeanNs];
        let one = [Settings::from([])];
        let heads = |characters| heads_within(characters, (&one, &metrics), &Run::default());
        let expected =
            "Gb/s, Mmsg/s, p50 µs, p99 µs, p99.9 µs, max µs, CPU s/GB, limit %, min µs, mean µs";
        assert_eq!(heads(1000), expected);
        assert_eq!(heads(1), "Gb/s, max µs, min µs, mean µs");
    }

    #[test]
    fn columns_without_figures_are_left_out() {
        let quiet = [Settings::from([("no-latency", "true")])];
        let expected = "Gb/s, Mmsg/s, CPU s/GB, limit %";
        assert_eq!(heads_of(&quiet, &Run::default()), expected);
        let without_limit = sample::run(Vec::new());
        assert_eq!(heads_of(&quiet, &without_limit), "Gb/s, Mmsg/s, CPU s/GB");
        for (engine, machine, is_there) in
            [(None, None, false), (None, Some(1.0), true), (Some(0.1), Some(1.0), false)]
        {
            let mut run = sample::result().cases[0].runs[0].clone();
            run.nodes[0].engine_cpu_seconds = engine;
            run.nodes[0].machine_cpu_seconds = machine;
            assert_eq!(heads_of(&quiet, &run).contains("host s/GB"), is_there);
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
            let both = values.map(|value| Settings::from([(flag, value)]));
            let columns = Columns::new((&both, &[]), (&CaseConfig::default(), &Run::default()), 80);
            let cell = |settings: &Settings| {
                let nothing = (&Run::default(), &FlowResult::default());
                columns.columns[0].cell(&RowOf::new(settings, nothing, Standing::Counts))
            };
            assert_eq!([&both[0], &both[1]].map(cell), cells);
        }
    }
}
