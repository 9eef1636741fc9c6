//! Figures of queue pairs: how far each QP of a flow is from an even share, a row for each flow whose QPs are served
//! unevenly; and what each QP got of its share from interval to interval, a map for each of the least even runs.

use std::collections::BTreeMap;

use results::{
    load::Loaded,
    model::{CaseFlow, CaseResult, FlowResult, QpTimeline, Run, saturating_sum},
};

use crate::judge::evenness::{DRAWN_BELOW, OverTime, QpOverTime};
use crate::observe::{Metric, Observed};
use crate::show::plot::{
    draw::{
        Key, KeyMark, Scale, Unit,
        palette::{DIVERGING, INK, Marker, SERIES, SeriesStyle},
        text,
    },
    figure::{Cell, Figure, Picture, Table},
    figures::{
        heat_map::{Shade, or_unknown},
        timeline::subjects,
    },
    marks::{Axis, Chart, Dot, Fill, Mark, Tile, Upright},
    rows::{Sample, Sides, groups::distinct},
};

/// Flows that are drawn; of more, the least even.
const MOST_FLOWS: usize = 12;
const SHARE_ROW_PX: f64 = 30.0;

#[derive(Clone, Debug, Default)]
pub struct Shares {
    pub figures: Vec<Figure>,
    /// What of the others is said.
    pub sentences: Vec<String>,
}

struct ShareRow {
    name: String,
    on: String,
    shares: QpShares,
}

/// The uneven flows as a figure, the others in words. Of a case in several files the newest is taken.
pub fn shares(results: &[Loaded]) -> Shares {
    let mut newest: BTreeMap<(&str, &str, String), (&str, CaseFlow<'_>)> = BTreeMap::new();
    let mut older = 0;
    for Loaded { result, .. } in results {
        let host = result.nodes.first().map_or("", |node| &node.host.hostname);
        for flow in
            result.cases.iter().filter(|it| !it.config.is_set_up()).flat_map(CaseResult::flows)
        {
            let device = flow.config.and_then(|it| it.from_device.as_deref());
            let key = (host, device.unwrap_or_default(), flow.subject());
            let at = result.started_at.as_str();
            older += usize::from(newest.contains_key(&key));
            if newest.get(&key).is_none_or(|kept| at > kept.0) {
                newest.insert(key, (at, flow));
            }
        }
    }
    let mut rows: Vec<ShareRow> = newest
        .into_iter()
        .filter_map(|((host, device, name), (_, flow))| {
            let (device, shares) = (or_unknown(device), QpShares::new(flow)?);
            let on = match host {
                "" => device.to_owned(),
                host => format!("{device} of {host}"),
            };
            Some(ShareRow { name, on, shares })
        })
        .collect();
    rows.sort_by(|one, other| one.shares.evenness().total_cmp(&other.shares.evenness()));
    let (mut uneven, even): (Vec<ShareRow>, Vec<ShareRow>) = rows
        .into_iter()
        .partition(|row| row.shares.evenness() < DRAWN_BELOW || row.shares.has_starved);
    let devices: Vec<String> =
        distinct(uneven.iter().map(|row| row.on.as_str())).into_iter().map(str::to_owned).collect();
    if devices.len() > 1 {
        for row in &mut uneven {
            row.name = format!("{}, {}", row.name, row.on);
        }
    }
    let sentence = even.first().map(|row| {
        let flows = match even.len() {
            1 => "The QPs of 1 flow are".to_owned(),
            many => format!("The QPs of {many} flows are"),
        };
        // Rounded down, so that it holds; and nothing is more than 1.
        let least = (row.shares.evenness().min(0.999) * 1e3 + 1e-6).floor() / 1e3;
        format!("{flows} served evenly: Jain’s index is {least:.3} or more.")
    });
    Shares {
        figures: shares_figure(&uneven, &devices, older).into_iter().collect(),
        sentences: sentence.into_iter().collect(),
    }
}

/// The figure; `older` flows are in it from a newer file.
fn shares_figure(uneven: &[ShareRow], devices: &[String], older: usize) -> Option<Figure> {
    let flows = &uneven[..uneven.len().min(MOST_FLOWS)];
    flows.first()?;
    let left_out = uneven.len() - flows.len();
    let notes = [
        (left_out > 0).then(|| format!("{left_out} more are in the table.")),
        (older > 0).then(|| "Of several files with a case the newest is drawn.".to_owned()),
    ];
    let even = SeriesStyle::of_rule(0).with_dash("2 4");
    let picture = Picture {
        subtitle: format!(
            "Flows with a Jain’s index below {DRAWN_BELOW} or a starved QP, the least even first, on {}; medians of the \
             runs that count",
            devices.join(", ")
        ),
        keys: vec![
            Key::new(KeyMark::Marker, QP_STYLE, "a QP"),
            Key::new(KeyMark::Line, even, "even share"),
        ],
        charts: vec![shares_chart(flows)],
        notes: notes.into_iter().flatten().collect(),
        tables: vec![shares_table(uneven)],
    };
    Some(picture.named(
        "shares",
        "Shares of the QPs: distance from an even share (%)",
        "Each ring is a QP, and shows how far it is from an even share.",
    ))
}

const QP_STYLE: SeriesStyle =
    SeriesStyle { colour: SERIES[0], marker: Marker::Circle, dash: "", hollow: true, thin: false };

fn shares_chart(flows: &[ShareRow]) -> Chart {
    let (mut low, mut high) = (0.0_f64, 0.0_f64);
    let mut marks = vec![Mark::Upright(Upright { x: 0.0 })];
    for (row, flow) in flows.iter().enumerate() {
        for qp in &flow.shares.qps {
            let percent = (qp.share - 1.0) * 100.0;
            (low, high) = (low.min(percent), high.max(percent));
            marks.push(Mark::Dot(Dot {
                name: flow.name.clone(),
                at: (percent, -(row as f64)),
                style: QP_STYLE,
                hint: format!("{}, QP {}: {percent:+.1} %", flow.name, qp.index),
                ..Dot::default()
            }));
        }
    }
    let scale = Scale::linear(low, high).widened(0.05);
    let x = Axis::new("distance from an even share (%)", scale, Unit::Plain);
    let y = Axis::rows("", flows.iter().map(|row| row.name.clone()));
    Chart::of_rows(SHARE_ROW_PX, x, y, marks)
}

fn shares_table(flows: &[ShareRow]) -> Table {
    let names = [
        "flow",
        "QPs",
        "Jain",
        "most served QP",
        "over an even share",
        "least served QP",
        "over an even share",
        "lowest p99 (µs)",
        "highest p99 (µs)",
    ];
    let caption = "Flows whose QPs are served unevenly; the CSV file of QPs has each";
    Table::new(
        caption,
        names,
        flows.iter().map(|flow| {
            let p99s = flow.shares.qps.iter().filter_map(|qp| qp.p99_ns);
            let (least, most) = (p99s.clone().reduce(f64::min), p99s.reduce(f64::max));
            let mut row = vec![
                Cell::text(&flow.name),
                Cell::number(flow.shares.qps.len() as f64, 0),
                Cell::number(flow.shares.jain, 4),
            ];
            row.extend([flow.shares.qps.first(), flow.shares.qps.last()].into_iter().flat_map(
                |qp| {
                    let index = Cell::number(qp.map(|qp| f64::from(qp.index)), 0);
                    [index, Cell::number(qp.map(|qp| qp.share), 3)]
                },
            ));
            row.extend([least, most].map(|ns| Cell::number(ns.map(|ns| ns / 1e3), 2)));
            row
        }),
    )
}

#[derive(Clone, Debug)]
struct QpShares {
    /// Its QPs, the best served first.
    qps: Vec<QpShare>,
    /// Jain's index: 1 is even, 1/n is one QP alone.
    jain: Option<f64>,
    has_starved: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct QpShare {
    /// Index within the flow, from 0.
    index: u32,
    /// Its bytes over an even share.
    share: f64,
    /// 99 % of its latencies are at most this; `None` where not measured.
    p99_ns: Option<f64>,
}

impl QpShares {
    /// Of a flow; `None` with a single QP, without a run that counts or without traffic.
    fn new(flow: CaseFlow<'_>) -> Option<QpShares> {
        let mut shares: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        let observed = Observed::new(flow);
        for qps in observed.counted().filter_map(|it| it.moved).map(|moved| &moved.qps) {
            let bytes = saturating_sum(qps.iter().map(|qp| qp.bytes));
            for qp in qps.iter().filter(|_| bytes > 0) {
                let (share, p99_ns) = shares.entry(qp.index).or_default();
                share.push(qp.bytes as f64 * qps.len() as f64 / bytes as f64);
                let p99 = qp.latency_ns.as_ref().and_then(|latency| latency.p99);
                p99_ns.extend(p99.map(|ns| ns as f64));
            }
        }
        let mut qps: Vec<QpShare> = shares
            .into_iter()
            .filter_map(|(index, (share, p99_ns))| {
                Some(QpShare {
                    index,
                    share: statistics::median(&share)?,
                    p99_ns: statistics::median(&p99_ns),
                })
            })
            .collect();
        qps.sort_by(|one, other| other.share.total_cmp(&one.share));
        let mut fairness =
            observed.counted().filter_map(|it| it.moved).filter_map(|it| it.fairness.as_ref());
        (qps.len() > 1).then(|| QpShares {
            qps,
            jain: observed.median(Metric::Fairness),
            has_starved: fairness.any(|it| !it.starved.is_empty()),
        })
    }

    /// Jain's index; where it is not known, that of the shares.
    fn evenness(&self) -> f64 {
        let squares: f64 = self.qps.iter().map(|qp| qp.share * qp.share).sum();
        let sum: f64 = self.qps.iter().map(|qp| qp.share).sum();
        let own = sum * sum / (self.qps.len() as f64 * squares);
        self.jain.unwrap_or(own)
    }
}

const CAPTION: &str = "Each row is a QP, each column an interval. If a column differs, all QPs were slow at that time; if a \
    row differs, its QP got less or more than the others.";

/// Maps that are drawn; of more, the least even.
const MOST_MAPS: usize = 4;
/// Rows of a map; of more QPs, those with the longest stalls, then those furthest from their shares.
const MOST_ROWS: usize = 64;
const WORST_QPS: usize = 5;
const MOST_TABLE_ROWS: usize = 60;
/// Height of a map's cells together, and of one.
const MAP_PX: f64 = 256.0;
const MOST_CELL_PX: f64 = 16.0;

/// What cells are coloured by, as the legend says it. What is usual stands out least.
fn over_time_shades() -> [Shade; 6] {
    let steps = [
        (0.0, INK, "no message"),
        (0.5, DIVERGING[1], "less than 50 % of its share"),
        (0.8, DIVERGING[3], "50 to 80 %"),
        (1.25, DIVERGING[5], "80 to 125 %"),
        (2.0, DIVERGING[7], "125 to 200 %"),
        (f64::INFINITY, DIVERGING[8], "more than 200 %"),
    ];
    steps.map(|(up_to, colour, label)| Shade::new(up_to, colour, false, label.to_owned()))
}

/// A run of a flow whose QPs were not served evenly all the time.
struct Uneven<'s, 'a> {
    sample: &'s Sample<'a>,
    /// The flow, with its file where another has it too.
    subject: String,
    run: u32,
    over_time: OverTime,
}

/// The figure; none where all QPs were served evenly all the time.
pub fn over_time_figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let samples = Sample::of_sides(results.into().new.into());
    let mut runs: Vec<Uneven<'_, '_>> = samples
        .iter()
        .zip(subjects(&samples))
        .flat_map(|(sample, subject)| uneven(sample, &subject))
        .collect();
    // Stalls of one QP hardly change the mean index of many.
    runs.sort_by(|one, other| {
        let (one, other) = (&one.over_time, &other.over_time);
        let by_stall = other.longest_alone_seconds().total_cmp(&one.longest_alone_seconds());
        by_stall.then(one.jain.total_cmp(&other.jain))
    });
    over_time_figure(&runs).into_iter().collect()
}

fn uneven<'s, 'a>(sample: &'s Sample<'a>, subject: &str) -> Vec<Uneven<'s, 'a>> {
    let settings = &sample.observed.flow.settings;
    let counted = sample.observed.counted();
    counted
        .filter_map(|it| Some((it.run.run, OverTime::new(it.moved?, settings)?)))
        .filter(|(_, over_time)| over_time.is_uneven())
        .map(|(run, over_time)| Uneven { sample, subject: subject.to_owned(), run, over_time })
        .collect()
}

/// What is said of flows that had too many QPs to count each over time.
pub fn left_out(results: &[Loaded]) -> Option<String> {
    let count = results
        .iter()
        .flat_map(|loaded| Observed::of_file(&loaded.result))
        .filter(|flow| {
            let mut counted = flow.counted();
            counted.any(|it| it.moved.is_some_and(|moved| had_no_room(it.run, moved)))
        })
        .count();
    (count > 0).then(|| {
        format!(
            "{count} {} no counts for each QP over time: a node records {} QPs, an equal part for each flow that it \
             sends.",
            if count == 1 { "flow has" } else { "flows have" },
            QpTimeline::MOST_QPS
        )
    })
}

fn had_no_room(run: &Run, moved: &FlowResult) -> bool {
    let flows = run.flows.iter().filter(|flow| flow.from == moved.from);
    let qps = moved.qps.len();
    moved.qp_timeline.is_none() && qps > 1 && qps * flows.count() > QpTimeline::MOST_QPS
}

impl Uneven<'_, '_> {
    fn rows(&self) -> Vec<&QpOverTime> {
        let mut rows = self.over_time.worst_first();
        rows.truncate(MOST_ROWS);
        rows.sort_by_key(|qp| qp.index);
        rows
    }
}

/// `QP 3 had no message for 120 ms from 1.2 s on, and 71 % of its share in all`.
fn qp_words(qp: &QpOverTime) -> String {
    let share = format!("{:.0} % of its share in all", qp.share * 100.0);
    match qp.stall {
        Some(stall) => format!(
            "QP {} had no message for {} from {:.2} s on, and {share}",
            qp.index,
            text::time(stall.seconds() * 1e9),
            stall.from_seconds
        ),
        None => format!("QP {} got {share}", qp.index),
    }
}

fn over_time_figure(uneven: &[Uneven<'_, '_>]) -> Option<Figure> {
    let runs = &uneven[..uneven.len().min(MOST_MAPS)];
    runs.first()?;
    let (drawn, of_all) = (runs.len(), uneven.len());
    let in_table = of_all.min(MOST_TABLE_ROWS / WORST_QPS);
    let notes = [
        (true, "100 % is the mean of all QPs over the whole run.".to_owned()),
        (
            runs.iter().any(|run| run.sample.observed.flow.settings.qp_weights.is_some()),
            "With --qp-weights a QP's share is the requested one.".to_owned(),
        ),
        (
            runs.iter().any(|run| {
                let mut qps = run.over_time.qps.iter();
                qps.any(|qp| qp.cells.len() < run.over_time.ends_seconds.len())
            }),
            "A row ends with the last interval that the QP filled.".to_owned(),
        ),
        (
            runs.iter().any(|run| run.over_time.qps.len() > MOST_ROWS),
            format!(
                "Maps have at most {MOST_ROWS} QPs: first the longest stalls, then the QPs furthest from their shares."
            ),
        ),
        (
            of_all > drawn,
            format!("The figure has {drawn} of {of_all} uneven runs, the table {in_table}."),
        ),
    ];
    let shades = over_time_shades();
    let picture = Picture {
        subtitle: "Runs with a QP that stood still, or with uneven QPs; the least even first"
            .to_owned(),
        keys: Shade::keys(&shades),
        charts: runs.iter().map(|run| over_time_chart(run, &shades)).collect(),
        notes: notes.into_iter().filter(|it| it.0).map(|it| it.1).collect(),
        tables: vec![over_time_table(uneven)],
    };
    Some(picture.named(
        "qp-time",
        "QPs over time: messages as a percentage of an even share",
        CAPTION,
    ))
}

fn over_time_chart(run: &Uneven<'_, '_>, shades: &[Shade]) -> Chart {
    let rows = run.rows();
    let ends = &run.over_time.ends_seconds;
    let window = ends.last().copied().unwrap_or(0.0) * 1e9;
    // Where each interval begins.
    let edges: Vec<f64> = std::iter::once(0.0).chain(ends.iter().map(|end| end * 1e9)).collect();
    let (mut cells, mut whole) = (Vec::new(), Vec::new());
    for (row, qp) in rows.iter().enumerate() {
        let y = -(row as f64);
        let mut from = 0;
        for same in qp
            .cells
            .chunk_by(|one, next| Shade::at(shades, *one).colour == Shade::at(shades, *next).colour)
        {
            let to = from + same.len();
            let fill = Fill::Plain(Shade::at(shades, same[0]).colour);
            cells.push(Tile::new(y, (edges[from], edges[to]), fill, ""));
            from = to;
        }
        whole.push(Tile::new(y, (0.0, window), Fill::Nothing, qp_words(qp)));
    }
    let worst = run.over_time.worst_first().first().map(|qp| qp_words(qp)).unwrap_or_default();
    let x = Scale::linear(0.0, window);
    let x = Axis::new("time in the window", x, Unit::Nanoseconds);
    let y = Axis::rows("QP", rows.iter().map(|qp| qp.index.to_string()));
    let row_px = (MAP_PX / rows.len() as f64).min(MOST_CELL_PX);
    Chart {
        heading: format!("{}, run {}: {worst}", run.subject, run.run),
        ..Chart::of_rows(row_px, x, y, vec![Mark::Tiles(cells), Mark::Tiles(whole)])
    }
}

fn over_time_table(runs: &[Uneven<'_, '_>]) -> Table {
    let rows = runs.iter().flat_map(|run| {
        run.over_time
            .worst_first()
            .into_iter()
            .take(WORST_QPS)
            .map(move |qp| over_time_row(run, qp))
            .collect::<Vec<_>>()
    });
    let names = [
        "Flow",
        "Run",
        "QP",
        "share (%)",
        "longest stall (ms)",
        "from (s)",
        "slowest interval (%)",
        "fastest interval (%)",
    ];
    let caption = format!(
        "{WORST_QPS} QPs of each run: first the longest stalls, then the QPs furthest from their shares"
    );
    Table::new(caption, names, rows.take(MOST_TABLE_ROWS))
}

fn over_time_row(run: &Uneven<'_, '_>, qp: &QpOverTime) -> Vec<Cell> {
    let cells = qp.cells.iter().map(|share| share * 100.0);
    vec![
        Cell::text(&run.subject),
        Cell::text(run.run.to_string()),
        Cell::number(qp.index as f64, 0),
        Cell::number(qp.share * 100.0, 1),
        Cell::number(qp.stall_seconds() * 1e3, 1),
        Cell::number(qp.stall.map(|stall| stall.from_seconds), 3),
        Cell::number(cells.clone().reduce(f64::min), 1),
        Cell::number(cells.reduce(f64::max), 1),
    ]
}

#[cfg(test)]
mod tests {
    use results::{
        model::{Latency, QpResult},
        sample,
    };

    use super::*;

    fn run(bytes: &[u64], complete: bool) -> Run {
        let flow = FlowResult {
            qps: (0..)
                .zip(bytes)
                .map(|(index, &bytes)| QpResult {
                    latency_ns: (index != 1).then(|| Latency {
                        p99: Some(1000 * u64::from(index + 1)),
                        ..Latency::default()
                    }),
                    ..sample::qp(index, bytes)
                })
                .collect(),
            ..FlowResult::default()
        };
        Run { complete, ..sample::run(vec![flow]) }
    }

    #[test]
    fn the_best_served_comes_first_and_failed_runs_do_not_count() {
        let case = sample::case(vec![
            run(&[10, 30], true),
            run(&[999, 1], false),
            run(&[20, 60], true),
            run(&[0, 0], true),
        ]);
        let shares = QpShares::new(case.flows().next().unwrap()).unwrap();
        let of_qps = shares.qps.iter().map(|it| (it.index, it.share, it.p99_ns));
        assert!(of_qps.eq([(1, 1.5, None), (0, 0.5, Some(1000.0))]));
        assert_eq!(shares.jain, None);
    }

    #[test]
    fn a_single_qp_has_nothing_to_share() {
        let case = sample::case(vec![run(&[10], true)]);
        assert!(QpShares::new(case.flows().next().unwrap()).is_none());
    }
}
