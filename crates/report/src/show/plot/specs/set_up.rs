//! How fast QPs are set up against how many a round sets up, and how long each step takes. What a connection's set-up
//! consists of, a bar for each case with its steps one after the other.

use crate::observe::Metric;
use crate::observe::format::{counted, each_once};
use crate::show::plot::draw::palette::style;
use crate::show::plot::draw::{Key, KeyMark, Scale, Unit, number};
use crate::show::plot::figure::{Cell, Figure, Picture, Table};
use crate::show::plot::marks::{Axis, Chart, Fill, Mark, Tile};
use crate::show::plot::rows::groups::Groups;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::rows::settings::Setting;
use crate::show::plot::spec::{Spec, X, Y};
use crate::show::plot::sums::Sides;
use results::model::{Connect, ConnectStep, Latency};

pub const SPEC: Spec = Spec {
    id: "set-up-by-qps",
    title: "Connections a second and set-up time against QPs",
    caption: "A round creates QPs at both ends, connects them and destroys them. Connections a second are of whole rounds.",
    rows: |sides| Sample::set_ups(sides),
    x: X::Setting("qps", "QPs that a round sets up", Unit::Plain),
    y: &[Y::Log(Metric::ConnectionsPerS), Y::Log(Metric::SetupP99Ns)],
    ..Spec::USUAL
};

pub fn figures<'a>(sides: impl Into<Sides<'a>>) -> Vec<Figure> {
    let sides: Sides<'_> = sides.into();
    let groups = SPEC.groups(sides);
    let steps = steps_figure(&groups);
    SPEC.figure(&groups, sides).into_iter().chain(steps).collect()
}

const CAPTION: &str = "Mean times at the end that ran the sweep. All QPs of a round share an exchange. Destroying is in the \
    table only.";

const MOST_BARS: usize = 16;
const ROW_PX: f64 = 24.0;
/// Height of a bar; 1 is the whole row.
const BAR: f64 = 0.7;

/// The figure; `None` where no case has steps.
pub(super) fn steps_figure(groups: &Groups<'_>) -> Option<Figure> {
    let steps = each_once(groups.samples().flat_map(step_names));
    let cases: Vec<(String, &Sample<'_>)> = groups
        .named_lines()
        .flat_map(|(name, line)| {
            line.points
                .iter()
                .map(|(qps, sample)| {
                    let qps = counted(*qps as usize, "QP");
                    (format!("{name}, {qps}"), sample)
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let drawn: Vec<_> = cases
        .iter()
        .filter(|(_, sample)| steps.iter().any(|step| time_ns(sample, step) > 0.0))
        .take(MOST_BARS)
        .collect();
    drawn.first()?;
    let (mut bars, mut longest) = (Vec::new(), 1.0_f64);
    for (row, (name, sample)) in drawn.iter().enumerate() {
        let mut from = 0.0;
        for (number, step) in steps.iter().enumerate() {
            let to = from + time_ns(sample, step);
            let fill = Fill::Plain(style(number).colour);
            let hint = format!("{name}: {step} {}", number::time(to - from));
            bars.push(Tile { height: BAR, ..Tile::new(-(row as f64), (from, to), fill, hint) });
            from = to;
        }
        bars.last_mut()?.behind = number::time(from);
        longest = longest.max(from);
    }
    let keys =
        steps.iter().enumerate().map(|(index, step)| Key::new(KeyMark::Area, style(index), step));
    let x = Scale::from_zero(longest * 1.2);
    let x = Axis::new("mean time of a connection", x, Unit::Nanoseconds);
    let y = Axis::rows("", drawn.iter().map(|(name, _)| name.clone()));
    let more = (drawn.len() < cases.len()).then(|| "More are in the table.".to_owned());
    let picture = Picture {
        subtitle: groups.subtitle(Setting::from_flag("qps")),
        keys: keys.collect(),
        charts: vec![Chart::of_rows(ROW_PX, x, y, vec![Mark::Tiles(bars)])],
        notes: more.into_iter().collect(),
        tables: vec![table(&cases)],
    };
    Some(picture.named("set-up-steps", "Steps of a connection’s set-up", CAPTION))
}

fn connect<'a>(sample: &Sample<'a>) -> Option<&'a Connect> {
    let mut counted = sample.observed.counted();
    counted.find_map(|it| it.run.connect.as_ref())
}

/// Steps of a set-up that are one after the other: what `connect` contains is in it, and destroying is none.
fn step_names(sample: &Sample<'_>) -> Vec<String> {
    let steps = connect(sample).map_or(&[][..], |connect| &connect.steps);
    let by_cm = steps.iter().any(|step| step.step == "connect");
    steps
        .iter()
        .map(|step| step.step.clone())
        .filter(|step| {
            let is_of_connect = by_cm && ["init", "rtr", "rts"].contains(&step.as_str());
            !is_of_connect && step != "destroy"
        })
        .collect()
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

fn table(cases: &[(String, &Sample<'_>)]) -> Table {
    let ends: [(&str, StepsOf); 2] = [("own", |it| &it.steps), ("other", |it| &it.peer_steps)];
    let mut rows = Vec::new();
    for (name, sample) in cases {
        for (end, steps_of) in ends {
            for step in connect(sample).map_or(&[][..], |connect| steps_of(connect)) {
                let figures: [fn(&Latency) -> Option<f64>; 2] =
                    [|time| Some(time.mean), |time| time.p99.map(|ns| ns as f64)];
                let mut row = [name, end, &step.step, &step.per].map(Cell::text).to_vec();
                row.extend(figures.map(|figure| {
                    let median = sample.observed.median_of(|run| {
                        let steps = steps_of(run.connect.as_ref()?);
                        let same = steps.iter().find(|it| it.step == step.step)?;
                        Some(figure(&same.time_ns)? / 1e3)
                    });
                    Cell::number(median, 2)
                }));
                rows.push(row);
            }
        }
    }
    let names = ["Line", "end", "step", "timed once a", "mean (µs)", "p99 (µs)"];
    Table::new("Steps of set-up: medians of the runs that count", names, rows)
}
