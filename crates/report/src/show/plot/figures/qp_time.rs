//! Figure: what each QP got of its share from interval to interval, a map for each of the least even runs.

use super::timeline::subjects;
use crate::judge::evenness::{OverTime, QpOverTime};
use crate::observe::Observed;
use crate::show::plot::draw::palette::{DIVERGING, INK};
use crate::show::plot::draw::{Scale, Unit, number};
use crate::show::plot::figure::{Cell, Figure, Picture, Table};
use crate::show::plot::figures::heat_map::Shade;
use crate::show::plot::marks::{Axis, Chart, Fill, Mark, Tile};
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::sums::Sides;
use results::load::Loaded;
use results::model::{FlowResult, QpTimeline, Run};

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
fn shades() -> [Shade; 6] {
    let steps = [
        (0.0, INK, "no message"),
        (0.5, DIVERGING[1], "less than 50 % of its share"),
        (0.8, DIVERGING[3], "50 to 80 %"),
        (1.25, DIVERGING[5], "80 to 125 %"),
        (2.0, DIVERGING[7], "125 to 200 %"),
        (f64::INFINITY, DIVERGING[8], "more than 200 %"),
    ];
    steps.map(|(up_to, colour, label)| Shade::new(up_to, colour, false, label.to_owned()))
}

/// A run of a flow whose QPs were not served evenly all the time.
struct Uneven<'s, 'a> {
    sample: &'s Sample<'a>,
    /// The flow, with its file where another has it too.
    subject: String,
    run: u32,
    over_time: OverTime,
}

/// The figure; none where all QPs were served evenly all the time.
pub fn figures<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let samples = Sample::of_sides(results.into().new.into());
    let mut runs: Vec<Uneven<'_, '_>> = samples
        .iter()
        .zip(subjects(&samples))
        .flat_map(|(sample, subject)| uneven(sample, &subject))
        .collect();
    // Stalls of one QP hardly change the mean index of many.
    runs.sort_by(|one, other| {
        let (one, other) = (&one.over_time, &other.over_time);
        let by_stall = other.longest_alone_seconds().total_cmp(&one.longest_alone_seconds());
        by_stall.then(one.jain.total_cmp(&other.jain))
    });
    figure(&runs).into_iter().collect()
}

fn uneven<'s, 'a>(sample: &'s Sample<'a>, subject: &str) -> Vec<Uneven<'s, 'a>> {
    let settings = &sample.observed.flow.settings;
    let counted = sample.observed.counted();
    counted
        .filter_map(|it| Some((it.run.run, OverTime::new(it.moved?, settings)?)))
        .filter(|(_, over_time)| over_time.is_uneven())
        .map(|(run, over_time)| Uneven { sample, subject: subject.to_owned(), run, over_time })
        .collect()
}

/// What is said of flows that had too many QPs to count each over time.
pub fn left_out(results: &[Loaded]) -> Option<String> {
    let count = results
        .iter()
        .flat_map(|loaded| Observed::of_file(&loaded.result))
        .filter(|flow| {
            let mut counted = flow.counted();
            counted.any(|it| it.moved.is_some_and(|moved| had_no_room(it.run, moved)))
        })
        .count();
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

impl Uneven<'_, '_> {
    fn rows(&self) -> Vec<&QpOverTime> {
        let mut rows = self.over_time.worst_first();
        rows.truncate(MOST_ROWS);
        rows.sort_by_key(|qp| qp.index);
        rows
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

fn figure(uneven: &[Uneven<'_, '_>]) -> Option<Figure> {
    let runs = &uneven[..uneven.len().min(MOST_MAPS)];
    runs.first()?;
    let (drawn, of_all) = (runs.len(), uneven.len());
    let in_table = of_all.min(MOST_TABLE_ROWS / WORST_QPS);
    let notes = [
        (true, "100 % is the mean of all QPs over the whole run.".to_owned()),
        (
            runs.iter().any(|run| run.sample.observed.flow.settings.qp_weights.is_some()),
            "With --qp-weights a QP's share is the requested one.".to_owned(),
        ),
        (
            runs.iter().any(|run| {
                let mut qps = run.over_time.qps.iter();
                qps.any(|qp| qp.cells.len() < run.over_time.ends_seconds.len())
            }),
            "A row ends with the last interval that the QP filled.".to_owned(),
        ),
        (
            runs.iter().any(|run| run.over_time.qps.len() > MOST_ROWS),
            format!(
                "Maps have at most {MOST_ROWS} QPs: first the longest stalls, then the QPs furthest from their shares."
            ),
        ),
        (
            of_all > drawn,
            format!("The figure has {drawn} of {of_all} uneven runs, the table {in_table}."),
        ),
    ];
    let shades = shades();
    let picture = Picture {
        subtitle: "Runs with a QP that stood still, or with uneven QPs; the least even first"
            .to_owned(),
        keys: Shade::keys(&shades),
        charts: runs.iter().map(|run| chart(run, &shades)).collect(),
        notes: notes.into_iter().filter(|it| it.0).map(|it| it.1).collect(),
        tables: vec![table(uneven)],
    };
    Some(picture.named(
        "qp-time",
        "QPs over time: messages as a percentage of an even share",
        CAPTION,
    ))
}

fn chart(run: &Uneven<'_, '_>, shades: &[Shade]) -> Chart {
    let rows = run.rows();
    let ends = &run.over_time.ends_seconds;
    let window = ends.last().copied().unwrap_or(0.0) * 1e9;
    // Where each interval begins.
    let edges: Vec<f64> = std::iter::once(0.0).chain(ends.iter().map(|end| end * 1e9)).collect();
    let (mut cells, mut whole) = (Vec::new(), Vec::new());
    for (row, qp) in rows.iter().enumerate() {
        let y = -(row as f64);
        let mut from = 0;
        for same in qp
            .cells
            .chunk_by(|one, next| Shade::of(shades, *one).colour == Shade::of(shades, *next).colour)
        {
            let to = from + same.len();
            let fill = Fill::Plain(Shade::of(shades, same[0]).colour);
            cells.push(Tile::new(y, (edges[from], edges[to]), fill, ""));
            from = to;
        }
        whole.push(Tile::new(y, (0.0, window), Fill::Nothing, qp_words(qp)));
    }
    let worst = run.over_time.worst_first().first().map(|qp| qp_words(qp)).unwrap_or_default();
    let x = Scale::linear(0.0, window);
    let x = Axis::new("time in the window", x, Unit::Nanoseconds);
    let y = Axis::rows("QP", rows.iter().map(|qp| qp.index.to_string()));
    let row_px = (MAP_PX / rows.len() as f64).min(MOST_CELL_PX);
    Chart {
        heading: format!("{}, run {}: {worst}", run.subject, run.run),
        ..Chart::of_rows(row_px, x, y, vec![Mark::Tiles(cells), Mark::Tiles(whole)])
    }
}

fn table(runs: &[Uneven<'_, '_>]) -> Table {
    let rows = runs.iter().flat_map(|run| {
        run.over_time
            .worst_first()
            .into_iter()
            .take(WORST_QPS)
            .map(move |qp| row(run, qp))
            .collect::<Vec<_>>()
    });
    let names = [
        "Flow",
        "Run",
        "QP",
        "share (%)",
        "longest stall (ms)",
        "from (s)",
        "slowest interval (%)",
        "fastest interval (%)",
    ];
    let caption = format!(
        "{WORST_QPS} QPs of each run: first the longest stalls, then the QPs furthest from their shares"
    );
    Table::new(caption, names, rows.take(MOST_TABLE_ROWS))
}

fn row(run: &Uneven<'_, '_>, qp: &QpOverTime) -> Vec<Cell> {
    let cells = qp.cells.iter().map(|share| share * 100.0);
    vec![
        Cell::text(&run.subject),
        Cell::text(run.run.to_string()),
        Cell::number(qp.index as f64, 0),
        Cell::number(qp.share * 100.0, 1),
        Cell::number(qp.stall_seconds() * 1e3, 1),
        Cell::number(qp.stall.map(|stall| stall.from_seconds), 3),
        Cell::number(cells.clone().reduce(f64::min), 1),
        Cell::number(cells.reduce(f64::max), 1),
    ]
}
