//! The table as it is printed, and the words below it.

use hdrhistogram::Histogram;
use results::{
    model::{CaseResult, Doubt, DoubtKind, REVERSE},
    sample::{self, doubt, has, rows, with},
};

use super::*;
use crate::observe::format::NOT_MEASURED;

const COLUMNS_80: Screen = Screen { columns: 80, is_coloured: false };

fn assert_within_80(table: &str) {
    let widest = table.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{table}");
}

fn table(cases: &[CaseResult]) -> String {
    table_on(Screen::ENDLESS, cases)
}

fn table_on(screen: Screen, cases: &[CaseResult]) -> String {
    let settings: Vec<Settings> =
        cases.iter().flat_map(CaseResult::flows).map(|flow| flow.settings).collect();
    sample::text(|out| {
        let mut table = Table::new(out, screen, &settings);
        for (case, run) in
            cases.iter().flat_map(|case| case.runs.iter().map(move |run| (case, run)))
        {
            table.run(&case.config, run)?;
        }
        Ok(())
    })
}

#[test]
fn rows_are_aligned_below_one_header() {
    insta::assert_snapshot!(table(&sample::result().cases), @r"
    CQ shared · 64 KiB · 2 QPs · 1 worker · signalled 1 in 4 · windows of 2s · MTU 4096
    op    poll  connect verify dir    Gb/s   Mmsg/s    p50 µs    p99 µs  p99.9 µs    max µs CPU s/GB limit %
    send  busy  tcp     false       93.323   0.1780      5.50     10.89     10.99     11.01    0.086    95.1
    write event cm      true   out  (0.039 0.000075         -         -         -         -  101.725       -) interrupted, receiver not ready 3
    write event cm      true   in   (0.039 0.000075      5.50     10.89     10.99     11.01  101.725    95.1) interrupted
    ");
}

#[test]
fn a_flow_has_its_row_with_its_name_and_settings() {
    insta::assert_snapshot!(table(&sample::mixed().cases), @r"
    CQ shared · 1 worker · MTU 4096
    op     size qps    Gb/s   Mmsg/s    p50 µs    p99 µs  p99.9 µs    max µs CPU s/GB
    write  64 B   3   1.536   3.0000      5.50     10.89     10.99     11.01    0.165 small
    read  1 MiB   2  41.943   0.0050      5.50     10.89     10.99     11.01    0.165 large
    send  4 KiB   1   4.915   0.1500      5.50     10.89     10.99     11.01    0.165 back
    ");
    let mut cases = sample::mixed().cases;
    cases[0].config.flows[2].to = "third".to_owned();
    cases[0].runs[0].flows[2].to = "third".to_owned();
    let table = table(&cases);
    assert!(table.ends_with(" back server → third\n"), "{table}");
}

#[test]
fn all_flows_of_a_pattern_are_one_row_and_rounds_of_pairs_none() {
    let mesh = sample::mesh::Mesh::quiet(9).runs(1);
    let mut incast = mesh.incast(&[1, 8]);
    let text = table(&incast.cases);
    let rows: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(rows.len(), 2, "{text}");
    // What eight flows move together is what one moves alone, and they are even.
    for (row, flows) in rows.iter().zip([" 1 flow", " 8 flows"]) {
        has(row, [" 9.4"]);
        assert!(!row.contains("Jain"), "{row}");
        assert!(row.ends_with(flows), "{text}");
    }
    assert_eq!(table(&mesh.pairs().cases), "");
    let doubt = Doubt {
        kind: DoubtKind::NotTogether,
        message: "that of node1>node2 opened late".to_owned(),
    };
    for flow in &mut incast.cases[1].runs[0].flows {
        flow.window.doubts = vec![doubt.clone()];
    }
    assert!(table(&incast.cases).ends_with("8 flows, not together\n"));
    has(summary(&incast), ["1 does not count (1 not together)"]);
}

#[test]
fn columns_are_as_wide_as_the_longest_word() {
    let mut cases = sample::mixed().cases;
    let settings = &mut cases[0].config.flows[1].settings;
    settings.insert("op".to_owned(), "compare-swap".into());
    insta::assert_snapshot!(table(&cases), @r"
    CQ shared · 1 worker · MTU 4096
    op            size qps    Gb/s   Mmsg/s    p50 µs    p99 µs  p99.9 µs    max µs CPU s/GB
    write         64 B   3   1.536   3.0000      5.50     10.89     10.99     11.01    0.165 small
    compare-swap     -   2  41.943   0.0050      5.50     10.89     10.99     11.01    0.165 large
    send         4 KiB   1   4.915   0.1500      5.50     10.89     10.99     11.01    0.165 back
    ");
}

#[test]
fn open_loops_are_told_by_their_loads_within_80_columns() {
    insta::assert_snapshot!(table(&sample::open_loop().cases), @r"
    write · CQ shared · 64 B · 2 QPs · 1 worker · windows of 2s · MTU 4096
    load   offered k/s done k/s   Gb/s   p50 µs   p99 µs p99.9 µs late p99 µs schedule
    closed           -  1200.00  0.614     4.50     8.91     8.99           - -
    50%         600.00   600.00  0.307     3.00     5.94     6.00        0.99 kept
    80%        (960.00   959.00  0.491     4.50     8.91     8.99       13.86 not kept)
    95%        1140.00  1100.00  0.563    45.02    89.15    89.92        0.99 overloaded
    ");
    let mut cases = sample::open_loop().cases;
    for (case, qps) in cases.iter_mut().zip([1, 4, 16, 1024]) {
        case.config.settings.qps = qps;
        case.config.flows[0].settings.clear();
    }
    let table = table_on(COLUMNS_80, &cases);
    assert_within_80(&table);
    insta::assert_snapshot!(table.lines().take(3).collect::<Vec<_>>().join("\n"), @r"
    write · CQ shared · 64 B · 1 worker · windows of 2s · MTU 4096
     qps load   offered k/s done k/s   p50 µs   p99 µs schedule
       1 closed           -  1200.00     4.50     8.91 -
    ");
}

#[test]
fn what_all_open_loops_have_is_told_once() {
    let mut cases = sample::open_loop().cases;
    for case in &mut cases[1..] {
        case.config.settings.poll = settings::PollMode::Event;
        case.config.settings.arrivals = settings::Arrivals::Fixed;
    }
    let table = table(&cases[1..]);
    let head = "write · CQ shared · 64 B · 2 QPs · 1 worker · event · fixed arrivals · windows of 2s · MTU 4096\n";
    assert!(table.starts_with(head), "{table}");
    let repeated = ["event", "fixed"].map(|word| table.matches(word).count());
    assert_eq!(repeated, [1, 1], "{table}");
}

#[test]
fn traffic_both_ways_at_a_load_is_told_apart() {
    let mut case = sample::open_loop().cases.remove(1);
    let run = &mut case.runs[0];
    let mut reverse = run.flows[0].clone();
    [reverse.name, reverse.from, reverse.to] = [REVERSE, "server", CLIENT].map(str::to_owned);
    run.flows.push(reverse);
    case.config.settings.bidirectional = true;
    case.config = case.config.settings.clone().into();
    let table = table(&[case]);
    let ends = table.lines().skip(2).filter_map(|line| line.split(' ').next());
    assert!(ends.eq(["out", "in"]), "{table}");
}

fn summary(result: &ResultFile) -> String {
    summary_of(result, &[])
}

/// The summary, with the findings' ids in place of their words.
fn summary_of(result: &ResultFile, files: &[&Path]) -> String {
    let mut report = Findings::new(result);
    for finding in &mut report.findings {
        finding.text = finding.id.to_owned();
    }
    sample::text(|out| Table::new(out, Screen::ENDLESS, &[]).summary(result, &report, files))
}

#[test]
fn below_loads_stands_what_spoilt_them_and_what_searches_found() {
    insta::assert_snapshot!(summary(&sample::open_loop()), @r"
    search_found
    full_send_queues
    never_sent
    latency_kept
    unreliable_runs
    Also: overload (1 of 4).
    4 cases, 4 runs; 1 does not count (1 schedule not kept)
    ");
}

#[test]
fn rows_fit_80_columns_with_their_remarks() {
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
    (latency.p50, latency.p99, latency.p99_9) =
        (Some(999_999), Some(12_345_678), Some(123_456_789));
    run.flows[0].totals.gbit_per_s = Some(399.999);
    let mut other = cases[0].clone();
    other.config.tx_depth = 16;
    other.config.mtu = "1024".parse().ok();
    let flow = &mut other.runs[0].flows[1];
    flow.window.warmup_steady = Some(false);
    flow.fairness.as_mut().unwrap().jain = 0.5;
    cases.push(other);
    let table = table_on(COLUMNS_80, &cases);
    assert_within_80(&table);
    insta::assert_snapshot!(table, @r"
    write · CQ per-worker · 64 KiB · 4096 QPs · 1 worker · signalled 1 in 4 ·
      bidirectional · windows of 2s
     tx  MTU dir    Gb/s   Mmsg/s    p50 µs    p99 µs  p99.9 µs
    128 auto out 399.999   0.1780   1000.00  12345.68 123456.79 verify ok
    128 auto in   93.323   0.1780      5.50     10.89     10.99 verify ok
     16 1024 out 399.999   0.1780   1000.00  12345.68 123456.79 verify ok
     16 1024 in   93.323   0.1780      5.50     10.89     10.99 unsteady +2
    ");
    let coloured = Screen { is_coloured: true, ..COLUMNS_80 };
    let painted = table_on(coloured, &cases);
    has(&painted, ["\x1b[33munsteady +2\x1b[0m"]);
}

#[test]
fn flags_say_what_the_figures_do_not() {
    let case = &sample::result().cases[0];
    for [of_case, of_run, flags] in rows(
        r#"
qps=2 | run=1 |
qps=2 | complete=false | incomplete
qps=2 | run=3 | run 3
qps=2 | flows/0/window/warmup_steady=false | unsteady
qps=2 | flows/0/received/messages=178000 | received 0.50×
qps=2 | flows/0/received/messages=712000; flows/0/received/window_seconds=4.0 |
verify=true | run=1 | verify ok
verify=true | complete=false; failure={"message":"","hint":null}; flows/0/totals/errors=1 | failed, 1 error
qps=2 | flows/0/window/doubts=[{"kind":"edge_missed","message":"first"},{"kind":"edge_missed","message":"last"}] | edge missed
qps=2 | flows/0/delivery={"sent":400,"received":300,"lost":100,"lost_share":0.25,"goodput_gbit_per_s":null,"goodput_mmsg_per_s":null}; flows/0/received/messages=178000 | lost 25.0 %
service=uc | run=1 | losses not known
"#,
    ) {
        let (config, run) = (with(&case.config, of_case), with(&case.runs[0], of_run));
        let row = RowOf::new(&config, (&run, &run.flows[0]), standing::of_run(&run));
        let columns = Columns::new((&[], &[]), (&config, &run), 80);
        let remarks: Vec<String> =
            columns::of_row(&row, &columns).into_iter().map(|(_, text)| text).collect();
        assert_eq!(remarks.join(", "), flags, "{of_case}; {of_run}");
    }
}

#[test]
fn a_run_without_figures_shows_none() {
    let (usual, nothing) = (&Settings::default(), (&Run::default(), &FlowResult::default()));
    let row = RowOf::new(usual, nothing, Standing::Counts);
    let open = Settings::from([("rate", "2M")]);
    let set_up = Settings::from([("op", "connect"), ("traffic-qps", "0")]);
    for settings in [Settings::default(), open, set_up] {
        let columns =
            Columns::new((&[settings], &[]), (&CaseConfig::default(), &Run::default()), 80);
        let cells: Vec<String> = columns.columns.iter().map(|column| column.cell(&row)).collect();
        assert!(cells.iter().all(|cell| cell == NOT_MEASURED), "{cells:?}");
    }
}

#[test]
fn the_summary_counts_and_names_the_files() {
    let files = [Path::new("results/a.json"), Path::new("results/a.csv")];
    let last = "2 cases, 2 runs; 1 does not count (1 stopped); written to results/a.json, .csv\n";
    assert!(summary_of(&sample::result(), &files).ends_with(last));
}

/// Figures that do not count stand in brackets, and their places do not move.
#[test]
fn figures_that_do_not_count_are_in_brackets() {
    let mut cases = sample::result().cases;
    cases.truncate(1);
    let plain = table_on(COLUMNS_80, &cases);
    let doubts = &mut cases[0].runs[0].flows[0].window.doubts;
    doubts.push(doubt(DoubtKind::EdgeMissed));
    let bracketed = table_on(COLUMNS_80, &cases);
    assert_within_80(&bracketed);
    let row = |table: &str| table.lines().last().unwrap().to_owned();
    let (plain, bracketed) = (row(&plain), row(&bracketed));
    assert_eq!(plain.find("93.323"), bracketed.find("93.323"));
    has(&bracketed, ["(93.323", ") edge missed"]);
}

#[test]
fn stamps_of_all_flows_are_put_together() {
    let flow = |ns: u64| {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record(ns).unwrap();
        FlowResult { notice_ns: Latency::from_histogram(&histogram, 0), ..FlowResult::default() }
    };
    let mut run = Run { flows: vec![flow(1000), flow(1500)], ..Run::default() };
    let sum = together(&run.flows);
    let notice = sum.notice_ns.map(|it| (it.count, it.min, it.max));
    assert_eq!((notice, sum.latency_ns), (Some((2, 1000, 1500)), None));
    run.flows[1].notice_ns = None;
    assert_eq!(together(&run.flows).notice_ns, None);
}

#[test]
fn a_row_keeps_its_name_as_long_as_there_is_room() {
    let remarks =
        [(Mark::Plain, "run 2"), (Mark::Doubtful, "resent 6")].map(|(mark, it)| (mark, it.into()));
    for (room, expected) in [
        (34, "block1 node0 → node1, resent 6 +1"),
        (33, "block1, resent 6 +1"),
        (19, "block1 +2"),
        (9, "resent 6 +1"),
    ] {
        let shown = shortened("block1 node0 → node1", &remarks, room).unwrap();
        let texts: Vec<String> = shown.into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts.join(", "), expected);
    }
    assert_eq!(shortened("alone", &[], 3), None);
}
