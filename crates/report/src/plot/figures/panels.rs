//! Figures of a few charts, one below the other, over the same axis. It must not know what the charts show.

use super::curves::{
    Spread, all_series, is_a_curve, largest, number_column, runs_cell, text_column,
};
use super::groups::{Group, Groups};
use super::naming::head;
use super::settings::{Sample, Setting};
use crate::plot::draw::{Axis, LineChart, Scale, Series, Sheet, Unit, number};
use crate::plot::figure::{Cell, Figure, Table};

/// A chart: what stands at its axis, the name in its table, and the figure of a case.
pub(super) struct Panel<'p> {
    pub(super) axis: &'p str,
    pub(super) column: &'p str,
    pub(super) value: &'p dyn Fn(&Sample<'_>) -> Option<Spread>,
}

/// What figures of a kind have in common.
pub(super) struct Kind<'p> {
    pub(super) id: &'p str,
    pub(super) title: &'p str,
    pub(super) setting: Setting,
    pub(super) axis: &'p str,
    pub(super) panels: &'p [Panel<'p>],
    pub(super) note: &'p str,
}

impl Kind<'_> {
    /// A figure for each group that has a line.
    pub(super) fn figures(&self, groups: &Groups<'_>) -> Vec<Figure> {
        groups.figures(|index, group, notes| self.figure(index, group, notes))
    }

    fn figure(&self, index: usize, group: &Group<'_>, notes: &[String]) -> Option<Figure> {
        let drawn = |panel: &&Panel<'_>| {
            let series = all_series(group, panel.value);
            is_a_figure(&series).then_some(series)
        };
        let series: Vec<(&Panel<'_>, Vec<Series>)> = (self.panels.iter())
            .filter_map(|panel| Some((panel, drawn(&panel)?)))
            .collect();
        if !series.iter().any(|(_, series)| is_a_curve(series)) {
            return None;
        }
        let has_spread = series.iter().any(|(_, series)| has_intervals(series));
        let mut figure = Figure {
            id: format!("{}-{}", self.id, index + 1),
            title: group.title(self.title),
            subtitle: group.subtitle(self.setting),
            description: self.description(&series),
            svg: String::new(),
            tables: vec![self.table(group, has_spread)],
        };
        let places = group.places();
        let x = Scale::log2(*places.first()?, *places.last()?).widened(0.03);
        let mut sheet = Sheet::new(head(&figure));
        let height = if series.len() > 2 { 240.0 } else { 290.0 };
        for (number, (panel, series)) in series.into_iter().enumerate() {
            let scale = Scale::from_zero(largest(&series).unwrap_or(1.0));
            let chart = LineChart {
                x: Axis::new(self.axis, x, Unit::Plain),
                y: Axis::new(panel.axis, scale, Unit::Plain),
                series,
                rules: Vec::new(),
            };
            if number == 0 {
                sheet.legend(&chart.keys());
            }
            let area = sheet.take(height);
            chart.draw(&mut sheet.canvas, area);
        }
        sheet.note(self.note);
        let points = match has_spread {
            true => "Points are medians of the runs, whiskers their smallest and largest",
            false => "Points are medians of the runs",
        };
        sheet.note(&format!("{points}; a gap was not measured."));
        notes.iter().for_each(|note| sheet.note(note));
        figure.svg = sheet.finish();
        Some(figure)
    }

    fn description(&self, series: &[(&Panel<'_>, Vec<Series>)]) -> String {
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
        let of = |(panel, series): &(&Panel<'_>, Vec<Series>)| {
            let all: Vec<String> = series.iter().filter_map(ends).collect();
            format!("{}: {}.", panel.axis, all.join("; "))
        };
        let all: Vec<String> = series.iter().map(of).collect();
        all.join(" ")
    }

    fn table(&self, group: &Group<'_>, has_spread: bool) -> Table {
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
        for line in &group.lines {
            let name = group.name(line);
            for (place, sample) in &line.points {
                let mut row = vec![
                    Cell::Text(name.clone()),
                    Cell::Number(*place, 0),
                    runs_cell(sample),
                ];
                for panel in self.panels {
                    let cells = Spread::cells((panel.value)(sample), 1.0, 3);
                    row.extend(cells.into_iter().take(shown));
                }
                rows.push(row);
            }
        }
        Table {
            caption: match has_spread {
                true => {
                    "Medians of the complete runs, with the smallest and the largest".to_owned()
                }
                false => "Medians of the complete runs".to_owned(),
            },
            columns,
            rows,
        }
    }
}

/// Whether there is a point to draw.
fn is_a_figure(series: &[Series]) -> bool {
    largest(series).is_some()
}

fn has_intervals(series: &[Series]) -> bool {
    let mut points = series.iter().flat_map(|series| &series.points);
    points.any(|point| point.interval.is_some())
}
