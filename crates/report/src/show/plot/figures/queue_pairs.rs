//! Figures of queue pairs: how far each QP of a flow is from an even share, a row for each flow whose QPs are served
//! unevenly; and what each QP got of its share from interval to interval, a map for each of the least even runs.

use std::collections::BTreeMap;

use results::{
    load::Loaded,
    model::{FlowResult, QpTimeline, Run, saturating_sum},
};

use crate::judge::evenness::{DRAWN_BELOW, OverTime, QpOverTime};
use crate::observe::{Metric, Observed};
use crate::show::plot::{
    draw::{DIVERGING, INK, Key, KeyMark, Marker, SERIES, Scale, SeriesStyle, Unit, text},
    figure::{Cell, Drawn, Figure, Picture, Table},
    marks::{Axis, Chart, Dot, Fill, Mark, Rule, Shade, Shades, Tile},
    rows::{Groups, OfRun, Sample, Sides},
};

/// Flows that are drawn; of more, the least even.
const MOST_FLOWS: usize = 12;
const SHARE_ROW_PX: f64 = 30.0;

/// The uneven flows as a figure, the others in words.
pub fn shares(results: &[Loaded]) -> Drawn {
    let mut samples = Sample::transfers(results);
    samples.retain(|sample| QpShares::new(&sample.observed).is_some());
    let groups = Groups::of_flows(samples);
    let mut flows: Vec<(String, QpShares)> = groups
        .flows()
        .into_iter()
        .filter_map(|(name, it)| Some((name, QpShares::new(&it.observed)?)))
        .collect();
    flows.sort_by(|one, other| one.1.evenness().total_cmp(&other.1.evenness()));
    let (uneven, even): (Vec<_>, Vec<_>) =
        flows.into_iter().partition(|(_, flow)| flow.evenness() < DRAWN_BELOW || flow.has_starved);
    let sentence = even.first().map(|(_, flow)| {
        let whose = match even.len() {
            1 => "The QPs of 1 flow are".to_owned(),
            many => format!("The QPs of {many} flows are"),
        };
        // Rounded down, so that it holds; and nothing is more than 1.
        let least = (flow.evenness().min(0.999) * 1e3 + 1e-6).floor() / 1e3;
        format!("{whose} served evenly: Jain’s index is {least:.3} or more.")
    });
    Drawn {
        figures: shares_figure(&groups, &uneven).into_iter().collect(),
        sentences: sentence.into_iter().collect(),
    }
}

fn shares_figure(groups: &Groups<'_>, uneven: &[(String, QpShares)]) -> Option<Figure> {
    let flows = &uneven[..uneven.len().min(MOST_FLOWS)];
    let left_out = uneven.len() - flows.len();
    let qps = (0..).zip(flows).flat_map(|(row, (name, flow))| {
        flow.qps.iter().map(move |qp| {
            let percent = (qp.share - 1.0) * 100.0;
            let hint = format!("{name}, QP {}: {percent:+.1} %", qp.index);
            Dot::new(name, (percent, -f64::from(row)), QP_STYLE, hint)
        })
    });
    let dots: Vec<Dot> = qps.collect();
    let low = dots.iter().map(|dot| dot.at.0).reduce(f64::min)?.min(0.0);
    let high = dots.iter().map(|dot| dot.at.0).fold(0.0, f64::max);
    let scale = Scale::linear(low, high).widened(0.05);
    let x = Axis::new("distance from an even share (%)", scale, Unit::Plain);
    let y = Axis::rows("", flows.iter().map(|(name, _)| name.clone()));
    let marks = [Mark::Rule(Rule::upright(0.0))].into_iter().chain(dots.into_iter().map(Mark::Dot));
    let own_notes = [
        Some(format!(
            "Flows with a Jain’s index below {DRAWN_BELOW} or a starved QP, the least even first."
        )),
        (left_out > 0).then(|| format!("{left_out} more are in the table.")),
    ];
    let picture = Picture {
        keys: vec![
            Key::new(KeyMark::Marker, QP_STYLE, "a QP"),
            Key::new(KeyMark::Line, SeriesStyle::of_rule(2), "even share"),
        ],
        charts: vec![Chart::of_rows(SHARE_ROW_PX, x, y, marks.collect())],
        tables: vec![shares_table(uneven)],
        ..groups.picture(own_notes)
    };
    Some(picture.named(
        "shares",
        "Shares of the QPs: distance from an even share (%)",
        "Each ring is a QP, and shows how far it is from an even share.",
    ))
}

const QP_STYLE: SeriesStyle =
    SeriesStyle { colour: SERIES[0], marker: Marker::Circle, dash: "", hollow: true, thin: false };

fn shares_table(flows: &[(String, QpShares)]) -> Table {
    let index = |qp: Option<&QpShare>| Cell::number(qp.map(|qp| f64::from(qp.index)), 0);
    let share = |qp: Option<&QpShare>| Cell::number(qp.map(|qp| qp.share), 3);
    let p99 = |flow: &QpShares, of: fn(f64, f64) -> f64| {
        let ns = flow.qps.iter().filter_map(|qp| qp.p99_ns).reduce(of);
        Cell::number(ns.map(|ns| ns / 1e3), 2)
    };
    Table::from_rows(
        "Flows whose QPs are served unevenly; the CSV file of QPs has each",
        flows,
        &[
            ("flow", &|(name, _)| Cell::text(name)),
            ("QPs", &|(_, flow)| Cell::number(flow.qps.len() as f64, 0)),
            ("Jain", &|(_, flow)| Cell::number(flow.jain, 4)),
            ("most served QP", &|(_, flow)| index(flow.qps.first())),
            ("over an even share", &|(_, flow)| share(flow.qps.first())),
            ("least served QP", &|(_, flow)| index(flow.qps.last())),
            ("over an even share", &|(_, flow)| share(flow.qps.last())),
            ("lowest p99 (µs)", &|(_, flow)| p99(flow, f64::min)),
            ("highest p99 (µs)", &|(_, flow)| p99(flow, f64::max)),
        ],
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
    fn new(observed: &Observed<'_>) -> Option<QpShares> {
        let mut shares: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
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
fn parts_of_share() -> Shades {
    let steps = [
        (0.0, INK, "no message"),
        (0.5, DIVERGING[1], "less than 50 % of its share"),
        (0.8, DIVERGING[3], "50 to 80 %"),
        (1.25, DIVERGING[5], "80 to 125 %"),
        (2.0, DIVERGING[7], "125 to 200 %"),
        (f64::INFINITY, DIVERGING[8], "more than 200 %"),
    ];
    let shades = steps.map(|(up_to, colour, label)| Shade::new(up_to, colour, false, label));
    Shades(shades.into())
}

/// The figure; none where all QPs were served evenly all the time.
pub fn over_time_figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let (groups, flows) = Groups::of_runs(results.into(), |sample, counted| {
        OverTime::new(counted.moved?, &sample.observed.flow.settings).filter(OverTime::is_uneven)
    });
    let mut uneven: Vec<OfRun<OverTime>> = flows.into_iter().flatten().collect();
    // Stalls of one QP hardly change the mean index of many.
    uneven.sort_by(|one, other| {
        let [alone, other_alone] = [one, other].map(|run| run.value.longest_alone_seconds());
        other_alone.total_cmp(&alone).then(one.value.jain.total_cmp(&other.value.jain))
    });
    over_time_figure(&groups, &uneven).into_iter().collect()
}

/// What is said of flows that had too many QPs to count each over time.
pub fn left_out(results: &[Loaded]) -> Option<String> {
    let flows = results.iter().flat_map(|loaded| Observed::of_file(&loaded.result));
    let without_counts = flows.filter(|flow| {
        let mut counted = flow.counted();
        counted.any(|it| it.moved.is_some_and(|moved| had_no_room(it.run, moved)))
    });
    let count = without_counts.count();
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

fn over_time_figure(groups: &Groups<'_>, uneven: &[OfRun<OverTime>]) -> Option<Figure> {
    let runs = &uneven[..uneven.len().min(MOST_MAPS)];
    runs.first()?;
    let (drawn, of_all) = (runs.len(), uneven.len());
    let in_table = of_all.min(MOST_TABLE_ROWS / WORST_QPS);
    let mut qps = runs.iter().flat_map(|run| run.value.qps.iter().map(move |qp| (run, qp)));
    let has_short = qps.any(|(run, qp)| qp.cells.len() < run.value.ends_seconds.len());
    let mut weights = groups.samples().map(|it| &it.observed.flow.settings.qp_weights);
    let own_notes = [
        Some("100 % is the mean of all QPs over the whole run. The least even runs come first.".to_owned()),
        weights.any(Option::is_some)
            .then(|| "With --qp-weights a QP's share is the requested one.".to_owned()),
        has_short.then(|| "A row ends with the last interval that the QP filled.".to_owned()),
        (runs.iter().any(|run| run.value.qps.len() > MOST_ROWS)).then(|| {
            format!(
                "Maps have at most {MOST_ROWS} QPs: first the longest stalls, then the QPs furthest from their shares."
            )
        }),
        (of_all > drawn).then(|| {
            format!("The figure has {drawn} of {of_all} uneven runs, the table {in_table}.")
        }),
    ];
    let shades = parts_of_share();
    let charts: Vec<Chart> = runs.iter().map(|run| over_time_chart(run, &shades)).collect();
    let picture = Picture {
        keys: shades.keys(&charts, ""),
        charts,
        tables: vec![over_time_table(uneven)],
        ..groups.picture(own_notes)
    };
    let title = "QPs over time: messages as a percentage of an even share";
    Some(picture.named("qp-time", title, CAPTION))
}

fn over_time_chart(run: &OfRun<OverTime>, shades: &Shades) -> Chart {
    let worst = run.value.worst_first();
    let mut qps = worst.clone();
    qps.truncate(MOST_ROWS);
    qps.sort_by_key(|qp| qp.index);
    let ends = run.value.ends_seconds.iter().map(|end| end * 1e9);
    // Where each interval begins.
    let edges: Vec<f64> = std::iter::once(0.0).chain(ends).collect();
    let window = edges.last().copied().unwrap_or(0.0);
    let (mut cells, mut whole) = (Vec::new(), Vec::new());
    for (y, qp) in (0..).map(|row| -f64::from(row)).zip(&qps) {
        let mut from = 0;
        for same in qp.cells.chunk_by(|one, next| shades.at(*one).colour == shades.at(*next).colour)
        {
            let to = from + same.len();
            let fill = Fill::Plain(shades.at(same[0]).colour);
            cells.push(Tile::new(y, (edges[from], edges[to]), fill, ""));
            from = to;
        }
        whole.push(Tile::new(y, (0.0, window), Fill::Nothing, qp_words(qp)));
    }
    let x = Axis::new("time in the window", Scale::linear(0.0, window), Unit::Nanoseconds);
    let y = Axis::rows("QP", qps.iter().map(|qp| qp.index.to_string()));
    let row_px = (MAP_PX / qps.len() as f64).min(MOST_CELL_PX);
    let words = worst.first().map(|qp| qp_words(qp)).unwrap_or_default();
    Chart {
        heading: format!("{}, run {}: {words}", run.flow, run.run),
        ..Chart::of_rows(row_px, x, y, vec![Mark::Tiles(cells), Mark::Tiles(whole)])
    }
}

fn over_time_table(runs: &[OfRun<OverTime>]) -> Table {
    let rows = runs.iter().flat_map(|run| {
        let worst = run.value.worst_first().into_iter().take(WORST_QPS);
        worst.map(move |qp| (run, qp))
    });
    let cells = |qp: &QpOverTime, of: fn(f64, f64) -> f64| {
        Cell::number(qp.cells.iter().map(|share| share * 100.0).reduce(of), 1)
    };
    Table::from_rows(
        format!(
            "{WORST_QPS} QPs of each run: first the longest stalls, then the QPs furthest from their shares"
        ),
        rows.take(MOST_TABLE_ROWS),
        &[
            ("Flow", &|(run, _)| Cell::text(&run.flow)),
            ("Run", &|(run, _)| Cell::text(&run.run)),
            ("QP", &|(_, qp)| Cell::number(qp.index as f64, 0)),
            ("share (%)", &|(_, qp)| Cell::number(qp.share * 100.0, 1)),
            ("longest stall (ms)", &|(_, qp)| Cell::number(qp.stall_seconds() * 1e3, 1)),
            ("from (s)", &|(_, qp)| Cell::number(qp.stall.map(|stall| stall.from_seconds), 3)),
            ("slowest interval (%)", &|(_, qp)| cells(qp, f64::min)),
            ("fastest interval (%)", &|(_, qp)| cells(qp, f64::max)),
        ],
    )
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
        let shares = QpShares::new(&Observed::new(case.flows().next().unwrap())).unwrap();
        let of_qps = shares.qps.iter().map(|it| (it.index, it.share, it.p99_ns));
        assert!(of_qps.eq([(1, 1.5, None), (0, 0.5, Some(1000.0))]));
        assert_eq!(shares.jain, None);
    }

    #[test]
    fn a_single_qp_has_nothing_to_share() {
        let case = sample::case(vec![run(&[10], true)]);
        assert!(QpShares::new(&Observed::new(case.flows().next().unwrap())).is_none());
    }
}
