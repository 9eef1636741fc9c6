//! How fast QPs are set up against how many a round sets up, and how long each step takes. It must not know where the
//! figures are shown.

use super::curves::{number_column, text_column};
use super::facets::MOST_CHARTS;
use super::grouping::{Rule, grouped};
use super::panels::{Kind, Panel};
use super::sample::Sample;
use super::set_up_steps;
use super::settings::Setting;
use crate::observe::standing::{counted_runs, median_of};
use crate::observe::{Metric, Spread};
use crate::results::model::{CaseFlow, Connect, ConnectStep, Latency};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::sides::Sides;

/// The figures, with the steps of all cases at the last; none without two numbers of QPs.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let results = results.into();
    let rule = Rule {
        axis: Setting::of("qps"),
        place: &|sample| sample.number(|settings| settings.qps),
        metrics: &[Metric::ConnectionsPerS],
        apart: &[],
        most_lines: 6,
        most_charts: MOST_CHARTS / 2,
        least_places: 2,
    };
    let groups = grouped(Sample::set_ups(results), &rule);
    let kind = Kind {
        id: "set-up-by-qps",
        title: "Connections a second and set-up time against QPs",
        setting: Setting::of("qps"),
        axis: "QPs that a round sets up",
        panels: &[
            Panel {
                axis: "connections a second (log)",
                column: "connections/s",
                is_log: true,
                value: &|sample| sample.spread(Metric::ConnectionsPerS),
            },
            Panel {
                axis: "ms until all are in RTS, p99 (log)",
                column: "set-up p99 (ms)",
                is_log: true,
                value: &|sample| Spread::of(sample.values(Metric::SetupP99Ns).map(|ns| ns / 1e6)),
            },
        ],
        note: "A round creates QPs at both ends, connects them and destroys them; connections a second are of whole rounds, \
               destroying included.",
    };
    let steps = set_up_steps::figure(&groups);
    let mut figures: Vec<Figure> = kind.figure(&groups).into_iter().chain(steps).collect();
    if let Some(last) = figures.last_mut() {
        last.tables.push(self::steps(results));
    }
    figures
}

/// Each step of each case.
fn steps(results: Sides<'_>) -> Table {
    let mut columns = vec![text_column("file"), text_column("case"), text_column("end")];
    columns.extend(["step", "timed once a"].map(text_column));
    columns.extend(["mean (µs)", "p99 (µs)"].map(number_column));
    let mut rows = Vec::new();
    for sample in Sample::set_ups(results) {
        let ends: [(&str, StepsOf); 2] = [("own", |it| &it.steps), ("other", |it| &it.peer_steps)];
        for (end, steps_of) in ends {
            let of_end = steps_of_end(&sample.flow, end, steps_of);
            let file = || Cell::Text(sample.file_words(results));
            let of_end = of_end.into_iter();
            rows.extend(of_end.map(|row| std::iter::once(file()).chain(row).collect()));
        }
    }
    Table {
        caption: "Steps of set-up: medians over the runs that count".to_owned(),
        columns,
        rows,
    }
}

type StepsOf = fn(&Connect) -> &Vec<ConnectStep>;

fn steps_of_end(flow: &CaseFlow<'_>, end: &str, steps_of: StepsOf) -> Vec<Vec<Cell>> {
    let Some(first) = counted_runs(flow).find_map(|run| run.connect.as_ref()) else {
        return Vec::new();
    };
    steps_of(first)
        .iter()
        .map(|step| {
            let figure = |of: fn(&Latency) -> Option<f64>| {
                let value = median_of(flow, |run| {
                    let connect = run.connect.as_ref()?;
                    let same = steps_of(connect).iter().find(|it| it.step == step.step)?;
                    Some(of(&same.time_ns)? / 1e3)
                });
                value.map_or(Cell::Missing, |value| Cell::Number(value, 2))
            };
            vec![
                Cell::Text(flow.case.id.clone()),
                Cell::Text(end.to_owned()),
                Cell::Text(step.step.clone()),
                Cell::Text(step.per.clone()),
                figure(|time| Some(time.mean)),
                figure(|time| time.p99.map(|ns| ns as f64)),
            ]
        })
        .collect()
}
