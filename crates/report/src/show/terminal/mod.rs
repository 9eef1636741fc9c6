//! The result as a table for a person: a row a finished run, written as runs finish, aligned without
//! knowing the rows to come. It must not know what writes it, nor where to.

mod columns;
mod connect_text;
mod figures;
mod notes;
mod remarks;
mod search_text;
mod together;

use std::io::{self, Write};
use std::path::Path;

use settings::{Pattern, Settings};

use crate::observe::format::plural;
use crate::results::model::{CLIENT, CaseConfig, FlowResult, ResultFile, Run};
use crate::text::{Mark, Screen, wrapped};
use columns::{Column, Columns};
use figures::RowOf;
use remarks::{Remark, is_both_ways};

/// Width that lines of text about loads keep to, as rows of loads mostly do.
const COLUMNS: usize = 80;

/// Writes rows as runs finish.
pub struct Table<W> {
    out: W,
    screen: Screen,
    settings: Vec<Settings>,
    /// Known from the first run on.
    columns: Option<Columns>,
}

impl<W: Write> Table<W> {
    /// A table without rows, for flows with these settings; the header comes with the first.
    pub fn new(out: W, screen: Screen, settings: &[Settings]) -> Self {
        Table {
            out,
            screen,
            settings: settings.to_vec(),
            columns: None,
        }
    }

    /// Adds a finished run: one row for each flow, and one of set-up alone. Those of a bidirectional case are `out` and
    /// `in`, and flows that were given names are told by them. All flows of a pattern are one row, and those of `pairs`,
    /// of which a run is one round of many, are none.
    ///
    /// # Errors
    /// The stream's.
    pub fn run(&mut self, config: &CaseConfig, run: &Run) -> io::Result<()> {
        if config.pattern == Some(Pattern::Pairs) {
            return Ok(());
        }
        let columns = match self.columns.take() {
            Some(columns) => columns,
            None => self.head(config, run)?,
        };
        let nothing = FlowResult {
            from: CLIENT.to_owned(),
            ..FlowResult::default()
        };
        let all;
        let flows = match &run.flows[..] {
            [] => std::slice::from_ref(&nothing),
            _ if config.pattern.is_some() => {
                all = together::together(run);
                std::slice::from_ref(&all)
            }
            flows => flows,
        };
        for (index, flow) in flows.iter().enumerate() {
            let settings = config.shown(index);
            let direction = match (is_both_ways(config), index) {
                (false, _) => "",
                (true, 0) => "out",
                (true, _) => "in",
            };
            let row = RowOf {
                settings: &settings,
                run,
                flow,
                direction,
            };
            let name = match config.pattern {
                Some(_) => format!("{0} {1}", run.flows.len(), plural(run.flows.len(), "flow")),
                None => remarks::name(config, flow),
            };
            let mut told = vec![(Mark::Plain, name)];
            told.extend(remarks::of_row(&row, &columns));
            if index == 0 {
                told.extend(remarks::of_path(run));
            }
            told.retain(|(_, text)| !text.is_empty());
            self.line(&columns, |column| column.cell(&row), &told)?;
            if let (0, Some(connect)) = (index, &run.connect) {
                for line in connect_text::lines(config, connect, columns.are_of_set_up) {
                    writeln!(self.out, "{line}")?;
                }
            }
        }
        self.columns = Some(columns);
        self.out.flush()
    }

    /// The lines above all rows.
    fn head(&mut self, config: &CaseConfig, run: &Run) -> io::Result<Columns> {
        let settings = std::mem::take(&mut self.settings);
        let columns = Columns::of(&settings, (config, run), self.screen.columns);
        if !columns.same.is_empty() {
            for line in wrapped(&columns.same, self.screen.columns.saturating_add(1)) {
                writeln!(self.out, "{line}")?;
            }
        }
        self.line(&columns, |column| column.head.to_owned(), &[])?;
        Ok(columns)
    }

    /// Ends the table with what searches found, a line that counts cases and runs and names the files, and what is to be
    /// known of the figures.
    ///
    /// # Errors
    /// The stream's.
    pub fn summary(&mut self, result: &ResultFile, files: &[&Path]) -> io::Result<()> {
        let width = self.screen.columns.saturating_add(1);
        let of_loads = width.min(COLUMNS);
        for line in search_text::lines(result).flat_map(|line| wrapped(&line, of_loads)) {
            writeln!(self.out, "{line}")?;
        }
        let runs = || result.cases.iter().flat_map(|case| &case.runs);
        let (total, whole) = (runs().count(), runs().filter(|run| run.complete).count());
        let cases = result.cases.len();
        let mut count = format!(
            "{cases} {}, {total} {}",
            plural(cases, "case"),
            plural(total, "run")
        );
        count += &match total - whole {
            0 => ", all complete".to_owned(),
            left => format!(", {left} not complete"),
        };
        if !files.is_empty() {
            let files: Vec<_> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            count += &format!("; written to {}", together(&files));
        }
        for line in wrapped(&count, width) {
            writeln!(self.out, "{line}")?;
        }
        for line in notes::of_loads(result)
            .iter()
            .flat_map(|line| wrapped(line, of_loads))
        {
            writeln!(self.out, "{line}")?;
        }
        for line in notes::of_all(result).flat_map(|line| wrapped(&line, width)) {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }

    /// A line of cells, with remarks behind them, or below where they do not fit.
    fn line(
        &mut self,
        columns: &Columns,
        cell: impl Fn(&Column) -> String,
        told: &[Remark],
    ) -> io::Result<()> {
        let cells = columns.all.iter().map(|column| {
            let (cell, width) = (cell(column), column.width);
            match column.is_word {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            }
        });
        let mut line = cells.collect::<Vec<_>>().join(" ");
        let words: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
        let words = words.join(", ");
        let painted = || {
            let painted = told
                .iter()
                .map(|(mark, text)| self.screen.painted(*mark, text));
            painted.collect::<Vec<_>>().join(", ")
        };
        if words.is_empty() {
            return writeln!(self.out, "{}", line.trim_end());
        }
        if line.chars().count() + 1 + words.chars().count() <= self.screen.columns {
            line += " ";
            line += &painted();
            return writeln!(self.out, "{line}");
        }
        writeln!(self.out, "{}", line.trim_end())?;
        let gravest = told
            .iter()
            .map(|(mark, _)| *mark)
            .max()
            .unwrap_or(Mark::Plain);
        for line in wrapped(
            &format!("    {words}"),
            self.screen.columns.saturating_add(1),
        ) {
            writeln!(self.out, "{}", self.screen.painted(gravest, &line))?;
        }
        Ok(())
    }
}

/// Names of files, those of one stem as one: `a.json, .csv`.
fn together(files: &[String]) -> String {
    let Some((first, others)) = files.split_first() else {
        return String::new();
    };
    let stem = first
        .rsplit_once('.')
        .map_or(first.as_str(), |(stem, _)| stem);
    let mut text = first.clone();
    for other in others {
        text += ", ";
        text += other.strip_prefix(stem).unwrap_or(other);
    }
    text
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
