//! The result as a table for a person: a row a finished run, written as runs finish, aligned without
//! knowing the rows to come. It must not know what writes it, nor where to.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use super::connect_text;
use settings::{Id, ROWS, Settings};

use super::model::{
    CLIENT, CaseConfig, CaseResult, Device, FORWARD, FlowResult, Node, PathEvent, PathEventKind,
    REVERSE, ResultFile, Run,
};
use super::number::{NOT_MEASURED, digits, figure, human_size};

/// Head and width of each column; a cell that is wider pushes its row, nothing is cut.
const COLUMNS: [(&str, usize); 13] = [
    ("op", 9),
    ("cq", 10),
    ("QPs", 4),
    ("size", 7),
    ("wrk", 3),
    ("Gbit/s", 7),
    ("Mmsg/s", 7),
    ("p50 µs", 7),
    ("p99 µs", 7),
    ("p99.9 µs", 8),
    ("Jain", 5),
    ("CPU s/GB", 8),
    ("limit", 5),
];
/// The first columns are words, flush left; figures are flush right.
const WORDS: usize = 2;
/// Writes rows as runs finish. `CPU s/GB` is CPU time of the sending (or reading) node's workers for 10^9 bytes of
/// payload that it sends, `limit` the share of what link and protocol allow.
#[derive(Debug)]
pub struct Table<W> {
    out: W,
    has_header: bool,
}

impl<W: Write> Table<W> {
    /// A table without rows; the header comes with the first.
    pub fn new(out: W) -> Self {
        Table {
            out,
            has_header: false,
        }
    }

    /// Adds a finished run: one row for each flow, and one of set-up alone. Those of a bidirectional case are `out` and
    /// `in`, and flows that were given names are told by them.
    ///
    /// # Errors
    /// The stream's.
    pub fn run(&mut self, config: &CaseConfig, run: &Run) -> io::Result<()> {
        if !self.has_header {
            let head = COLUMNS.map(|(head, _)| head.to_owned());
            self.line(&head, "")?;
            self.has_header = true;
        }
        let nothing = FlowResult {
            from: CLIENT.to_owned(),
            ..FlowResult::default()
        };
        let flows = match &run.flows[..] {
            [] => std::slice::from_ref(&nothing),
            flows => flows,
        };
        for (index, flow) in flows.iter().enumerate() {
            let settings = config.shown(index);
            let suffix = match (is_both_ways(config), index) {
                (false, _) => "",
                (true, 0) => " out",
                (true, _) => " in",
            };
            let mut told = vec![name(config, flow), flags(&settings, run, flow)];
            told.extend((index == 0).then(|| path_events(run)));
            told.retain(|told| !told.is_empty());
            let cells = cells(&settings, run, flow, suffix);
            self.line(&cells, &told.join(", "))?;
            if let (0, Some(connect)) = (index, &run.connect) {
                for line in connect_text::lines(config, connect) {
                    writeln!(self.out, "{line}")?;
                }
            }
        }
        self.out.flush()
    }

    /// Ends the table with a line that counts cases and runs and names the files, and one on each device that
    /// is software.
    ///
    /// # Errors
    /// The stream's.
    pub fn summary(&mut self, result: &ResultFile, files: &[&Path]) -> io::Result<()> {
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
        for text in doubtful(result).into_iter().chain(moderation(result)) {
            writeln!(self.out, "{text}")?;
        }
        for text in software(result) {
            writeln!(self.out, "{text}")?;
        }
        self.out.flush()
    }

    fn line(&mut self, cells: &[String; COLUMNS.len()], flags: &str) -> io::Result<()> {
        let mut line = String::new();
        for (index, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
            if index > 0 {
                line.push(' ');
            }
            line += &if index < WORDS {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
        }
        if !flags.is_empty() {
            line.push(' ');
            line += flags;
        }
        writeln!(self.out, "{}", line.trim_end())
    }
}

/// How many runs have rates that a worker spoilt, and what helps.
fn doubtful(result: &ResultFile) -> Option<String> {
    let spoils = |flow: &FlowResult| {
        let mut doubts = flow.window.doubts.iter();
        doubts.any(|doubt| doubt.kind.spoils_rates())
    };
    let runs = result.cases.iter().flat_map(|case| &case.runs);
    let count = runs.filter(|run| run.flows.iter().any(spoils)).count();
    (count > 0).then(|| {
        format!(
            "{count} {} a worker that missed an edge of the window, or measured less or more than asked: \
             do not trust the rate, `compare` leaves it out; measure longer (-D), or use fewer workers than cores",
            if count == 1 { "run has" } else { "runs have" },
        )
    })
}

/// Of how many messages one was timed, where it was not each.
fn moderation(result: &ResultFile) -> Option<String> {
    let timed = |case: &CaseResult| -> Vec<u32> {
        let is_timed = |run: &Run, index: usize| {
            let flow = run.flows.get(index);
            flow.is_some_and(|flow| flow.latency_ns.is_some())
        };
        let flows = 0..case.config.flows.len();
        let timed = flows.filter(|index| case.runs.iter().any(|run| is_timed(run, *index)));
        timed
            .map(|index| case.config.flow(index).signal_every)
            .collect()
    };
    let every: BTreeSet<u32> = result.cases.iter().flat_map(timed).collect();
    let every: Vec<String> = every
        .iter()
        .filter(|every| **every > 1)
        .map(u32::to_string)
        .collect();
    (!every.is_empty()).then(|| {
        let every = every.join(" or ");
        format!("latency is of one message in {every}; -Q 1 times every message")
    })
}

/// What keeps the figures from being a network adapter's: a sentence for each device, that of two nodes on one machine
/// once.
fn software(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    let devices = |node: &'_ Node| -> Vec<Device> {
        let devices = node.devices.iter();
        devices.filter(|device| device.software).cloned().collect()
    };
    let mut told = BTreeSet::new();
    let mut lines = Vec::new();
    for (number, node) in result.nodes.iter().enumerate() {
        let whose = match (number, result.nodes.len()) {
            (0, _) => String::new(),
            (_, 2) => "at the other end ".to_owned(),
            _ => format!("at {} ", node.name),
        };
        for device in devices(node) {
            let text = of_software(&device);
            if told.insert((&node.host.hostname, text.clone())) {
                lines.push(whose.clone() + &text);
            }
        }
    }
    lines.into_iter()
}

fn of_software(device: &Device) -> String {
    let name = &device.name;
    let kind = match device.library.as_str() {
        "embedded" => "the embedded software device",
        _ => "a software device",
    };
    let faults = match &device.faults {
        Some(faults) => format!(", with faults on purpose ({faults})"),
        None => String::new(),
    };
    format!("{name} is {kind}{faults}: no figure here is a network adapter's")
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

/// The size of messages, or each size with its weight.
fn sizes(settings: &Settings) -> String {
    match settings.size_mix {
        Some(_) => settings.sizes_text(),
        None => human_size(settings.size_bytes.into()),
    }
}

fn cells(
    settings: &Settings,
    run: &Run,
    flow: &FlowResult,
    suffix: &str,
) -> [String; COLUMNS.len()] {
    let totals = &flow.totals;
    let latency = flow.latency_ns.as_ref();
    let micros = |ns: Option<u64>| figure(ns.map(|ns| ns as f64 / 1000.0), digits);
    let share = flow
        .limits
        .as_ref()
        .and_then(|limits| limits.share_of_limit);
    // Settings of traffic that there is not.
    let of_traffic = |text: String| match settings.has_traffic() {
        false => NOT_MEASURED.to_owned(),
        true => text,
    };
    [
        format!("{}{suffix}", settings.op),
        of_traffic(settings.cq.to_string()),
        settings.qps.to_string(),
        of_traffic(sizes(settings)),
        of_traffic(settings.workers.to_string()),
        figure(totals.gbit_per_s, digits),
        figure(totals.mmsg_per_s, digits),
        micros(latency.map(|latency| latency.p50)),
        micros(latency.and_then(|latency| latency.p99)),
        micros(latency.and_then(|latency| latency.p99_9)),
        figure(flow.fairness.as_ref().map(|fairness| fairness.jain), |_| 3),
        figure(run.cpu_seconds_per_gb(&flow.from), digits),
        share.map_or_else(
            || NOT_MEASURED.to_owned(),
            |share| {
                let percent = share * 100.0;
                let digits = usize::from(percent < 99.95);
                format!("{percent:.digits$}%")
            },
        ),
    ]
}

/// What a reader of the row must know besides its figures.
fn flags(settings: &Settings, run: &Run, flow: &FlowResult) -> String {
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
        flags.push(format!("{errors} {}", plural_u64(errors, "error")));
    } else if settings.verify && run.complete {
        flags.push("verify ok".to_owned());
    }
    // Words of the case's id that are no column of the table.
    let usual = Settings::default();
    let words = ROWS.iter().filter(|row| row.id == Id::Word);
    flags.extend(
        words
            .filter(|row| !row.is_equal(settings, &usual))
            .map(|row| row.text(settings)),
    );
    if flow.window.warmup_steady == Some(false) {
        flags.push("unsteady".to_owned());
    }
    let mut doubts: Vec<&str> = flow.window.doubts.iter().map(|it| it.kind.name()).collect();
    doubts.dedup();
    flags.extend(doubts.into_iter().map(str::to_owned));
    // What is in flight when a window opens or closes counts for one end only; more than that is worth a word.
    if let Some(received) = &flow.received {
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

fn plural(count: usize, word: &str) -> String {
    plural_u64(count as u64, word)
}

fn plural_u64(count: u64, word: &str) -> String {
    format!("{word}{}", if count == 1 { "" } else { "s" })
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
