//! The result as a table for a person: a row a finished run, written as runs finish, aligned without knowing the
//! rows to come.

mod columns;
mod set_up;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use columns::{Column, Columns, Remark, RowOf, is_both_ways};
pub(super) use columns::{SCHEDULE, metrics};
use results::{
    model::{CLIENT, CaseConfig, FlowResult, Latency, ResultFile, Run, Window},
    text::{Mark, Screen, path, wrapped},
};
use settings::{Pattern, Settings};

use crate::judge::{
    finding::{COUNT, Finding, OF, Severity},
    findings::Findings,
};
use crate::observe::{
    Metric,
    format::counted,
    standing::{self, LeftOut, Standing},
};

/// Writes rows as runs finish.
pub struct Table<W> {
    out: W,
    screen: Screen,
    settings: Vec<Settings>,
    extra: Vec<Metric>,
    /// Known from the first run on.
    columns: Option<Columns>,
}

impl<W: Write> Table<W> {
    /// A table without rows, for flows with these settings; the header comes with the first.
    pub fn new(out: W, screen: Screen, settings: &[Settings]) -> Self {
        Table { out, screen, settings: settings.to_vec(), extra: Vec::new(), columns: None }
    }

    /// With columns of these metrics besides, which are not left out where a line is short.
    #[must_use]
    pub fn with_columns_of(self, metrics: &[Metric]) -> Self {
        Table { extra: metrics.to_vec(), ..self }
    }

    /// Adds a finished run: one row for each flow, and one of set-up alone. Those of a bidirectional case are `out` and
    /// `in`, and flows that were given names are told by them. Below flows over rails is what they move together. All flows of a pattern are one row, and those of `pairs`,
    /// of which a run is one round of many, are none. Figures that do not count stand in brackets.
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
        let nothing = FlowResult { from: CLIENT.to_owned(), ..FlowResult::default() };
        let sum = config.pattern.as_ref().map(|_| together(&run.flows));
        let flows = match (&run.flows[..], &sum) {
            ([], _) => std::slice::from_ref(&nothing),
            (_, Some(sum)) => std::slice::from_ref(sum),
            (flows, None) => flows,
        };
        for (index, flow) in flows.iter().enumerate() {
            let settings = config.shown(index);
            let mut row = RowOf::new(&settings, (run, flow), standing::of_flow(run, flow));
            if is_both_ways(config) {
                row.direction = if index == 0 { "out" } else { "in" };
            }
            let name = match config.pattern {
                Some(_) => counted(run.flows.len(), "flow"),
                None => columns::name(config, flow),
            };
            let mut row_remarks = columns::of_row(&row, &columns);
            if index == 0 {
                row_remarks.extend(columns::of_path(run));
            }
            self.row(&columns, &row, &name, &row_remarks)?;
        }
        let over_rails = match &sum {
            Some(_) => Vec::new(),
            None => over_rails(config, run),
        };
        for (place, moved, rails) in &over_rails {
            let settings = config.shown(*place);
            let row = RowOf::new(&settings, (run, moved), standing::of_flow(run, moved));
            let flow = config.flows[*place].over_rails().map_or("", |(flow, _)| flow);
            let name = format!("{flow}, {}", counted(*rails, "rail"));
            self.row(&columns, &row, &name, &columns::of_row(&row, &columns))?;
        }
        self.columns = Some(columns);
        self.out.flush()
    }

    fn head(&mut self, config: &CaseConfig, run: &Run) -> io::Result<Columns> {
        let settings = std::mem::take(&mut self.settings);
        let shown = (&settings[..], &self.extra[..]);
        let columns = Columns::new(shown, (config, run), self.screen.columns);
        if !columns.same.is_empty() {
            self.paragraph(Mark::Plain, &columns.same)?;
        }
        let heads =
            columns.columns.iter().map(|it| padded(it, &it.head)).collect::<Vec<_>>().join(" ");
        writeln!(self.out, "{}", heads.trim_end())?;
        Ok(columns)
    }

    /// Ends the table: steps of set-up; then what is said of the result: what searches found, what is to be known of all figures,
    /// what is best, what looks wrong and what helps, and the files.
    ///
    /// # Errors
    /// The stream's.
    pub fn summary(
        &mut self,
        result: &ResultFile,
        report: &Findings,
        files: &[&Path],
    ) -> io::Result<()> {
        let has_columns = self.columns.as_ref().is_some_and(|it| it.are_of_set_up);
        for case in &result.cases {
            for connect in case.runs.iter().filter_map(|run| run.connect.as_ref()) {
                writeln!(self.out, "{}", case.id)?;
                for line in set_up::set_up_lines(&case.config, connect, has_columns) {
                    writeln!(self.out, "{line}")?;
                }
            }
        }
        for (mark, text) in in_short(&report.findings) {
            self.paragraph(mark, &text)?;
        }
        let left_out =
            LeftOut::new(result.cases.iter().flat_map(|case| &case.runs).map(standing::of_run));
        let [cases, all] = [(result.cases.len(), "case"), (left_out.runs, "run")]
            .map(|(count, word)| counted(count, word));
        let reasons = left_out.reasons().join(", ");
        // Rounds of a check measure nothing: paths count, and are told of.
        let is_check = result.cases.iter().any(|case| case.config.check.is_some());
        let mut count = match left_out.count() {
            _ if is_check => format!("{cases}, {all}"),
            0 => format!("{cases}, {all}, all count"),
            1 => format!("{cases}, {all}; 1 does not count ({reasons})"),
            left => format!("{cases}, {all}; {left} do not count ({reasons})"),
        };
        if !files.is_empty() {
            count += &format!("; written to {}", files_together(files));
        }
        self.paragraph(Mark::Plain, &count)?;
        self.out.flush()
    }

    /// Text in lines that are as long as the screen is wide.
    fn paragraph(&mut self, mark: Mark, text: &str) -> io::Result<()> {
        for line in wrapped(text, self.screen.columns.saturating_add(1)) {
            writeln!(self.out, "{}", self.screen.painted(mark, &line))?;
        }
        Ok(())
    }

    /// A row: what was measured, its figures, its name, and what is to be known of it: all of it where there is room, else its
    /// name and the gravest with the number of others, or that alone.
    fn row(
        &mut self,
        columns: &Columns,
        row: &RowOf<'_>,
        name: &str,
        row_remarks: &[Remark],
    ) -> io::Result<()> {
        let at = columns.columns.iter().position(Column::is_figure);
        let (measured, figures) = columns.columns.split_at(at.unwrap_or(columns.columns.len()));
        let [mut line, figures] = [measured, figures].map(|part| -> String {
            part.iter().map(|column| padded(column, &column.cell(row)) + " ").collect()
        });
        match row.standing {
            Standing::Counts => line += &figures,
            _ => line = bracketed(line, figures.trim_end()),
        }
        line.truncate(line.trim_end().len());
        let of_name = Some((Mark::Plain, name.to_owned())).filter(|_| !name.is_empty());
        let mut remarks: Vec<Remark> = of_name.into_iter().chain(row_remarks.to_vec()).collect();
        let room = self.screen.columns.saturating_sub(line.chars().count());
        if length(&remarks) > room {
            remarks = shortened(name, row_remarks, room).unwrap_or(remarks);
        }
        if !remarks.is_empty() {
            let painted = remarks.iter().map(|(mark, text)| self.screen.painted(*mark, text));
            line += " ";
            line += &painted.collect::<Vec<_>>().join(", ");
        }
        writeln!(self.out, "{line}")
    }
}

/// How much of a line remarks take, with what is before and between them.
fn length(remarks: &[Remark]) -> usize {
    remarks.iter().map(|(_, text)| text.chars().count() + 2).sum::<usize>().saturating_sub(1)
}

/// The name of a row, if need be without the ends of its flow, and the gravest of its remarks for all of them, or their number;
/// the gravest alone where there is no room for a name. `None` of a name without remarks that has no room.
fn shortened(name: &str, row_remarks: &[Remark], room: usize) -> Option<Vec<Remark>> {
    let in_order = row_remarks.iter().enumerate();
    let gravest = in_order.max_by_key(|(place, (mark, _))| (*mark, Reverse(*place)));
    let for_all = gravest.map(|(_, (mark, text))| match row_remarks.len() - 1 {
        0 => (*mark, text.clone()),
        others => (*mark, format!("{text} +{others}")),
    });
    let first_word = name.split(' ').next().unwrap_or_default();
    for part in [name, first_word].into_iter().filter(|part| !part.is_empty()) {
        let named = [(Mark::Plain, part.to_owned())].into_iter().chain(for_all.clone());
        let remarks: Vec<Remark> = named.collect();
        if length(&remarks) <= room {
            return Some(remarks);
        }
    }
    let (mark, text) = for_all?;
    let numbered = (mark, format!("{first_word} +{}", row_remarks.len()));
    let has_room = !first_word.is_empty() && length(std::slice::from_ref(&numbered)) <= room;
    Some(vec![if has_room { numbered } else { (mark, text) }])
}

fn padded(column: &Column, cell: &str) -> String {
    let width = column.width;
    if column.is_word { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
}

/// A line that goes on with figures in brackets: the first bracket takes the space before them.
fn bracketed(mut line: String, figures: &str) -> String {
    let start = figures.len() - figures.trim_start().len();
    line += &figures[..start];
    line.pop();
    format!("{line}({})", &figures[start..])
}

/// Findings in a few sentences: the notes, the gravest problem, and the names of the other problems. One that says where to
/// look stands first.
fn in_short(findings: &[Finding]) -> Vec<(Mark, String)> {
    let (problems, notes): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.is_problem());
    let mut sentences: Vec<(Mark, String)> = notes
        .iter()
        .map(|note| match note.severity {
            Severity::Caveat => (Mark::Plain, note.text.clone()),
            _ => (Mark::Good, note.text.clone()),
        })
        .collect();
    if let Some((gravest, others)) = problems.split_first() {
        let place = if gravest.names_place() { 0 } else { sentences.len() };
        sentences.insert(place, (Mark::Doubtful, gravest.text.clone()));
        let names: Vec<String> = others.iter().map(|problem| name(problem)).collect();
        if !names.is_empty() {
            sentences.push((Mark::Doubtful, format!("Also: {}.", names.join("; "))));
        }
    }
    sentences
}

/// `drift (2 of 6)`; the whole sentence of what is not counted.
fn name(finding: &Finding) -> String {
    match [COUNT, OF].map(|key| finding.data.get(key)) {
        [Some(count), Some(of)] => format!("{} ({count} of {of})", finding.id.replace('_', " ")),
        _ => finding.text.trim_end_matches('.').to_owned(),
    }
}

/// Names of files, those of one stem as one: `a.json, .csv`.
fn files_together(files: &[&Path]) -> String {
    let mut names: Vec<String> = files.iter().map(|file| path(file)).collect();
    let stem = names
        .first()
        .map_or("", |first| first.rsplit_once('.').map_or(first, |it| it.0))
        .to_owned();
    for other in names.iter_mut().skip(1) {
        *other = other.strip_prefix(&stem).unwrap_or(other).to_owned();
    }
    names.join(", ")
}

/// Of more flows the latencies are not put together: that would take longer than the run's other figures.
const MOST_HISTOGRAMS: usize = 256;

/// What the flows of a run that go over several rails moved together, each with the place of its first flow and how many they are.
fn over_rails(config: &CaseConfig, run: &Run) -> Vec<(usize, FlowResult, usize)> {
    let mut flows: BTreeMap<&str, (usize, Vec<FlowResult>)> = BTreeMap::new();
    for (place, (flow, moved)) in config.flows.iter().zip(&run.flows).enumerate() {
        if let Some((name, _)) = flow.over_rails() {
            let (_, known) = flows.entry(name).or_insert_with(|| (place, Vec::new()));
            known.push(moved.clone());
        }
    }
    let mut sums: Vec<_> = flows
        .into_values()
        .filter(|(_, flows)| flows.len() > 1)
        .map(|(place, flows)| {
            let first = &flows[0];
            let (from, to) = (first.from.clone(), first.to.clone());
            (place, FlowResult { from, to, ..together(&flows) }, flows.len())
        })
        .collect();
    sums.sort_by_key(|(place, ..)| *place);
    sums
}

/// What these flows moved together.
fn together(flows: &[FlowResult]) -> FlowResult {
    let few = (flows.len() <= MOST_HISTOGRAMS).then_some(flows);
    FlowResult {
        latency_ns: few.and_then(|few| Latency::merged(few, |flow| flow.latency_ns.as_ref())),
        notice_ns: few.and_then(|few| Latency::merged(few, |flow| flow.notice_ns.as_ref())),
        window: window(flows),
        ..FlowResult::together(flows)
    }
}

/// What makes figures doubtful, each kind once.
fn window(flows: &[FlowResult]) -> Window {
    let windows = flows.iter().map(|flow| &flow.window);
    let mut seen = BTreeSet::new();
    let doubts = windows.clone().flat_map(|window| &window.doubts);
    Window {
        warmup_steady: windows
            .clone()
            .any(|window| window.warmup_steady == Some(false))
            .then_some(false),
        doubts: doubts.filter(|doubt| seen.insert(doubt.kind)).cloned().collect(),
        ..Window::default()
    }
}

#[cfg(test)]
mod tests;
