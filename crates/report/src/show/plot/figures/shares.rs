//! Figure: how far each QP of a flow is from an even share, a row for each flow whose QPs are served unevenly.

use std::collections::BTreeMap;

use super::qp_shares::{QpShare, QpShares, qp_shares};
use crate::judge::evenness::DRAWN_BELOW;
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, CaseResult};
use crate::show::plot::draw::palette::{Look, Marker, SERIES};
use crate::show::plot::draw::text::{SMALL_PX, shortened};
use crate::show::plot::draw::{Key, KeyMark, Scale, Tick, Unit};
use crate::show::plot::figure::{Cell, Figure, Table, number_column, text_column};
use crate::show::plot::marks::{Axis, Chart, Dot, Mark, Upright, facets};
use crate::show::plot::naming::drawn;
use crate::show::plot::rows::groups::distinct;

/// Flows that are drawn; of more, the least even.
const MOST_FLOWS: usize = 12;
const ROW_PX: f64 = 30.0;

/// What is drawn of the QPs' shares.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// The figure of the uneven flows.
    pub figures: Vec<Figure>,
    /// What of the others is said.
    pub sentences: Vec<String>,
}

/// The uneven flows as a figure, the others in words. Of a case in several files the newest is taken.
pub fn shares(results: &[Loaded]) -> Shares {
    let mut newest: BTreeMap<(&str, &str, String), (&str, CaseFlow<'_>)> = BTreeMap::new();
    let mut older = 0;
    for Loaded { result, .. } in results {
        let host = result.nodes.first().map_or("", |node| &node.host.hostname);
        let cases = result.cases.iter().filter(|it| !it.config.is_set_up());
        for flow in cases.flat_map(CaseResult::flows) {
            let device = flow.config.and_then(|it| it.from_device.as_deref());
            let key = (host, device.unwrap_or_default(), flow.subject());
            let at = result.started_at.as_str();
            older += usize::from(newest.contains_key(&key));
            if newest.get(&key).is_none_or(|kept| at > kept.0) {
                newest.insert(key, (at, flow));
            }
        }
    }
    let mut all: Vec<Row<'_>> = newest
        .into_iter()
        .filter_map(|((host, device, name), (_, flow))| {
            let on = device_words(device, host);
            let shares = qp_shares(flow)?;
            Some(Row { name, on, shares })
        })
        .collect();
    all.sort_by(|one, other| one.evenness().total_cmp(&other.evenness()));
    let (mut uneven, even): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|it| it.evenness() < DRAWN_BELOW || it.has_starved);
    let devices = distinct(uneven.iter().map(|row| row.on.as_str()));
    let devices = devices.into_iter().map(str::to_owned).collect::<Vec<_>>();
    if devices.len() > 1 {
        for row in &mut uneven {
            row.name = format!("{}, {}", row.name, row.on);
        }
    }
    let least = even.first().map(|row| row.evenness());
    let told = least.map(|least| {
        let flows = match even.len() {
            1 => "The QPs of 1 flow are".to_owned(),
            many => format!("The QPs of {many} flows are"),
        };
        // Rounded down, so that it holds; and nothing is more than 1.
        let least = (least.min(0.999) * 1e3 + 1e-6).floor() / 1e3;
        format!("{flows} served evenly: Jain’s index is {least:.3} or more.")
    });
    Shares {
        figures: figure(&uneven, &devices, older).into_iter().collect(),
        sentences: told.into_iter().collect(),
    }
}

fn device_words(device: &str, host: &str) -> String {
    let device = match device {
        "" => "an unknown device",
        device => device,
    };
    match host {
        "" => device.to_owned(),
        host => format!("{device} of {host}"),
    }
}

/// A flow of a device.
struct Row<'a> {
    name: String,
    /// Its device and host.
    on: String,
    shares: QpShares<'a>,
}

impl<'a> std::ops::Deref for Row<'a> {
    type Target = QpShares<'a>;

    fn deref(&self) -> &QpShares<'a> {
        &self.shares
    }
}

/// What a QP got more or less than an even share, in percent of it.
fn deviations(shares: &QpShares<'_>) -> impl Iterator<Item = (u32, f64)> {
    let qps = shares.qps.iter();
    qps.map(|qp| (qp.index, (qp.share - 1.0) * 100.0))
}

/// The figure; `older` flows are in it from a newer file.
fn figure(uneven: &[Row<'_>], devices: &[String], older: usize) -> Option<Figure> {
    let drawn_flows = &uneven[..uneven.len().min(MOST_FLOWS)];
    drawn_flows.first()?;
    let figure = Figure {
        id: "shares".to_owned(),
        title: "Shares of the QPs: percent from an even share".to_owned(),
        subtitle: format!(
            "Flows with a Jain’s index below {DRAWN_BELOW} or a starved QP, the least even first, on {}; medians over the \
             runs that count",
            devices.join(", ")
        ),
        description: "Each ring is a QP: how much more or less than an even share it got."
            .to_owned(),
        tables: vec![table(uneven)],
        ..Figure::default()
    };
    let left_out = uneven.len() - drawn_flows.len();
    Some(drawn(figure, |sheet| {
        let keys = [
            Key {
                look: qp_look(),
                mark: KeyMark::Marker,
                label: "a QP".to_owned(),
            },
            Key {
                look: Look::of_rule(0).with_dash("2 4"),
                mark: KeyMark::Line,
                label: "even share".to_owned(),
            },
        ];
        sheet.legend(&keys);
        let chart = chart(drawn_flows, sheet.room_px() * 0.36);
        facets::draw(sheet, &[chart], drawn_flows.len() as f64 * ROW_PX + 70.0);
        if left_out > 0 {
            sheet.note(&format!("{left_out} more are in the table."));
        }
        if older > 0 {
            sheet.note("Of a case in several files the newest is drawn.");
        }
    }))
}

fn qp_look() -> Look {
    Look {
        colour: SERIES[0],
        marker: Marker::Circle,
        dash: "",
        hollow: true,
        thin: false,
    }
}

fn chart(flows: &[Row<'_>], room_px: f64) -> Chart {
    let all = || {
        flows
            .iter()
            .flat_map(|row| deviations(row))
            .map(|(_, percent)| percent)
    };
    let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let rows = Scale::linear(0.5 - flows.len() as f64, 0.5);
    let mut y = Axis::new("", rows, Unit::Plain);
    let tick = |(row, shares): (usize, &Row<'_>)| Tick {
        value: -(row as f64),
        label: shortened(&shares.name, SMALL_PX, false, room_px),
    };
    y.ticks = Some(flows.iter().enumerate().rev().map(tick).collect());
    let even = Mark::Upright(Upright {
        x: 0.0,
        label: String::new(),
    });
    let dots = flows.iter().enumerate().flat_map(|(row, shares)| {
        deviations(shares).map(move |(index, percent)| {
            Mark::Dot(Dot {
                name: shares.name.clone(),
                at: (percent, -(row as f64)),
                look: qp_look(),
                ring: None,
                hint: format!("{}, QP {index}: {percent:+.1} %", shares.name),
                label: String::new(),
            })
        })
    });
    let scale = Scale::linear(low, high).widened(0.05);
    Chart {
        heading: String::new(),
        x: Axis::new("percent from an even share", scale, Unit::Plain),
        y,
        marks: std::iter::once(even).chain(dots).collect(),
    }
}

fn table(flows: &[Row<'_>]) -> Table {
    let row = |shares: &Row<'_>| {
        let p99s = shares.qps.iter().filter_map(|qp| qp.p99_ns);
        let us = |ns: Option<f64>| ns.map_or(Cell::Missing, |ns| Cell::Number(ns / 1e3, 2));
        let share = |qp: Option<&QpShare>| qp.map_or(Cell::Missing, |qp| Cell::Number(qp.share, 3));
        let index = |qp: Option<&QpShare>| {
            qp.map_or(Cell::Missing, |qp| Cell::Number(f64::from(qp.index), 0))
        };
        let (most, least) = (shares.qps.first(), shares.qps.last());
        vec![
            Cell::Text(shares.name.clone()),
            Cell::Number(shares.qps.len() as f64, 0),
            shares
                .jain
                .map_or(Cell::Missing, |jain| Cell::Number(jain, 4)),
            index(most),
            share(most),
            index(least),
            share(least),
            us(p99s.clone().reduce(f64::min)),
            us(p99s.reduce(f64::max)),
        ]
    };
    Table {
        caption: "Flows whose QPs are served unevenly; the CSV file of QPs has each".to_owned(),
        columns: vec![
            text_column("flow"),
            number_column("QPs"),
            number_column("Jain"),
            number_column("most served QP"),
            number_column("over an even share"),
            number_column("least served QP"),
            number_column("over an even share"),
            number_column("lowest p99 (µs)"),
            number_column("highest p99 (µs)"),
        ],
        rows: flows.iter().map(row).collect(),
    }
}
