//! A result with something in every kind of field, for tests of this crate and of those that show results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // only tests call it

mod made;
mod open_loop;

pub use super::sample_mesh as mesh;
pub use made::*;
pub use open_loop::{open_loop, search};

use settings::Settings;

use super::load::Loaded;
use super::model::*;
use super::rates::gbit_per_s;

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

pub fn file(all: Vec<CaseResult>) -> Loaded {
    loaded(cases(all))
}

/// A case whose run, which is complete, moved so much.
pub fn moved(settings: Settings, gbit_per_s: Option<f64>) -> CaseResult {
    let config = CaseConfig::from(settings);
    let mut flow = FlowResult::new(&config.flows[0]);
    flow.totals.gbit_per_s = gbit_per_s;
    CaseResult { config, ..case(vec![run(vec![flow])]) }
}

fn adapter() -> Device {
    let told =
        "name=mlx5_0; library=libibverbs; faults=seed=7,drop=0.05; port=1; link_gbit_per_s=100.0";
    with(&Device::default(), told)
}

fn config(flags: &str) -> CaseConfig {
    let usual = [("qps", "2"), ("signal-every", "4"), ("duration", "2")];
    let flags = flags.split(' ').filter_map(|flag| flag.split_once('='));
    let mut config = CaseConfig::from(usual.into_iter().chain(flags).collect::<Settings>());
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
    let latency = |factor: u64| times(3, (1..=1000).map(|i| (i * factor, 10)));
    let total: u64 = messages.iter().sum();
    let of_qp = |(index, &messages): (u32, &u64)| QpResult {
        qpn: 0x100 + index,
        udp_source_port: u16::try_from(0xc000 + index).ok(),
        messages,
        gbit_per_s: gbit_per_s(messages * size_bytes, 2.0),
        latency_ns: latency(10 + u64::from(index)),
        ..qp(index, messages * size_bytes)
    };
    let (from, to) = match name {
        REVERSE => (SERVER, CLIENT),
        _ => (CLIENT, SERVER),
    };
    FlowResult {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        totals: Totals::in_window(total, total * size_bytes, 0, 2.0),
        latency_ns: latency(11),
        fairness: fairness(0.99, 0.9, 1.1).filter(|_| messages.len() > 1),
        qps: (0..).zip(messages).map(of_qp).collect(),
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
    let [harmed, not] = factors.map(|told| with(&HarmFactor::default(), told));
    let told = |told, [gbit_per_s, p99_ns]: [&HarmFactor; 2]| BesideAttacker {
        gbit_per_s: gbit_per_s.clone(),
        p99_ns: p99_ns.clone(),
        ..with(&BesideAttacker::default(), told)
    };
    let known =
        "attacker=packets; rounds=9; counted=8; verdict=not harmed; attacker_gbit_per_s=4.5";
    vec![
        told("attacker=bandwidth; rounds=8; counted=8; verdict=harmed", [&harmed, &not]),
        told(known, [&not, &not]),
        told("attacker=reads; verdict=unclear; note=no rounds", [&HarmFactor::default(); 2]),
    ]
}

fn perftest() -> PerftestComparison {
    let pairs = [
        "first=rocebench; run=1; rocebench=93.3; perftest=91.0",
        "first=perftest; run=2; rocebench=93.1; failure=ib_send_bw did not end within 10 s; output= #bytes     #iterations",
    ];
    let pairs = pairs.map(|pair| with(&PerftestPair::default(), pair));
    let comparison = PerftestComparison { pairs: pairs.into(), ..PerftestComparison::default() };
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
    let counters = |of: &[(&str, Option<u64>)]| {
        Some(of.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
    };
    let of_port = [("port_rcv_errors", None), ("port_xmit_data", Some(5_900_000_000))];
    nodes[0].counters = counters(&of_port);
    nodes[1].counters = counters(&[("out_of_buffer", Some(3))]);
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
    let settings = |op, qps, size| Settings::from([("op", op), ("qps", qps), ("size", size)]);
    let usual = settings("write", "3", "64");
    let flow = |name, [from, to]: [&str; 2], own: &Settings, messages: &[u64]| {
        let mut config = FlowConfig::new(name, from, to, &usual, own);
        connected(&mut config);
        let mut moved = flow_of(name, own.size_bytes.into(), messages);
        (moved.from, moved.to) = (from.to_owned(), to.to_owned());
        (moved.window.seconds, moved.limits) = (2.0, None);
        moved.fairness = fairness(1.0, 1.0, 1.0).filter(|_| messages.len() > 1);
        (config, moved)
    };
    let (there, back) = ([CLIENT, SERVER], [SERVER, CLIENT]);
    let (flows, moved) = [
        flow("small", there, &usual, &[2_000_000; 3]),
        flow("large", there, &settings("read", "2", "1M"), &[5_000; 2]),
        flow("back", back, &settings("send", "1", "4K"), &[300_000]),
    ]
    .into_iter()
    .unzip();
    let run = Run {
        started_at: "2026-11-20T12:00:01Z".to_owned(),
        nodes: vec![worked(CLIENT, 6_010_000), worked(SERVER, 300_000)],
        ..run(moved)
    };
    let settings = usual.clone();
    ResultFile {
        cases: vec![CaseResult {
            id: "mixed".to_owned(),
            config: CaseConfig { settings, flows },
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
    let of_qp = |name, mean: u64, p99: u64| {
        let time_ns = time(6400, mean as f64 * 1e3, p99 * 1000);
        step(name, "connection", time_ns)
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
                of_qp("create", 20, 30),
                of_qp("init", 2, 3),
                step("exchange", "round", time(400, 150e3, 200_000)),
                of_qp("rtr", 4, 5),
                of_qp("rts", 3, 4),
                of_qp("destroy", 25, 40),
            ],
            peer_steps: vec![of_qp("create", 21, 31)],
            traffic_alone_gbit_per_s: Some(9.5),
            stale_rejections: None,
        }),
        ..moved
    };
    (config, set_up)
}
