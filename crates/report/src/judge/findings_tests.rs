//! Every finding once, from made-up results whose truth is known: what it is about, its figures, and the only place where its
//! words are asserted.

use std::fmt::Write as _;

use super::*;
use crate::judge::finding::Severity;
use results::model::{
    CaseConfig, Connect, Convergence, Delivery, DoubtKind, EndMemory, FlowConfig, FlowResult,
    Latency, LinkEvent, LoadVerdict, NodeResult, PathEvent, PathEventKind, RegisteredBy, Totals,
};
use results::sample::mesh::{Mesh as Network, Slow};
use results::sample::{self, cases, doubt, fairness, has, load_of, node_state, qp_timeline, with};
use serde_json::Value;

use crate::observe::format::exact;

/// A case with a run for each throughput in Gb/s; p99 in µs is ten times as much.
fn case(flags: &[(&str, &str)], gbit_per_s: &[f64]) -> CaseResult {
    let settings: Settings = [("op", "write")].iter().chain(flags).copied().collect();
    let flow = |rate: f64| FlowResult {
        name: "forward".to_owned(),
        totals: Totals { gbit_per_s: Some(rate), messages: 1, ..Totals::default() },
        latency_ns: Some(Latency { p99: Some((rate * 1e4) as u64), ..Latency::default() }),
        ..FlowResult::default()
    };
    let words = flags.iter().map(|(flag, text)| format!("{flag}{text}"));
    let numbered = (1..).zip(gbit_per_s);
    CaseResult {
        id: words.collect::<Vec<_>>().join("-"),
        config: CaseConfig::from(settings),
        ..sample::case(
            numbered.map(|(run, rate)| Run { run, ..sample::run(vec![flow(*rate)]) }).collect(),
        )
    }
}

/// Cases by their QPs, each with three runs: `1:10 4:20`.
fn by_qps(points: &str) -> ResultFile {
    let points = points.split(' ').filter_map(|point| point.split_once(':'));
    cases(points.map(|(qps, rate)| case(&[("qps", qps)], &[rate.parse().unwrap(); 3])).collect())
}

/// Cases by their CQs.
fn by_cqs(modes: &[(&str, &[f64])]) -> ResultFile {
    cases(modes.iter().map(|(mode, rates)| case(&[("cq", mode)], rates)).collect())
}

fn set_ups() -> ResultFile {
    let mut file = by_qps("1:1 16:1");
    for (case, rate) in file.cases.iter_mut().zip([100.0, 400.0]) {
        case.config.settings.op = "connect".parse().unwrap();
        for run in &mut case.runs {
            let rate = Some(rate);
            run.connect = Some(Connect { connections_per_second: rate, ..Connect::default() });
        }
    }
    file
}

/// What the settings of cases say.
fn sweeps() -> Vec<(&'static str, ResultFile)> {
    let by_size = |qps| {
        [("64", 1.0), ("64K", 20.0)]
            .map(|(size, rate)| case(&[("qps", qps), ("size", size)], &[rate; 3]))
    };
    let scattered = [("1", 1.441), ("4", 9.0), ("16", 32.83)]
        .map(|(qps, rate)| case(&[("qps", qps)], &[rate, rate * 20.0, rate / 20.0]));
    let pairs = Network::quiet(8).with(Slow::Sends(3, 0.5)).runs(3).pairs();
    let mut beside_pairs = by_qps("1:10 4:20");
    beside_pairs.cases.extend(pairs.cases);
    vec![
        ("no case", cases(Vec::new())),
        ("one case", by_qps("1:10")),
        ("grows until", by_qps("1:10 4:20 16:30 64:30.2")),
        ("level", by_qps("1:10 4:10 16:10")),
        ("still grows", by_qps("1:10 4:20 16:40")),
        ("highest, then falls", by_qps("1:10 4:20 16:12")),
        ("highest at an end", by_qps("1:100 4:40 16:80")),
        ("highest twice", by_qps("1:60 4:100 16:60 64:100.5")),
        ("two points fall", by_qps("1:20 4:10")),
        ("two points grow", by_qps("1:10 4:20")),
        ("two points are level", by_qps("1:10 4:10")),
        (
            "single runs within 9 %",
            by_cqs(&[("shared", &[10.0]), ("per-qp", &[10.5]), ("per-worker", &[9.7])]),
        ),
        (
            "the same difference of runs that agree",
            by_cqs(&[("shared", &[10.0; 3]), ("per-qp", &[10.5, 10.5, 10.51])]),
        ),
        ("runs that scatter", cases(scattered.to_vec())),
        (
            "several equal cases have their size in common",
            cases(["1", "4", "16"].map(by_size).concat()),
        ),
        ("three of four have nothing in common", by_cqs_and_qps()),
        ("set-ups", set_ups()),
        ("a slow node beside a sweep", beside_pairs),
    ]
}

fn by_cqs_and_qps() -> ResultFile {
    let at = |cq, qps, rate| case(&[("cq", cq), ("qps", qps)], &[rate; 3]);
    let [shared, per_qp] = ["shared", "per-qp"];
    cases(vec![
        at(shared, "1", 1.0),
        at(shared, "4", 20.0),
        at(per_qp, "1", 20.0),
        at(per_qp, "4", 20.0),
    ])
}

/// A case of three runs, of which the first is changed.
fn changed(change: impl FnOnce(&mut Run)) -> ResultFile {
    let mut file = by_qps("4:10");
    change(&mut file.cases[0].runs[0]);
    file
}

fn with_events(kinds: &[PathEventKind]) -> ResultFile {
    let event = |kind: &PathEventKind| PathEvent {
        node: String::new(),
        kind: *kind,
        count: 7,
        counters: Vec::new(),
    };
    changed(|run| run.path_events = kinds.iter().map(event).collect())
}

/// A run in which these of four QPs stand still for 120 ms.
fn stalled(qps: std::ops::Range<usize>) -> ResultFile {
    let mut messages = vec![vec![100; 25]; 4];
    messages[qps].iter_mut().for_each(|qp| qp[10..13].fill(0));
    changed(|run| run.flows[0].qp_timeline = qp_timeline(0.04, messages))
}

/// A run with one end's memory on a GPU that is not the nearest, and the other's on the nearest.
fn on_gpus() -> ResultFile {
    let end = |node: &str, place: &str, distance: &str, nearer: Option<&str>| EndMemory {
        node: node.to_owned(),
        place: place.to_owned(),
        of: "NVIDIA H200 at 0000:41:00.0".to_owned(),
        registered_by: RegisteredBy::Dmabuf,
        distance: Some(distance.to_owned()),
        nearer: nearer.map(str::to_owned),
    };
    let ends = vec![
        end("client", "cuda:0", "another NUMA node", Some("cuda:1")),
        end("server", "cuda:0", "same switch", None),
    ];
    changed(|run| run.flows[0].memory = ends)
}

/// What looks wrong in runs.
fn problems_of_runs() -> Vec<(&'static str, ResultFile)> {
    use PathEventKind::{Congestion, PausedByHost, PausedByNetwork, ReceiverNotReady, Resent};
    let at = |change: &str| changed(|run| *run = with(run, change));
    let starved = r#"flows/0/fairness={"jain":0.997,"min_share":0.11,"max_share":1,"starved":[{"index":37,"qpn":293,"share":0.108}]}"#;
    let lost = |lost_share| {
        let goodput_gbit_per_s = Some(10.0);
        let delivery = Delivery { lost_share, goodput_gbit_per_s, ..Delivery::default() };
        changed(|run| run.flows[0].delivery = Some(delivery))
    };
    let mut shared = sample::result();
    shared.cases.truncate(1);
    shared.cases[0].runs[0].nodes[0].workers[0].core_shared_with = Some(1);
    let mut weighted = changed(|run| run.flows[0].fairness = fairness(0.3, 0.5, 2.0));
    weighted.cases[0].config.settings.qp_weights = "1:90,3:10".parse().ok();
    let doubts = |kinds: &[DoubtKind]| {
        let doubts = kinds.iter().copied().map(doubt).collect();
        changed(|run| run.flows[0].window.doubts = doubts)
    };
    let mut again = doubts(&[DoubtKind::EdgeMissed]);
    let doubted = &mut again.cases[0];
    doubted.config.settings.runs = 4;
    let sound = with(&doubted.runs[0], "flows/0/window/doubts=[]");
    doubted.runs.extend([sound.clone(), sound]);
    let several = changed(|run| {
        run.path_events = with_events(&[Resent]).cases[0].runs[0].path_events.clone();
        run.flows[0].window.warmup_steady = Some(false);
        run.flows[0].fairness = fairness(0.61, 0.5, 2.0);
        run.flows[0].window.doubts = [DoubtKind::EdgeMissed, DoubtKind::Drift].map(doubt).to_vec();
    });
    vec![
        ("a GPU that is not the nearest", on_gpus()),
        ("a run is not complete", at("complete=false")),
        (
            "a run failed with a hint",
            at(r#"complete=false; failure={"message":"","hint":"start it."}"#),
        ),
        ("a message failed", at("flows/0/totals/errors=1")),
        ("the user stopped a run", at("complete=false; interrupted=true")),
        ("a run is in doubt", doubts(&[DoubtKind::EdgeMissed, DoubtKind::EdgeMissed])),
        ("a run in doubt was measured again", again),
        (
            "more was offered than served",
            changed(|run| run.flows[0].load = load_of(LoadVerdict::Overloaded)),
        ),
        (
            "the receiver counted another rate",
            at(r#"flows/0/received={"messages":2,"bytes":0,"window_seconds":null}"#),
        ),
        ("lost messages", lost(0.031)),
        ("few lost messages", lost(0.00001)),
        ("packets sent again; congestion is none", with_events(&[Resent, Congestion])),
        ("the embedded device sent packets again", on_embedded_device(with_events(&[Resent]))),
        ("a quota of CPU time stopped workers", doubts(&[DoubtKind::CpuQuota])),
        ("no receive was posted; what followed is none", with_events(&[ReceiverNotReady, Resent])),
        ("the network stopped a sender; that is no loss", with_events(&[PausedByNetwork])),
        ("a host stopped the network", with_events(&[PausedByHost])),
        (
            "the embedded device was asked to",
            on_embedded_device(with_events(&[PausedByNetwork, PausedByHost])),
        ),
        ("the warm-up was too short", at("flows/0/window/warmup_steady=false")),
        ("one QP stands still", stalled(2..3)),
        ("all QPs stand still", stalled(0..4)),
        ("a starved QP", at(starved)),
        (
            "uneven QPs",
            at(r#"flows/0/fairness={"jain":0.61,"min_share":0.5,"max_share":2,"starved":[]}"#),
        ),
        ("nearly even QPs", changed(|run| run.flows[0].fairness = fairness(0.95, 0.5, 2.0))),
        ("uneven shares that were asked for", weighted),
        ("workers share a core", shared),
        ("throughput drifts", doubts(&[DoubtKind::Drift])),
        ("runs scatter", at("flows/0/totals/gbit_per_s=12.0")),
        ("several problems, the gravest first", several),
    ]
}

/// A case with a flow over each rail, of which each run moved so much in Gb/s.
fn over_rails(runs: &[&[f64]]) -> ResultFile {
    let mut file = sample::result();
    file.cases.truncate(1);
    let case = &mut file.cases[0];
    case.config.settings.signal_every = 1;
    let (config, mut run) = (case.config.flows[0].clone(), case.runs[0].clone());
    run.nodes.iter_mut().for_each(|node| node.engine_cpu_seconds = None);
    case.config.flows = (0..runs[0].len())
        .map(|rail| FlowConfig {
            name: format!("forward@mlx5_{rail}"),
            from_device: Some(format!("mlx5_{rail}")),
            to_device: Some(format!("mlx5_{rail}")),
            ..config.clone()
        })
        .collect();
    case.runs = runs
        .iter()
        .map(|figures| {
            let flows = case.config.flows.iter().zip(*figures).map(|(settings, rate)| {
                let mut flow = FlowResult { name: settings.name.clone(), ..run.flows[0].clone() };
                flow.totals.gbit_per_s = Some(*rate);
                flow
            });
            Run { flows: flows.collect(), ..run.clone() }
        })
        .collect();
    file
}

/// What a search for a load came to.
fn searches_of_loads() -> Vec<(&'static str, ResultFile)> {
    let ended = |change: &str| {
        let mut file = sample::open_loop();
        file.cases.truncate(1);
        let search = &mut file.cases[0].searches[0];
        *search = with(search, change);
        file
    };
    let mut knee = ended("asked=knee 3");
    knee.cases[0].searches[0].reference_p99_ns = Some(4_100);
    let mut lossy = ended("asked=zero loss; end=none_keeps; lower_per_second=null");
    lossy.cases[0].searches[0].trials.iter_mut().for_each(|trial| trial.losses = Some(12));
    vec![
        ("a search found a load", ended("end=found")),
        ("a knee", knee),
        ("a load without loss", ended("asked=zero loss")),
        ("no load without loss", lossy),
        ("all loads keep the limit", ended("end=all_keep; upper_per_second=null")),
        (
            "no load keeps the limit",
            ended("end=none_keeps; lower_per_second=null; upper_per_second=6e3"),
        ),
        (
            "trials are too short",
            ended("end=too_few_messages; note=a trial of 1 s has 500 messages"),
        ),
        ("no schedule above", ended("end=schedule_not_kept; upper_per_second=null")),
        ("no schedule at all", ended("end=schedule_not_kept; lower_per_second=null")),
        ("a search was stopped", ended("end=stopped; note=stopped by Ctrl-C")),
        ("trials scatter", ended("end=trials_spent; lower_per_second=null; upper_per_second=null")),
    ]
}

/// What is to be known of all figures.
fn caveats_of_all() -> Vec<(&'static str, ResultFile)> {
    let mut half = sample::result();
    half.cases[0].config.settings.ping_pong = true;
    let mut swaps = sample::result();
    for flow in
        swaps.cases.iter_mut().flat_map(|case| &mut case.runs).flat_map(|run| &mut run.flows)
    {
        flow.swaps_made = Some(flow.totals.messages / 4);
    }
    let mut one_machine = sample::result();
    let device = &mut one_machine.nodes[0].devices[0];
    (device.software, device.library) = (true, "embedded".to_owned());
    device.name = "soft0".to_owned();
    one_machine.nodes[1].devices = one_machine.nodes[0].devices.clone();
    let mut software = one_machine.clone();
    let peer = &mut software.nodes[1].devices[0];
    (peer.library, peer.name, peer.faults) = ("libibverbs".to_owned(), "rxe0".to_owned(), None);
    let mut comes_and_goes = sample::result();
    let starts = |seconds, unknown: Option<&str>| Convergence {
        at_seconds: 2.5,
        starts: vec!["f3".to_owned(), "f4".to_owned()],
        flows: 4,
        seconds,
        unknown: unknown.map(str::to_owned),
        ..Convergence::default()
    };
    let returns = Convergence {
        at_seconds: 4.0,
        link: Some(LinkEvent::Returns),
        flows: 4,
        unknown: Some("nothing was moved".to_owned()),
        ..Convergence::default()
    };
    comes_and_goes.cases.truncate(1);
    let again = comes_and_goes.cases[0].runs[0].clone();
    comes_and_goes.cases[0].runs.push(again);
    for (run, seconds) in comes_and_goes.cases[0].runs.iter_mut().zip([0.03, 0.12]) {
        run.convergence = vec![starts(Some(seconds), None), returns.clone()];
    }
    let mut unknown = sample::result();
    let losses = &mut unknown.cases[1].runs[0].loss_unknown;
    let at = |node: &str| with(&losses[0], &format!("node={node}; driver=null"));
    let others: Vec<_> = (1..=9).map(|number| at(&format!("n{number}"))).collect();
    losses.push(with(&losses[0], "node=server"));
    losses.extend(others.clone());
    losses.extend(others);
    vec![
        ("messages are timed one in four, a driver counts no losses", sample::result()),
        ("send queues were full", sample::open_loop()),
        ("one of two cases is a ping-pong", half),
        ("a quarter of the exchanges succeeded", swaps),
        ("one software device at both ends", one_machine),
        ("two software devices", software),
        ("losses are not known at many nodes", unknown),
        ("flows come and go", comes_and_goes),
    ]
}

fn rails() -> Vec<(&'static str, ResultFile)> {
    let mut renamed = over_rails(&[&[98.0, 97.0, 49.0, 99.0]]);
    for flow in &mut renamed.cases[0].config.flows {
        flow.to_device = flow.to_device.as_ref().map(|name| name.replace("mlx5", "rocep"));
    }
    let same: &[f64] = &[98.0, 97.0, 90.0];
    vec![
        ("a slow rail, with both ends", over_rails(&[&[98.0, 97.0, 49.0, 99.0]])),
        ("ends with two names", renamed),
        (
            "two slow rails do not hide each other",
            over_rails(&[&[98.0, 97.0, 49.0, 99.0, 98.0, 97.0, 45.0, 99.0]]),
        ),
        ("of two rails none is known to be usual", over_rails(&[&[98.0, 70.0]])),
        ("one rail", over_rails(&[&[50.0]])),
        ("rails that scatter", over_rails(&[&[98.0, 92.0, 95.0, 99.0]])),
        (
            "another rail is slow in each run",
            over_rails(&[&[98.0, 70.0, 97.0], &[75.0, 98.0, 97.0], &[98.0, 97.0, 70.0]]),
        ),
        ("8 % in three runs", over_rails(&[same; 3])),
        ("8 % in one run", over_rails(&[same])),
    ]
}

/// Changes each run of a file.
fn each_run(mut file: ResultFile, change: impl FnMut(&mut Run)) -> ResultFile {
    file.cases.iter_mut().flat_map(|case| &mut case.runs).for_each(change);
    file
}

/// The same of nodes on the embedded device.
fn on_embedded_device(file: ResultFile) -> ResultFile {
    each_run(file, |run| {
        let node = NodeResult { engine_cpu_seconds: Some(1.0), ..NodeResult::named("node1") };
        run.nodes.push(node);
    })
}

fn doubting(nodes: usize, is_doubtful: fn(&str, &str) -> bool) -> ResultFile {
    each_run(Network::quiet(nodes).pairs(), |run| {
        for flow in run.flows.iter_mut().filter(|flow| is_doubtful(&flow.from, &flow.to)) {
            flow.window.doubts = vec![doubt(DoubtKind::EdgeMissed)];
        }
    })
}

/// Pairs of so many nodes, at which packets are sent again in the runs of some flows.
fn losing((nodes, runs): (usize, u32), is_losing: fn(&str, &str) -> bool) -> ResultFile {
    each_run(Network::quiet(nodes).runs(runs).pairs(), |run| {
        let lossy = run.flows.iter().filter(|flow| is_losing(&flow.from, &flow.to));
        let event = |node: &String| PathEvent {
            node: node.clone(),
            kind: PathEventKind::Resent,
            count: 3,
            counters: Vec::new(),
        };
        run.path_events = lossy.map(|flow| event(&flow.from)).collect();
    })
}

const LOSSY: [(&str, &str); 7] = [
    ("node1", "node9"),
    ("node2", "node10"),
    ("node3", "node11"),
    ("node4", "node12"),
    ("node5", "node13"),
    ("node6", "node14"),
    ("node7", "node15"),
];

/// What the runs of patterns say of nodes.
fn meshes() -> Vec<(&'static str, ResultFile)> {
    let slow_sender = Network::quiet(8).with(Slow::Sends(3, 0.5));
    let both_ways = Network::quiet(8).with(Slow::Sends(0, 0.5)).with(Slow::Receives(0, 0.75));
    let path = |nodes| Network::quiet(nodes).with(Slow::Pair(2, 3, 0.33));
    let paths =
        (0..7).fold(Network::quiet(16), |mesh, node| mesh.with(Slow::Pair(node, node + 8, 0.4)));
    let without_cpu = each_run(both_ways.pairs(), |run| {
        for node in run.nodes.iter_mut().filter(|node| node.name == "node1") {
            node.workers[0].cpu_seconds = Some(0.52);
        }
    });
    let mut sleeping = without_cpu.clone();
    for case in &mut sleeping.cases {
        case.config.settings.poll = settings::PollMode::Event;
    }
    let mut looped = path(8).ring();
    looped.cases[0].config.settings.pattern = Some(settings::Pattern::Loop);
    let mut outcast = Network::quiet(9).with(Slow::Sends(3, 0.6)).incast(&[8]);
    outcast.cases[0].config.settings.pattern = "outcast".parse().ok();
    for flow in &mut outcast.cases[0].config.flows {
        std::mem::swap(&mut flow.from, &mut flow.to);
    }
    for flow in &mut outcast.cases[0].runs[0].flows {
        std::mem::swap(&mut flow.from, &mut flow.to);
    }
    let few_slow = (1..7).fold(Network::quiet(8), |mesh, to| mesh.with(Slow::Pair(0, to, 0.5)));
    let mut begun = Network::quiet(4).pairs();
    begun.cases.truncate(4);
    let not_ready = each_run(losing((8, 3), |from, _| from == "node3"), |run| {
        let refused = run
            .path_events
            .first()
            .map(|event| PathEvent { kind: PathEventKind::ReceiverNotReady, ..event.clone() });
        run.path_events.extend(refused);
    });
    let lossy_path = losing((8, 3), |from, to| (from, to) == ("node2", "node5"));
    let mut slow_and_lossy = path(8).pairs();
    let losses = losing((8, 3), |from, to| (from, to) == ("node3", "node4"));
    for (case, lossy) in slow_and_lossy.cases.iter_mut().zip(&losses.cases) {
        for (run, losing_run) in case.runs.iter_mut().zip(&lossy.runs) {
            run.path_events.clone_from(&losing_run.path_events);
        }
    }
    let doubt_all = |file| {
        each_run(file, |run| {
            run.flows
                .iter_mut()
                .for_each(|flow| flow.window.doubts = vec![doubt(DoubtKind::EdgeMissed)]);
        })
    };
    let doubtful_losses = doubt_all(lossy_path);
    let lossy_node = || losing((8, 1), |from, to| from == "node3" || to == "node3");
    let gone = (1..4).flat_map(|node| [(0, node), (node, 0)]);
    let fan = Network::new(9).with(Slow::Sends(3, 0.6));
    let open = |slow| Network::quiet(8).with(slow).flag("rate", "20%").pairs();
    let slow_in_step = each_run(Network::lock_step([10, 12, 204, 30], 51_000.0), |run| {
        run.lock_step.as_mut().unwrap().share_of_ideal = Some(0.643);
    });
    vec![
        ("a node holds up the others in lock-step", slow_in_step),
        (
            "no node holds up the others in lock-step",
            Network::lock_step([60, 62, 72, 62], 21_000.0),
        ),
        ("a node is last by little in lock-step", Network::lock_step([10, 12, 204, 30], 21_000.0)),
        ("all are alike", Network::new(8).pairs()),
        ("all are alike in an open loop", Network::new(4).flag("rate", "20%").pairs()),
        ("all scatter", Network::new(8).noise(0.3).runs(1).pairs()),
        ("two nodes", Network::quiet(2).pairs()),
        ("two nodes that differ", Network::quiet(2).with(Slow::Pair(0, 1, 0.5)).pairs()),
        ("a slow sender", slow_sender.pairs()),
        ("a slow sender of some flows", few_slow.pairs()),
        ("a slow receiver", Network::quiet(8).with(Slow::Receives(6, 0.59)).pairs()),
        ("a node reads slowly", slow_sender.flag("op", "read").pairs()),
        ("a node is slow both ways", both_ways.pairs()),
        ("its workers were kept from their cores", without_cpu),
        ("its workers sleep", sleeping),
        ("messages from a node are late", open(Slow::Sends(2, 0.2))),
        ("messages to a node are late", open(Slow::Receives(2, 0.6))),
        ("a slow path", path(8).pairs()),
        ("a slow path of a ring", path(8).ring()),
        ("a slow loop", looped),
        ("seven slow paths", paths.pairs()),
        ("a slow path of an outcast", outcast),
        ("a lossy path", losing((8, 3), |from, to| (from, to) == ("node2", "node5"))),
        (
            "a path lost packets in its only run",
            losing((8, 1), |from, to| (from, to) == ("node2", "node5")),
        ),
        ("a slow path that loses packets", slow_and_lossy),
        ("seven lossy paths", losing((16, 3), |from, to| LOSSY.contains(&(from, to)))),
        ("a lossy sender", losing((8, 1), |from, _| from == "node3")),
        ("a lossy receiver", losing((8, 1), |_, to| to == "node3")),
        ("a lossy node", lossy_node()),
        ("a lossy node on the embedded device", on_embedded_device(lossy_node())),
        ("no run on the embedded device counts", doubt_all(on_embedded_device(lossy_node()))),
        ("a sender met receivers that were not ready", not_ready),
        ("doubtful runs of a lossy path", doubtful_losses),
        ("flows failed", Network::quiet(4).failing(gone).pairs()),
        ("a flow is doubtful", doubting(4, |from, to| (from, to) == ("node1", "node4"))),
        ("a node's flows are doubtful", doubting(4, |from, _| from == "node2")),
        ("flows did not start", begun),
        ("an incast that falls and is uneven", fan.incast(&[8, 1, 2, 4])),
        ("an even incast", Network::quiet(9).incast(&[8])),
    ]
}

#[test]
fn each_finding_has_its_subject_its_figures_and_its_words() {
    let mut text = String::new();
    for (truth, file) in sweeps()
        .into_iter()
        .chain(problems_of_runs())
        .chain(rails())
        .chain(meshes())
        .chain(caveats_of_all())
        .chain(searches_of_loads())
    {
        writeln!(text, "# {truth}").unwrap();
        for finding in Findings::new(&file).iter() {
            let mark = match finding.severity {
                Severity::Caveat => "*",
                Severity::Note => "-",
                Severity::Problem => "!",
            };
            let subject = serde_json::to_string(&finding.subject).unwrap().replace('"', "");
            let data: Vec<String> = finding
                .data
                .iter()
                .map(|(name, value)| format!("{name} {}", short(value)))
                .collect();
            writeln!(text, "{mark} {} {subject} {}", finding.id, data.join(", ")).unwrap();
            writeln!(text, "  {}", finding.text).unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

fn short(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => exact(number.as_f64().unwrap()),
        Value::Array(values) => values.iter().map(short).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[test]
fn what_says_where_to_look_stands_first() {
    let mut file = Network::quiet(8).with(Slow::Sends(3, 0.5)).runs(3).pairs();
    for run in file.cases.iter_mut().flat_map(|case| &mut case.runs) {
        run.flows[0].window.doubts.push(doubt(DoubtKind::Drift));
    }
    let findings = Findings::new(&file);
    let problems: Vec<&str> =
        findings.iter().filter(|it| it.is_problem()).map(|it| it.id).collect();
    assert_eq!(problems, ["slow_sender", "drift"]);
}

/// The same cases in two files are pooled, but not those of other nodes.
#[test]
fn results_of_other_nodes_are_not_compared() {
    let file = by_qps("1:10 4:20");
    let mut other = file.clone();
    let pooled = findings(&[&file, &other]).pop().unwrap();
    assert_eq!((pooled.id, &pooled.data["runs"]), (NOTHING_WRONG, &12.into()));
    other.nodes.push(Default::default());
    assert_eq!(findings(&[&file, &other]), []);
}

#[test]
fn packets_that_were_lost_at_once_are_said_with_their_moment() {
    let text = |grown: Vec<u64>| {
        let file = changed(|run| {
            let counters = vec!["out_of_sequence".to_owned()];
            let (node, kind) = ("server".to_owned(), PathEventKind::SequenceGap);
            run.path_events = vec![PathEvent { node, kind, count: grown.iter().sum(), counters }];
            let state = Some(node_state("out_of_sequence", grown));
            run.nodes.push(NodeResult { state, ..NodeResult::named("server") });
        });
        findings(&[&file]).into_iter().find(|it| it.id == "lost_packets").unwrap().text
    };
    let burst = text(vec![0, 3, 412, 0, 0]);
    has(burst, ["415 gaps seen by the receiver; 412 at once, 0.3 s into run 1 at server"]);
    assert!(!text(vec![90, 70, 80, 85, 90]).contains("at once"));
}
