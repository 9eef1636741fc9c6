//! A soak's samples are of the same QPs, whatever these were used for: what a worker has left behind is right for the next one.

use std::sync::atomic::{AtomicBool, Ordering};

use machine::threads::CoreLocks;
use node::resources::{NodeOptions, PortRequest};
use plan::{Nodes, Sweep};
use results::{load::load, model::Run};
use rocebench::coordinator::interface::{Ends, Observer, SweepOptions, Target};
use rocebench::coordinator::soak::{Samples, Soak, Taken};
use settings::Given;
use testing::program::call;

struct Nobody;

impl Observer for Nobody {}

/// The run of each of three samples.
fn samples(words: &str) -> Vec<Run> {
    let own = words.split_whitespace().map(|word| word.split_once('=').unwrap());
    let has_acks = !words.contains("service=ud");
    let patience = has_acks.then_some(("timeout", "18"));
    let usual = [("warmup", "1ms"), ("size", "64")].into_iter().chain(patience);
    let given = usual.chain(own).collect::<Given>();
    let locks = tempfile::tempdir().unwrap();
    let request = PortRequest { device: Some("soft0".to_owned()), ..PortRequest::default() };
    let resources = NodeOptions {
        core_locks: CoreLocks::within(locks.path().to_owned()),
        ..NodeOptions::system(request, None)
    };
    let sweep = Sweep::with_flows(&given, &[], Nodes::TwoEnds).unwrap();
    let options = SweepOptions::new(sweep, Ends::new(Target::Local, resources));
    let (stop, mut observer) = (AtomicBool::new(false), Nobody);
    let mut soak = Soak::begin(&options, &stop, &mut observer).unwrap();
    let runs = (0..3)
        .map(|_| match soak.take() {
            Taken::Sample(mut sample) => sample.cases.remove(0).runs.remove(0),
            other => panic!("{words}: {other:?}"),
        })
        .collect();
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(soak.take(), Taken::Stopped));
    runs
}

/// Three samples are whole, and of the same QPs.
fn keeps_its_qps(words: &str) {
    let runs = samples(words);
    let numbers = |run: &Run| -> Vec<u32> {
        run.flows.iter().flat_map(|flow| &flow.qps).map(|qp| qp.qpn).collect()
    };
    for (run, expected) in runs.iter().zip(1..) {
        assert!(run.complete, "{words}: {:?}", run.failure);
        assert_eq!((run.run, numbers(run)), (expected, numbers(&runs[0])), "{words}");
        assert!(run.flows.iter().all(|flow| flow.totals.messages > 0), "{words}");
    }
    assert!(!numbers(&runs[0]).is_empty(), "{words}");
}

#[test]
fn each_kind_of_traffic_goes_on_with_the_qps_of_the_sample_before() {
    for words in [
        "op=send qps=3 iters=37",
        "op=send qps=3 iters=37 verify=true",
        "op=write qps=2 iters=50 verify=true",
        "op=read qps=2 iters=50 signal-every=4 tx-depth=8",
        // Receives are posted in chains, of which a part is used up at each end.
        "op=send qps=2 iters=29 rx-depth=64 recv-queue=shared",
        "op=send qps=4 iters=31 workers=2 cq=shared",
        "op=send qps=4 iters=31 bidirectional=true cq=per-qp",
        "op=send qps=2 iters=33 service=ud",
        "op=fetch-add qps=2 iters=33 verify=true",
        // Messages that come to memory alone have numbers.
        "op=write qps=2 iters=33 ping-pong=true",
        "op=send qps=2 iters=33 ping-pong=true",
        "op=send qps=2 iters=33 ping-pong=true service=ud",
        "op=send qps=4 iters=40 spread=round-robin",
        "op=send qps=2 duration=500ms poll=event",
        "op=write qps=2 duration=500ms rate=2000",
    ] {
        keeps_its_qps(words);
    }
}

/// A line, a run and a count of figures for each, whatever it is worth.
#[test]
fn the_command_shows_keeps_and_counts_each_sample() {
    let words = "soak -d soft0 --timeout 18 --warmup 0 -s 64 --sample 300ms --for 1s";
    let ended = call(words).args(&["--openmetrics", "soak.prom"]).run();
    let found = load(&[ended.folder().join("results/soak")]);
    let runs: usize = found.results.iter().map(|it| it.result.cases[0].runs.len()).sum();
    assert!(runs > 0 && found.refused.is_empty(), "{}", ended.output());
    assert_eq!(ended.stdout.lines().count(), runs, "{}", ended.output());
    let figures = std::fs::read_to_string(ended.folder().join("soak.prom")).unwrap();
    let samples = figures.lines().filter(|line| line.starts_with("rocebench_samples_total{"));
    let counts = samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    assert_eq!(counts.sum::<f64>(), runs as f64, "{figures}");
}
