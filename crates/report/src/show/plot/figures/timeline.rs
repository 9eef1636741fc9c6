//! Throughput over the time of a run, with its slowest interval and its longest stall: the least steady run of each of the
//! least steady flows. It must not know where the figures are shown.

use super::intervals::{COLUMNS, Interval, columns, slowest, stall};
use super::steadiness;
use crate::results::model::{FlowResult, Run, Timeline};
use crate::show::plot::draw::palette::{Look, WORSE, look};
use crate::show::plot::draw::{Key, KeyMark, Scale, Unit, number};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::figure::{number_column, text_column};
use crate::show::plot::marks::{Area, Axis, Band, Chart, Dot, Mark, Point, Rule, Series, facets};
use crate::show::plot::naming::drawn;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::rows::settings::{Setting, revision};
use crate::show::plot::sides::Sides;

/// Flows that are drawn; of more, the least steady.
const MOST_FLOWS: usize = 6;
/// Rows of the table.
const MOST_ROWS: usize = 60;

/// A run that was sampled.
struct Sampled<'a> {
    run: u32,
    flow: &'a FlowResult,
    timeline: &'a Timeline,
    intervals: Vec<Interval>,
}

impl Sampled<'_> {
    /// 1 is steady.
    fn steadiness(&self) -> f64 {
        match self.flow.load {
            Some(_) => steadiness::of_arrivals(&self.timeline.messages),
            None => steadiness::of_rates(self.intervals.iter().map(|it| it.gbit_per_s)),
        }
    }

    /// Gb/s of the slowest interval.
    fn min(&self) -> Option<f64> {
        Some(self.flow.bandwidth_gbit_per_s.as_ref()?.min)
    }

    /// Gb/s of the interval that 1 % are not above, where there were enough to tell it.
    fn p1(&self) -> Option<f64> {
        self.flow.bandwidth_gbit_per_s.as_ref()?.p1
    }
}

/// A flow whose runs were sampled, the least steady run first.
struct Flow<'s, 'a> {
    sample: &'s Sample<'a>,
    runs: Vec<Sampled<'a>>,
    steadiness: f64,
}

/// The figure; none without samples.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let samples = Sample::all(results.into().new.into());
    let mut flows: Vec<Flow<'_, '_>> = samples
        .iter()
        .filter_map(|sample| {
            let mut runs = sampled_runs(sample)?;
            runs.sort_by(|a, b| a.steadiness().total_cmp(&b.steadiness()));
            let steadiness = runs.first()?.steadiness();
            Some(Flow {
                sample,
                runs,
                steadiness,
            })
        })
        .collect();
    flows.sort_by(|a, b| a.steadiness.total_cmp(&b.steadiness));
    figure(&flows).into_iter().collect()
}

fn sampled_runs<'a>(sample: &Sample<'a>) -> Option<Vec<Sampled<'a>>> {
    let mean_bytes = sample.observed.flow.settings.mean_bytes();
    let counted = sample.observed.counted();
    let runs = counted.filter_map(|it| sampled(it.run, it.moved?, mean_bytes));
    let runs: Vec<_> = runs.collect();
    (!runs.is_empty()).then_some(runs)
}

fn sampled<'a>(run: &Run, flow: &'a FlowResult, mean_bytes: f64) -> Option<Sampled<'a>> {
    let timeline = flow.timeline.as_ref()?;
    let mut from = 0.0;
    let mut intervals = Vec::with_capacity(timeline.at_seconds.len());
    for (&to, &messages) in timeline.at_seconds.iter().zip(&timeline.messages) {
        if to > from && to.is_finite() {
            let gbit_per_s = messages as f64 * mean_bytes * 8.0 / 1e9 / (to - from);
            intervals.push(Interval {
                from,
                to,
                gbit_per_s,
            });
            from = to;
        }
    }
    (!intervals.is_empty()).then_some(Sampled {
        run: run.run,
        flow,
        timeline,
        intervals,
    })
}

/// The run and its stall, as a chart has room for it.
fn brief(sampled: &Sampled<'_>) -> String {
    let stall = match sampled.timeline.longest_stall_seconds {
        Some(0.0) => "no stall".to_owned(),
        Some(seconds) => format!("longest stall {}", number::time(seconds * 1e9)),
        None => "longest stall unknown".to_owned(),
    };
    format!("Gb/s of run {}: {stall}", sampled.run)
}

/// What all flows share.
fn subtitle(flows: &[Flow<'_, '_>]) -> String {
    let shared = |setting: Setting| {
        let mut words = flows.iter().map(|flow| &flow.sample.value(setting).words);
        let first = words.next()?;
        (words.all(|other| other == first) && !first.is_empty()).then(|| first.clone())
    };
    let settings = Setting::all().into_iter();
    let settings = settings.filter(|it| ![Setting::Revision, Setting::Side].contains(it));
    settings
        .filter_map(shared)
        .collect::<Vec<_>>()
        .join("\u{a0}· ")
}

/// The flow, with its file where another file has it too.
fn subject(flow: &Flow<'_, '_>, all: &[Flow<'_, '_>]) -> String {
    let subject = flow.sample.observed.flow.subject();
    let file = flow.sample.loaded;
    let is_elsewhere = |other: &Flow<'_, '_>| {
        !std::ptr::eq(other.sample.loaded, file) && other.sample.observed.flow.subject() == subject
    };
    match all.iter().any(is_elsewhere) {
        true => {
            let file = flow.sample.file_words();
            let revision = revision(&flow.sample.loaded.result);
            let revision = revision.map_or(String::new(), |it| format!(", rev {it}"));
            format!("{subject}, {file}{revision}")
        }
        false => subject,
    }
}

fn figure(all: &[Flow<'_, '_>]) -> Option<Figure> {
    let flows = &all[..all.len().min(MOST_FLOWS)];
    flows.first()?;
    let subject = |flow: &Flow<'_, '_>| subject(flow, all);
    let figure = Figure {
        id: "timeline".to_owned(),
        title: "Throughput over time".to_owned(),
        subtitle: subtitle(flows),
        description: "The least steady run of each flow: payload whose completions the node saw that posts it."
            .to_owned(),
        tables: vec![table(all)],
        ..Figure::default()
    };
    let first_runs = || flows.iter().filter_map(|flow| flow.runs.first());
    let aimed = first_runs()
        .map(|run| run.timeline.interval_seconds)
        .fold(0.0, f64::max);
    let joined = first_runs().any(|run| run.intervals.len() > COLUMNS);
    let charts = flows
        .iter()
        .filter_map(|flow| Some(chart(subject(flow), flow.runs.first()?)));
    let charts: Vec<Chart> = charts.collect();
    Some(drawn(figure, |sheet| {
        sheet.legend(&keys(joined));
        facets::draw(sheet, &charts, 300.0);
        let interval = number::time(aimed * 1e9);
        sheet.note(&format!(
            "Intervals of about {interval}. Short ones scatter, since completions come in groups of the signalled ones."
        ));
        if all.len() > flows.len() {
            sheet.note(&format!(
                "The figure has the {MOST_FLOWS} least steady of {} flows.",
                all.len()
            ));
        }
        let runs: usize = all.iter().map(|flow| flow.runs.len()).sum();
        if runs > MOST_ROWS {
            sheet.note(&format!(
                "The table has {MOST_ROWS} of {runs} runs, those of the least steady flows."
            ));
        }
    }))
}

fn keys(joined: bool) -> Vec<Key> {
    let mut keys = vec![
        Key {
            look: look(0),
            mark: KeyMark::Line,
            label: THROUGHPUT.to_owned(),
        },
        Key {
            look: Look::of_rule(1),
            mark: KeyMark::Line,
            label: "p1: 1 % of the intervals are slower".to_owned(),
        },
        Key {
            look: slowest_look(),
            mark: KeyMark::Marker,
            label: SLOWEST.to_owned(),
        },
        Key {
            look: Look {
                colour: WORSE,
                ..look(0)
            },
            mark: KeyMark::Area,
            label: "longest stall".to_owned(),
        },
    ];
    if joined {
        keys.push(Key {
            look: look(5),
            mark: KeyMark::Area,
            label: "least to most in a column".to_owned(),
        });
    }
    keys
}

/// Names of the line and of the slowest interval.
const THROUGHPUT: &str = "throughput";
const SLOWEST: &str = "slowest interval";

fn slowest_look() -> Look {
    Look {
        colour: WORSE,
        ..look(4)
    }
}

fn chart(heading: String, run: &Sampled<'_>) -> Chart {
    let intervals = || run.intervals.iter();
    let most = intervals().map(|it| it.gbit_per_s).fold(0.0, f64::max);
    let longest = intervals().map(|it| it.to).fold(0.0, f64::max);
    let x = Scale::linear(0.0, longest * 1e9);
    let columns = columns(&run.intervals);
    let middle = |interval: &Interval| f64::midpoint(interval.from, interval.to) * 1e9;
    let p1 = run.p1().map(|y| {
        Mark::Rule(Rule {
            name: String::new(),
            look: Look::of_rule(1),
            y,
            label: String::new(),
        })
    });
    let stall = stall(&run.intervals).map(|(from, to)| {
        Mark::Band(Band {
            name: "longest stall",
            look: slowest_look(),
            transparency: 0.65,
            ends: (from * 1e9, to * 1e9),
            hint: "longest stall".to_owned(),
        })
    });
    let spread = columns
        .iter()
        .map(|(one, least, most)| (middle(one), *least, *most));
    let area = (run.intervals.len() > COLUMNS).then(|| {
        Mark::Area(Area {
            look: look(5),
            points: spread.collect(),
        })
    });
    let points = columns
        .iter()
        .map(|(one, ..)| Point::at(middle(one), one.gbit_per_s));
    let line = Mark::Line(Series {
        name: THROUGHPUT.to_owned(),
        look: look(0),
        points: points.collect(),
        hollow: Vec::new(),
        markers: false,
        labels: Vec::new(),
    });
    let slowest = slowest(&run.intervals).map(|slowest| {
        Mark::Dot(Dot {
            name: SLOWEST.to_owned(),
            at: (middle(&slowest), slowest.gbit_per_s),
            look: slowest_look(),
            ring: None,
            hint: format!("slowest: {} Gb/s", number::short(slowest.gbit_per_s)),
            label: String::new(),
        })
    });
    let below = p1.into_iter().chain(stall).chain(area);
    Chart {
        heading,
        x: Axis::new("time in the window", x, Unit::Nanoseconds),
        y: Axis::new(brief(run), Scale::from_zero(most), Unit::Plain),
        marks: below.chain([line]).chain(slowest).collect(),
    }
}

fn table(flows: &[Flow<'_, '_>]) -> Table {
    let mut columns = vec![text_column("Flow"), text_column("Run")];
    let names = [
        "Intervals",
        "min (Gb/s)",
        "p1 (Gb/s)",
        "longest stall (ms)",
        "slowest at (s)",
    ];
    columns.extend(names.map(number_column));
    let row = |flow: &Flow<'_, '_>, sampled: &Sampled<'_>| {
        let (run, timeline) = (sampled.run, sampled.timeline);
        let cell = |value: Option<f64>, digits| {
            value.map_or(Cell::Missing, |value| Cell::Number(value, digits))
        };
        let slowest = slowest(&sampled.intervals).map(|interval| interval.from);
        vec![
            Cell::Text(subject(flow, flows)),
            Cell::Text(run.to_string()),
            Cell::Number(sampled.intervals.len() as f64, 0),
            cell(sampled.min(), 3),
            cell(sampled.p1(), 3),
            cell(
                timeline.longest_stall_seconds.map(|seconds| seconds * 1e3),
                2,
            ),
            cell(slowest, 3),
        ]
    };
    let rows = flows.iter().flat_map(|flow| {
        let rows = flow.runs.iter().map(move |run| row(flow, run));
        rows.collect::<Vec<_>>()
    });
    let rows = rows.take(MOST_ROWS).collect();
    Table {
        caption: "Each run's slowest interval, slowest hundredth and longest time without a completion, the least steady \
                  flow first"
            .to_owned(),
        columns,
        rows,
    }
}
