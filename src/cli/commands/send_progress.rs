//! What a transfer shows: a bar on a terminal, and a line for each file that is in its place.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use serde::Serialize;

use crate::transfer::files::Source;
use crate::transfer::sender::{FileReport, FileTiming, SendObserver};

use crate::cli::terminal::errors::{Failure, say};
use crate::cli::terminal::progress::bar;
use crate::cli::terminal::stdout::print;

const BAR: &str =
    "{prefix} {bar:20} {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta} left {msg}";

/// How often the bar is drawn while nothing moves.
const REDRAW: Duration = Duration::from_millis(200);

/// What became of one file, as JSON has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::cli) struct FileDocument {
    name: String,
    bytes: u64,
    digest: String,
    qps: u32,
    rdma: FileTiming,
    tcp: Option<FileTiming>,
    rdma_to_tcp_ratio: Option<f64>,
}

impl From<&FileReport> for FileDocument {
    fn from(report: &FileReport) -> Self {
        FileDocument {
            name: report.name.clone(),
            bytes: report.bytes,
            digest: report.digest.to_string(),
            qps: report.qps,
            rdma: report.rdma,
            tcp: report.tcp,
            rdma_to_tcp_ratio: report.ratio(),
        }
    }
}

pub(in crate::cli) struct Show<'a> {
    files: &'a [Source],
    quiet: bool,
    json: bool,
    bar: ProgressBar,
    pub(in crate::cli) documents: Vec<FileDocument>,
    /// What stdout said when it was last written to.
    pub(in crate::cli) unwritten: Option<Failure>,
}

impl Show<'_> {
    /// For these files; with `json` no lines, for a document comes at the end.
    pub(in crate::cli) fn new(files: &[Source], quiet: bool, json: bool) -> Show<'_> {
        let wants_bar = !quiet && std::io::stderr().is_terminal();
        let target =
            if wants_bar { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Show { files, quiet, json, bar: bar(target, BAR), documents: Vec::new(), unwritten: None }
    }
}

impl SendObserver for Show<'_> {
    fn started(&mut self, index: usize, size_bytes: u64, over_tcp: bool) {
        let name = self.files.get(index).map_or("", |file| &file.name);
        let way = if over_tcp { " over TCP" } else { "" };
        let place = format!("[{}/{}] {name}{way}", index + 1, self.files.len());
        self.bar.reset();
        self.bar.set_length(size_bytes);
        self.bar.set_prefix(place);
        self.bar.set_message("");
        self.bar.enable_steady_tick(REDRAW);
    }

    fn moved(&mut self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    fn syncing(&mut self) {
        self.bar.set_position(self.bar.length().unwrap_or(0));
        self.bar.set_message("(the receiver syncs)");
    }

    fn finished(&mut self, report: &FileReport) {
        self.documents.push(report.into());
        if self.json || self.unwritten.is_some() {
            return;
        }
        let bar = self.bar.clone();
        self.unwritten = bar.suspend(|| print(&line(report)).err());
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| say(&format!("rocebench: note: {text}")));
        }
    }
}

impl Drop for Show<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `disk.img  1073741824 bytes  1.23 s  6.98 Gb/s  16 QPs`, and how TCP compares.
fn line(report: &FileReport) -> String {
    let FileReport { name, bytes, qps, .. } = report;
    let mut text = format!("{name}  {bytes} bytes  {}  {qps} QPs\n", timing_text(&report.rdma));
    if let (Some(tcp), Some(ratio)) = (&report.tcp, report.ratio()) {
        text += &format!("  plain TCP: {}; RDMA was {}\n", timing_text(tcp), compared(ratio));
    }
    text
}

fn timing_text(timing: &FileTiming) -> String {
    format!(
        "{:.2} s ({:.2} s of them syncing)  {:.2} Gb/s",
        timing.seconds, timing.sync_seconds, timing.gbit_per_s
    )
}

/// How fast RDMA was, from its rate over TCP's.
fn compared(ratio: f64) -> String {
    if ratio >= 1.0 {
        format!("{ratio:.2} times faster than TCP")
    } else {
        format!("{:.2} times slower than TCP", 1.0 / ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::files::Digest;

    #[test]
    fn a_line_says_how_long_and_how_fast() {
        let timing = |seconds| FileTiming { seconds, sync_seconds: 0.5, gbit_per_s: 8.0 / seconds };
        let mut report = FileReport {
            name: "a b".into(),
            bytes: 1_000_000_000,
            digest: Digest::default(),
            rdma: timing(2.0),
            qps: 16,
            tcp: None,
        };
        let told = "a b  1000000000 bytes  2.00 s (0.50 s of them syncing)  4.00 Gb/s  16 QPs\n";
        assert_eq!(line(&report), told);
        report.tcp = Some(timing(1.0));
        let told = "plain TCP: 1.00 s (0.50 s of them syncing)  8.00 Gb/s; RDMA was 2.00 times slower than TCP\n";
        assert!(line(&report).ends_with(told), "{}", line(&report));
        assert_eq!(report.ratio(), Some(0.5));
    }
}
