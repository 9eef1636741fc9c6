//! Figures of one or more measures over the same axis, a chart for each group of lines. It must not know what the
//! measures are.

use super::curves::{
    all_series, cells, is_a_curve, largest, number_column, runs_cell, text_column,
};
use super::facets;
use super::groups::{Group, Groups};
use super::naming::{drawn, some_of};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::Spread;
use crate::show::plot::draw::{Axis, LineChart, Scale, Series, Unit, number};
use crate::show::plot::figure::{Cell, Figure, Table};

/// A measure: what stands at its axis, the name in its table, and the figure of a case.
pub(super) struct Panel<'p> {
    pub(super) axis: &'p str,
    pub(super) column: &'p str,
    /// Equal ratios are equally far apart.
    pub(super) is_log: bool,
    pub(super) value: &'p dyn Fn(&Sample<'_>) -> Option<Spread>,
}

/// What a figure of a kind has.
pub(super) struct Kind<'p> {
    pub(super) id: &'p str,
    pub(super) title: &'p str,
    pub(super) setting: Setting,
    pub(super) axis: &'p str,
    pub(super) panels: &'p [Panel<'p>],
    pub(super) note: &'p str,
}

/// Axes of charts whose largest figures differ by more than this have each their own scale.
const ONE_SCALE: f64 = 4.0;

impl Kind<'_> {
    /// The figure; `None` where no group has a line.
    pub(super) fn figure(&self, groups: &Groups<'_>) -> Option<Figure> {
        let mut charts = Vec::new();
        let mut has_spread = false;
        for panel in self.panels {
            let all: Vec<(&Group<'_>, Vec<Series>)> = (groups.groups.iter())
                .map(|group| (group, all_series(groups, group, panel.value)))
                .filter(|(_, series)| largest(series).is_some())
                .collect();
            has_spread |= all.iter().any(|(_, series)| has_intervals(series));
            let most = all.iter().filter_map(|(_, series)| largest(series));
            let (low, high) = most.fold((f64::INFINITY, 0.0_f64), |(low, high), it| {
                (low.min(it), high.max(it))
            });
            for (group, series) in all {
                let places = group.places();
                let x = Scale::log2(*places.first()?, *places.last()?).widened(0.03);
                let top = match high <= low * ONE_SCALE {
                    true => high,
                    false => largest(&series).unwrap_or(1.0),
                };
                let y = match panel.is_log {
                    true => Scale::log10(smallest(&series).unwrap_or(top), top).widened(0.06),
                    false => Scale::from_zero(top),
                };
                let heading = match (self.panels.len(), group.heading()) {
                    (1, heading) => heading,
                    (_, heading) if heading.is_empty() => panel.axis.to_owned(),
                    (_, heading) => format!("{heading}: {}", panel.axis),
                };
                let title = if self.panels.len() == 1 {
                    panel.axis
                } else {
                    ""
                };
                charts.push((
                    heading,
                    LineChart {
                        x: Axis::new(self.axis, x, Unit::Plain),
                        y: Axis::new(title, y, Unit::Plain),
                        series,
                        rules: Vec::new(),
                    },
                ));
            }
        }
        if !charts.iter().any(|(_, chart)| is_a_curve(&chart.series)) {
            return None;
        }
        let figure = Figure {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            subtitle: groups.subtitle(self.setting),
            description: description(&charts),
            tables: vec![self.table(groups, has_spread)],
            ..Figure::default()
        };
        Some(drawn(figure, |sheet| {
            sheet.legend(&facets::keys(&charts, &groups.names));
            facets::draw(sheet, &charts, 290.0);
            sheet.note(self.note);
            let points = match has_spread {
                true => "Points are medians of the runs, whiskers their smallest and largest",
                false => "Points are medians of the runs",
            };
            sheet.note(&format!("{points}; a gap was not measured."));
            groups.notes.iter().for_each(|note| sheet.note(note));
        }))
    }

    fn table(&self, groups: &Groups<'_>, has_spread: bool) -> Table {
        let mut columns = vec![
            text_column("Line"),
            number_column(self.axis),
            text_column("Runs"),
        ];
        let shown = if has_spread { 3 } else { 1 };
        for panel in self.panels {
            let names = [panel.column, "lowest", "highest"].into_iter();
            columns.extend(names.take(shown).map(number_column));
        }
        let mut rows = Vec::new();
        for (name, line) in groups.named_lines() {
            for (place, sample) in &line.points {
                let mut row = vec![
                    Cell::Text(name.clone()),
                    Cell::Number(*place, 0),
                    runs_cell(sample),
                ];
                for panel in self.panels {
                    let cells = cells((panel.value)(sample), 1.0, 3);
                    row.extend(cells.into_iter().take(shown));
                }
                rows.push(row);
            }
        }
        Table {
            caption: match has_spread {
                true => {
                    "Medians of the runs that count, with the smallest and the largest".to_owned()
                }
                false => "Medians of the runs that count".to_owned(),
            },
            columns,
            rows,
        }
    }
}

fn description(charts: &[(String, LineChart)]) -> String {
    let ends = |series: &Series| {
        let mut points = series
            .points
            .iter()
            .filter_map(|point| Some((point.x, point.y?)));
        let first = points.next()?;
        let last = points.next_back().unwrap_or(first);
        let [from, to] = [first, last].map(|(x, y)| format!("{} at {x}", number::short(y)));
        Some(format!("{} goes from {from} to {to}", series.name))
    };
    let of = |(heading, chart): &(String, LineChart)| {
        let all: Vec<String> = chart.series.iter().filter_map(ends).collect();
        let heading = if heading.is_empty() {
            &chart.y.title
        } else {
            heading
        };
        format!("{heading}: {}.", some_of(&all))
    };
    let all: Vec<String> = charts.iter().take(2).map(of).collect();
    all.join(" ")
}

fn smallest(series: &[Series]) -> Option<f64> {
    let points = series.iter().flat_map(|series| &series.points);
    let lows = points.filter_map(|point| Some(point.interval.map_or(point.y?, |(low, _)| low)));
    lows.filter(|low| *low > 0.0).min_by(f64::total_cmp)
}

fn has_intervals(series: &[Series]) -> bool {
    let mut points = series.iter().flat_map(|series| &series.points);
    points.any(|point| point.interval.is_some())
}
