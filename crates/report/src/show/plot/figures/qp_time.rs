//! Figure: what each QP got of its share from interval to interval, a map for each of the least even runs. It must not know
//! how evenness is judged.

use std::collections::BTreeSet;
use std::path::Path;

use crate::judge::evenness::{OverTime, QpOverTime};
use crate::observe::Observed;
use crate::results::load::Loaded;
use crate::results::model::{FlowResult, QpTimeline, Run};
use crate::show::plot::draw::colour::Colour;
use crate::show::plot::draw::palette::{DIVERGING, INK, Look, look};
use crate::show::plot::draw::{Key, KeyMark, Scale, Tick, Unit, number};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::figure::{number_column, text_column};
use crate::show::plot::marks::{Axis, Chart, Mark, Row, facets};
use crate::show::plot::naming::drawn;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::sides::Sides;

/// Maps that are drawn; of more, the least even.
const MOST_MAPS: usize = 4;
/// Rows of a map; of more QPs, those with the longest stalls, then those furthest from their shares.
const MOST_ROWS: usize = 64;
/// QPs of a run in the table.
const WORST_QPS: usize = 5;
/// Rows of the table.
const MOST_TABLE_ROWS: usize = 60;
/// Height of a map's cells together, and of one.
const MAP_PX: f64 = 256.0;
const MOST_CELL_PX: f64 = 16.0;
/// What the axes of a map take above and below the cells.
const AXES_PX: f64 = 67.0;
/// Least distance of two labels of rows.
const LABEL_PX: f64 = 15.0;

/// What cells are coloured by: those up to a share, as the legend says it. What is usual stands out least.
const STEPS: [(f64, Colour, &str); 6] = [
    (0.0, INK, "no message"),
    (0.5, DIVERGING[1], "less than 50 % of its share"),
    (0.8, DIVERGING[3], "50 to 80 %"),
    (1.25, DIVERGING[5], "80 to 125 %"),
    (2.0, DIVERGING[7], "125 to 200 %"),
    (f64::INFINITY, DIVERGING[8], "more than 200 %"),
];

/// A run of a flow whose QPs were not served evenly all the time.
struct Uneven<'s, 'a> {
    sample: &'s Sample<'a>,
    /// The flow, with its file where several are drawn.
    subject: String,
    run: u32,
    over_time: OverTime,
}

/// The figure; none where all QPs were served evenly all the time.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let samples = Sample::all(results.into().new.into());
    let files: BTreeSet<&Path> = samples.iter().map(|it| it.loaded.path.as_path()).collect();
    let several = files.len() > 1;
    let mut runs: Vec<Uneven<'_, '_>> =
        (samples.iter().flat_map(|sample| uneven(sample, several))).collect();
    // Stalls of one QP hardly change the mean index of many.
    let key = |run: &Uneven<'_, '_>| (-run.over_time.longest_alone_seconds(), run.over_time.jain);
    runs.sort_by(|one, other| {
        let (one, other) = (key(one), key(other));
        one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    figure(&runs).into_iter().collect()
}

fn uneven<'s, 'a>(sample: &'s Sample<'a>, several: bool) -> Vec<Uneven<'s, 'a>> {
    let subject = match several {
        true => {
            let file = sample.file_words();
            format!("{}, {file}", sample.observed.flow.subject())
        }
        false => sample.observed.flow.subject(),
    };
    let settings = &sample.observed.flow.settings;
    let counted = sample.observed.counted();
    let runs = counted.filter_map(|it| Some((it.run.run, OverTime::of(it.moved?, settings)?)));
    let uneven = runs.filter(|(_, over_time)| over_time.is_uneven());
    let with_sample = |(run, over_time)| Uneven {
        sample,
        subject: subject.clone(),
        run,
        over_time,
    };
    uneven.map(with_sample).collect()
}

/// What is said of flows that had too many QPs to count each over time.
pub fn left_out(results: &[Loaded]) -> Option<String> {
    let flows = results.iter();
    let flows = flows.flat_map(|loaded| Observed::of_file(&loaded.result));
    let without = flows.filter(|flow| {
        let mut counted = flow.counted();
        counted.any(|it| it.moved.is_some_and(|moved| had_no_room(it.run, moved)))
    });
    let count = without.count();
    (count > 0).then(|| {
        format!(
            "{count} {} no counts of each QP over time: a node has room for those of {} QPs, in equal parts for the flows \
             that it sends.",
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
    fn name(&self) -> String {
        format!("{}, run {}", self.subject, self.run)
    }

    /// The QPs that are drawn, by index.
    fn rows(&self) -> Vec<&QpOverTime> {
        let mut rows = self.over_time.worst_first();
        rows.truncate(MOST_ROWS);
        rows.sort_by_key(|qp| qp.index);
        rows
    }

    /// What is worst in it.
    fn words(&self) -> String {
        match self.over_time.worst_first().first() {
            Some(worst) => qp_words(worst),
            None => String::new(),
        }
    }
}

/// `QP 3 had no message for 120 ms from 1.2 s on, and 71 % of its share in all`.
fn qp_words(qp: &QpOverTime) -> String {
    let share = format!("{:.0} % of its share in all", qp.share * 100.0);
    match qp.stall {
        Some(stall) => format!(
            "QP {} had no message for {} from {:.2} s on, and {share}",
            qp.index,
            number::time(stall.seconds() * 1e9),
            stall.from_seconds
        ),
        None => format!("QP {} got {share}", qp.index),
    }
}

fn figure(all: &[Uneven<'_, '_>]) -> Option<Figure> {
    let runs = &all[..all.len().min(MOST_MAPS)];
    runs.first()?;
    let figure = Figure {
        id: "qp-time".to_owned(),
        title: "QPs over time: messages in percent of an even share".to_owned(),
        subtitle:
            "Runs in which a QP stood still or QPs were served unevenly, the least even first"
                .to_owned(),
        description: "Each row is a QP, each column an interval. If a column differs, all QPs were slow at that time; if a \
                      row differs, its QP got less or more than the others."
            .to_owned(),
        tables: vec![table(all)],
        ..Figure::default()
    };
    let has_weights = runs
        .iter()
        .any(|run| run.sample.observed.flow.settings.qp_weights.is_some());
    let has_counted = runs.iter().any(|run| {
        let mut qps = run.over_time.qps.iter();
        qps.any(|qp| qp.cells.len() < run.over_time.ends_seconds.len())
    });
    let is_cut = runs.iter().any(|run| run.over_time.qps.len() > MOST_ROWS);
    Some(drawn(figure, |sheet| {
        sheet.legend(&keys());
        for run in runs {
            let (chart, height) = chart(run);
            facets::draw(sheet, &[chart], height);
        }
        sheet.note("100 % is the mean of all QPs over the whole run.");
        if has_weights {
            sheet.note("With --qp-weights the share of a QP is the requested one.");
        }
        if has_counted {
            sheet.note("A row ends with the last interval that the QP filled.");
        }
        if is_cut {
            sheet.note(&format!(
                "Maps have {MOST_ROWS} QPs at most: those with the longest stalls, then those furthest from their shares."
            ));
        }
        if all.len() > runs.len() {
            let of_all = all.len();
            let in_table = of_all.min(MOST_TABLE_ROWS / WORST_QPS);
            sheet.note(&format!(
                "The figure has {} of {of_all} uneven runs, the table {in_table}.",
                runs.len()
            ));
        }
    }))
}

fn keys() -> Vec<Key> {
    let key = |(_, colour, label): (f64, Colour, &str)| Key {
        look: Look { colour, ..look(0) },
        mark: KeyMark::Area,
        label: label.to_owned(),
    };
    STEPS.map(key).into()
}

fn step(share: f64) -> usize {
    let within = |(most, ..): &(f64, Colour, &str)| share <= *most;
    STEPS.iter().position(within).unwrap_or(STEPS.len() - 1)
}

/// A run's map, and how high it is.
fn chart(run: &Uneven<'_, '_>) -> (Chart, f64) {
    let rows = run.rows();
    let cell_px = (MAP_PX / rows.len() as f64).min(MOST_CELL_PX);
    let ends = &run.over_time.ends_seconds;
    let window = ends.last().copied().unwrap_or(0.0);
    let height = Scale::linear(0.5 - rows.len() as f64, 0.5);
    let mut y = Axis::new("QP", height, Unit::Plain);
    let every = (LABEL_PX / cell_px).ceil().max(1.0) as usize;
    let labelled = rows.iter().enumerate().step_by(every);
    let ticks = labelled.map(|(row, qp)| Tick {
        value: -(row as f64),
        label: qp.index.to_string(),
    });
    let mut ticks: Vec<Tick> = ticks.collect();
    ticks.reverse();
    y.ticks = Some(ticks);
    let begin = |interval: usize| match interval {
        0 => 0.0,
        later => ends[later - 1] * 1e9,
    };
    let row = |(row, qp): (usize, &&QpOverTime)| {
        let mut from = 0;
        let same = qp.cells.chunk_by(|one, next| step(*one) == step(*next));
        let cells = same.map(|same| {
            let to = from + same.len();
            let cell = ((begin(from), begin(to)), STEPS[step(same[0])].1);
            from = to;
            cell
        });
        Mark::Row(Row {
            y: -(row as f64),
            cells: cells.collect(),
            hint: qp_words(qp),
        })
    };
    let chart = Chart {
        heading: format!("{}: {}", run.name(), run.words()),
        x: Axis::new(
            "time in the window",
            Scale::linear(0.0, window * 1e9),
            Unit::Nanoseconds,
        ),
        y,
        marks: rows.iter().enumerate().map(row).collect(),
    };
    (chart, rows.len() as f64 * cell_px + AXES_PX)
}

fn table(runs: &[Uneven<'_, '_>]) -> Table {
    let mut columns = vec![text_column("Flow"), text_column("Run")];
    let names = [
        "QP",
        "share (%)",
        "longest stall (ms)",
        "from (s)",
        "slowest interval (%)",
        "fastest interval (%)",
    ];
    columns.extend(names.map(number_column));
    let row = |run: &Uneven<'_, '_>, qp: &QpOverTime| {
        let cell = |value: Option<f64>, digits| {
            value.map_or(Cell::Missing, |value| Cell::Number(value, digits))
        };
        let cells = || qp.cells.iter().copied();
        vec![
            Cell::Text(run.subject.clone()),
            Cell::Text(run.run.to_string()),
            Cell::Number(qp.index as f64, 0),
            Cell::Number(qp.share * 100.0, 1),
            Cell::Number(qp.stall_seconds() * 1e3, 1),
            cell(qp.stall.map(|stall| stall.from_seconds), 3),
            cell(cells().reduce(f64::min).map(|share| share * 100.0), 1),
            cell(cells().reduce(f64::max).map(|share| share * 100.0), 1),
        ]
    };
    let rows = runs.iter().flat_map(|run| {
        let worst = run.over_time.worst_first().into_iter().take(WORST_QPS);
        worst.map(move |qp| row(run, qp)).collect::<Vec<_>>()
    });
    Table {
        caption: format!(
            "The {WORST_QPS} QPs of each run with the longest stalls, then those furthest from their shares"
        ),
        columns,
        rows: rows.take(MOST_TABLE_ROWS).collect(),
    }
}
