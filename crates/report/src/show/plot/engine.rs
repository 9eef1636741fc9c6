//! Figures of lines: flows become lines and charts, and the table beside them is made of the same rows.

use super::charts::dash;
use super::draw::palette::{INK, Look, look};
use super::draw::{Key, KeyMark, Unit, number};
use super::figure::{Cell, Figure, Table};
use super::marks::{Chart, Mark, facets};
use super::picture::Picture;
use super::rows::grouping::{Rule, grouped};
use super::rows::groups::Groups;
use super::sides::Sides;
use super::spec::{Spec, X, rate_of};
use crate::observe::Metric;

const MOST_CHARTS: usize = 9;

impl Spec {
    /// The figure; none without a line.
    pub fn figures<'a>(&self, sides: impl Into<Sides<'a>>) -> Vec<Figure> {
        let sides = sides.into();
        let figure = self.figure(&self.groups(sides), sides);
        figure.into_iter().collect()
    }

    pub(crate) fn groups<'a>(&self, sides: Sides<'a>) -> Groups<'a> {
        let axis = self.x.setting();
        let rule = Rule {
            axis,
            place: &|sample| match self.x {
                X::Percentile => Some(0.0),
                _ => axis.number(&sample.observed.flow.settings),
            },
            apart: self.apart,
            most_lines: self.most_lines,
            most_charts: MOST_CHARTS / self.y.len().max(1),
            least_places: self.x.least_places(),
        };
        grouped((self.rows)(sides), &rule)
    }

    pub(crate) fn figure<'a>(&self, groups: &Groups<'a>, sides: Sides<'a>) -> Option<Figure> {
        let rate = rate_of(groups);
        let charts: Vec<Chart> = self
            .y
            .iter()
            .flat_map(|y| {
                groups.groups.iter().filter_map(move |group| {
                    let extra = (self.extra)(groups, group, sides, rate);
                    self.chart(groups, group, y, rate, extra)
                })
            })
            .collect();
        if !charts.iter().any(|chart| self.has_figures(chart)) {
            return None;
        }
        let metrics: Vec<Metric> = self.y.iter().flat_map(|y| y.metrics(rate)).collect();
        let mut tables = vec![self.table(groups, &metrics, rate)];
        tables.extend((self.tables)(groups));
        let has_spread = charts.iter().flat_map(Chart::series).any(|series| {
            let mut points = series.points.iter();
            points.any(|point| point.interval.is_some())
        });
        let spread = has_spread.then(|| {
            "Points are medians of the runs, whiskers their lowest and highest.".to_owned()
        });
        let picture = Picture {
            subtitle: groups.subtitle(self.x.setting()),
            keys: self.keys(groups, &charts, rate),
            charts,
            notes: spread.into_iter().chain(groups.notes.clone()).collect(),
            tables,
        };
        Some(picture.named(
            self.id,
            self.title.replace("{y}", metrics.first()?.title()),
            self.caption,
        ))
    }

    fn keys(&self, groups: &Groups<'_>, charts: &[Chart], rate: Metric) -> Vec<Key> {
        let mut keys = facets::keys(charts, &groups.names);
        for metrics in self.y.iter().map(|y| y.metrics(rate)).filter(|it| it.len() > 1) {
            // Colours distinguish lines, and dashes percentiles.
            keys.retain(|key| [KeyMark::Marker, KeyMark::Area].contains(&key.mark));
            let mut lines: Vec<Key> = Vec::new();
            for line in groups.lines() {
                let look = groups.look(line).with_dash("");
                let key = Key::new(KeyMark::LineAndMarker, look, groups.name(line));
                if !lines.iter().any(|known| known.label == key.label) {
                    lines.push(key);
                }
            }
            let is_one = lines.len() < 2;
            let plain = Look { colour: if is_one { look(0).colour } else { INK }, ..look(0) };
            let dashes = metrics.iter().enumerate().rev().map(|(index, metric)| {
                let look = plain.with_dash(dash(index, metrics.len()));
                Key::new(KeyMark::Line, look, metric.short_name())
            });
            keys.splice(0..0, lines.into_iter().filter(|_| !is_one).chain(dashes));
        }
        keys
    }

    fn has_figures(&self, chart: &Chart) -> bool {
        let has_dots = chart.marks.iter().any(|mark| matches!(mark, Mark::Dot(_)));
        has_dots || chart.series().any(|it| it.figures() >= self.x.least_places())
    }

    fn table(&self, groups: &Groups<'_>, metrics: &[Metric], rate: Metric) -> Table {
        let mut metrics = metrics.to_vec();
        metrics.sort();
        match self.x {
            X::RateOver(..) => metrics.insert(0, rate),
            X::Percentile => {
                metrics = vec![Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns, Metric::MaxNs];
            }
            X::Setting(..) => {}
        }
        metrics.extend(self.columns);
        let has_spread = metrics.len() < 3
            && groups.samples().any(|it| it.spread(metrics[0]).is_some_and(|it| it.count > 1));
        let shown = if has_spread { 3 } else { 1 };
        let mut names = vec!["Line"];
        names.extend(match self.x {
            X::Setting(_, title, _) | X::RateOver(_, title, _) => Some(title),
            X::Percentile => None,
        });
        names.push("Runs");
        for metric in &metrics {
            names.extend([metric.column().0, "lowest", "highest"].iter().take(shown));
        }
        names.extend(self.beside.iter().map(|it| it.name));
        let axis = self.x.setting();
        let mut rows = Vec::new();
        for (name, (place, sample)) in groups
            .named_lines()
            .flat_map(|(name, line)| line.points.iter().map(move |point| (name.clone(), point)))
        {
            let mut row = vec![Cell::text(name)];
            row.extend(match self.x {
                X::Setting(_, _, Unit::Bytes) => Some(Cell::Text(number::bytes(*place as u64))),
                X::Setting(..) => Some(Cell::Number(*place, 0)),
                X::RateOver(..) => Some(Cell::Text(axis.text(&sample.observed.flow.settings))),
                X::Percentile => None,
            });
            row.push(sample.runs_cell());
            for metric in &metrics {
                let cells = Cell::of_spread(*metric, sample.spread(*metric));
                row.extend(cells.into_iter().take(shown));
            }
            let beside = self.beside.iter().map(|it| (it.of)(sample));
            row.extend(beside.map(|it| Cell::number(it, 3)));
            rows.push(row);
        }
        Table::new("Medians of the runs that count", names, rows)
    }
}
