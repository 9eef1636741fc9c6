//! The result as a table for a person: a row a finished run, written as runs finish, aligned without
//! knowing the rows to come. It must not know what writes it, nor where to.

mod columns;
mod notes;
mod search_text;
mod together;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use settings::{Id, Pattern, ROWS, Settings};

use super::connect_text;
use super::model::{
    CLIENT, CaseConfig, DoubtKind, FORWARD, FlowResult, PathEvent, PathEventKind, REVERSE,
    ResultFile, Run,
};
use super::number::{digits, figure, plural};
use crate::text::wrapped;
use columns::{Column, Columns, OUT, RowOf};

/// Width that lines of text about loads keep to, as rows of loads mostly do.
const COLUMNS: usize = 80;

/// Writes rows as runs finish.
pub struct Table<W> {
    out: W,
    columns: Columns,
    has_header: bool,
}

impl<W: Write> Table<W> {
    /// A table without rows, for flows with these settings; the header comes with the first.
    pub fn new(out: W, settings: &[Settings]) -> Self {
        Table {
            out,
            columns: Columns::of(settings),
            has_header: false,
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
        if !std::mem::replace(&mut self.has_header, true) {
            if !self.columns.same.is_empty() {
                writeln!(self.out, "{}", self.columns.same)?;
            }
            self.line(|column| column.head.to_owned(), "")?;
        }
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
                (true, 0) => OUT,
                (true, _) => " in",
            };
            let row = RowOf {
                settings: &settings,
                run,
                flow,
                direction,
            };
            let name = match config.pattern {
                Some(_) => format!("{0} {1}", run.flows.len(), plural(run.flows.len(), "flow")),
                None => name(config, flow),
            };
            let mut told = vec![name, flags(&row, &self.columns)];
            if !self.columns.has_operation() {
                told.insert(0, direction.trim().to_owned());
            }
            told.extend((index == 0).then(|| path_events(run)));
            told.retain(|told| !told.is_empty());
            self.line(|column| (column.cell)(&row), &told.join(", "))?;
            if let (0, Some(connect)) = (index, &run.connect) {
                for line in connect_text::lines(config, connect) {
                    writeln!(self.out, "{line}")?;
                }
            }
        }
        self.out.flush()
    }

    /// Ends the table with what searches found, a line that counts cases and runs and names the files, and what is to be
    /// known of the figures.
    ///
    /// # Errors
    /// The stream's.
    pub fn summary(&mut self, result: &ResultFile, files: &[&Path]) -> io::Result<()> {
        for line in search_text::lines(result).flat_map(|line| wrapped(&line, COLUMNS)) {
            writeln!(self.out, "{line}")?;
        }
        let runs = || result.cases.iter().flat_map(|case| &case.runs);
        let (total, whole) = (runs().count(), runs().filter(|run| run.complete).count());
        let cases = result.cases.len();
        write!(
            self.out,
            "{cases} {}, {total} {}",
            plural(cases, "case"),
            plural(total, "run")
        )?;
        if whole == total {
            write!(self.out, ", all complete")?;
        } else {
            write!(self.out, ", {} not complete", total - whole)?;
        }
        if !files.is_empty() {
            let files: Vec<_> = files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            write!(self.out, "; written to {}", together(&files))?;
        }
        writeln!(self.out)?;
        for line in notes::of_loads(result)
            .iter()
            .flat_map(|line| wrapped(line, COLUMNS))
        {
            writeln!(self.out, "{line}")?;
        }
        for line in notes::of_all(result) {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }

    fn line(&mut self, cell: impl Fn(&Column) -> String, told: &str) -> io::Result<()> {
        let cells = self.columns.all.iter().map(|column| {
            let (cell, width) = (cell(column), column.width);
            match column.is_word {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            }
        });
        let line = cells.collect::<Vec<_>>().join(" ");
        writeln!(self.out, "{}", format!("{line} {told}").trim_end())
    }
}

/// Whether the flows are one, with traffic both ways, that was given no name.
fn is_both_ways(config: &CaseConfig) -> bool {
    let names = config.flows.iter().map(|flow| &*flow.name);
    names.eq([FORWARD, REVERSE])
}

/// The name that a flow was given, with its nodes where there are more than two.
fn name(config: &CaseConfig, flow: &FlowResult) -> String {
    let label = match is_both_ways(config) {
        true => "",
        false => config.flow_label(&flow.name),
    };
    let nodes = config.flows.iter().flat_map(|flow| [&flow.from, &flow.to]);
    match nodes.collect::<BTreeSet<_>>().len() > 2 {
        true => format!("{label} {} → {}", flow.from, flow.to),
        false => label.to_owned(),
    }
}

/// What a reader of the row must know besides what these columns say.
fn flags(row: &RowOf<'_>, columns: &Columns) -> String {
    let RowOf {
        settings,
        run,
        flow,
        ..
    } = row;
    let mut flags = Vec::new();
    if run.interrupted {
        flags.push("interrupted".to_owned());
    } else if run.failure.is_some() {
        flags.push("failed".to_owned());
    } else if !run.complete {
        flags.push("incomplete".to_owned());
    }
    let errors = flow.totals.errors;
    if errors > 0 {
        flags.push(format!("{errors} {}", plural(errors as usize, "error")));
    } else if settings.verify && run.complete {
        flags.push("verify ok".to_owned());
    }
    // Words of the case's id that are no column of the table.
    let usual = Settings::default();
    let words = ROWS.iter().filter(|row| row.id == Id::Word);
    flags.extend(
        words
            .filter(|row| !row.is_equal(settings, &usual) && !columns.have_same(row))
            .map(|row| row.text(settings)),
    );
    if flow.window.warmup_steady == Some(false) {
        flags.push("unsteady".to_owned());
    }
    let doubts = flow.window.doubts.iter().map(|it| it.kind);
    let mut doubts: Vec<&str> = doubts
        .filter(|kind| !columns.are_of_loads || *kind != DoubtKind::ScheduleNotKept)
        .map(DoubtKind::name)
        .collect();
    doubts.dedup();
    flags.extend(doubts.into_iter().map(str::to_owned));
    if let Some(delivery) = flow.delivery.as_ref().filter(|it| it.lost > 0) {
        let (lost, share) = (delivery.lost, delivery.lost_share * 100.0);
        let sent = figure(flow.totals.gbit_per_s, digits);
        flags.push(format!("lost {lost} ({share:.2}%), sent {sent} Gbit/s"));
    } else if flow.delivery.is_none() && !settings.service.is_reliable() && run.complete {
        flags.push("losses not known".to_owned());
    }
    // What is in flight when a window opens or closes counts for one end only; more than that is worth a word.
    let received = flow.received.as_ref().filter(|_| flow.delivery.is_none());
    if let Some(received) = received {
        let received = received.share_of(flow);
        if received.is_finite() && (received - 1.0).abs() > 0.02 {
            flags.push(format!("received {:.1}%", received * 100.0));
        }
    }
    if run.run > 1 {
        flags.push(format!("run {}", run.run));
    }
    flags.join(", ")
}

/// What packets met on their way, by the devices of all nodes. Congestion control at work is no news.
fn path_events(run: &Run) -> String {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    let news = |event: &&PathEvent| event.kind != PathEventKind::Congestion;
    for event in run.path_events.iter().filter(news) {
        match counts
            .iter_mut()
            .find(|(name, _)| *name == event.kind.name())
        {
            Some((_, count)) => *count = count.saturating_add(event.count),
            None => counts.push((event.kind.name(), event.count)),
        }
    }
    let counts: Vec<_> = counts
        .into_iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    counts.join(", ")
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
