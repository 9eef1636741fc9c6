use super::super::model::{CaseResult, Doubt, DoubtKind};
use super::super::sample;
use super::*;

fn table(cases: &[CaseResult]) -> String {
    let mut out = Vec::new();
    let mut table = Table::new(&mut out);
    for case in cases {
        for run in &case.runs {
            table.run(&case.config, run).unwrap();
        }
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn rows_are_aligned_below_one_header() {
    insta::assert_snapshot!(table(&sample::result().cases), @r"
    op        cq          QPs    size wrk  Gbit/s  Mmsg/s  p50 µs  p99 µs p99.9 µs  Jain CPU s/GB limit
    send      shared        2  64 KiB   1  93.323   0.178   5.503  10.895   10.991 0.990   0.0750 95.1%
    write out shared        2  64 KiB   1  0.0393 0.00007       -       -        - 0.990   178.02     - interrupted, event, cm, receiver not ready 3
    write in  shared        2  64 KiB   1  0.0393 0.00007   5.503  10.895   10.991 0.990   178.02 95.1% interrupted, event, cm
    ");
}

#[test]
fn a_flow_has_its_row_with_its_name_and_settings() {
    insta::assert_snapshot!(table(&sample::mixed().cases), @r"
    op        cq          QPs    size wrk  Gbit/s  Mmsg/s  p50 µs  p99 µs p99.9 µs  Jain CPU s/GB limit
    write     shared        3    64 B   1   1.536   3.000   5.503  10.895   10.991 1.000    0.161     - small
    read      shared        2   1 MiB   1  41.943 0.00500   5.503  10.895   10.991 1.000    0.161     - large
    send      shared        1   4 KiB   1   4.915   0.150   5.503  10.895   10.991 1.000    1.424     - back
    ");
    let mut cases = sample::mixed().cases;
    cases[0].config.flows[2].to = "third".to_owned();
    cases[0].runs[0].flows[2].to = "third".to_owned();
    let table = table(&cases);
    assert!(table.ends_with(" back server → third\n"), "{table}");
}

#[test]
fn normal_rows_fit_110_columns() {
    let mut cases = sample::result().cases;
    cases.truncate(1);
    cases[0].config.op = settings::Op::Write.into();
    cases[0].config.cq = settings::CqMode::PerWorker;
    cases[0].config.qps = 4096;
    cases[0].config.verify = true;
    let case = &mut cases[0];
    case.config.bidirectional = true;
    case.config = case.config.settings.clone().into();
    let run = &mut case.runs[0];
    run.flows.push(run.flows[0].clone());
    let latency = run.flows[0].latency_ns.as_mut().unwrap();
    (latency.p50, latency.p99, latency.p99_9) = (999_999, Some(12_345_678), Some(123_456_789));
    run.flows[0].totals.gbit_per_s = Some(399.999);
    for line in table(&cases).lines() {
        assert!(line.chars().count() <= 110, "{line}");
    }
}

#[test]
fn flags_say_what_the_figures_do_not() {
    let case = &sample::result().cases[0];
    let flags_of = |change: fn(&mut CaseConfig, &mut Run)| {
        let (mut config, mut run) = (case.config.clone(), case.runs[0].clone());
        change(&mut config, &mut run);
        flags(&config, &run, &run.flows[0])
    };
    assert_eq!(flags_of(|_, _| ()), "");
    assert_eq!(flags_of(|config, _| config.verify = true), "verify ok");
    let adaptive = flags_of(|config, _| config.poll = settings::PollMode::Adaptive);
    assert_eq!(adaptive, "adaptive");
    let by_cm = flags_of(|config, _| config.connect = settings::ConnectMode::Cm);
    assert_eq!(by_cm, "cm");
    assert_eq!(flags_of(|_, run| run.complete = false), "incomplete");
    assert_eq!(flags_of(|_, run| run.run = 3), "run 3");
    let unsteady = flags_of(|_, run| run.flows[0].window.warmup_steady = Some(false));
    assert_eq!(unsteady, "unsteady");
    let doubtful = flags_of(|_, run| {
        run.flows[0].window.doubts.push(Doubt {
            kind: DoubtKind::EdgeMissed,
            message: String::new(),
        });
        let start = run.flows[0].window.doubts[0].clone();
        run.flows[0].window.doubts.push(start);
    });
    assert_eq!(doubtful, "edge missed", "once for both edges");
    let mismatch = flags_of(|config, run| {
        config.verify = true;
        run.complete = false;
        run.failure = Some(Default::default());
        run.flows[0].totals.errors = 1;
    });
    assert_eq!(mismatch, "failed, 1 error");
    let lost = flags_of(|_, run| run.flows[0].received.as_mut().unwrap().messages /= 2);
    assert_eq!(lost, "received 50.0%");
    let longer = flags_of(|_, run| {
        let flow = &mut run.flows[0];
        let received = flow.received.as_mut().unwrap();
        received.messages *= 2;
        received.window_seconds = Some(2.0 * flow.window.seconds);
    });
    assert_eq!(longer, "", "at the same rate for longer");
}

#[test]
fn a_run_without_figures_shows_none() {
    let row = cells(
        &Settings::default(),
        &Run::default(),
        &FlowResult::default(),
        "",
    );
    assert!(row[5..].iter().all(|cell| cell == NOT_MEASURED), "{row:?}");
}

#[test]
fn the_summary_counts_and_names_the_files() {
    let mut out = Vec::new();
    let result = sample::result();
    let files = [Path::new("results/a.json"), Path::new("results/a.csv")];
    Table::new(&mut out).summary(&result, &files).unwrap();
    let text = String::from_utf8(out).unwrap();
    let expected = "2 cases, 2 runs, 1 not complete; written to results/a.json, .csv\n\
         latency is of one message in 4; -Q 1 times every message\n";
    assert_eq!(text, expected);
}

#[test]
fn runs_that_are_not_to_be_trusted_are_counted_below() {
    let mut result = sample::result();
    for case in &mut result.cases {
        case.config.signal_every = 1;
    }
    let mut doubt = |kind| {
        let mut out = Vec::new();
        let doubts = &mut result.cases[0].runs[0].flows[0].window.doubts;
        doubts.push(Doubt {
            kind,
            message: String::new(),
        });
        Table::new(&mut out).summary(&result, &[]).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(doubt(DoubtKind::Drift).lines().count(), 1);
    let text = doubt(DoubtKind::WindowLength);
    assert!(text.contains("\n1 run has a worker that missed"), "{text}");
}

#[test]
fn software_devices_are_marked_below() {
    let summary = |result: &ResultFile| {
        let mut out = Vec::new();
        Table::new(&mut out).summary(result, &[]).unwrap();
        String::from_utf8(out).unwrap()
    };
    let mut result = sample::result();
    for case in &mut result.cases {
        case.config.signal_every = 1;
    }
    assert_eq!(summary(&result).lines().count(), 1);
    let device = &mut result.nodes[0].devices[0];
    (device.software, device.library) = (true, "embedded".to_owned());
    device.name = "soft0".to_owned();
    result.nodes[1].devices = result.nodes[0].devices.clone();
    assert_eq!(summary(&result).lines().count(), 2, "one of both nodes");
    let peer = &mut result.nodes[1].devices[0];
    (peer.name, peer.library, peer.faults) = ("rxe0".to_owned(), "libibverbs".to_owned(), None);
    let text = summary(&result);
    let marks: Vec<_> = text.lines().skip(1).collect();
    assert_eq!(
        marks,
        [
            "soft0 is the embedded software device, with faults on purpose (seed=7,drop=0.05): no figure here is a \
             network adapter's",
            "at the other end rxe0 is a software device: no figure here is a network adapter's",
        ]
    );
}
