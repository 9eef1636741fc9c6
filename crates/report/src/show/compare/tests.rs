//! Each document of a comparison with something of everything, of flows, of loads and searches, and of many nodes.

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use quick_junit::Report;
use results::{
    load::{Found, Loaded},
    model::{
        CLIENT, CaseConfig, CaseResult, Device, FlowResult, Latency, LoadSearch, NodeResult,
        ResultFile, Run, SearchEnd, Tool, Totals, WorkerResult,
    },
    sample::{
        self, fairness, has,
        mesh::{Mesh, Slow},
        node, starts, text, window,
    },
};
use settings::Settings;

use super::*;
use crate::judge::compare::Options;
use crate::observe::Metric;

fn written(write: impl Fn(&Comparison, &mut Vec<u8>) -> io::Result<()>) -> String {
    text(|out| write(&comparison(), out))
}

/// Snapshots lie with all others.
fn snapshot(name: &str, text: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots");
    insta::with_settings!({ snapshot_path => path, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("compare__{name}"), text);
    });
}

#[test]
fn table_within_100_columns() {
    let table = written(|it, out| write_table(it, out));
    let widest = table.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{table}");
    snapshot("table", &table);
}

#[test]
fn markdown_for_a_pull_request() {
    snapshot("markdown", &written(|it, out| write_markdown(it, out)));
}

#[test]
fn json_is_read_back() {
    let json = written(|it, out| write_json(it, out));
    let read: Comparison = serde_json::from_str(&json).unwrap();
    let written = comparison();
    for (case, expected) in read.cases.iter().zip(&written.cases) {
        assert_eq!((&case.id, &case.config), (&expected.id, &expected.config));
        assert_eq!(case.verdict(), expected.verdict());
        for (figures, original) in case.metrics.iter().zip(&expected.metrics) {
            // Reading may be off in the last binary digit.
            assert!((figures.ratio.unwrap() - original.ratio.unwrap()).abs() < 1e-12);
        }
    }
    let sides = [read, written].map(|it| (it.base, it.only_in_new));
    assert_eq!(sides[0], sides[1]);
    let words = ["\"verdict\": \"slower\"", "\"metric\": \"gbit_per_s\""];
    has(&json, words);
}

#[test]
fn junit_is_read_as_such_and_counts() {
    let xml = written(|it, out| write_junit(it, out));
    let report = Report::deserialize_from_str(&xml).unwrap();
    let comparison = comparison();
    assert_eq!(report.test_suites.len(), comparison.cases.len() + 2);
    let figures = |verdict| {
        comparison
            .cases
            .iter()
            .flat_map(|case| &case.metrics)
            .filter(|it| it.verdict == verdict)
            .count()
    };
    let count = |verdict| figures(verdict) + comparison.over_all_with(verdict).len();
    let skipped = xml.matches("<skipped").count();
    assert_eq!(report.failures, count(Verdict::Slower));
    // The base has a case that is missing in the new results.
    assert_eq!(report.errors, comparison.cases_with(Verdict::NotComparable) + 1);
    assert_eq!(skipped, count(Verdict::Unclear));
    snapshot("junit", &xml);
}

#[test]
fn a_comparison_without_a_case_is_an_error() {
    let xml = text(|out| write_junit(&Comparison::default(), out));
    let report = Report::deserialize_from_str(&xml).unwrap();
    assert_eq!((report.tests, report.errors), (1, 1));
}

/// A victim alone and beside attackers, as cases beside perftest are.
#[test]
fn what_was_measured_in_turns_has_the_same_table_and_fails_nothing() {
    let comparison = Comparison::in_turns(&sample::cases(sample::beside())).unwrap();
    snapshot("in_turns", &text(|out| write_table(&comparison, out)));
    let junit = text(|out| write_junit(&comparison, out));
    has(&junit, ["failures=\"0\"", "<property name=\"verdict\" value=\"slower\">"]);
    assert_eq!(Comparison::in_turns(&sample::mixed()), None);
}

#[test]
fn bmf_keeps_to_its_schema() {
    // As in Bencher's reference of the format.
    let number = json!({ "type": "number" });
    let schema = json!({
        "type": "object",
        "patternProperties": { ".+": {
            "type": "object",
            "patternProperties": { ".+": {
                "type": "object",
                "properties": { "value": number, "lower_value": number, "upper_value": number },
                "additionalProperties": false,
                "required": ["value"]
            } }
        } }
    });
    let document = written(|it, out| write_bmf(it, out));
    let document: Value = serde_json::from_str(&document).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    let bandwidth = &document["write-per-qp-q4-1MiB"]["gbit_per_s"];
    let value = |name: &str| bandwidth[name].as_f64().unwrap();
    assert!(value("lower_value") < value("value") && value("value") < value("upper_value"));
    assert!(document.get("send-per-worker-q4-64KiB").is_none());
}

#[test]
fn the_action_gets_each_direction_apart() {
    let read = |bigger| -> Vec<Value> {
        serde_json::from_str(&written(|it, out| write_action(it, bigger, out))).unwrap()
    };
    let (bigger, smaller) = (read(true), read(false));
    assert_eq!((bigger.len(), smaller.len()), (4 * 3, 4 * 4));
    for entry in bigger.iter().chain(&smaller) {
        assert!(entry["value"].is_f64(), "{entry}");
        for name in ["name", "unit", "range", "extra"] {
            assert!(!entry[name].as_str().unwrap().is_empty(), "{entry}");
        }
    }
    let latency = |entry: &Value| entry["name"].to_string().contains("latency");
    assert!(bigger.iter().any(|entry| entry["unit"] == "Gb/s"));
    assert!(!bigger.iter().any(latency) && smaller.iter().any(|entry| entry["unit"] == "ns"));
}

#[test]
fn otava_gets_a_row_a_file_by_time_without_gaps() {
    let [mut base, new] = sides();
    base.results[0].result.started_at = "2026-11-20T12:00:00.334950042Z".to_owned();
    let csv = written(|it, out| write_otava(it, [&base, &new], out));
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    assert!(header.iter().take(3).eq(["time", "commit", "side"]));
    assert_eq!(header.len(), 3 + 4 * 7);
    assert_eq!(&header[3], "send-shared-q16-64KiB.gbit_per_s");
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 20);
    assert_eq!(&rows[0][0], "2026-11-20T12:00:00Z");
    assert!(rows.is_sorted_by_key(|row| row[0].to_owned()));
    for row in &rows {
        let mut cells = row.iter().skip(3);
        assert!(cells.all(|cell| cell.parse::<f64>().is_ok()), "{row:?}");
    }
}

/// Ten launches in turns with those of the other side; the flow `large` takes `factor` times as long.
fn side_of_flows(name: &str, second: u32, factor: f64) -> Found {
    let mixed = sample::mixed();
    side(name, second, 10, |launch| {
        let mut result = mixed.clone();
        for flow in &mut result.cases[0].runs[0].flows {
            let is_large = flow.name == "large";
            flow.window.seconds *= noise(launch, second) * if is_large { factor } else { 1.0 };
            let (messages, bytes) = (flow.totals.messages, flow.totals.bytes);
            flow.totals = Totals::in_window(messages, bytes, 0, flow.window.seconds);
            flow.qps.iter_mut().for_each(|qp| qp.gbit_per_s = None);
        }
        result
    })
}

#[test]
fn a_slower_flow_is_found_and_named() {
    let sides = [side_of_flows("base", 0, 1.0), side_of_flows("new", 30, 1.2)];
    let comparison = compared(&sides[0], &sides[1]);
    let case = &comparison.cases[0];
    assert_eq!(case.not_comparable, [""; 0]);
    let verdicts = case
        .metrics
        .iter()
        .filter(|it| it.metric == Metric::GbitPerS)
        .map(|it| (&*it.flow, it.verdict));
    let (equal, worse) = (Verdict::Equal, Verdict::Slower);
    assert!(verdicts.eq([("small", equal), ("large", worse), ("back", equal)]));
    let table = text(|out| write_table(&comparison, out));
    let words = ["\n  small", "\n  large", "\n  back", "over all 3 flows"];
    has(&table, words);
    let markdown = text(|out| write_markdown(&comparison, out));
    has(&markdown, ["| `mixed` | bandwidth of large |"]);
    let junit = text(|out| write_junit(&comparison, out));
    has(&junit, ["name=\"large/gbit_per_s\""]);
    let action = text(|out| write_action(&comparison, true, out));
    has(&action, ["\"mixed/large/gbit_per_s\""]);
    let bmf = text(|out| write_bmf(&comparison, out));
    let bmf: Value = serde_json::from_str(&bmf).unwrap();
    let subjects = bmf.as_object().unwrap().keys();
    assert!(subjects.eq(["mixed/small", "mixed/large", "mixed/back"]));
    let otava = text(|out| write_otava(&comparison, sides.each_ref(), out));
    has(otava.lines().next().unwrap(), [",mixed/large.gbit_per_s,"]);
}

#[test]
fn a_flow_that_was_asked_for_differently_makes_the_case_not_comparable() {
    let base = side_of_flows("base", 0, 1.0);
    let mut new = side_of_flows("new", 30, 1.0);
    for loaded in &mut new.results {
        let flow = &mut loaded.result.cases[0].config.flows[1];
        flow.settings.insert("qps".to_owned(), 7.into());
    }
    let comparison = compared(&base, &new);
    let expected = "flow large: qps: 2 in the base, 7 in the new results [settings]";
    assert_eq!(comparison.cases[0].not_comparable, [expected]);
}

static SAMPLE: LazyLock<ResultFile> = LazyLock::new(sample::open_loop);

/// How a launch of a side differs from the sample.
type Change = fn(&mut [CaseResult]);

/// Ten launches a side in turns, of which `change` changes the new side's.
fn compared_loads(change: Change) -> (Comparison, [Found; 2]) {
    let side = |name: &str, second: u32, change_launch: Change| {
        side(name, second, 10, |launch| {
            let mut result = SAMPLE.clone();
            let noise = noise(launch, second);
            for case in &mut result.cases {
                scale(&mut case.runs[0].flows[0].latency_ns, noise);
                case.searches.iter_mut().for_each(|search| bounds(search, noise));
            }
            change_launch(&mut result.cases);
            result
        })
    };
    let sides = [side("base", 0, same), side("new", 30, change)];
    (compared(&sides[0], &sides[1]), sides)
}

fn same(_: &mut [CaseResult]) {}

fn bounds(search: &mut LoadSearch, factor: f64) {
    for bound in [&mut search.lower_per_second, &mut search.upper_per_second] {
        *bound = bound.map(|bound| bound * factor);
    }
}

fn scale(times: &mut Option<Latency>, factor: f64) {
    let Some(times) = times else { return };
    let scaled = |ns: u64| (ns as f64 * factor).round() as u64;
    (times.min, times.max) = (scaled(times.min), scaled(times.max));
    *times = std::mem::take(times).with_percentiles(|_, ns| ns.map(scaled));
    times.mean *= factor;
}

fn verdict(case: &CaseComparison, metric: Metric) -> Option<Verdict> {
    let found = case.metrics.iter().find(|it| it.metric == metric);
    found.map(|it| it.verdict)
}

#[test]
fn a_load_that_is_kept_is_judged_by_its_latency() {
    let (comparison, sides) = compared_loads(|cases| {
        scale(&mut cases[1].runs[0].flows[0].latency_ns, 1.3);
    });
    let [closed, kept, overloaded] = [0, 1, 3].map(|case| &comparison.cases[case]);
    let (equal, worse) = (Some(Verdict::Equal), Some(Verdict::Slower));
    for metric in [Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns] {
        let verdicts = [closed, kept].map(|case| verdict(case, metric));
        assert_eq!(verdicts, [equal, worse], "{metric:?}");
    }
    for metric in [Metric::GbitPerS, Metric::MmsgPerS, Metric::Fairness] {
        // An overloaded flow moves what the system can.
        let verdicts = [closed, kept, overloaded].map(|case| verdict(case, metric));
        assert_eq!(verdicts, [equal, None, equal], "{metric:?}");
    }
    assert_eq!(verdict(kept, Metric::CpuSecondsPerGb), equal);
    let table = text(|out| write_table(&comparison, out));
    has(table, ["an open loop that keeps up has the offered throughput"]);
    let otava = text(|out| write_otava(&comparison, sides.each_ref(), out));
    let header = otava.lines().next().unwrap();
    has(header, ["write-shared-q2-64B-Q1-R50%.latency_p99_ns"]);
    assert!(!header.contains("-R50%.gbit_per_s"), "{header}");
}

/// What documents with words say, each with the words of the others.
fn documents(comparison: &Comparison) -> [String; 4] {
    let texts = [
        text(|out| write_table(comparison, out)),
        text(|out| write_markdown(comparison, out)),
        text(|out| write_junit(comparison, out)),
        text(|out| write_json(comparison, out)),
    ];
    texts.map(|text| {
        let text = text.replace("&quot;", "\"").replace("\\\"", "\"");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

/// The schedule of R80% was not kept in any launch: there is nothing to judge, and each document that has words says why.
#[test]
fn a_schedule_that_was_not_kept_is_not_judged() {
    let (comparison, sides) = compared_loads(same);
    let why =
        "the base side has no run that counts: 10 of 10 base runs are marked \"schedule not kept\"";
    starts(&comparison.cases[2].not_comparable[0], why);
    let remedy = "Use more --workers on cores of their own (--cores)";
    for document in documents(&comparison) {
        has(document, [why, remedy]);
    }
    for document in [
        text(|out| write_bmf(&comparison, out)),
        text(|out| write_action(&comparison, false, out)),
        text(|out| write_otava(&comparison, sides.each_ref(), out)),
    ] {
        has(&document, ["R50%"]);
        assert!(!document.contains("R80%"), "{document}");
    }
}

#[test]
fn runs_that_did_not_keep_their_schedule_are_left_out_and_counted() {
    let (comparison, _) = compared_loads(|cases| {
        let doubts = cases[2].runs[0].flows[0].window.doubts.clone();
        let mut late = cases[1].runs[0].clone();
        late.run = 2;
        late.flows[0].window.doubts = doubts;
        cases[1].runs.push(late);
    });
    let case = &comparison.cases[1];
    assert_eq!(verdict(case, Metric::P99Ns), Some(Verdict::Equal));
    let note = "10 of 20 new runs are marked \"schedule not kept\"";
    has(case.notes.join("; "), [note]);
    for document in documents(&comparison) {
        has(document, [note]);
    }
    let action = text(|out| write_action(&comparison, false, out));
    has(action.replace("\\\"", "\""), [note]);
}

#[test]
fn a_share_and_another_seed_are_the_same_case_and_another_rate_is_not() {
    let (comparison, _) = compared_loads(|cases| {
        cases[1].config.settings.seed = 7;
        cases[3].config.settings.rate = "90%".parse().unwrap();
        for case in &mut cases[1..] {
            let load = case.runs[0].flows[0].load.as_mut().unwrap();
            load.asked_per_second *= 1.1;
            load.maximum_per_second = load.maximum_per_second.map(|maximum| maximum * 1.1);
        }
    });
    let note = "load 50% of each side's own closed loop: 600.0 k/s in the base, 660.0 k/s in the new results";
    assert_eq!(comparison.cases[1].notes, [note]);
    assert_eq!(comparison.cases[1].verdict(), Verdict::Equal);
    has(text(|out| write_markdown(&comparison, out)), [note]);
    let reason = "rate: 95% in the base, 90% in the new results [settings]";
    assert_eq!(comparison.cases[3].not_comparable, [reason]);
}

#[test]
fn searches_are_compared_by_the_load_that_keeps_the_limit() {
    let found = |change: Change| {
        let (comparison, _) = compared_loads(change);
        let case = comparison.cases[0].clone();
        let load = case.metrics.iter().find(|it| it.metric == Metric::HighestLoad).cloned();
        (comparison, load, case)
    };
    let (comparison, slower, case) = found(|cases| bounds(&mut cases[0].searches[0], 0.8));
    let slower = slower.unwrap();
    let found_of = (slower.verdict, &*slower.flow);
    assert_eq!(found_of, (Verdict::Slower, "p99<20us"));
    let expected =
        "p99<20us: 735.3 k/s to 747.3 k/s in the base, 588.2 k/s to 597.9 k/s in the new results";
    assert_eq!(case.notes, [expected]);
    let table = text(|out| write_table(&comparison, out));
    let row = table.lines().find(|line| line.starts_with("! load"));
    has(row.unwrap(), ["735.3 k/s", "588.2 k/s"]);
    let junit = text(|out| write_junit(&comparison, out));
    has(&junit, ["name=\"p99&lt;20us/highest_load_per_s\""]);

    // Bounds that overlap, wide as they are, are no difference.
    let (_, wide, _) = found(|cases| {
        let search = &mut cases[0].searches[0];
        search.upper_per_second = search.lower_per_second.map(|lower| lower * 1.01);
        search.lower_per_second = search.lower_per_second.map(|lower| lower * 0.85);
    });
    let wide = wide.unwrap();
    assert_ne!(wide.verdict, Verdict::Slower);
    assert!(wide.margin > 0.15, "{}", wide.margin);

    // A limit that nothing keeps any more is below what broke it.
    let (_, none_keeps, _) = found(|cases| {
        let search = &mut cases[0].searches[0];
        (search.end, search.lower_per_second) = (SearchEnd::NoneKeeps, None);
        search.upper_per_second = Some(6_000.0);
    });
    assert_eq!(none_keeps.unwrap().verdict, Verdict::Slower);

    let (_, late, late_case) = found(|cases| cases[0].searches[0].end = SearchEnd::ScheduleNotKept);
    assert_eq!(late, None);
    let reason = "load of p99<20us: not comparable: the search found no load in 0 of 10 base launches and 10 of 10 new launches";
    assert_eq!(words::missing(&late_case.missing[0]), reason);
}

/// Six launches, in turns with those of the other side.
fn side_of_nodes(name: &str, second: u32, file: impl Fn(Mesh) -> ResultFile) -> Found {
    side(name, second, 6, |launch| {
        let mesh =
            Mesh { runs: 1, noise: 0.002, seed: u64::from(launch * 60 + second), ..Mesh::new(10) };
        let mut result = file(mesh);
        for run in result.cases.iter_mut().flat_map(|case| &mut case.runs) {
            run.nodes.iter_mut().for_each(|node| node.workers.clear());
            for flow in &mut run.flows {
                (flow.latency_ns, flow.fairness) = (None, fairness(1.0, 1.0, 1.0));
            }
        }
        result
    })
}

fn table_of(base: &Found, new: &Found) -> (Comparison, String) {
    let comparison = compared(base, new);
    let table = text(|out| write_table(&comparison, out));
    (comparison, table)
}

#[test]
fn rounds_without_a_change_are_told_together() {
    let base = side_of_nodes("base", 0, |mesh| mesh.pairs());
    let new = side_of_nodes("new", 30, |mesh| mesh.with(Slow::Pair(2, 3, 0.5)).pairs());
    let (comparison, table) = table_of(&base, &new);
    assert_eq!(comparison.cases.len(), 18);
    assert!(table.lines().count() < 60, "{table}");
    let together = "\nwrite-pairs-round01, write-pairs-round02, ";
    has(table, ["\n  node3>node4\n! bandwidth", together, " equal"]);
}

#[test]
fn of_many_flows_those_that_changed_are_told() {
    let base = side_of_nodes("base", 0, |mesh| mesh.all_to_all());
    let slow = |mesh: Mesh| mesh.with(Slow::Pair(2, 3, 0.5));
    let new = side_of_nodes("new", 30, |mesh| slow(mesh).all_to_all());
    let (_, table) = table_of(&base, &new);
    assert!(table.lines().count() < 40, "{table}");
    let rest = "  89 more of 90 flows: ";
    has(table, ["\n  node3>node4\n! bandwidth", rest]);
}

/// Ten launches on a side: one case slower, one faster, one alike, one that scatters, one measured with
/// another MTU, and one only here.
fn sides() -> [Found; 2] {
    [
        side("base", 0, 10, |launch| result(0, launch, &["gone"])),
        side("new", 30, 10, |launch| result(1, launch, &["added"])),
    ]
}

fn comparison() -> Comparison {
    let [base, new] = sides();
    compared(&base, &new)
}

fn compared(base: &Found, new: &Found) -> Comparison {
    let (old, other) = (Path::new("base"), Path::new("new"));
    crate::judge::compare::compare((old, base), (other, new), &Options::default())
}

/// The same small scatter on all sides, in another order on each.
fn noise(launch: u32, order: u32) -> f64 {
    1.0 + 0.001 * f64::from((launch * 7 + order) % 10)
}

/// So many launches, in turns with those of a side that begins at another second.
fn side(name: &str, second: u32, launches: u32, result: impl Fn(u32) -> ResultFile) -> Found {
    Found {
        results: (0..launches)
            .map(|launch| Loaded {
                path: format!("{name}/{launch}.json").into(),
                result: ResultFile {
                    started_at: format!("2026-11-20T12:{launch:02}:{second:02}Z"),
                    ..result(launch)
                },
            })
            .collect(),
        refused: Vec::new(),
    }
}

fn result(new: u32, launch: u32, only: &[&str]) -> ResultFile {
    let noise = 1.0 + 2.0 * (noise(launch, new * 3) - 1.0045);
    let wild = if launch.is_multiple_of(3) { 0.8 } else { 1.1 };
    let [slower, longer] = if new == 1 { [0.9, 1.2] } else { [1.0, 1.0] };
    let mut cases = vec![
        case("send-shared-q16-64KiB", noise, 4096),
        case("write-per-qp-q4-1MiB", noise * slower, 4096),
        case("read-shared-q1-64B", noise * longer, 4096),
        case("write-shared-q64-4KiB", noise * wild, 4096),
        case("send-per-worker-q4-64KiB", noise, [4096, 1024][new as usize]),
    ];
    cases.extend(only.iter().map(|id| case(id, 1.0, 4096)));
    let device = Device { name: "mlx5_0".to_owned(), ..Device::default() };
    ResultFile {
        schema_version: 1,
        tool: Tool {
            name: "rocebench".to_owned(),
            version: "0.1.0".to_owned(),
            git: Some(["0123456789ab", "ba9876543210"][new as usize].to_owned()),
        },
        nodes: vec![node(CLIENT, "left", vec![device])],
        ..sample::cases(cases)
    }
}

fn case(id: &str, speed: f64, mtu: u32) -> CaseResult {
    let ns = |at_1: f64| (at_1 / speed) as u64;
    let (messages, size, seconds) = (100_000, 65_536, 1.0 / speed);
    let worker = WorkerResult {
        messages: messages / 2,
        cpu_seconds: Some(0.95 / speed),
        ..WorkerResult::default()
    };
    let settings = Settings::from([("size", size.to_string().as_str())]);
    let mut config = CaseConfig::from(settings);
    config.flows[0].path_mtu = Some(mtu);
    let flow = FlowResult {
        window: window(seconds),
        totals: Totals::in_window(messages, messages * size, 0, seconds),
        latency_ns: Some(Latency {
            count: messages,
            min: ns(9_000.0),
            mean: 13_000.0 / speed,
            p50: Some(ns(12_000.0)),
            p90: Some(ns(18_000.0)),
            p95: Some(ns(22_000.0)),
            p99: Some(ns(34_000.0)),
            p99_9: Some(ns(120_000.0)),
            p99_99: Some(ns(130_000.0)),
            max: ns(150_000.0),
            ..Latency::default()
        }),
        fairness: fairness(0.998, 0.95, 1.05),
        ..FlowResult::new(&config.flows[0])
    };
    let run = Run {
        nodes: vec![NodeResult { workers: vec![worker; 2], ..NodeResult::named(CLIENT) }],
        ..sample::run(vec![flow])
    };
    CaseResult { id: id.to_owned(), config, ..sample::case(vec![run]) }
}
