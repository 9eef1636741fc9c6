//! Figure: how far each QP of a flow is from an even share, a row for each flow whose QPs are served unevenly. What
//! each QP of a flow got, medians over its case's runs that count.

use std::collections::BTreeMap;

use crate::judge::evenness::DRAWN_BELOW;
use crate::observe::{Metric, Observed};
use crate::show::plot::draw::palette::{Marker, SERIES, SeriesStyle};
use crate::show::plot::draw::{Key, KeyMark, Scale, Unit};
use crate::show::plot::figure::{Cell, Figure, Picture, Table};
use crate::show::plot::figures::heat_map::or_unknown;
use crate::show::plot::marks::{Axis, Chart, Dot, Mark, Upright};
use crate::show::plot::rows::groups::distinct;
use results::load::Loaded;
use results::model::{CaseFlow, CaseResult};
use results::rates;

/// Flows that are drawn; of more, the least even.
const MOST_FLOWS: usize = 12;
const ROW_PX: f64 = 30.0;

#[derive(Clone, Debug, Default)]
pub struct Shares {
    pub figures: Vec<Figure>,
    /// What of the others is said.
    pub sentences: Vec<String>,
}

struct Row {
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
    let mut rows: Vec<Row> = newest
        .into_iter()
        .filter_map(|((host, device, name), (_, flow))| {
            let (device, shares) = (or_unknown(device), QpShares::new(flow)?);
            let on = match host {
                "" => device.to_owned(),
                host => format!("{device} of {host}"),
            };
            Some(Row { name, on, shares })
        })
        .collect();
    rows.sort_by(|one, other| one.shares.evenness().total_cmp(&other.shares.evenness()));
    let (mut uneven, even): (Vec<Row>, Vec<Row>) = rows
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
        figures: figure(&uneven, &devices, older).into_iter().collect(),
        sentences: sentence.into_iter().collect(),
    }
}

/// The figure; `older` flows are in it from a newer file.
fn figure(uneven: &[Row], devices: &[String], older: usize) -> Option<Figure> {
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
        charts: vec![chart(flows)],
        notes: notes.into_iter().flatten().collect(),
        tables: vec![table(uneven)],
    };
    Some(picture.named(
        "shares",
        "Shares of the QPs: distance from an even share (%)",
        "Each ring is a QP, and shows how far it is from an even share.",
    ))
}

const QP_STYLE: SeriesStyle =
    SeriesStyle { colour: SERIES[0], marker: Marker::Circle, dash: "", hollow: true, thin: false };

fn chart(flows: &[Row]) -> Chart {
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
    Chart::of_rows(ROW_PX, x, y, marks)
}

fn table(flows: &[Row]) -> Table {
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
pub(super) struct QpShares {
    /// Its QPs, the best served first.
    pub(super) qps: Vec<QpShare>,
    /// Jain's index: 1 is even, 1/n is one QP alone.
    pub(super) jain: Option<f64>,
    pub(super) has_starved: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QpShare {
    /// Index within the flow, from 0.
    pub(super) index: u32,
    /// Its bytes over an even share.
    pub(super) share: f64,
    /// 99 % of its latencies are at most this; `None` where not measured.
    pub(super) p99_ns: Option<f64>,
}

impl QpShares {
    /// Of a flow; `None` with a single QP, without a run that counts or without traffic.
    pub(super) fn new(flow: CaseFlow<'_>) -> Option<QpShares> {
        let mut shares: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        let observed = Observed::new(flow);
        for qps in observed.counted().filter_map(|it| it.moved).map(|moved| &moved.qps) {
            let bytes = rates::sum(qps.iter().map(|qp| qp.bytes));
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
    pub(super) fn evenness(&self) -> f64 {
        let squares: f64 = self.qps.iter().map(|qp| qp.share * qp.share).sum();
        let sum: f64 = self.qps.iter().map(|qp| qp.share).sum();
        let own = sum * sum / (self.qps.len() as f64 * squares);
        self.jain.unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use results::model::{FlowResult, Latency, QpResult, Run};
    use results::sample;

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
        let told = shares.qps.iter().map(|it| (it.index, it.share, it.p99_ns));
        assert!(told.eq([(1, 1.5, None), (0, 0.5, Some(1000.0))]));
        assert_eq!(shares.jain, None);
    }

    #[test]
    fn a_single_qp_has_nothing_to_share() {
        let case = sample::case(vec![run(&[10], true)]);
        assert!(QpShares::new(case.flows().next().unwrap()).is_none());
    }
}
