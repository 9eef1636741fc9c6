//! `rocebench send`: what is asked for, checked before anything is connected; a bar on a terminal and a line for each
//! file that is in its place; and how it went.

use std::{
    ffi::{OsStr, OsString},
    io::IsTerminal as _,
    path::{Path, PathBuf},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget};
use serde::Serialize;

use crate::{
    cli::{
        args::{DEFAULT_PORT, SendArgs},
        ends::{check_one_device, resources, server, token},
        progress::bar,
        signals::stop_flag_or_unread,
        terminal::{Failure, print, print_json, say, start_logging},
    },
    transfer::{
        files::{Source, SourceError, sources},
        sender::{FileReport, FileTiming, SendObserver, SendOptions, send_files},
    },
};
use plan::HostPort;
use protocol::{failure::RunFailure, message::ChannelSettings};

/// Longer than a benchmark's, whose figures shall show every loss: a transfer is not to end because a host was busy for
/// half a second. That a peer is dead the control connection tells sooner.
const TIMEOUT: u8 = 16;

/// What became of all files, as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    files: &'a [FileDocument],
    /// Why the rest was not sent.
    failure: Option<String>,
}

/// Sends the files.
///
/// # Errors
/// Bad input, or what ended the transfer.
pub fn run(args: SendArgs) -> Result<(), Failure> {
    start_logging(args.speech.verbose, args.speech.quiet);
    check_one_device(&args.endpoint, "send")?;
    let (paths, host) = split(&args.words)?;
    let Some((host, port)) = server(Some(host), args.connection.port)? else {
        return Err(Failure::bad_input("no HOST"));
    };
    let files = sources(&paths, args.chunk.bytes()).map_err(unreadable)?;
    let resources = resources(args.endpoint, &[])?;
    let usual = settings::Settings::default();
    let options = SendOptions {
        host,
        port,
        approach: args.connection.approach(),
        token: token(args.connection.token)?,
        resources,
        settings: ChannelSettings {
            qps: args.qps,
            chunk_bytes: args.chunk.bytes(),
            window: args.window,
            mtu_bytes: args.mtu.map(settings::Mtu::bytes),
            timeout: args.timeout.unwrap_or(TIMEOUT),
            retry_cnt: args.retry_cnt.unwrap_or(usual.retry_cnt),
        },
        force: args.force,
        against_tcp: args.against.is_some(),
        files,
    };
    let stop = stop_flag_or_unread().map_err(Failure::failed)?;
    let mut show = Show::new(&options.files, args.speech.quiet, args.json);
    let sent = send_files(&options, &stop, &mut show);
    let (documents, unwritten) = (std::mem::take(&mut show.documents), show.unwritten.take());
    drop(show);
    if args.json {
        print_json(&Document {
            schema_version: 1,
            files: &documents,
            failure: sent.as_ref().err().map(ToString::to_string),
        })?;
    }
    sent.map_err(|failure| failed(&failure, documents.len(), options.files.len()))?;
    unwritten.map_or(Ok(()), Err)
}

fn failed(failure: &RunFailure, sent: usize, total: usize) -> Failure {
    let left = match total - sent {
        0 => String::new(),
        1 if total == 1 => String::new(),
        left => format!("{left} of {total} files were not sent: "),
    };
    let text = format!("{left}{failure}");
    Failure::new(text, failure.bad_input, failure.hint.clone())
}

fn unreadable(error: SourceError) -> Failure {
    let hint = error.hint();
    Failure::bad_input(error).with_hint(hint)
}

/// The files, and HOST, which is the last word.
fn split(words: &[OsString]) -> Result<(Vec<PathBuf>, HostPort), Failure> {
    let usage = "rocebench send FILE... HOST";
    let Some((last, files)) = words.split_last() else {
        return Err(Failure::bad_input("nothing to send").with_hint(usage));
    };
    if words.iter().any(|word| word.is_empty()) {
        let text = "one of the words is empty: is a variable of the shell empty?";
        return Err(Failure::bad_input(text).with_hint(usage));
    }
    let shown = last.to_string_lossy();
    if Path::new(last).exists() {
        return Err(Failure::bad_input(format!(
            "HOST is missing: the last word, {shown}, is a file"
        ))
        .with_hint(format!(
            "{usage}: HOST comes last; for a host of that name write {shown}:{}",
            DEFAULT_PORT
        )));
    }
    let host: HostPort = OsStr::to_str(last).unwrap_or_default().parse().map_err(|error| {
        Failure::bad_input(format!("HOST, the last word: {error}")).with_hint(usage)
    })?;
    if files.is_empty() {
        return Err(Failure::bad_input(format!("nothing to send: there is no file {shown}"))
            .with_hint(usage));
    }
    Ok((files.iter().map(PathBuf::from).collect(), host))
}

const BAR: &str =
    "{prefix} {bar:20} {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta} left {msg}";

/// How often the bar is drawn while nothing moves.
const REDRAW: Duration = Duration::from_millis(200);

/// What became of one file, as JSON has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct FileDocument {
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

/// What a transfer shows: a bar on a terminal, and a line for each file that is in its place.
struct Show<'a> {
    files: &'a [Source],
    quiet: bool,
    json: bool,
    bar: ProgressBar,
    documents: Vec<FileDocument>,
    /// What stdout said when it was last written to.
    unwritten: Option<Failure>,
}

impl Show<'_> {
    /// For these files; with `json` no lines, for a document comes at the end.
    fn new(files: &[Source], quiet: bool, json: bool) -> Show<'_> {
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
    use crate::transfer::files::Digest;
    use results::sample::has;

    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_last_word_is_the_host() {
        let (files, host) = split(&words(&["a", "b/c", "node1:7"])).unwrap();
        assert_eq!(files, [Path::new("a"), Path::new("b/c")]);
        assert_eq!(host.to_string(), "node1:7");
    }

    #[test]
    fn a_forgotten_host_is_an_error() {
        let is_file = "the last word, /dev/null, is a file";
        for (given, says) in [
            (&["a", "/dev/null"][..], is_file),
            (&["/dev/null"], is_file),
            (&["node1"], "there is no file node1"),
            (&["a", "./absent"], "HOST, the last word: `./absent`"),
        ] {
            let failure = split(&words(given)).unwrap_err();
            has(failure.text(), [says, "FILE... HOST"]);
        }
    }

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
        let alone = "a b  1000000000 bytes  2.00 s (0.50 s of them syncing)  4.00 Gb/s  16 QPs\n";
        assert_eq!(line(&report), alone);
        report.tcp = Some(timing(1.0));
        let beside_tcp = "plain TCP: 1.00 s (0.50 s of them syncing)  8.00 Gb/s; RDMA was 2.00 times slower than TCP\n";
        assert!(line(&report).ends_with(beside_tcp), "{}", line(&report));
        assert_eq!(report.ratio(), Some(0.5));
    }
}
