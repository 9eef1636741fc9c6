//! Small parts of results with their fields in one line, results with some values changed, and what texts have, for tests.

use hdrhistogram::Histogram;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::*;

/// The same with other values at places of its JSON: `flows/0/totals/errors=1; complete=false`. A value that is no JSON is a
/// text. What is not there is not changed but fails.
#[track_caller]
pub fn with<T: Serialize + DeserializeOwned>(of: &T, changes: &str) -> T {
    let mut json = serde_json::to_value(of).unwrap();
    for change in changes.split("; ") {
        let (place, text) = change.split_once('=').expect("place=value");
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let old = json.pointer_mut(&format!("/{place}"));
        *old.unwrap_or_else(|| panic!("there is no {place}")) = value;
    }
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{changes}: {error}"))
}

/// The rows of a table of cases: lines of cells between bars.
pub fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    table.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let cells: Vec<&str> = line.splitn(N, " |").map(str::trim).collect();
        cells.try_into().unwrap_or_else(|_| panic!("{line}"))
    })
}

pub fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The text has all of these words.
#[track_caller]
pub fn has<const N: usize>(text: impl AsRef<str>, words: [&str; N]) {
    let text = text.as_ref();
    for words in words {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
}

/// Settings that are written as `qps=4 op=write`.
pub fn from_words<'a, T: FromIterator<(&'a str, &'a str)>>(words: &'a str) -> T {
    words.split(' ').filter_map(|word| word.split_once('=')).collect()
}

pub fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The text starts with these words.
#[track_caller]
pub fn starts(text: impl AsRef<str>, words: &str) {
    let text = text.as_ref();
    assert!(text.starts_with(words), "no `{words}` before: {text}");
}

pub fn fairness(jain: f64, min_share: f64, max_share: f64) -> Option<Fairness> {
    Some(Fairness { jain, min_share, max_share, starved: Vec::new() })
}

pub fn limits(link: f64, protocol_efficiency: f64, share: Option<f64>) -> Option<Limits> {
    Some(Limits { link_gbit_per_s: link, protocol_efficiency, share_of_limit: share })
}

pub fn window(seconds: f64) -> Window {
    Window { seconds, ..Window::default() }
}

pub fn doubt(kind: DoubtKind) -> Doubt {
    Doubt { kind, message: String::new() }
}

pub fn load_of(verdict: LoadVerdict) -> Option<Load> {
    Some(Load { verdict, ..Load::default() })
}

/// QPs over time, in intervals of so many seconds.
pub fn qp_timeline(interval_seconds: f64, messages: Vec<Vec<u64>>) -> Option<QpTimeline> {
    let intervals = messages.first().map_or(0, Vec::len);
    let ends = (1..=intervals).map(|end| end as f64 * interval_seconds);
    Some(QpTimeline { interval_seconds, at_seconds: ends.collect(), messages })
}

/// Of these times, to so many digits; with its distribution or without.
pub fn latency(times_ns: &[u64], digits: u8, is_whole: bool) -> Option<Latency> {
    let mut latency = times(digits, times_ns.iter().map(|ns| (*ns, 1)))?;
    latency.histogram = latency.histogram.filter(|_| is_whole);
    Some(latency)
}

/// Of so many of each of these times, to so many digits.
pub fn times(digits: u8, counts: impl Iterator<Item = (u64, u64)>) -> Option<Latency> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, digits).unwrap();
    counts.for_each(|(ns, count)| histogram.saturating_record_n(ns, count));
    Latency::from_histogram(&histogram, 0)
}

pub fn qp(index: u32, bytes: u64) -> QpResult {
    QpResult { index, bytes, ..QpResult::default() }
}

pub fn run(flows: Vec<FlowResult>) -> Run {
    Run { run: 1, complete: true, flows, ..Run::default() }
}

pub fn case(runs: Vec<Run>) -> CaseResult {
    CaseResult { runs, ..CaseResult::default() }
}

pub fn cases(cases: Vec<CaseResult>) -> ResultFile {
    ResultFile { cases, ..ResultFile::default() }
}

pub fn node(name: &str, hostname: &str, devices: Vec<Device>) -> Node {
    let host = Host {
        hostname: hostname.to_owned(),
        kernel: "6.1.0".to_owned(),
        cores: 8,
        ..Host::default()
    };
    Node { name: name.to_owned(), host, devices }
}
