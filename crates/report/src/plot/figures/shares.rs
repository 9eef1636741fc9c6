//! Figure: what each QP of a case got, the best served first, with its p99 below.

use std::collections::{BTreeMap, BTreeSet};

use super::naming::{head, slug};
use super::qp_shares::{QpShares, qp_shares};
use crate::plot::draw::palette::{GRID, INK, Look, MUTED, Marker, RULE, SERIES};
use crate::plot::draw::text::{SMALL_PX, width_px};
use crate::plot::draw::{Anchor, Canvas, Paint, Rect, Sheet, Style, WIDTH};
use crate::plot::figure::{Cell, Column, Figure, Table};
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, CaseResult};
use crate::results::number::human_size;

/// Cases that are drawn; of more, the least even.
pub const MOST_CASES: usize = 12;

const LEFT_PX: f64 = 64.0;
const RIGHT_PX: f64 = 96.0;
const SHARES_PX: f64 = 200.0;
const P99_PX: f64 = 130.0;
/// Heading of a panel.
const HEADING_PX: f64 = 30.0;
/// A line below the panels.
const LINE_PX: f64 = 20.0;
/// QPs whose bars and markers can still be told apart.
const SINGLE_BARS: usize = 150;

/// How many flows have shares, and the figures of the least even. Of a case in several files the newest is taken.
pub fn figures(results: &[Loaded]) -> (usize, Vec<Figure>) {
    let mut newest: BTreeMap<(&str, &str, String), (&str, CaseFlow<'_>)> = BTreeMap::new();
    for Loaded { result, .. } in results {
        let host = result.nodes.first().map_or("", |node| &node.host.hostname);
        let cases = result.cases.iter().filter(|it| !it.config.is_set_up());
        for flow in cases.flat_map(CaseResult::flows) {
            let device = flow.config.and_then(|it| it.from_device.as_deref());
            let key = (host, device.unwrap_or_default(), flow.subject());
            let at = result.started_at.as_str();
            if newest.get(&key).is_none_or(|kept| at > kept.0) {
                newest.insert(key, (at, flow));
            }
        }
    }
    let mut shares: Vec<QpShares<'_>> = newest
        .into_values()
        .filter_map(|(_, flow)| qp_shares(flow))
        .collect();
    let evenness = |shares: &QpShares<'_>| shares.jain.unwrap_or(1.0);
    shares.sort_by(|one, other| evenness(one).total_cmp(&evenness(other)));
    let count = shares.len();
    shares.truncate(MOST_CASES);
    let mut ids = BTreeSet::new();
    let figures = shares.iter().map(|shares| {
        let base = format!("shares-{}", slug(&shares.flow.subject()));
        let mut id = base.clone();
        for number in 2.. {
            if ids.insert(id.clone()) {
                break;
            }
            id = format!("{base}-{number}");
        }
        figure(shares, id)
    });
    (count, figures.collect())
}

fn figure(shares: &QpShares<'_>, id: String) -> Figure {
    let config = &shares.flow.settings;
    let device = shares.flow.config.and_then(|it| it.from_device.as_deref());
    let jain = shares
        .jain
        .map_or("not measured".to_owned(), |jain| format!("{jain:.4}"));
    let title = format!(
        "Shares of {} QPs: {}",
        shares.qps.len(),
        shares.flow.subject()
    );
    let subtitle = format!(
        "{} of {} over {} CQs, {} worker{}, on {}; medians over the case’s complete runs",
        config.op,
        human_size(config.size_bytes.into()),
        config.cq,
        config.workers,
        if config.workers == 1 { "" } else { "s" },
        device.unwrap_or("an unknown device")
    );
    let (most, least) = (shares.qps.first(), shares.qps.last());
    let extremes = match (most, least) {
        (Some(most), Some(least)) => format!(
            "QP {} got most, {:.3} of an even share; QP {} got least, {:.3}.",
            most.index, most.share, least.index, least.share
        ),
        _ => String::new(),
    };
    let mut figure = Figure {
        id,
        description: format!("Jain’s index is {jain} (1 is even). {extremes}"),
        svg: String::new(),
        title,
        subtitle,
        tables: vec![table(shares)],
    };
    figure.svg = draw(shares, &figure, &jain);
    figure
}

fn draw(shares: &QpShares<'_>, figure: &Figure, jain: &str) -> String {
    let mut sheet = Sheet::new(head(figure));
    let largest = shares.qps.iter().map(|qp| qp.share).fold(1.0, f64::max);
    let heading = format!("Bytes over an even share; Jain’s index {jain}");
    let panel = Panel::new(sheet.take(HEADING_PX + SHARES_PX), largest);
    let canvas = &mut sheet.canvas;
    panel.frame(canvas, &heading);
    bars(canvas, &panel, shares);
    let even = panel.y(1.0);
    let paint = Paint::line(RULE, 1.5).dashed("6 4");
    canvas.line((LEFT_PX, even), (WIDTH - RIGHT_PX, even), paint);
    let style = Style {
        colour: MUTED,
        ..Style::default()
    };
    canvas.text(WIDTH - RIGHT_PX + 6.0, even + 4.0, "even share", style);
    if shares.qps.iter().any(|qp| qp.p99_ns.is_some()) {
        let largest = shares
            .qps
            .iter()
            .filter_map(|qp| qp.p99_ns)
            .fold(0.0, f64::max)
            / 1e3;
        let panel = Panel::new(sheet.take(HEADING_PX + P99_PX), largest);
        panel.frame(&mut sheet.canvas, "p99 of the same QPs (µs)");
        latencies(&mut sheet.canvas, &panel, shares);
    }
    let area = sheet.take(2.0 * LINE_PX);
    names(&mut sheet.canvas, shares, area.y - 8.0);
    sheet.finish()
}

/// A plot over the QPs, with an axis from 0.
struct Panel {
    top: f64,
    height: f64,
    step: f64,
    end: f64,
}

impl Panel {
    fn new(area: Rect, largest: f64) -> Panel {
        let step = nice_step(largest / 4.0);
        Panel {
            top: area.y + HEADING_PX,
            height: area.height - HEADING_PX,
            step,
            end: (largest / step).ceil().max(1.0) * step,
        }
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom() - value / self.end * self.height
    }

    fn frame(&self, canvas: &mut Canvas, heading: &str) {
        let bold = Style {
            bold: true,
            ..Style::default()
        };
        canvas.text(LEFT_PX, self.top - 12.0, heading, bold);
        let digits = (-self.step.log10().floor()).max(0.0) as usize;
        for index in 0..=(self.end / self.step).round() as usize {
            let value = index as f64 * self.step;
            let y = self.y(value);
            let colour = if index == 0 { INK } else { GRID };
            canvas.line(
                (LEFT_PX, y),
                (WIDTH - RIGHT_PX, y),
                Paint::line(colour, 1.0),
            );
            let style = Style {
                anchor: Anchor::End,
                colour: MUTED,
                ..Style::default()
            };
            canvas.text(LEFT_PX - 8.0, y + 4.0, &format!("{value:.digits$}"), style);
        }
    }
}

/// 1, 2 or 5 times a power of ten, at least `value`.
fn nice_step(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= value * 0.999)
        .unwrap_or(10.0 * power)
}

fn slot(shares: &QpShares<'_>) -> f64 {
    (WIDTH - LEFT_PX - RIGHT_PX) / shares.qps.len() as f64
}

fn bars(canvas: &mut Canvas, panel: &Panel, shares: &QpShares<'_>) {
    let slot = slot(shares);
    if shares.qps.len() > SINGLE_BARS {
        let mut outline = vec![(LEFT_PX, panel.bottom())];
        for (place, qp) in shares.qps.iter().enumerate() {
            let x = LEFT_PX + place as f64 * slot;
            outline.extend([(x, panel.y(qp.share)), (x + slot, panel.y(qp.share))]);
        }
        outline.push((WIDTH - RIGHT_PX, panel.bottom()));
        canvas.polygon(&outline, Paint::area(SERIES[0]));
        return;
    }
    let width = (slot * 0.8).min(48.0);
    for (place, qp) in shares.qps.iter().enumerate() {
        let rect = Rect {
            x: LEFT_PX + (place as f64 + 0.5) * slot - width / 2.0,
            y: panel.y(qp.share),
            width,
            height: panel.bottom() - panel.y(qp.share),
        };
        let hint = format!("QP {}: {:.3} of an even share", qp.index, qp.share);
        canvas.rect(rect, Paint::area(SERIES[0]), Some(&hint));
    }
}

fn latencies(canvas: &mut Canvas, panel: &Panel, shares: &QpShares<'_>) {
    let slot = slot(shares);
    let points = shares.qps.iter().enumerate().filter_map(|(place, qp)| {
        let p99_us = qp.p99_ns? / 1e3;
        Some((
            qp.index,
            p99_us,
            (LEFT_PX + (place as f64 + 0.5) * slot, panel.y(p99_us)),
        ))
    });
    for (index, p99_us, (x, y)) in points {
        if shares.qps.len() > SINGLE_BARS {
            let rect = Rect {
                x: x - 1.0,
                y: y - 1.0,
                width: 2.0,
                height: 2.0,
            };
            canvas.rect(rect, Paint::area(SERIES[1]), None);
            continue;
        }
        let look = Look {
            colour: SERIES[1],
            marker: Marker::Diamond,
            dash: "",
            hollow: false,
        };
        canvas.marker(
            (x, y),
            look,
            Some(&format!("QP {index}: p99 {p99_us:.2} µs")),
        );
    }
}

/// The QPs' numbers, as many as have room.
fn names(canvas: &mut Canvas, shares: &QpShares<'_>, bottom: f64) {
    let slot = slot(shares);
    let widest = shares
        .qps
        .iter()
        .map(|qp| width_px(&qp.index.to_string(), SMALL_PX, false))
        .fold(0.0, f64::max);
    if widest + 4.0 <= slot {
        for (place, qp) in shares.qps.iter().enumerate() {
            let style = Style {
                anchor: Anchor::Middle,
                colour: MUTED,
                ..Style::default()
            };
            let x = LEFT_PX + (place as f64 + 0.5) * slot;
            canvas.text(x, bottom + 16.0, &qp.index.to_string(), style);
        }
    }
    let style = Style {
        anchor: Anchor::Middle,
        ..Style::default()
    };
    let middle = f64::midpoint(LEFT_PX, WIDTH - RIGHT_PX);
    canvas.text(
        middle,
        bottom + 16.0 + LINE_PX,
        "QP, the best served first",
        style,
    );
}

fn table(shares: &QpShares<'_>) -> Table {
    let column = |name: &str| Column {
        name: name.to_owned(),
        numeric: true,
    };
    Table {
        caption: format!("QPs of {}", shares.flow.subject()),
        columns: vec![
            column("QP"),
            column("bytes over an even share"),
            column("p99 (µs)"),
        ],
        rows: shares
            .qps
            .iter()
            .map(|qp| {
                vec![
                    Cell::Number(f64::from(qp.index), 0),
                    Cell::Number(qp.share, 4),
                    qp.p99_ns
                        .map_or(Cell::Missing, |ns| Cell::Number(ns / 1e3, 2)),
                ]
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_cover() {
        let steps: Vec<f64> = [0.25, 0.3, 3.0, 7.0, 0.0, f64::NAN].map(nice_step).to_vec();
        assert_eq!(steps, [0.5, 0.5, 5.0, 10.0, 1.0, 1.0]);
        let panel = Panel::new(
            Rect {
                x: 0.0,
                y: 0.0,
                width: 100.0,
                height: 100.0,
            },
            1.3,
        );
        assert!(panel.end >= 1.3 && panel.y(0.0) > panel.y(1.3));
    }
}
