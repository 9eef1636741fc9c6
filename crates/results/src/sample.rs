//! Results with something in every kind of field, for tests of this crate and of those that show results: small files in
//! `samples`, and parts of results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // only tests call it

pub mod mesh;
pub mod sweep;

use hdrhistogram::Histogram;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use settings::Settings;

use crate::load::Loaded;
use crate::metric::Metric;
use crate::model::*;

/// Two cases: a one-directional SEND and an interrupted bidirectional WRITE.
pub fn result() -> ResultFile {
    let mut result = read(include_str!("../samples/result.json"));
    let case = &mut result.cases[0];
    case.comparison = Some(perftest(case));
    result
}

/// One case of three flows between two nodes: small writes and large reads of the client, and the server's sends.
pub fn mixed() -> ResultFile {
    read(include_str!("../samples/mixed.json"))
}

/// One case at 50 % (kept), 80 % (the schedule was not kept) and 95 % (overloaded), after the closed loop, which has the
/// searches.
pub fn open_loop() -> ResultFile {
    read(include_str!("../samples/open_loop.json"))
}

/// A case of set-up beside traffic, and its run.
pub fn connect() -> (CaseConfig, Run) {
    let mut case = read(include_str!("../samples/set_up.json")).cases.remove(0);
    (case.config, case.runs.remove(0))
}

/// What limits a case: one cause with its proof, what else was tried, and what was not.
pub fn diagnosis() -> Diagnosis {
    let trial = |id: &str, changed: &str, expected: Option<&str>, ratio: [f64; 3], holds| {
        let [low, ratio, high] = ratio.map(Some);
        ChangeTrial {
            id: id.to_owned(),
            changed: changed.to_owned(),
            options: "--tx-depth 8".to_owned(),
            expected: expected.map(str::to_owned),
            ratio,
            low,
            high,
            lost_ppm: Some([812.4, 0.0]),
            holds,
            rounds: 8,
            failure: None,
        }
    };
    let more_qps = "the same bytes in flight over a quarter of the QPs";
    Diagnosis {
        metric: Metric::GbitPerS,
        value: Some(9.4),
        certainty: Certainty::Proven,
        causes: vec![FoundCause {
            id: "bytes_in_flight".to_owned(),
            sentence: "4 messages do not fill the path from a to b.".to_owned(),
            remedy: "Keep more in flight: --tx-depth 16, or more QPs.".to_owned(),
            proven_by: vec!["twice_the_depth".to_owned()],
        }],
        answer: "4 messages do not fill the path from a to b.".to_owned(),
        trials: vec![
            trial(
                "twice_the_depth",
                "twice the bytes in flight",
                Some("faster"),
                [1.76, 1.82, 1.9],
                Some(true),
            ),
            trial("fewer_qps", more_qps, Some("not faster"), [0.9, 1.0, 1.2], None),
            trial(
                "half_the_load",
                "half the load",
                Some("no losses"),
                [0.5, 0.5, 0.5],
                Some(false),
            ),
            trial("one_flow", "the first flow alone", None, [0.98, 1.0, 1.02], None),
            ChangeTrial {
                failure: Some("the run failed: no memory".to_owned()),
                ..trial("huge_pages", "memory in huge pages", None, [f64::NAN; 3], None)
            },
        ],
        ruled_out: ["qp_cache", "packets"]
            .map(|id| RuledOut { id: id.to_owned(), by: "twice_the_depth".to_owned() })
            .into(),
        left_out: vec![LeftOut {
            change: "a CQ for each worker".to_owned(),
            why: "the device has 1 CQ".to_owned(),
        }],
        would_tell: vec!["the other direction".to_owned()],
        ended_by: Some("the budget was used up".to_owned()),
        seconds: 41.5,
    }
}

/// A search of the closed loop's case after so many trials, of at most three.
pub fn search(trials: usize) -> LoadSearch {
    let mut search = open_loop().cases.remove(0).searches.remove(0);
    search.trials.truncate(trials);
    search
}

/// A result of a file in `samples`, which has what matters; everything else is as it is by default.
fn read(text: &str) -> ResultFile {
    let mut json: Value = serde_json::from_str(text).unwrap();
    complete(&mut json, "");
    let result: ResultFile = serde_json::from_value(json).unwrap();
    ResultFile { schema_version: SCHEMA_VERSION, ..result }
}

/// Adds to all objects of a result, whose fields are at this path, what they lack.
fn complete(value: &mut Value, path: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| complete(item, path)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                complete(field, &format!("{path}/{name}"));
            }
            if let Value::Object(usual) = usual(path) {
                for (name, field) in usual {
                    fields.entry(name).or_insert(field);
                }
            }
        }
        _ => {}
    }
}

/// What an object at this path is by default; of maps and of small objects, which stand as a whole, nothing.
fn usual(path: &str) -> Value {
    match path.rsplit('/').next().unwrap_or_default() {
        "" => default_of::<ResultFile>(),
        "tool" => default_of::<Tool>(),
        "nodes" if path == "/nodes" => default_of::<Node>(),
        "nodes" => default_of::<NodeResult>(),
        "devices" => default_of::<Device>(),
        "cases" => default_of::<CaseResult>(),
        "config" => default_of::<CaseConfig>(),
        "flows" if path.ends_with("config/flows") => default_of::<FlowConfig>(),
        "flows" => default_of::<FlowResult>(),
        "runs" => default_of::<Run>(),
        "failure" => default_of::<Failure>(),
        "workers" => default_of::<WorkerResult>(),
        "qps" => default_of::<QpResult>(),
        "window" => default_of::<Window>(),
        "totals" => default_of::<Totals>(),
        "load" => default_of::<Load>(),
        "connect" => default_of::<Connect>(),
        "steps" | "peer_steps" => default_of::<ConnectStep>(),
        "latency_ns" | "service_ns" | "lateness_ns" | "setup_ns" | "time_ns" => {
            default_of::<Latency>()
        }
        "searches" => default_of::<LoadSearch>(),
        "trials" => default_of::<Trial>(),
        _ => Value::Null,
    }
}

fn default_of<T: Default + Serialize>() -> Value {
    serde_json::to_value(T::default()).unwrap()
}

/// The names in a folder, in order.
pub fn file_names(folder: impl AsRef<std::path::Path>) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub fn loaded(result: ResultFile) -> Loaded {
    Loaded { path: "r.json".into(), result }
}

pub fn file(cases_of_file: Vec<CaseResult>) -> Loaded {
    loaded(cases(cases_of_file))
}

/// A case whose run, which is complete, moved so much.
pub fn moved(settings: Settings, gbit_per_s: Option<f64>) -> CaseResult {
    let config = CaseConfig::from(settings);
    let mut flow = FlowResult::new(&config.flows[0]);
    flow.totals.gbit_per_s = gbit_per_s;
    CaseResult { config, ..case(vec![run(vec![flow])]) }
}

pub fn flow_of(name: &str, size_bytes: u64, messages: &[u64]) -> FlowResult {
    let latency_times = |factor: u64| times(3, (1..=1000).map(|i| (i * factor, 10)));
    let total: u64 = messages.iter().sum();
    let qps = (0..).zip(messages).map(|(index, &qp_messages)| QpResult {
        qpn: 0x100 + index,
        udp_source_port: u16::try_from(0xc000 + index).ok(),
        messages: qp_messages,
        gbit_per_s: gbit_per_s(qp_messages * size_bytes, 2.0),
        latency_ns: latency_times(10 + u64::from(index)),
        ..qp(index, qp_messages * size_bytes)
    });
    let (from, to) = match name {
        REVERSE => (SERVER, CLIENT),
        _ => (CLIENT, SERVER),
    };
    FlowResult {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        totals: Totals::in_window(total, total * size_bytes, 0, 2.0),
        latency_ns: latency_times(11),
        fairness: fairness(0.99, 0.9, 1.1).filter(|_| messages.len() > 1),
        qps: qps.collect(),
        limits: limits(100.0, 0.98, Some(0.951)),
        ..FlowResult::default()
    }
}

/// A metric as rounds found it: both medians, the interval of the ratio, and the verdict.
pub type Judged = (Metric, [f64; 2], [f64; 2], Verdict);

/// A case beside a base after so many rounds, which all count.
pub fn in_turns(id: &str, sides: [&str; 2], rounds: u32, judged: &[Judged]) -> CaseComparison {
    let metrics = judged.iter().map(|&(metric, medians, [low, high], verdict)| {
        let [base, new] = medians.map(|median| vec![median; rounds as usize]);
        let unjudged = MetricComparison::unjudged(metric, metric.default_margin(), base, new);
        MetricComparison { low: Some(low), high: Some(high), verdict, ..unjudged }
    });
    let figures = |place: usize| judged.iter().map(|it| Some(it.1[place])).collect();
    let names = sides.map(str::to_owned);
    let measured = (1..=rounds).map(|number| Round {
        number,
        first: names[number as usize % 2].clone(),
        base: figures(0),
        new: figures(1),
        ..Round::default()
    });
    CaseComparison {
        id: id.to_owned(),
        observation: Observation::Round,
        base_count: rounds as usize,
        new_count: rounds as usize,
        metrics: metrics.collect(),
        rounds: measured.collect(),
        sides: names,
        ..CaseComparison::default()
    }
}

/// A victim alone, and beside an attacker that harms it, one that does not, and one of which nothing is known.
pub fn beside() -> Vec<CaseResult> {
    let (equal, unclear) = (Verdict::Equal, Verdict::Unclear);
    let p99 = (Metric::P99Ns, [12_000.0, 12_100.0], [0.99, 1.03], equal);
    let halved = (Metric::GbitPerS, [90.0, 45.0], [0.49, 0.51], Verdict::Slower);
    let alike = (Metric::GbitPerS, [90.0, 89.5], [0.98, 1.01], equal);
    let compared = [
        ("prey+bandwidth", 8, vec![halved, p99]),
        ("prey+packets", 9, vec![alike, p99]),
        ("prey+reads", 0, Vec::new()),
    ]
    .map(|(id, rounds, judged)| in_turns(id, ["alone", "beside"], rounds, &judged));
    let mut cases = vec![CaseResult { id: "prey".to_owned(), ..CaseResult::default() }];
    cases.extend(compared.map(|comparison| CaseResult {
        id: comparison.id.clone(),
        config: comparison.config.clone(),
        comparison: Some(comparison),
        ..CaseResult::default()
    }));
    if let Some(last) = cases.last_mut().and_then(|case| case.comparison.as_mut()) {
        let nothing = MetricComparison::unjudged(Metric::GbitPerS, 0.05, Vec::new(), Vec::new());
        last.metrics = vec![MetricComparison { verdict: unclear, ..nothing }];
        last.notes = vec!["3 of 3 rounds do not count: alone: edge missed".to_owned()];
    }
    cases
}

fn perftest(case: &CaseResult) -> CaseComparison {
    let judged = (Metric::GbitPerS, [91.0, 93.3], [1.01, 1.04], Verdict::Unclear);
    let mut comparison = in_turns(&case.id, ["perftest 6.06", "rocebench"], 2, &[judged]);
    comparison.config = case.config.clone();
    comparison.base_command = names(&["ib_send_bw", "-q", "2"]);
    comparison.notes = names(&["1 of 2 rounds failed: ib_send_bw did not end within 10 s"]);
    let failed =
        "base=[]; failure=ib_send_bw did not end within 10 s; output= #bytes     #iterations";
    comparison.rounds[1] = with(&comparison.rounds[1], failed);
    comparison
}

/// The same with other values at places of its JSON: `flows/0/totals/errors=1; complete=false`. A value that is no JSON is a
/// text. What is not there is not changed but fails, unless the place begins with `+`.
#[track_caller]
pub fn with<T: Serialize + DeserializeOwned>(original: &T, changes: &str) -> T {
    let mut json = serde_json::to_value(original).unwrap();
    for change in changes.split("; ") {
        let (place, text) = change.split_once('=').expect("place=value");
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let present = match place.strip_prefix('+') {
            Some(added) => {
                let (parent, field) = added.rsplit_once('/').expect("a field of an object");
                json.pointer_mut(&format!("/{parent}")).expect("the object")[field] = Value::Null;
                added
            }
            None => place,
        };
        let old = json.pointer_mut(&format!("/{present}"));
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

pub fn names(words: &[&str]) -> Vec<String> {
    words.iter().map(|name| (*name).to_owned()).collect()
}

/// The text has all of these parts.
#[track_caller]
pub fn has<const N: usize>(text: impl AsRef<str>, parts: [&str; N]) {
    for part in parts {
        assert!(text.as_ref().contains(part), "no `{part}` in: {}", text.as_ref());
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
    assert!(text.as_ref().starts_with(words), "no `{words}` before: {}", text.as_ref());
}

pub fn fairness(jain: f64, min_share: f64, max_share: f64) -> Option<Fairness> {
    Some(Fairness { jain, min_share, max_share, starved: Vec::new() })
}

pub fn limits(link: f64, protocol_efficiency: f64, share: Option<f64>) -> Option<Limits> {
    Some(Limits {
        link_gbit_per_s: link,
        protocol_efficiency,
        share_of_limit: share,
        narrower: None,
    })
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
/// What a node's device counted in each tenth of a second, while its queues had 16 messages.
pub fn node_state(counter: &str, grown: Vec<u64>) -> NodeState {
    let intervals = grown.len();
    NodeState {
        at_seconds: (1..=intervals).map(|end| end as f64 / 10.0).collect(),
        facts: [(NodeFact::Outstanding, vec![Some(16.0); intervals])].into(),
        counters: [(counter.to_owned(), grown)].into(),
    }
}

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
        cores: Some(8),
        ..Host::default()
    };
    Node { name: name.to_owned(), host, devices, left_out: Vec::new() }
}
