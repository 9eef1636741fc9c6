//! A result with something in every kind of field, for tests of this crate and of those that show results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // only tests call it

pub mod mesh;

use hdrhistogram::Histogram;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use settings::Settings;

use crate::load::Loaded;
use crate::model::*;

/// Two cases: a one-directional SEND and an interrupted bidirectional WRITE.
pub fn result() -> ResultFile {
    ResultFile {
        // The server has told of no adapter.
        nodes: vec![node(CLIENT, "left", vec![adapter()]), node(SERVER, "left", Vec::new())],
        cases: vec![
            CaseResult {
                id: "send-shared-q2-64KiB".to_owned(),
                config: config("op=send"),
                perftest: Some(perftest()),
                ..case(vec![send_run()])
            },
            CaseResult {
                id: "write-shared-q2-64KiB".to_owned(),
                config: config("op=write bidirectional=true verify=true poll=event connect=cm"),
                ..case(vec![write_run()])
            },
        ],
        ..mesh::sweep("--qps 2")
    }
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

fn adapter() -> Device {
    let fields =
        "name=mlx5_0; library=libibverbs; faults=seed=7,drop=0.05; port=1; link_gbit_per_s=100.0";
    with(&Device::default(), fields)
}

fn config(flags: &str) -> CaseConfig {
    let usual = [("qps", "2"), ("signal-every", "4"), ("duration", "2")];
    let given = flags.split(' ').filter_map(|flag| flag.split_once('='));
    let mut config = CaseConfig::from(usual.into_iter().chain(given).collect::<Settings>());
    config.flows.iter_mut().for_each(connected);
    config
}

fn connected(flow: &mut FlowConfig) {
    flow.path_mtu = Some(4096);
    flow.from_device = (flow.from == CLIENT).then(|| "mlx5_0".to_owned());
    flow.to_device = (flow.to == CLIENT).then(|| "mlx5_0".to_owned());
}

/// What a flow of messages of 64 KiB moved with each of its QPs, in 2 s.
fn flow(name: &str, messages: &[u64]) -> FlowResult {
    flow_of(name, 65_536, messages)
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

fn worked(name: &str, messages: u64) -> NodeResult {
    NodeResult {
        workers: vec![WorkerResult {
            window_seconds: Some(2.0),
            cpu_seconds: Some(1.75),
            blocked: 17,
            ..mesh::worker(messages)
        }],
        engine_cpu_seconds: Some(0.25),
        engine_cores: Some("1".into()),
        machine_cpu_seconds: Some(3.5),
        ..NodeResult::named(name)
    }
}

/// A victim that one attacker harms, one does not, and one of which nothing is known.
pub fn beside() -> Vec<BesideAttacker> {
    let factors = [
        "alone=90.0; beside=45.0; factor=2.0; factor_low=1.96; factor_high=2.04; verdict=harmed",
        "alone=12000.0; beside=12100.0; factor=1.01; factor_low=0.99; factor_high=1.03; verdict=not harmed",
    ];
    let [harmed, not] = factors.map(|fields| with(&HarmFactor::default(), fields));
    let attacker = |fields, [gbit_per_s, p99_ns]: [&HarmFactor; 2]| BesideAttacker {
        gbit_per_s: gbit_per_s.clone(),
        p99_ns: p99_ns.clone(),
        ..with(&BesideAttacker::default(), fields)
    };
    let known =
        "attacker=packets; rounds=9; counted=8; verdict=not harmed; attacker_gbit_per_s=4.5";
    vec![
        attacker("attacker=bandwidth; rounds=8; counted=8; verdict=harmed", [&harmed, &not]),
        attacker(known, [&not, &not]),
        attacker("attacker=reads; verdict=unclear; note=no rounds", [&HarmFactor::default(); 2]),
    ]
}

fn perftest() -> PerftestComparison {
    let pairs = [
        "first=rocebench; run=1; rocebench=93.3; perftest=91.0",
        "first=perftest; run=2; rocebench=93.1; failure=ib_send_bw did not end within 10 s; output= #bytes     #iterations",
    ];
    let comparison = PerftestComparison {
        pairs: pairs.map(|pair| with(&PerftestPair::default(), pair)).into(),
        ..PerftestComparison::default()
    };
    with(
        &comparison,
        r#"program=ib_send_bw; version="6.06"; arguments=["-q","2"]; metric=gbit_per_s; margin=0.03; rocebench_median=93.3; perftest_median=91.0; ratio=1.025; ratio_low=1.01; ratio_high=1.04; verdict=unclear; note=1 of 2 pairs counts"#,
    )
}

fn send_run() -> Run {
    let mut forward = flow(FORWARD, &[160_000, 196_000]);
    let rates = (1..=2000).map(|index| 90.0 + f64::from(index) * 0.003);
    forward.bandwidth_gbit_per_s = Bandwidth::of_intervals(0.01, rates);
    forward.window = Window { warmup_seconds: 0.3, warmup_steady: Some(true), ..window(2.0) };
    forward.received = Some(Received {
        messages: forward.totals.messages,
        bytes: forward.totals.bytes,
        window_seconds: None,
    });
    forward.timeline = Some(Timeline {
        interval_seconds: 0.01,
        at_seconds: vec![0.0101, 0.0203, 0.0301],
        messages: vec![1780, 0, 1790],
        longest_stall_seconds: Some(0.0102),
    });
    let mut nodes = [CLIENT, SERVER].map(|name| worked(name, forward.totals.messages));
    let port_counters = [("port_rcv_errors", None), ("port_xmit_data", Some(5_900_000_000))];
    nodes[0].counters = Some(port_counters.map(|(name, count)| (name.to_owned(), count)).into());
    nodes[1].counters = Some([("out_of_buffer".to_owned(), Some(3))].into());
    Run { started_at: "2026-11-20T12:00:01Z".to_owned(), nodes: nodes.into(), ..run(vec![forward]) }
}

fn write_run() -> Run {
    let mut forward = flow(FORWARD, &[100, 50]);
    (forward.latency_ns, forward.limits) = (None, None);
    forward.window.seconds = 2.0;
    let stopped = "message=stopped by Ctrl-C, \"early\"";
    Run {
        started_at: "2026-11-20T12:00:05Z".to_owned(),
        complete: false,
        interrupted: true,
        failure: Some(with(&Failure::default(), stopped)),
        nodes: [CLIENT, SERVER].map(|name| worked(name, 150)).into(),
        path_events: vec![PathEvent {
            node: SERVER.to_owned(),
            kind: PathEventKind::ReceiverNotReady,
            count: 3,
            counters: vec!["out_of_buffer".to_owned()],
        }],
        loss_unknown: vec![LossUnknown {
            node: CLIENT.to_owned(),
            device: "qedr0".to_owned(),
            driver: Some("qede".to_owned()),
            reason: LossUnknownReason::NoCounters,
        }],
        ..run(vec![forward, flow(REVERSE, &[90, 60])])
    }
}

/// One case of three flows between two nodes: small writes and large reads of the client, and the server's sends.
pub fn mixed() -> ResultFile {
    let usual = Settings::from([("op", "write"), ("qps", "3"), ("size", "64")]);
    let large = Settings::from([("op", "read"), ("qps", "2"), ("size", "1M")]);
    let back = Settings::from([("op", "send"), ("qps", "1"), ("size", "4K")]);
    let (mut flows, mut moved) = (Vec::new(), Vec::new());
    for (name, [from, to], own, messages) in [
        ("small", [CLIENT, SERVER], &usual, &[2_000_000; 3][..]),
        ("large", [CLIENT, SERVER], &large, &[5_000; 2]),
        ("back", [SERVER, CLIENT], &back, &[300_000]),
    ] {
        let mut config = FlowConfig::new(name, from, to, &usual, own);
        connected(&mut config);
        flows.push(config);
        let mut flow = flow_of(name, own.size_bytes.into(), messages);
        (flow.from, flow.to) = (from.to_owned(), to.to_owned());
        (flow.window.seconds, flow.limits) = (2.0, None);
        flow.fairness = fairness(1.0, 1.0, 1.0).filter(|_| messages.len() > 1);
        moved.push(flow);
    }
    let run = Run {
        started_at: "2026-11-20T12:00:01Z".to_owned(),
        nodes: vec![worked(CLIENT, 6_010_000), worked(SERVER, 300_000)],
        ..run(moved)
    };
    ResultFile {
        cases: vec![CaseResult {
            id: "mixed".to_owned(),
            config: CaseConfig { settings: usual, flows },
            ..case(vec![run])
        }],
        ..result()
    }
}

pub fn connect() -> (CaseConfig, Run) {
    let time = |count, mean: f64, p99| Latency {
        count,
        min: 1000,
        mean,
        p50: Some(mean as u64),
        p99: Some(p99),
        max: p99 + 1000,
        ..Latency::default()
    };
    let step = |step: &str, per: &str, time_ns| ConnectStep {
        step: step.to_owned(),
        per: per.to_owned(),
        time_ns,
    };
    let qp_step = |name, mean_us: u64, p99_us: u64| {
        step(name, "connection", time(6400, mean_us as f64 * 1e3, p99_us * 1000))
    };
    let mut config = config("op=connect qps=16 traffic-qps=2");
    let traffic = Settings::from([("op", "write"), ("qps", "2")]);
    config.flows = vec![FlowConfig::new(FORWARD, CLIENT, SERVER, &config, &traffic)];
    config.flows.iter_mut().for_each(connected);
    let mut moved = send_run();
    moved.flows[0].received = None;
    let set_up = Run {
        connect: Some(Connect {
            rounds: 400,
            connections: 6400,
            seconds: 2.0,
            connections_per_second: Some(3200.0),
            setup_ns: Some(time(400, 3.2e6, 4_100_000)),
            steps: vec![
                qp_step("create", 20, 30),
                qp_step("init", 2, 3),
                step("exchange", "round", time(400, 150e3, 200_000)),
                qp_step("rtr", 4, 5),
                qp_step("rts", 3, 4),
                qp_step("destroy", 25, 40),
            ],
            peer_steps: vec![qp_step("create", 21, 31)],
            traffic_alone_gbit_per_s: Some(9.5),
            stale_rejections: None,
        }),
        ..moved
    };
    (config, set_up)
}

const SECONDS: f64 = 2.0;

/// What the closed loop moves a second.
const MAXIMUM: f64 = 1_200_000.0;

/// One case at 50 % (kept), 80 % (the schedule was not kept) and 95 % (overloaded), after the closed loop, which has the
/// searches.
pub fn open_loop() -> ResultFile {
    let kept = Load { gaps: gaps(18_750, 0.4375), ..open_loop_load(0.5, 1_200_000, 1_200_000) };
    let late = Load {
        verdict: LoadVerdict::NotKept,
        not_kept_by: Some(NotKeptBy::Gaps),
        gaps: gaps(30_000, 0.0005),
        ..open_loop_load(0.8, 1_920_000, 1_918_000)
    };
    let overloaded = Load {
        verdict: LoadVerdict::Overloaded,
        never_sent: 5_000,
        queue_full_messages: 912_000,
        queue_full_seconds: 1.5,
        ..open_loop_load(0.95, 2_280_000, 2_200_000)
    };
    let mut late_flow = open_loop_flow(1_918_000, [9, 6, 14], Some(late));
    late_flow.window.doubts = vec![Doubt {
        kind: DoubtKind::ScheduleNotKept,
        message: "99 % of messages were posted up to 13.9 µs late, more than a tenth of the median latency (9.0 µs): \
                  use more --workers on cores of their own (--cores), or a lower rate"
            .to_owned(),
    }];
    let closed = CaseResult {
        searches: vec![search(3)],
        ..open_loop_case("closed", open_loop_flow(2_400_000, [0, 9, 0], None))
    };
    let cases = vec![
        closed,
        open_loop_case("50%", open_loop_flow(1_200_000, [6, 5, 1], Some(kept))),
        open_loop_case("80%", late_flow),
        open_loop_case("95%", open_loop_flow(2_200_000, [90, 9, 1], Some(overloaded))),
    ];
    ResultFile { cases, ..result() }
}

fn gaps(samples: u64, p_value: f64) -> Option<Gaps> {
    Some(Gaps { messages_of_gap: 64, samples, p_value })
}

fn open_loop_case(rate: &str, flow: FlowResult) -> CaseResult {
    let messages = flow.totals.messages;
    let suffix = match rate {
        "closed" => String::new(),
        rate => format!("-R{rate}"),
    };
    CaseResult {
        id: format!("write-shared-q2-64B-Q1{suffix}"),
        config: config(&format!("op=write size=64 signal-every=1 rate={rate}")),
        ..case(vec![Run {
            started_at: "2026-11-20T12:00:01Z".to_owned(),
            nodes: vec![worked(CLIENT, messages), NodeResult::named(SERVER)],
            ..run(vec![flow])
        }])
    }
}

/// A load of this share of the maximum.
fn open_loop_load(share: f64, offered: u64, achieved: u64) -> Load {
    Load {
        asked_per_second: MAXIMUM * share,
        maximum_per_second: Some(MAXIMUM),
        offered,
        offered_per_second: offered as f64 / SECONDS,
        achieved_per_second: achieved as f64 / SECONDS,
        ..Load::default()
    }
}

/// So many samples, up to 1,000 times `factor` ns.
fn open_loop_times(samples: u64, factor: u64) -> Option<Latency> {
    let latency = times(3, (1..=1000).map(|i| (i * factor, samples / 1000)))?;
    // Reading JSON may be off in the last binary digit of a fraction.
    Some(Latency { mean: latency.mean.round(), stddev: latency.stddev.round(), ..latency })
}

/// A flow of two QPs; `factors` are of its latency, service and lateness.
fn open_loop_flow(messages: u64, factors: [u64; 3], load: Option<Load>) -> FlowResult {
    let [latency, service, lateness] = factors;
    // A closed loop times from post to completion.
    let (offered, sent, latency_factor) = match &load {
        Some(load) => (load.offered, load.offered - load.never_sent, latency),
        None => (messages, 0, service),
    };
    let is_open = load.is_some();
    let mut flow = FlowResult {
        window: Window { warmup_seconds: 0.3, ..window(SECONDS) },
        latency_ns: open_loop_times(offered, latency_factor),
        service_ns: open_loop_times(sent, service).filter(|_| is_open),
        lateness_ns: open_loop_times(sent, lateness).filter(|_| is_open),
        fairness: fairness(1.0, 1.0, 1.0),
        limits: None,
        load,
        ..flow_of(FORWARD, 64, &[messages / 2; 2])
    };
    for qp in &mut flow.qps {
        qp.latency_ns = open_loop_times(offered / 2, latency_factor);
        qp.service_ns = open_loop_times(sent / 2, service).filter(|_| is_open);
        qp.lateness_ns = open_loop_times(sent / 2, lateness).filter(|_| is_open);
    }
    flow
}

/// A search of the closed loop's case after so many trials, of at most three.
pub fn search(trials: usize) -> LoadSearch {
    let trial = |share: f64, outcome, p99_ns| Trial {
        asked_per_second: MAXIMUM * share,
        achieved_per_second: MAXIMUM * share,
        seconds: 1.0,
        outcome,
        excess: Some([3.5, 0.4][usize::from(outcome == TrialOutcome::Kept)]),
        p50_ns: Some(6_000),
        p99_ns: Some(p99_ns),
        lateness_p99_ns: Some(210),
        ..Trial::default()
    };
    let trials_of_search = vec![
        trial(0.5, TrialOutcome::Kept, 14_000),
        trial(0.7, TrialOutcome::Broke, 31_000),
        trial(0.6, TrialOutcome::Kept, 18_500),
    ];
    let fields = r#"asked=p99<20us; limits=[{"percentile":99.0,"below_ns":20000}]; maximum_per_second=1200000.0; lower_per_second=732000.0; upper_per_second=744000.0; trial_seconds=1.0"#;
    LoadSearch {
        trials: trials_of_search.into_iter().take(trials).collect(),
        ..with(&LoadSearch::default(), fields)
    }
}

/// The same with other values at places of its JSON: `flows/0/totals/errors=1; complete=false`. A value that is no JSON is a
/// text. What is not there is not changed but fails.
#[track_caller]
pub fn with<T: Serialize + DeserializeOwned>(original: &T, changes: &str) -> T {
    let mut json = serde_json::to_value(original).unwrap();
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
