//! Figure: how far each QP of a flow is from an even share, a row for each flow whose QPs are served unevenly.

use std::collections::BTreeMap;

use super::groups::distinct;
use super::naming::{drawn, some_of};
use super::qp_shares::{QpShare, QpShares, qp_shares};
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, CaseResult};
use crate::show::plot::draw::palette::{GRID, Look, MUTED, Marker, RULE, SERIES};
use crate::show::plot::draw::text::{SMALL_PX, shortened, width_px};
use crate::show::plot::draw::{
    Anchor, Axis, AxisFrame, Key, KeyMark, Paint, Rect, Scale, Sheet, Style, Tick, Unit, Width,
};
use crate::show::plot::figure::{Cell, Column, Figure, Table};

/// From this index on QPs are served so evenly that nothing is drawn.
const EVEN_FROM: f64 = 0.98;
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
        .partition(|it| it.evenness() < EVEN_FROM || it.has_starved);
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
    let ends = |shares: &Row<'_>| {
        let (most, least) = (shares.qps.first()?, shares.qps.last()?);
        Some(format!(
            "{}: Jain’s index {:.3}, QP {} got {:+.0} %, QP {} {:+.0} %",
            shares.name,
            shares.evenness(),
            most.index,
            (most.share - 1.0) * 100.0,
            least.index,
            (least.share - 1.0) * 100.0
        ))
    };
    let told: Vec<String> = drawn_flows.iter().filter_map(ends).collect();
    let figure = Figure {
        id: "shares".to_owned(),
        title: "Shares of the QPs: percent from an even share".to_owned(),
        subtitle: format!(
            "Flows with a Jain’s index below {EVEN_FROM} or a starved QP, the least even first, on {}; medians over the \
             runs that count",
            devices.join(", ")
        ),
        description: format!("{}.", some_of(&told)),
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
                look: Look::of_rule(1),
                mark: KeyMark::Line,
                label: "even share".to_owned(),
            },
        ];
        sheet.legend(&keys);
        draw(sheet, drawn_flows);
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

fn draw(sheet: &mut Sheet, flows: &[Row<'_>]) {
    let all = || {
        flows
            .iter()
            .flat_map(|row| deviations(row))
            .map(|(_, percent)| percent)
    };
    let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let area = sheet.take(flows.len() as f64 * ROW_PX + 70.0);
    let (label_part, words) = match sheet.width() {
        Width::Page => (0.36, true),
        Width::Column => (0.3, false),
    };
    let jain = |shares: &Row<'_>| format!("Jain {:.3}", shares.evenness());
    let words_px = match words {
        true => width_px("Jain 0.000", SMALL_PX, false) + 10.0,
        false => 0.0,
    };
    let mut y = Axis::new(
        "",
        Scale::linear(0.5 - flows.len() as f64, 0.5),
        Unit::Plain,
    );
    y.ticks = Some(
        (flows.iter().enumerate().rev())
            .map(|(row, shares)| Tick {
                value: -(row as f64),
                label: shortened(&shares.name, SMALL_PX, false, area.width * label_part),
            })
            .collect(),
    );
    let x = Axis::new(
        "percent from an even share",
        Scale::linear(low, high).widened(0.05),
        Unit::Plain,
    );
    let inner = Rect {
        width: area.width - words_px,
        ..area
    };
    let canvas = &mut sheet.canvas;
    let frame = AxisFrame::draw(canvas, inner, &x, &y);
    if let Some(even) = frame.x(0.0) {
        let paint = Paint::line(RULE, 1.5).dashed(Look::of_rule(1).dash);
        canvas.line((even, frame.plot.y), (even, frame.plot.bottom()), paint);
    }
    for (row, shares) in flows.iter().enumerate() {
        let Some(middle) = frame.y(-(row as f64)) else {
            continue;
        };
        let ends = deviations(shares).filter_map(|(_, percent)| frame.x(percent));
        let (left, right) = ends.fold((f64::INFINITY, 0.0_f64), |(left, right), x| {
            (left.min(x), right.max(x))
        });
        canvas.line((left, middle), (right, middle), Paint::line(GRID, 3.0));
        for (index, percent) in deviations(shares) {
            if let Some(x) = frame.x(percent) {
                let hint = format!("{}, QP {index}: {percent:+.1} %", shares.name);
                canvas.marker((x, middle), qp_look(), Some(&hint));
            }
        }
        if words {
            let style = Style {
                anchor: Anchor::Start,
                colour: MUTED,
                ..Style::default()
            };
            canvas.text(inner.right() + 4.0, middle + 4.0, &jain(shares), style);
        }
    }
}

fn table(flows: &[Row<'_>]) -> Table {
    let column = |name: &str, numeric| Column {
        name: name.to_owned(),
        numeric,
    };
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
            column("flow", false),
            column("QPs", true),
            column("Jain", true),
            column("most served QP", true),
            column("over an even share", true),
            column("least served QP", true),
            column("over an even share", true),
            column("lowest p99 (µs)", true),
            column("highest p99 (µs)", true),
        ],
        rows: flows.iter().map(row).collect(),
    }
}
