//! A run that can be is left alone, and what cannot be is named. Damages are values in the run's JSON.

use serde::{Serialize, de::DeserializeOwned};

use super::*;
use crate::model::{
    Bandwidth, CLIENT, ConnectStep, FlowConfig, Latency, Received, SERVER, Timeline, WorkerResult,
};
use crate::sample::{self, fairness, limits, qp_timeline, rows, window, with};

fn config() -> CaseConfig {
    let both_ways = ("bidirectional", "true");
    Settings::from([("size", "100"), ("qps", "2"), ("tx-depth", "4"), both_ways]).into()
}

fn percentiles() -> Latency {
    let figures = "count=1000; min=10; mean=25.0; stddev=3.0; p50=20; p90=30; p95=30; p99=40; p99_9=50; p99_99=60; max=70";
    with(&Latency::default(), figures)
}

fn moved(flow: &FlowConfig) -> FlowResult {
    let mut made = sample::flow_of(&flow.name, 100, &[1000, 3000]);
    for qp in &mut made.qps {
        qp.latency_ns = Some(percentiles());
    }
    FlowResult {
        window: window(2.0),
        latency_ns: Some(percentiles()),
        bandwidth_gbit_per_s: Bandwidth::of_intervals(1.0, [0.0016; 2].into_iter()),
        // 4000² / (2 × (1000² + 3000²))
        fairness: fairness(0.8, 0.5, 1.5),
        limits: limits(0.004, 0.8, Some(0.5)),
        ..made
    }
}

/// A run of two flows, one in each direction.
fn sound() -> Run {
    let flows = config().flows;
    let mut forward = moved(&flows[0]);
    forward.received = Some(Received { messages: 3998, bytes: 399_800, window_seconds: Some(2.0) });
    forward.timeline = Some(Timeline {
        interval_seconds: 1.0,
        at_seconds: vec![1.0, 2.0],
        messages: vec![2000, 2000],
        longest_stall_seconds: Some(0.0),
    });
    forward.qp_timeline = qp_timeline(1.0, vec![vec![400, 600], vec![3000, 0]]);
    let worker = |messages| WorkerResult {
        messages,
        away_seconds: Some(0.01),
        cpu_seconds: Some(1.99),
        polls: 10,
        empty_polls: 4,
        ..WorkerResult::default()
    };
    Run {
        nodes: [CLIENT, SERVER]
            .map(|name| NodeResult {
                workers: vec![worker(2500), worker(1500)],
                ..NodeResult::named(name)
            })
            .into(),
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
        ..sample::run(vec![forward, moved(&flows[1])])
    }
}

/// Half of what the first flow sends does not come, all of it on one QP.
fn lossy() -> Run {
    let mut run = sound();
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
    run
}

#[test]
fn what_can_be_is_left_alone() {
    let mut small = sound();
    for flow in &mut small.flows {
        flow.qps.clear();
        (flow.latency_ns, flow.limits) = (None, None);
        (flow.timeline, flow.qp_timeline, flow.received) = (None, None, None);
    }
    // Rounding, and the windows of several workers.
    let near = with(&sound(), "flows/0/totals/gbit_per_s=0.001624");
    // A QP's rate is by its worker's window.
    let late = "nodes/0/workers/1/window_seconds=1.6; nodes/0/workers/1/cpu_seconds=1.59; \
                flows/0/qps/1/gbit_per_s=0.0015";
    // Set up without traffic meanwhile.
    let idle = with(&sound(), "flows=[]; nodes=[]");
    let small = with(&small, "nodes=[]; connect=null");
    for run in [sound(), small, near, with(&sound(), late), lossy(), idle] {
        assert_eq!(check_run(&config(), &run), Ok(()));
    }
    assert_eq!(check_run(&CaseConfig::default(), &Run::default()), Ok(()));
}

const DAMAGES: &str = r#"
flows/0/totals/gbit_per_s=null | lacks gbit_per_s, which is 0.0016
flows/0/totals/mmsg_per_s=null | lacks mmsg_per_s, which is 0.0020
flows/0/totals/gbit_per_s=-0.0016 | has flows[0].totals.gbit_per_s of -0.0016, which is below 0
flows/0/totals/gbit_per_s=1.6 | 1.6000, and its other figures give 0.0016
flows/0/totals/mmsg_per_s=0.00205 | and its other figures give 0.0020
flows/0/totals/messages=4001 | moved 400000 bytes in 4001 messages of 100 bytes
flows/0/totals/bytes=400001 | moved 400001 bytes in 4000 messages
flows/1/totals/gbit_per_s=null | lacks gbit_per_s, which is 0.0016 by its other figures (flow reverse)
flows/0/window/seconds=0.0 | gbit_per_s of 0.0016 in a time of 0 s
flows/0/window/seconds=-2.0 | flows[0].window.seconds of -2
flows/0/window/seconds=2.2 | and its other figures give
flows/0/qps/0/messages=999 | has 4000 messages, and its QPs 3999
flows/0/qps/0/bytes=18446744073709551615 | has 400000 bytes, and its QPs
flows/0/qps/1/gbit_per_s=-1.0 | flows[0].qps[1].gbit_per_s of -1
flows/0/qps/1/gbit_per_s=0.0016 | gbit_per_s of QP 1
flows/0/qps/1/latency_ns/p50=41 | latency of QP 1 with p50 41 ns
flows/0/latency_ns/p99=51 | latency with p99 51 ns above p99.9 50 ns
flows/0/latency_ns/max=55 | p99.99 60 ns above max 55 ns
flows/0/latency_ns/p99=null | lacks p99 of latency with 1000 samples
flows/0/latency_ns/min=21 | min 21 ns above p50 20 ns
flows/0/latency_ns/count=0 | latency without a sample
flows/0/latency_ns/overflows=1001 | latency with 1001 overflows of 1000 samples
flows/0/latency_ns/mean=71.0 | a mean latency of 71 ns, outside its samples
flows/0/latency_ns/stddev=-1.0 | flows[0].latency_ns.stddev of -1
flows/0/fairness=null | lacks the fairness of its 4000 messages
flows/0/fairness/jain=1.2 | fairness 1.2 with shares
flows/0/fairness/jain=-0.1 | flows[0].fairness.jain of -0.1
flows/0/fairness/jain=0.9 | fairness 0.9000, and its QPs give 0.8000
flows/0/fairness/min_share=1.1 | with shares from 1.1
flows/0/fairness/max_share=0.9 | to 0.9
nodes/0/workers/0/messages=2501 | has 4000 messages, and its workers 4001
nodes/0/workers/0/away_seconds=-1.0 | nodes[0].workers[0].away_seconds of -1
nodes/0/workers/0/away_seconds=2.5 | a worker's time away of 2.500 s in a window of 2.000 s
nodes/0/workers/0/cpu_seconds=-1.0 | nodes[0].workers[0].cpu_seconds of -1
nodes/0/workers/0/cpu_seconds=2.5 | a worker's CPU time of 2.500 s in a window of 2.000 s
nodes/0/workers/0/empty_polls=11 | 11 empty polls of 10
flows/0/limits/share_of_limit=1.5 | a share of the limit of 1.5
flows/0/limits/protocol_efficiency=1.1 | efficiency of 1.1, above 1
flows/0/limits/link_gbit_per_s=0.0 | a link (Gb/s) of 0
flows/0/received/bytes=1 | received 1 bytes in 3998 messages
flows/0/received/window_seconds=0.0 | the receiver's window of 0
flows/0/timeline/messages=[1800,2000] | has 4000 messages, and its timeline 3800
flows/0/timeline/messages=[2000,2000,1] | 2 times and 3 counts
flows/0/timeline/at_seconds=[1.0,0.5] | 0.5 s comes after 1 s
flows/0/timeline/at_seconds=[1.0,3.0] | timeline of 3.000 s in a window of 2.000 s
flows/0/timeline/interval_seconds=0.0 | interval (s) of 0
flows/0/timeline/longest_stall_seconds=-1.0 | timeline.longest_stall_seconds of -1
flows/0/qp_timeline/messages=[[400,600],[3000,7]] | has 3000 messages on QP 1, and its timeline 3007
flows/0/qp_timeline/messages=[[400,600,0],[3000,0]] | has a timeline of QPs of 2 times and 3 counts
flows/0/qp_timeline/messages=[[400,600]] | has 2 QPs, and timelines of 1
flows/0/qp_timeline/at_seconds=[2.0,2.0] | has a timeline of QPs in which 2 s comes after 2 s
flows/0/bandwidth_gbit_per_s/min=-0.1 | bandwidth_gbit_per_s.min of -0.1
flows/0/bandwidth_gbit_per_s/p50=0.1 | bandwidth with p50 0.1 Gb/s above max 0.0016 Gb/s
connect/connections=99 | has 99 connections, and its rounds of all QPs 100
connect/connections_per_second=null | lacks connections a second
connect/connections_per_second=500.0 | give 50.0000
connect/setup_ns=null | lacks the times of its 50 rounds
connect/setup_ns/p99=5 | set-up with p95 30 ns above p99 5 ns
connect/steps/0/time_ns/max=5 | rtr of set-up with
connect/traffic_alone_gbit_per_s=-0.5 | connect.traffic_alone_gbit_per_s of -0.5
"#;

const DAMAGES_OF_LOSSY: &str = "
flows/0/delivery/goodput_gbit_per_s=-1.0 | delivery.goodput_gbit_per_s of -1.0, which is below 0
flows/0/delivery/goodput_gbit_per_s=0.0016 | goodput (Gb/s) of 0.0016, and its other figures give 0.0008
flows/0/delivery/goodput_mmsg_per_s=null | lacks goodput (Mmsg/s), which is 0.0010
flows/0/qps/1/lost=1999 | has 2000 lost messages, and its QPs 1999
flows/0/limits/share_of_limit=0.5 | a share of the limit of 0.5000, and its other figures give 0.2500
flows/0/delivery/lost_share=0.1 | a share of lost messages of 0.1000, and its other figures give 0.5000
";

/// The text behind each damage names it.
fn assert_named<T>(sound: &T, table: &str, check: impl Fn(&T) -> Check)
where
    T: Serialize + DeserializeOwned,
{
    for [damage, words] in rows(table) {
        let reason = check(&with(sound, damage)).err().unwrap_or_default();
        assert!(reason.contains(words), "{damage}, {words}: {reason:?}");
    }
}

#[test]
fn what_cannot_be_is_named() {
    assert_named(&sound(), DAMAGES, |run| check_run(&config(), run));
    assert_named(&lossy(), DAMAGES_OF_LOSSY, |run| check_run(&config(), run));
    let mut fewer = sound();
    fewer.flows.pop();
    let reason = check_run(&config(), &fewer).unwrap_err();
    assert_eq!(reason, "has 3998 messages, and its workers 4000");
}

#[test]
fn each_flow_is_checked_by_its_own_settings_and_workers_by_all_of_their_node() {
    let case = &sample::mixed().cases[0];
    assert_eq!(check_run(&case.config, &case.runs[0]), Ok(()));
    let damages = "
flows/1/totals/bytes=640000 | moved 640000 bytes in 10000 messages of 1048576 bytes (flow large)
nodes/0/workers/0/messages=6000000 | has 6010000 messages, and its workers 6000000
";
    assert_named(&case.runs[0], damages, |run| check_run(&case.config, run));
}

#[test]
fn loads_that_can_be_are_left_alone() {
    let mut cases = sample::open_loop().cases;
    let sampled = "flows/0/service_ns/count=35546; flows/0/lateness_ns/count=35546";
    // After a stall more completes than is offered.
    let stalled = "flows/0/load/offered=900000; flows/0/load/offered_per_second=450000.0; \
                   flows/0/latency_ns/count=900000; flows/0/service_ns/count=900000; \
                   flows/0/lateness_ns/count=900000";
    for (case, change) in [(3, sampled), (1, stalled)] {
        cases[case].runs[0] = with(&cases[case].runs[0], change);
    }
    for case in &cases {
        assert_eq!(check_run(&case.config, &case.runs[0]), Ok(()), "{}", case.id);
    }
}

const DAMAGES_OF_LOADS: &str = "
flows/0/load=null | lacks the load of --rate 50%
flows/0/load/offered=1200001 | has 1200000 latencies, and there were offered 1200001
flows/0/service_ns=null | has 0 service times of 1200000 messages sent
flows/0/lateness_ns/count=1200001 | has 1200001 times of lateness of 1200000 messages sent
flows/0/load/never_sent=1200001 | 1200001 messages never sent of 1200000 offered
flows/0/load/queue_full_messages=18446744073709551615 | messages at full send queues of
flows/0/load/queue_full_seconds=-1.0 | load.queue_full_seconds of -1
flows/0/load/asked_per_second=0.0 | a load (messages/s) of 0, which is not above 0
flows/0/load/maximum_per_second=null | lacks the maximum that --rate 50% is a share of
flows/0/load/asked_per_second=660000.0 | a load of 660000.0 messages a second, and --rate 50% is 600000.0
flows/0/load/maximum_per_second=-1.0 | load.maximum_per_second of -1.0, which is below 0
flows/0/load/maximum_per_second=0.0 | maximum (messages/s) of 0, which is not above 0
flows/0/load/offered_per_second=9e9 | offered_per_second of 9000000000.0000, and its
flows/0/load/achieved_per_second=300000.0 | achieved_per_second of 300000.0000, and its
flows/0/latency_ns/mean=2400.0 | a mean latency of 2400 ns, below the mean service time of 2503
flows/0/lateness_ns/p50=5000 | has lateness with p50 5000 ns above p90
";

#[test]
fn loads_that_cannot_be_are_named() {
    let cases = sample::open_loop().cases;
    assert_named(&cases[1].runs[0], DAMAGES_OF_LOADS, |run| check_run(&cases[1].config, run));
    // Of messages that were never sent there is no lateness.
    let late = "flows/0/lateness_ns/count=2280000 | \
                has 2280000 times of lateness of 2275000 messages sent";
    assert_named(&cases[3].runs[0], late, |run| check_run(&cases[3].config, run));
    let mut closed = cases[0].runs[0].clone();
    closed.flows[0].load = cases[1].runs[0].flows[0].load.clone();
    let reason = check_run(&cases[0].config, &closed).unwrap_err();
    assert_eq!(reason, "has a load, and is a closed loop");
}

#[test]
fn searches_that_cannot_be_are_named() {
    let search = sample::search(3);
    assert_eq!(check_search(&search), Ok(()));
    assert_eq!(check_search(&with(&search, "end=stopped")), Ok(()));
    let damages = "
upper_per_second=null | lacks one of its bounds
upper_per_second=7e5 | lower bound of 732000 above
lower_per_second=-1.0 | lower_per_second of -1.0, which is below 0
lower_per_second=0.0 | a lower bound of 0
trials=[] | no trial kept it
trials/0/asked_per_second=0.0 | a trial's load
trials/0/achieved_per_second=-1.0 | trials[0].achieved_per_second of -1
end=none_keeps | has one that does
end=all_keep; lower_per_second=null | lacks the load that keeps it
";
    assert_named(&search, damages, check_search);
}
