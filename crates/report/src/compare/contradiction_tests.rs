use super::*;
use crate::results::model::{
    CLIENT, ConnectStep, Delivery, FlowConfig, Latency, QpResult, QpTimeline, SERVER, Timeline,
    Totals, Window, WorkerResult,
};
use settings::Settings;

fn config() -> CaseConfig {
    let mut settings = Settings::from([("size", "100"), ("qps", "2"), ("tx-depth", "4")]);
    settings.bidirectional = true;
    settings.into()
}

fn percentiles() -> Latency {
    Latency {
        count: 1000,
        min: 10,
        mean: 25.0,
        stddev: 3.0,
        p50: 20,
        p90: Some(30),
        p99: Some(40),
        p99_9: Some(50),
        p99_99: Some(60),
        max: 70,
        ..Latency::default()
    }
}

fn worker(messages: u64) -> WorkerResult {
    WorkerResult {
        messages,
        cpu_seconds: Some(1.99),
        polls: 10,
        empty_polls: 4,
        ..WorkerResult::default()
    }
}

fn moved(flow: &FlowConfig) -> FlowResult {
    let qp = |index: u32, messages: u64| QpResult {
        index,
        messages,
        bytes: messages * 100,
        gbit_per_s: gbit_per_s(messages * 100, 2.0),
        latency_ns: Some(percentiles()),
        ..QpResult::default()
    };
    FlowResult {
        window: Window {
            seconds: 2.0,
            ..Window::default()
        },
        totals: Totals::in_window(4000, 400_000, 0, 2.0),
        latency_ns: Some(percentiles()),
        bandwidth_gbit_per_s: Some(Bandwidth {
            interval_seconds: 1.0,
            count: 2,
            min: 0.0016,
            p50: 0.0016,
            max: 0.0016,
            mean: 0.0016,
            ..Bandwidth::default()
        }),
        // 4000² / (2 × (1000² + 3000²))
        fairness: Some(Fairness {
            jain: 0.8,
            min_share: 0.5,
            max_share: 1.5,
        }),
        qps: vec![qp(0, 1000), qp(1, 3000)],
        limits: Some(Limits {
            link_gbit_per_s: 0.004,
            protocol_efficiency: 0.8,
            share_of_limit: Some(0.5),
        }),
        ..FlowResult::of(flow)
    }
}

/// A run of two flows, one in each direction.
fn sound() -> Run {
    let flows = config().flows;
    let mut forward = moved(&flows[0]);
    forward.received = Some(Received {
        messages: 3998,
        bytes: 399_800,
        window_seconds: Some(2.0),
    });
    forward.timeline = Some(Timeline {
        interval_seconds: 1.0,
        at_seconds: vec![1.0, 2.0],
        messages: vec![2000, 2000],
        longest_stall_seconds: Some(0.0),
    });
    forward.qp_timeline = Some(QpTimeline {
        interval_seconds: 1.0,
        at_seconds: vec![1.0, 2.0],
        messages: vec![vec![400, 600], vec![3000, 0]],
    });
    let node = |name: &str| NodeResult {
        workers: vec![worker(2500), worker(1500)],
        ..NodeResult::named(name)
    };
    Run {
        complete: true,
        flows: vec![forward, moved(&flows[1])],
        nodes: [CLIENT, SERVER].map(node).into(),
        connect: Some(Connect {
            rounds: 50,
            connections: 100,
            seconds: 2.0,
            connections_per_second: Some(50.0),
            setup_ns: Some(percentiles()),
            steps: vec![ConnectStep {
                step: "rtr".to_owned(),
                per: "connection".to_owned(),
                time_ns: percentiles(),
            }],
            traffic_alone_gbit_per_s: Some(0.1),
            ..Connect::default()
        }),
        ..Run::default()
    }
}

/// Half of what the first flow sends does not come, all of it on one QP.
fn lose(run: &mut Run) {
    let flow = &mut run.flows[0];
    let received = flow.received.as_mut().unwrap();
    (received.messages, received.bytes) = (2000, 200_000);
    for (qp, lost) in flow.qps.iter_mut().zip([0, 2000]) {
        qp.lost = Some(lost);
    }
    flow.delivery = Some(Delivery {
        goodput_gbit_per_s: gbit_per_s(200_000, 2.0),
        goodput_mmsg_per_s: mmsg_per_s(2000, 2.0),
        ..Delivery::of_qps(&[1000, 3000], &[1000, 1000])
    });
    flow.limits.as_mut().unwrap().share_of_limit = Some(0.25);
}

#[test]
fn what_can_be_is_left_alone() {
    assert_eq!(of_run(&config(), &sound()), None);
    assert_eq!(of_run(&CaseConfig::default(), &Run::default()), None);
    let mut small = sound();
    for flow in &mut small.flows {
        flow.qps.clear();
        (flow.latency_ns, flow.limits) = (None, None);
        (flow.timeline, flow.qp_timeline, flow.received) = (None, None, None);
    }
    small.nodes.clear();
    small.connect = None;
    assert_eq!(of_run(&config(), &small), None);
    // Rounding, and the windows of several workers.
    let mut near = sound();
    let rate = &mut near.flows[0].totals.gbit_per_s;
    *rate = rate.map(|rate| rate * 1.015);
    assert_eq!(of_run(&config(), &near), None);
    // A QP's rate is by its worker's window.
    let mut late = sound();
    late.nodes[0].workers[1].window_seconds = Some(1.6);
    late.nodes[0].workers[1].cpu_seconds = Some(1.59);
    late.flows[0].qps[1].gbit_per_s = gbit_per_s(300_000, 1.6);
    assert_eq!(of_run(&config(), &late), None);
    let mut lossy = sound();
    lose(&mut lossy);
    assert_eq!(of_run(&config(), &lossy), None);
    // Set up without traffic meanwhile.
    let mut idle = sound();
    idle.flows.clear();
    idle.nodes.clear();
    assert_eq!(of_run(&config(), &idle), None);
}

#[test]
fn what_cannot_be_is_named() {
    type Damage = fn(&mut Run);
    fn totals(run: &mut Run) -> &mut Totals {
        &mut run.flows[0].totals
    }
    fn told(run: &mut Run) -> &mut Latency {
        run.flows[0].latency_ns.as_mut().unwrap()
    }
    fn shares(run: &mut Run) -> &mut Fairness {
        run.flows[0].fairness.as_mut().unwrap()
    }
    fn sampled(run: &mut Run) -> &mut Timeline {
        run.flows[0].timeline.as_mut().unwrap()
    }
    fn of_qps(run: &mut Run) -> &mut QpTimeline {
        run.flows[0].qp_timeline.as_mut().unwrap()
    }
    fn connect(run: &mut Run) -> &mut Connect {
        run.connect.as_mut().unwrap()
    }
    fn delivered(run: &mut Run) -> &mut Delivery {
        lose(run);
        run.flows[0].delivery.as_mut().unwrap()
    }
    let damages: &[(Damage, &str)] = &[
        (
            |run| totals(run).gbit_per_s = None,
            "lacks gbit_per_s, which is 0.0016",
        ),
        (
            |run| totals(run).mmsg_per_s = None,
            "lacks mmsg_per_s, which is 0.0020",
        ),
        (
            |run| totals(run).gbit_per_s = Some(-0.0016),
            "gbit_per_s of -0.0016, below 0",
        ),
        (
            |run| totals(run).gbit_per_s = Some(1.6),
            "1.6000, and its other figures give 0.0016",
        ),
        (
            |run| totals(run).mmsg_per_s = Some(0.00205),
            "and its other figures give 0.0020",
        ),
        (
            |run| totals(run).gbit_per_s = Some(f64::NAN),
            "not a number",
        ),
        (
            |run| totals(run).messages = 4001,
            "moved 400000 bytes in 4001 messages of 100 bytes",
        ),
        (
            |run| totals(run).bytes = 400_001,
            "moved 400001 bytes in 4000 messages",
        ),
        (
            |run| run.flows[1].totals.gbit_per_s = None,
            "lacks gbit_per_s, which is 0.0016 by its other figures (flow reverse)",
        ),
        (
            |run| run.flows[0].window.seconds = 0.0,
            "gbit_per_s of 0.0016 in a time of 0 s",
        ),
        (
            |run| run.flows[0].window.seconds = -2.0,
            "a window (s) of -2, below 0",
        ),
        (
            |run| run.flows[0].window.seconds = 2.2,
            "and its other figures give",
        ),
        (
            |run| run.flows[0].window.warmup_seconds = f64::INFINITY,
            "a warm-up (s) of inf",
        ),
        (
            |run| run.flows[0].qps[0].messages = 999,
            "has 4000 messages, and its QPs 3999",
        ),
        (
            |run| run.flows[0].qps[0].bytes = u64::MAX,
            "has 400000 bytes, and its QPs",
        ),
        (
            |run| run.flows[0].qps[1].gbit_per_s = Some(-1.0),
            "gbit_per_s of QP 1 of -1",
        ),
        (
            |run| run.flows[0].qps[1].gbit_per_s = Some(0.0016),
            "gbit_per_s of QP 1",
        ),
        (
            |run| run.flows[0].qps[1].latency_ns.as_mut().unwrap().p50 = 41,
            "latency of QP 1 with p50 41 ns",
        ),
        (
            |run| told(run).p99 = Some(51),
            "latency with p99 51 ns above p99.9 50 ns",
        ),
        (|run| told(run).max = 55, "p99.99 60 ns above max 55 ns"),
        (
            |run| told(run).p99 = None,
            "lacks p99 of latency with 1000 samples",
        ),
        (|run| told(run).min = 21, "min 21 ns above p50 20 ns"),
        (|run| told(run).count = 0, "latency with [(\"samples\", 0)"),
        (|run| told(run).overflows = 1001, "(\"overflows\", 1001)"),
        (
            |run| told(run).mean = 71.0,
            "a mean latency of 71 ns, outside its samples",
        ),
        (
            |run| told(run).stddev = -1.0,
            "a deviation of latency (ns) of -1",
        ),
        (
            |run| run.flows[0].fairness = None,
            "lacks the fairness of its 4000 messages",
        ),
        (|run| shares(run).jain = 1.2, "fairness 1.2 with shares"),
        (|run| shares(run).jain = -0.1, "fairness of -0.1, below 0"),
        (
            |run| shares(run).jain = 0.9,
            "fairness 0.9000, and its QPs give 0.8000",
        ),
        (|run| shares(run).min_share = 1.1, "with shares from 1.1"),
        (|run| shares(run).max_share = 0.9, "to 0.9"),
        (
            |run| run.nodes[0].workers[0].messages = 2501,
            "has 4000 messages, and its workers 4001",
        ),
        (
            |run| run.nodes[0].workers[0].cpu_seconds = Some(-1.0),
            "CPU time (s) of -1",
        ),
        (
            |run| run.nodes[0].workers[0].cpu_seconds = Some(2.5),
            "used 2.500 s of CPU time in 2.000 s",
        ),
        (
            |run| run.nodes[0].workers[0].empty_polls = 11,
            "11 empty polls of 10",
        ),
        (
            |run| run.flows[0].limits.as_mut().unwrap().share_of_limit = Some(1.5),
            "a share of the limit of 1.5",
        ),
        (
            |run| run.flows[0].limits.as_mut().unwrap().protocol_efficiency = 1.1,
            "efficiency of 1.1, above 1",
        ),
        (
            |run| run.flows[0].limits.as_mut().unwrap().link_gbit_per_s = 0.0,
            "a link (Gb/s) of 0",
        ),
        (
            |run| delivered(run).goodput_gbit_per_s = Some(-1.0),
            "goodput (Gb/s) of -1, below 0",
        ),
        (
            |run| delivered(run).goodput_gbit_per_s = Some(0.0016),
            "goodput (Gb/s) of 0.0016, and its other figures give 0.0008",
        ),
        (
            |run| delivered(run).goodput_mmsg_per_s = None,
            "lacks goodput (Mmsg/s), which is 0.0010",
        ),
        (
            |run| {
                delivered(run);
                run.flows[0].qps[1].lost = Some(1999);
            },
            "has 2000 lost messages, and its QPs 1999",
        ),
        (
            |run| {
                delivered(run);
                run.flows[0].limits.as_mut().unwrap().share_of_limit = Some(0.5);
            },
            "a share of the limit of 0.5000, and its other figures give 0.2500",
        ),
        (
            |run| {
                delivered(run).lost_share = 0.1;
            },
            "a share of lost messages of 0.1000, and its other figures give 0.5000",
        ),
        (
            |run| run.flows[0].received.as_mut().unwrap().bytes = 1,
            "received 1 bytes in 3998 messages",
        ),
        (
            |run| run.flows[0].received.as_mut().unwrap().window_seconds = Some(0.0),
            "the receiver's window of 0",
        ),
        (
            |run| drop(run.flows.pop()),
            "has 3998 messages, and its workers 4000",
        ),
        (
            |run| sampled(run).messages[0] = 1800,
            "has 4000 messages, and its timeline 3800",
        ),
        (|run| sampled(run).messages.push(1), "2 times and 3 counts"),
        (
            |run| sampled(run).at_seconds[1] = 0.5,
            "0.5 s comes after 1 s",
        ),
        (
            |run| sampled(run).at_seconds[1] = 3.0,
            "timeline of 3.000 s in a window of 2.000 s",
        ),
        (|run| sampled(run).at_seconds[0] = f64::NAN, "not a number"),
        (
            |run| of_qps(run).messages[1][1] = 7,
            "has 3000 messages on QP 1, and its timeline 3007",
        ),
        (
            |run| of_qps(run).messages[0].push(0),
            "has a timeline of QPs of 2 times and 3 counts",
        ),
        (
            |run| drop(of_qps(run).messages.pop()),
            "has timelines of 1 QPs, and 2 QPs",
        ),
        (
            |run| of_qps(run).at_seconds[0] = 2.0,
            "has a timeline of QPs in which 2 s comes after 2 s",
        ),
        (
            |run| sampled(run).interval_seconds = 0.0,
            "interval (s) of 0",
        ),
        (
            |run| run.flows[0].bandwidth_gbit_per_s.as_mut().unwrap().min = -0.1,
            "bandwidth with a min (Gb/s) of -0.1",
        ),
        (
            |run| run.flows[0].bandwidth_gbit_per_s.as_mut().unwrap().p50 = 0.1,
            "bandwidth with p50 0.1 Gb/s above max 0.0016 Gb/s",
        ),
        (
            |run| sampled(run).longest_stall_seconds = Some(-1.0),
            "a stall (s) of -1",
        ),
        (
            |run| connect(run).connections = 99,
            "has 99 connections, and its rounds of all QPs 100",
        ),
        (
            |run| connect(run).connections_per_second = None,
            "lacks connections a second",
        ),
        (
            |run| connect(run).connections_per_second = Some(500.0),
            "give 50.0000",
        ),
        (|run| connect(run).seconds = f64::NAN, "not a number"),
        (
            |run| connect(run).setup_ns = None,
            "lacks the times of its 50 rounds",
        ),
        (
            |run| connect(run).setup_ns.as_mut().unwrap().p99 = Some(5),
            "set-up with p90 30 ns above p99 5 ns",
        ),
        (
            |run| connect(run).steps[0].time_ns.max = 5,
            "rtr of set-up with",
        ),
        (
            |run| connect(run).traffic_alone_gbit_per_s = Some(-0.5),
            "traffic alone (Gb/s) of -0.5",
        ),
    ];
    for (damage, words) in damages {
        let mut run = sound();
        damage(&mut run);
        let found = of_run(&config(), &run).unwrap_or_default();
        assert!(found.contains(words), "{words}: {found:?}");
    }
}

#[test]
fn each_flow_is_checked_by_its_own_settings_and_workers_by_all_of_their_node() {
    let result = crate::results::sample::mixed();
    let case = &result.cases[0];
    let damaged = |damage: fn(&mut Run)| {
        let mut run = case.runs[0].clone();
        damage(&mut run);
        of_run(&case.config, &run).unwrap_or_default()
    };
    assert_eq!(damaged(|_| ()), "");
    let told = damaged(|run| run.flows[1].totals.bytes = 64 * 10_000);
    let wanted = "moved 640000 bytes in 10000 messages of 1048576 bytes (flow large)";
    assert_eq!(told, wanted);
    let told = damaged(|run| run.nodes[0].workers[0].messages = 6_000_000);
    assert_eq!(told, "has 6010000 messages, and its workers 6000000");
}
