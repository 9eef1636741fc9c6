//! Figure: what a connection's set-up consists of, a bar for each case with its steps one after the other. It must not know
//! where it is shown.

use super::curves::{number_column, text_column};
use super::groups::Groups;
use super::naming::{drawn, some_of};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::format::plural;
use crate::observe::standing::{counted_runs, median_of};
use crate::results::model::Connect;
use crate::show::plot::draw::palette::{GROUND, look};
use crate::show::plot::draw::text::{SMALL_PX, shortened, width_px};
use crate::show::plot::draw::{
    Anchor, Axis, AxisFrame, Key, KeyMark, Paint, Rect, Scale, Sheet, Style, Tick, Unit, number,
};
use crate::show::plot::figure::{Cell, Figure, Table};

/// Bars that are drawn.
const MOST_BARS: usize = 16;
const BAR_PX: f64 = 16.0;
const ROW_PX: f64 = 24.0;

/// A case's steps.
struct Bar {
    name: String,
    /// Mean of each step, in nanoseconds of one connection, in the order of `steps`.
    times_ns: Vec<f64>,
}

/// The figure; `None` where no case has steps.
pub(super) fn figure(groups: &Groups<'_>) -> Option<Figure> {
    let mut steps: Vec<String> = Vec::new();
    for sample in groups.samples() {
        for step in told(sample) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
    }
    let bars = groups.named_lines().flat_map(|(name, line)| {
        let is_one = groups.lines().count() == 1;
        let points = line.points.iter();
        let bars = points.map(|(qps, sample)| Bar {
            name: match is_one {
                true => qps_words(*qps),
                false => format!("{name}, {}", qps_words(*qps)),
            },
            times_ns: steps.iter().map(|it| time_ns(sample, it)).collect(),
        });
        bars.collect::<Vec<_>>()
    });
    let mut bars: Vec<Bar> = bars.collect();
    bars.retain(|bar| bar.total_ns() > 0.0);
    let left_out = bars.len().saturating_sub(MOST_BARS);
    bars.truncate(MOST_BARS);
    bars.first()?;
    let of = |bar: &Bar| {
        let longest = bar.times_ns.iter().zip(&steps);
        let longest = longest.max_by(|a, b| a.0.total_cmp(b.0));
        longest.map(|(ns, step)| {
            format!(
                "{}: {} a connection, most of it {step} with {}",
                bar.name,
                number::time(bar.total_ns()),
                number::time(*ns)
            )
        })
    };
    let description: Vec<String> = bars.iter().filter_map(of).collect();
    let figure = Figure {
        id: "set-up-steps".to_owned(),
        title: "Steps of a connection’s set-up".to_owned(),
        subtitle: groups.subtitle(Setting::of("qps")),
        description: format!("{}.", some_of(&description)),
        tables: vec![table(&steps, &bars)],
        ..Figure::default()
    };
    Some(drawn(figure, |sheet| {
        let keys: Vec<Key> = (steps.iter().enumerate())
            .map(|(index, step)| Key {
                look: look(index),
                mark: KeyMark::Area,
                label: step.clone(),
            })
            .collect();
        sheet.legend(&keys);
        draw(sheet, &steps, &bars);
        sheet.note(
            "Mean times at the end that ran the sweep; an exchange, which all QPs of a round share, is divided by their \
             number. Destroying is in the table of steps.",
        );
        if left_out > 0 {
            sheet.note(&format!("{left_out} more are in the table of steps."));
        }
    }))
}

impl Bar {
    fn total_ns(&self) -> f64 {
        self.times_ns.iter().sum()
    }
}

fn qps_words(qps: f64) -> String {
    format!("{qps} {}", plural(qps as usize, "QP"))
}

fn draw(sheet: &mut Sheet, steps: &[String], bars: &[Bar]) {
    let longest = bars.iter().map(Bar::total_ns).fold(1.0, f64::max);
    let area = sheet.take(bars.len() as f64 * ROW_PX + 70.0);
    let room = area.width * 0.4;
    // From the foot up, as axes have their ticks.
    let names = bars.iter().enumerate().rev().map(|(index, bar)| Tick {
        value: -(index as f64),
        label: shortened(&bar.name, SMALL_PX, false, room),
    });
    let x = Axis::new(
        "mean time of a connection",
        Scale::from_zero(longest * 1.2),
        Unit::Nanoseconds,
    );
    let mut y = Axis::new("", Scale::linear(0.5 - bars.len() as f64, 0.5), Unit::Plain);
    y.ticks = Some(names.collect());
    let canvas = &mut sheet.canvas;
    let frame = AxisFrame::draw(canvas, area, &x, &y);
    for (index, bar) in bars.iter().enumerate() {
        let mut from = 0.0;
        for (number, (ns, step)) in bar.times_ns.iter().zip(steps).enumerate() {
            let (Some(left), Some(right), Some(middle)) =
                (frame.x(from), frame.x(from + ns), frame.y(-(index as f64)))
            else {
                continue;
            };
            from += ns;
            let paint = Paint {
                stroke: Some(GROUND),
                width: 1.0,
                ..Paint::area(look(number).colour)
            };
            let rect = Rect {
                x: left,
                y: middle - BAR_PX / 2.0,
                width: right - left,
                height: BAR_PX,
            };
            let hint = format!("{}: {step} {}", bar.name, number::time(*ns));
            canvas.rect(rect, paint, Some(&hint));
        }
        let total = number::time(bar.total_ns());
        if let (Some(end), Some(middle)) = (frame.x(from), frame.y(-(index as f64)))
            && end + 6.0 + width_px(&total, SMALL_PX, false) <= frame.plot.right()
        {
            let style = Style {
                anchor: Anchor::Start,
                ..Style::default()
            };
            canvas.text(end + 6.0, middle + 4.0, &total, style);
        }
    }
}

fn connect<'a>(sample: &Sample<'a>) -> Option<&'a Connect> {
    counted_runs(&sample.flow).find_map(|run| run.connect.as_ref())
}

/// Steps of a set-up that are one after the other: what `connect` contains is in it, and destroying is none.
fn told(sample: &Sample<'_>) -> Vec<String> {
    let steps = connect(sample).map_or(&[][..], |connect| &connect.steps);
    let by_cm = steps.iter().any(|step| step.step == "connect");
    let is_part = |step: &str| by_cm && ["init", "rtr", "rts"].contains(&step) || step == "destroy";
    let names = steps.iter().map(|step| step.step.clone());
    names.filter(|step| !is_part(step)).collect()
}

/// Mean time of a step for one connection, the median of the runs; 0 of a step that there is not.
fn time_ns(sample: &Sample<'_>, step: &str) -> f64 {
    let qps = f64::from(sample.flow.settings.qps.max(1));
    let mean = median_of(&sample.flow, |run| {
        let steps = &run.connect.as_ref()?.steps;
        let step = steps.iter().find(|it| it.step == step)?;
        let shared_by = if step.per == "round" { qps } else { 1.0 };
        Some(step.time_ns.mean / shared_by)
    });
    mean.unwrap_or(0.0).max(0.0)
}

fn table(steps: &[String], bars: &[Bar]) -> Table {
    let mut columns = vec![text_column("Line")];
    columns.extend(
        steps
            .iter()
            .map(|step| number_column(format!("{step} (µs)"))),
    );
    let row = |bar: &Bar| {
        let times = bar.times_ns.iter().map(|ns| Cell::Number(ns / 1e3, 2));
        std::iter::once(Cell::Text(bar.name.clone()))
            .chain(times)
            .collect()
    };
    Table {
        caption: "Mean time of each step for a connection".to_owned(),
        columns,
        rows: bars.iter().map(row).collect(),
    }
}
