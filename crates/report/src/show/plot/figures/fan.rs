//! Figure: what several nodes move together to one, or one to several, over how many they are: goodput, p99 and how evenly
//! they are served. It must not know where the figures are shown.

use std::collections::HashMap;
use std::path::Path;

use super::grouping::{Rule, grouped};
use super::panels::{Kind, Panel};
use super::sample::Sample;
use super::settings::Setting;
use crate::judge::mesh::{Direction, Fan, FanPoint};
use crate::observe::{Metric, Spread};
use crate::results::load::Loaded;
use crate::show::plot::figure::Figure;

/// The figures; none without two numbers of nodes. `sums` are the results with the flows of each case as one.
pub fn figures(results: &[Loaded], sums: &[Loaded]) -> Vec<Figure> {
    let [of_in, of_out] = [Direction::In, Direction::Out].map(|direction| {
        let (flag, id, title, axis) = match direction {
            Direction::In => ("fan-in", "fan-in", "Incast over fan-in", "nodes that send"),
            Direction::Out => ("fan-out", "fan-out", "Outcast over fan-out", "nodes that receive"),
        };
        let points = Points::of(results, direction);
        let setting = Setting::of(flag);
        let rule = Rule {
            axis: setting,
            place: &|sample| points.find(sample).map(|point| point.fan as f64),
            metrics: &[Metric::GbitPerS],
            apart: &[],
            most_lines: 6,
            most_charts: 3,
            least_places: 2,
        };
        let groups = grouped(Sample::transfers(sums), &rule);
        let value = |sample: &Sample<'_>, of: fn(&FanPoint) -> Option<f64>| {
            Spread::of(points.find(sample).and_then(of))
        };
        let kind = Kind {
            id,
            title,
            setting,
            axis,
            panels: &[
                Panel {
                    axis: "Gb/s of all together",
                    column: "Gb/s",
                    is_log: false,
                    value: &|sample| value(sample, |point| point.gbit_per_s),
                },
                Panel {
                    axis: "p99 of all messages (µs)",
                    column: "p99 (µs)",
                    is_log: false,
                    value: &|sample| value(sample, |point| Some(point.p99_ns? / 1e3)),
                },
                Panel {
                    axis: "Jain’s index over the nodes",
                    column: "Jain",
                    is_log: false,
                    value: &|sample| value(sample, |point| point.jain),
                },
            ],
            note: "All flows of a case together; Jain’s index is 1/n where one of n nodes gets everything.",
        };
        kind.figure(&groups)
    });
    of_in.into_iter().chain(of_out).collect()
}

/// Points of fans by their file and case.
struct Points<'r>(HashMap<&'r Path, HashMap<String, FanPoint>>);

impl<'r> Points<'r> {
    fn of(results: &'r [Loaded], direction: Direction) -> Points<'r> {
        let of_file = |loaded: &'r Loaded| {
            let fans = Fan::all(&loaded.result).into_iter();
            let fans = fans.filter(|fan| fan.direction == direction);
            let points = fans.flat_map(|fan| fan.points);
            let points = points.map(|point| (point.case.clone(), point));
            (loaded.path.as_path(), points.collect())
        };
        Points(results.iter().map(of_file).collect())
    }

    fn find(&self, sample: &Sample<'_>) -> Option<&FanPoint> {
        let of_file = self.0.get(sample.loaded.path.as_path())?;
        of_file.get(&sample.flow.case.id)
    }
}
