//! Latency over load as a chart: bands of what searches found, lines, marks of what is no result, closed loops. It must
//! not know what stands around it.

use std::collections::BTreeMap;

use super::curves;
use super::load_lines::{LoadLine, LoadPoint, PERCENTILES};
use super::load_words::{LoadUnit, asked_words, limit_words, outcome_words};
use crate::observe::Metric;
use crate::results::model::{LoadSearch, LoadVerdict, SearchEnd};
use crate::show::plot::draw::palette::{Look, MUTED, Marker, RULE};
use crate::show::plot::draw::{
    AxisFrame, Canvas, Labels, Paint, Point, Rect, Series, Style, number,
};

/// The narrowest band that is seen.
const NARROWEST_BAND: f64 = 3.0;

/// The lines with the unit in which their loads are told.
pub(super) struct Loads<'a> {
    pub(super) lines: Vec<LoadLine<'a>>,
    pub(super) unit: LoadUnit,
}

/// The look of a line and its loads: dashes tell percentiles and rings overload, so that the base's line is thin only.
pub(super) fn of_line(look: Look) -> Look {
    Look {
        hollow: false,
        ..of_percentile(look, 1)
    }
}

/// The look of a line for one of [`PERCENTILES`].
pub(super) fn of_percentile(look: Look, percentile: usize) -> Look {
    const DASHES: [&str; 3] = ["2 3", "", "8 4"];
    Look {
        dash: DASHES[percentile % DASHES.len()],
        ..look
    }
}

pub(super) fn not_kept(look: Look) -> Look {
    Look {
        marker: Marker::Cross,
        ..look
    }
}

pub(super) fn of_closed(look: Look) -> Look {
    Look {
        marker: Marker::Bar,
        hollow: look.thin,
        ..look
    }
}

impl Loads<'_> {
    pub(super) fn points(&self) -> impl Iterator<Item = &LoadPoint> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    pub(super) fn has(&self, verdict: LoadVerdict) -> bool {
        self.points().any(|point| point.verdict == verdict)
    }

    pub(super) fn searches(&self) -> impl Iterator<Item = (&LoadLine<'_>, &LoadSearch)> {
        let lines = self.lines.iter();
        lines.flat_map(|line| line.searches.iter().map(move |search| (line, *search)))
    }

    /// Limits of latency, each once, with their words.
    pub(super) fn limits(&self) -> BTreeMap<u64, String> {
        let limits = self.searches().flat_map(|(_, search)| &search.limits);
        let mut all: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for limit in limits {
            let words = all.entry(limit.below_ns).or_default();
            if !words.contains(&limit_words(limit)) {
                words.push(limit_words(limit));
            }
        }
        all.into_iter()
            .map(|(ns, words)| (ns, words.join(", ")))
            .collect()
    }

    pub(super) fn search_words(&self, search: &LoadSearch) -> String {
        format!(
            "{}: {}",
            asked_words(search),
            outcome_words(search, self.unit)
        )
    }

    /// Draws all of it between the axes.
    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let mut labels = Labels::within(frame.plot);
        for (line, search) in self.searches() {
            self.band(canvas, frame, line.look, search);
        }
        for ns in self.limits().into_keys() {
            if let Some(y) = frame.y(ns as f64) {
                let paint = Paint::line(RULE, 1.5).dashed("14 4");
                canvas.line((frame.plot.x, y), (frame.plot.right(), y), paint);
            }
        }
        for line in &self.lines {
            canvas.begin_series(&line.name);
            self.draw_line(canvas, frame, line, line.look);
            for point in &line.points {
                self.mark(canvas, frame, &mut labels, line, point, line.look);
            }
            self.draw_closed(canvas, frame, &mut labels, line, line.look);
            canvas.end_group();
        }
        self.words(canvas, frame, &mut labels);
    }

    fn x(&self, frame: &AxisFrame, per_second: f64) -> Option<f64> {
        frame.x(per_second * self.unit.of_message)
    }

    /// The loads among which the highest is that keeps the limit.
    fn band(&self, canvas: &mut Canvas, frame: &AxisFrame, look: Look, search: &LoadSearch) {
        let place = |load: Option<f64>| self.x(frame, load?);
        let (lower, upper) = (search.lower_per_second, search.upper_per_second);
        let (from, to) = match search.end {
            SearchEnd::Found
            | SearchEnd::TrialsSpent
            | SearchEnd::TooFewMessages
            | SearchEnd::Stopped => (lower.or(upper), upper.or(lower)),
            // What lies above is not known, or nothing does.
            SearchEnd::ScheduleNotKept | SearchEnd::AllKeep => (lower, lower),
            SearchEnd::NoneKeeps => (None, None),
        };
        let (Some(from), Some(to)) = (place(from), place(to)) else {
            return;
        };
        let width = (to - from).max(NARROWEST_BAND);
        let band = Rect {
            x: f64::midpoint(from, to) - width / 2.0,
            y: frame.plot.y,
            width,
            height: frame.plot.height,
        };
        let paint = Paint::area(look.colour).see_through(0.65);
        canvas.rect(band, paint, Some(&self.search_words(search)));
    }

    fn draw_line(&self, canvas: &mut Canvas, frame: &AxisFrame, line: &LoadLine<'_>, look: Look) {
        for (percentile, metric) in PERCENTILES.into_iter().enumerate() {
            let point = |point: &LoadPoint| {
                let x = point.achieved.median * self.unit.of_message;
                let result = point.verdict != LoadVerdict::NotKept;
                let spread = point.latency_ns[percentile].filter(|_| result);
                match metric {
                    Metric::P99Ns => curves::point(spread, x),
                    // One whisker a load can be told apart.
                    _ => Point {
                        x,
                        y: spread.map(|spread| spread.median),
                        interval: None,
                    },
                }
            };
            let series = Series {
                name: format!("{}, {}", line.name, metric.short_name()),
                look: of_percentile(look, percentile),
                points: line.points.iter().map(point).collect(),
                markers: false,
            };
            series.draw(canvas, frame);
        }
    }

    /// The marker of a load at its p99; of one that is no result, at each percentile. What lies above the axis is marked
    /// at its end.
    fn mark(
        &self,
        canvas: &mut Canvas,
        frame: &AxisFrame,
        labels: &mut Labels,
        line: &LoadLine<'_>,
        point: &LoadPoint,
        look: Look,
    ) {
        let Some(x) = self.x(frame, point.achieved.median) else {
            return;
        };
        let [p50, p99, _] = point.latency_ns;
        let (look, drawn) = match point.verdict {
            LoadVerdict::Kept => (look, [p99.or(p50), None, None]),
            LoadVerdict::Overloaded => (
                Look {
                    hollow: true,
                    ..look
                },
                [p99.or(p50), None, None],
            ),
            LoadVerdict::NotKept => (not_kept(look), point.latency_ns),
        };
        let hint = self.hint(line, point);
        for spread in drawn.into_iter().flatten() {
            if let Some(y) = frame.y(spread.median) {
                let place = (x, y.clamp(frame.plot.y, frame.plot.bottom()));
                canvas.marker(place, look, Some(&hint));
                labels.keep_free_of_marker(place);
            }
        }
    }

    fn hint(&self, line: &LoadLine<'_>, point: &LoadPoint) -> String {
        let percentiles = PERCENTILES.iter().zip(point.latency_ns);
        let told: Vec<String> = percentiles
            .filter_map(|(metric, spread)| {
                Some(format!(
                    "{} {}",
                    metric.short_name(),
                    number::time(spread?.median)
                ))
            })
            .collect();
        format!(
            "{}, {} ({}): {}; {}",
            line.name,
            point.asked,
            self.unit.per_second(point.achieved.median),
            told.join(", "),
            point.verdict
        )
    }

    /// What the closed loop says: a bar for each percentile, above its throughput.
    fn draw_closed(
        &self,
        canvas: &mut Canvas,
        frame: &AxisFrame,
        labels: &mut Labels,
        line: &LoadLine<'_>,
        look: Look,
    ) {
        let Some(closed) = &line.closed else {
            return;
        };
        let Some(x) = self.x(frame, closed.achieved.median) else {
            return;
        };
        let places: Vec<(f64, f64)> = closed
            .latency_ns
            .iter()
            .flatten()
            .filter_map(|spread| Some((x, frame.y(spread.median)?)))
            .collect();
        canvas.polyline(&places, Paint::line(look.colour, 1.0));
        for (place, (metric, spread)) in places
            .iter()
            .zip(PERCENTILES.iter().zip(closed.latency_ns.iter().flatten()))
        {
            let hint = format!(
                "{}, closed loop at {}: {} {}",
                line.name,
                self.unit.per_second(closed.achieved.median),
                metric.short_name(),
                number::time(spread.median)
            );
            canvas.marker(*place, of_closed(look), Some(&hint));
            labels.keep_free_of_marker(*place);
        }
        if let (1, Some(place)) = (self.lines.len(), places.get(1).or(places.first())) {
            labels.beside(canvas, *place, "closed loop", Style::default());
        }
    }

    /// Words at the limits, and at the beginning of a line that has the figure for itself.
    fn words(&self, canvas: &mut Canvas, frame: &AxisFrame, labels: &mut Labels) {
        let muted = Style {
            colour: MUTED,
            ..Style::default()
        };
        for (ns, words) in self.limits() {
            if let Some(y) = frame.y(ns as f64) {
                let x = frame.plot.x + 8.0;
                let _ = labels.at(canvas, (x, y - 5.0), &words, muted)
                    || labels.at(canvas, (x, y + 15.0), &words, muted);
            }
        }
    }
}
