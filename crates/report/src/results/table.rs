//! The result as a table for a person: a row a finished run, written as runs finish, aligned without
//! knowing the rows to come. It must not know what writes it, nor where to.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use super::connect_text;
use settings::{Id, ROWS, Settings};

use super::model::{CaseConfig, CaseResult, Direction, PathEvent, PathEventKind, ResultFile, Run};
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
/// Writes rows as runs finish. `CPU s/GB` is CPU time of the sending (or reading) workers for 10^9 bytes of
/// payload, `limit` the share of what link and protocol allow.
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

    /// Adds a finished run: one row, or two (`out` and `in`) of a bidirectional one.
    ///
    /// # Errors
    /// The stream's.
    pub fn run(&mut self, config: &CaseConfig, run: &Run) -> io::Result<()> {
        if !self.has_header {
            let head = COLUMNS.map(|(head, _)| head.to_owned());
            self.line(&head, "")?;
            self.has_header = true;
        }
        let (suffix, reverse) = match &run.reverse {
            Some(reverse) => (" out", Some(reverse)),
            None => ("", None),
        };
        let forward = cells(config, &run.forward, suffix);
        let told = [flags(config, run, &run.forward), path_events(run)];
        let told: Vec<_> = told.into_iter().filter(|told| !told.is_empty()).collect();
        self.line(&forward, &told.join(", "))?;
        if let Some(connect) = &run.connect {
            for line in connect_text::lines(config, connect) {
                writeln!(self.out, "{line}")?;
            }
        }
        if let Some(reverse) = reverse {
            let cells = cells(config, reverse, " in");
            self.line(&cells, &flags(config, run, reverse))?;
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
    let spoils = |direction: &Direction| {
        let mut doubts = direction.window.doubts.iter();
        doubts.any(|doubt| doubt.kind.spoils_rates())
    };
    let runs = result.cases.iter().flat_map(|case| &case.runs);
    let count = runs
        .filter(|run| spoils(&run.forward) || run.reverse.as_ref().is_some_and(spoils))
        .count();
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
    let timed = |case: &&CaseResult| case.runs.iter().any(|run| run.forward.latency_ns.is_some());
    let cases = result.cases.iter().filter(timed);
    let every: BTreeSet<u32> = cases.map(|case| case.config.signal_every).collect();
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

/// What keeps the figures from being a network adapter's: a sentence for each end.
fn software(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    let peer = result.peer.as_ref();
    [(Some(&result.host), ""), (peer, "at the other end ")]
        .into_iter()
        .filter_map(|(host, whose)| Some((host?.device.as_ref()?, whose)))
        .filter(|(device, _)| device.software)
        .map(|(device, whose)| {
            let name = &device.name;
            let kind = match device.library.as_str() {
                "embedded" => "the embedded software device",
                _ => "a software device",
            };
            let faults = match &device.faults {
                Some(faults) => format!(", with faults on purpose ({faults})"),
                None => String::new(),
            };
            format!("{whose}{name} is {kind}{faults}: no figure here is a network adapter's")
        })
}

fn cells(config: &CaseConfig, direction: &Direction, suffix: &str) -> [String; COLUMNS.len()] {
    let totals = &direction.totals;
    let latency = direction.latency_ns.as_ref();
    let micros = |ns: Option<u64>| figure(ns.map(|ns| ns as f64 / 1000.0), digits);
    let cpu_seconds_per_gb = direction
        .cpu_seconds()
        .filter(|_| totals.bytes > 0)
        .map(|seconds| seconds / (totals.bytes as f64 / 1e9));
    let share = direction
        .limits
        .as_ref()
        .and_then(|limits| limits.share_of_limit);
    // Settings of traffic that there is not.
    let of_traffic = |text: String| match config.has_traffic() {
        false => NOT_MEASURED.to_owned(),
        true => text,
    };
    [
        format!("{}{suffix}", config.op),
        of_traffic(config.cq.to_string()),
        config.qps.to_string(),
        of_traffic(human_size(config.size_bytes.into())),
        of_traffic(config.workers.to_string()),
        figure(totals.gbit_per_s, digits),
        figure(totals.mmsg_per_s, digits),
        micros(latency.map(|latency| latency.p50)),
        micros(latency.and_then(|latency| latency.p99)),
        micros(latency.and_then(|latency| latency.p99_9)),
        figure(
            direction.fairness.as_ref().map(|fairness| fairness.jain),
            |_| 3,
        ),
        figure(cpu_seconds_per_gb, digits),
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
fn flags(config: &CaseConfig, run: &Run, direction: &Direction) -> String {
    let mut flags = Vec::new();
    if run.interrupted {
        flags.push("interrupted".to_owned());
    } else if run.failure.is_some() {
        flags.push("failed".to_owned());
    } else if !run.complete {
        flags.push("incomplete".to_owned());
    }
    let errors = direction.totals.errors;
    if errors > 0 {
        flags.push(format!("{errors} {}", plural_u64(errors, "error")));
    } else if config.verify && run.complete {
        flags.push("verify ok".to_owned());
    }
    // Words of the case's id that are no column of the table.
    let usual = Settings::default();
    let words = ROWS.iter().filter(|row| row.id == Id::Word);
    flags.extend(
        words
            .filter(|row| !row.is_equal(config, &usual))
            .map(|row| row.text(config)),
    );
    if direction.window.warmup_steady == Some(false) {
        flags.push("unsteady".to_owned());
    }
    let mut doubts: Vec<&str> = direction
        .window
        .doubts
        .iter()
        .map(|it| it.kind.name())
        .collect();
    doubts.dedup();
    flags.extend(doubts.into_iter().map(str::to_owned));
    // What is in flight when a window opens or closes counts for one end only; more than that is worth a word.
    if let Some(receiver) = &run.receiver {
        let received = receiver.share_of(direction);
        if received.is_finite() && (received - 1.0).abs() > 0.02 {
            flags.push(format!("received {:.1}%", received * 100.0));
        }
    }
    if run.run > 1 {
        flags.push(format!("run {}", run.run));
    }
    flags.join(", ")
}

/// What packets met on their way, by the devices of both ends. Congestion control at work is no news.
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
mod tests {
    use super::super::model::{CaseResult, Doubt, DoubtKind};
    use super::super::sample;
    use super::*;

    fn table(cases: &[CaseResult]) -> String {
        let mut out = Vec::new();
        let mut table = Table::new(&mut out);
        for case in cases {
            for run in &case.runs {
                table.run(&case.config, run).unwrap();
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_aligned_below_one_header() {
        insta::assert_snapshot!(table(&sample::result().cases), @r"
        op        cq          QPs    size wrk  Gbit/s  Mmsg/s  p50 µs  p99 µs p99.9 µs  Jain CPU s/GB limit
        send      shared        2  64 KiB   1  93.323   0.178   5.503  10.895   10.991 0.990   0.0750 95.1%
        write out shared        2  64 KiB   1  0.0393 0.00007       -       -        - 0.990   178.02     - interrupted, event, cm, receiver not ready 3
        write in  shared        2  64 KiB   1  0.0393 0.00007   5.503  10.895   10.991 0.990   178.02 95.1% interrupted, event, cm
        ");
    }

    #[test]
    fn normal_rows_fit_110_columns() {
        let mut cases = sample::result().cases;
        cases.truncate(1);
        cases[0].config.op = settings::Op::Write.into();
        cases[0].config.cq = settings::CqMode::PerWorker;
        cases[0].config.qps = 4096;
        cases[0].config.verify = true;
        let run = &mut cases[0].runs[0];
        run.reverse = Some(run.forward.clone());
        let latency = run.forward.latency_ns.as_mut().unwrap();
        (latency.p50, latency.p99, latency.p99_9) = (999_999, Some(12_345_678), Some(123_456_789));
        run.forward.totals.gbit_per_s = Some(399.999);
        for line in table(&cases).lines() {
            assert!(line.chars().count() <= 110, "{line}");
        }
    }

    #[test]
    fn flags_say_what_the_figures_do_not() {
        let case = &sample::result().cases[0];
        let flags_of = |change: fn(&mut CaseConfig, &mut Run)| {
            let (mut config, mut run) = (case.config.clone(), case.runs[0].clone());
            change(&mut config, &mut run);
            flags(&config, &run, &run.forward)
        };
        assert_eq!(flags_of(|_, _| ()), "");
        assert_eq!(flags_of(|config, _| config.verify = true), "verify ok");
        let adaptive = flags_of(|config, _| config.poll = settings::PollMode::Adaptive);
        assert_eq!(adaptive, "adaptive");
        let by_cm = flags_of(|config, _| config.connect = settings::ConnectMode::Cm);
        assert_eq!(by_cm, "cm");
        assert_eq!(flags_of(|_, run| run.complete = false), "incomplete");
        assert_eq!(flags_of(|_, run| run.run = 3), "run 3");
        let unsteady = flags_of(|_, run| run.forward.window.warmup_steady = Some(false));
        assert_eq!(unsteady, "unsteady");
        let doubtful = flags_of(|_, run| {
            run.forward.window.doubts.push(Doubt {
                kind: DoubtKind::EdgeMissed,
                message: String::new(),
            });
            let start = run.forward.window.doubts[0].clone();
            run.forward.window.doubts.push(start);
        });
        assert_eq!(doubtful, "edge missed", "once for both edges");
        let mismatch = flags_of(|config, run| {
            config.verify = true;
            run.complete = false;
            run.failure = Some(Default::default());
            run.forward.totals.errors = 1;
        });
        assert_eq!(mismatch, "failed, 1 error");
        let lost = flags_of(|_, run| run.receiver.as_mut().unwrap().messages /= 2);
        assert_eq!(lost, "received 50.0%");
        let longer = flags_of(|_, run| {
            let receiver = run.receiver.as_mut().unwrap();
            receiver.messages *= 2;
            receiver.window_seconds = Some(2.0 * run.forward.window.seconds);
        });
        assert_eq!(longer, "", "at the same rate for longer");
    }

    #[test]
    fn a_run_without_figures_shows_none() {
        let (config, run) = (CaseConfig::default(), Run::default());
        let row = cells(&config, &run.forward, "");
        assert!(row[5..].iter().all(|cell| cell == NOT_MEASURED), "{row:?}");
    }

    #[test]
    fn the_summary_counts_and_names_the_files() {
        let mut out = Vec::new();
        let result = sample::result();
        let files = [Path::new("results/a.json"), Path::new("results/a.csv")];
        Table::new(&mut out).summary(&result, &files).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "2 cases, 2 runs, 1 not complete; written to results/a.json, .csv\n\
             latency is of one message in 4; -Q 1 times every message\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn runs_that_are_not_to_be_trusted_are_counted_below() {
        let mut result = sample::result();
        for case in &mut result.cases {
            case.config.signal_every = 1;
        }
        let mut doubt = |kind| {
            let mut out = Vec::new();
            let doubts = &mut result.cases[0].runs[0].forward.window.doubts;
            doubts.push(Doubt {
                kind,
                message: String::new(),
            });
            Table::new(&mut out).summary(&result, &[]).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(doubt(DoubtKind::Drift).lines().count(), 1);
        let text = doubt(DoubtKind::WindowLength);
        assert!(text.contains("\n1 run has a worker that missed"), "{text}");
    }

    #[test]
    fn software_devices_are_marked_below() {
        let summary = |result: &ResultFile| {
            let mut out = Vec::new();
            Table::new(&mut out).summary(result, &[]).unwrap();
            String::from_utf8(out).unwrap()
        };
        let mut result = sample::result();
        for case in &mut result.cases {
            case.config.signal_every = 1;
        }
        assert_eq!(summary(&result).lines().count(), 1);
        let device = result.host.device.as_mut().unwrap();
        (device.software, device.library) = (true, "embedded".to_owned());
        device.name = "soft0".to_owned();
        result.peer = Some(result.host.clone());
        let peer = result
            .peer
            .as_mut()
            .and_then(|peer| peer.device.as_mut())
            .unwrap();
        (peer.name, peer.library, peer.faults) = ("rxe0".to_owned(), "libibverbs".to_owned(), None);
        let text = summary(&result);
        let marks: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            marks,
            [
                "soft0 is the embedded software device, with faults on purpose (seed=7,drop=0.05): no figure here is a \
                 network adapter's",
                "at the other end rxe0 is a software device: no figure here is a network adapter's",
            ]
        );
    }
}
