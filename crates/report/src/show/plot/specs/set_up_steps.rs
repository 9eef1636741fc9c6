//! What a connection's set-up consists of, a bar for each case with its steps one after the other.

use crate::observe::format::plural;
use crate::results::model::{Connect, ConnectStep, Latency};
use crate::show::plot::draw::palette::look;
use crate::show::plot::draw::text::{SMALL_PX, shortened};
use crate::show::plot::draw::{Key, KeyMark, Scale, Tick, Unit, number};
use crate::show::plot::figure::{Cell, Figure, Table, number_column, text_column};
use crate::show::plot::marks::{Axis, Bar, Chart, Mark, facets};
use crate::show::plot::naming::drawn;
use crate::show::plot::rows::groups::Groups;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::rows::settings::Setting;

/// Bars that are drawn.
const MOST_BARS: usize = 16;
const BAR_PX: f64 = 16.0;
const ROW_PX: f64 = 24.0;

/// The figure; `None` where no case has steps.
pub(super) fn figure(groups: &Groups<'_>) -> Option<Figure> {
    let mut steps: Vec<String> = Vec::new();
    for step in groups.samples().flat_map(told) {
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    let cases = groups.named_lines().flat_map(|(name, line)| {
        let points = line.points.iter();
        let named = points.map(|(qps, sample)| {
            (
                format!("{name}, {qps} {}", plural(*qps as usize, "QP")),
                sample,
            )
        });
        named.collect::<Vec<_>>()
    });
    let all: Vec<(String, &Sample<'_>)> = cases.collect();
    let has_steps =
        |(_, sample): &&(String, &Sample<'_>)| steps.iter().any(|step| time_ns(sample, step) > 0.0);
    let drawn_cases: Vec<_> = all.iter().filter(has_steps).take(MOST_BARS).collect();
    drawn_cases.first()?;
    let figure = Figure {
        id: "set-up-steps".to_owned(),
        title: "Steps of a connection’s set-up".to_owned(),
        subtitle: groups.subtitle(Setting::of("qps")),
        description: "Mean times at the end that ran the sweep. All QPs of a round share an exchange. Destroying is in the \
                      table only."
            .to_owned(),
        tables: vec![table(&all)],
        ..Figure::default()
    };
    let mut bars = Vec::new();
    for (row, (name, sample)) in drawn_cases.iter().enumerate() {
        let mut from = 0.0;
        for (number, step) in steps.iter().enumerate() {
            let to = from + time_ns(sample, step);
            let is_last = number + 1 == steps.len();
            bars.push(Bar {
                y: -(row as f64),
                ends: (from, to),
                height_px: BAR_PX,
                colour: look(number).colour,
                hint: format!("{name}: {step} {}", number::time(to - from)),
                label: if is_last {
                    number::time(to)
                } else {
                    String::new()
                },
            });
            from = to;
        }
    }
    let longest = bars.iter().map(|bar| bar.ends.1).fold(1.0, f64::max);
    let count = drawn_cases.len() as f64;
    Some(drawn(figure, |sheet| {
        let key = |(index, step): (usize, &String)| Key {
            look: look(index),
            mark: KeyMark::Area,
            label: step.clone(),
        };
        sheet.legend(&steps.iter().enumerate().map(key).collect::<Vec<_>>());
        let room = sheet.room_px() * 0.4;
        // From the foot up, as axes have their ticks.
        let names = drawn_cases
            .iter()
            .enumerate()
            .rev()
            .map(|(row, (name, _))| Tick {
                value: -(row as f64),
                label: shortened(name, SMALL_PX, false, room),
            });
        let x = Scale::from_zero(longest * 1.2);
        let mut y = Axis::new("", Scale::linear(0.5 - count, 0.5), Unit::Plain);
        y.ticks = Some(names.collect());
        let chart = Chart {
            heading: String::new(),
            x: Axis::new("mean time of a connection", x, Unit::Nanoseconds),
            y,
            marks: bars.iter().cloned().map(Mark::Bar).collect(),
        };
        facets::draw(sheet, &[chart], count * ROW_PX + 70.0);
        if drawn_cases.len() < all.len() {
            sheet.note("More are in the table.");
        }
    }))
}

fn connect<'a>(sample: &Sample<'a>) -> Option<&'a Connect> {
    let mut counted = sample.observed.counted();
    counted.find_map(|it| it.run.connect.as_ref())
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
    let qps = f64::from(sample.observed.flow.settings.qps.max(1));
    let mean = sample.observed.median_of(|run| {
        let steps = &run.connect.as_ref()?.steps;
        let step = steps.iter().find(|it| it.step == step)?;
        let shared_by = if step.per == "round" { qps } else { 1.0 };
        Some(step.time_ns.mean / shared_by)
    });
    mean.unwrap_or(0.0).max(0.0)
}

type StepsOf = fn(&Connect) -> &Vec<ConnectStep>;

/// Each step of each case at each end.
fn table(cases: &[(String, &Sample<'_>)]) -> Table {
    let mut columns = ["Line", "end", "step", "timed once a"]
        .map(text_column)
        .to_vec();
    columns.extend(["mean (µs)", "p99 (µs)"].map(number_column));
    let ends: [(&str, StepsOf); 2] = [("own", |it| &it.steps), ("other", |it| &it.peer_steps)];
    let mut rows = Vec::new();
    for (name, sample) in cases {
        for (end, steps_of) in ends {
            for step in connect(sample).map_or(&[][..], |connect| steps_of(connect)) {
                let figure = |of: fn(&Latency) -> Option<f64>| {
                    let value = sample.observed.median_of(|run| {
                        let steps = steps_of(run.connect.as_ref()?);
                        let same = steps.iter().find(|it| it.step == step.step)?;
                        Some(of(&same.time_ns)? / 1e3)
                    });
                    value.map_or(Cell::Missing, |value| Cell::Number(value, 2))
                };
                let words = [name, end, &step.step, &step.per];
                let mut row = words.map(|it| Cell::Text(it.to_owned())).to_vec();
                row.push(figure(|time| Some(time.mean)));
                row.push(figure(|time| time.p99.map(|ns| ns as f64)));
                rows.push(row);
            }
        }
    }
    Table {
        caption: "Steps of set-up: medians of the runs that count".to_owned(),
        columns,
        rows,
    }
}
