use super::*;
use results::model::Delivery;
use results::sample::mesh::{Mesh, Slow};
use results::sample::{has, rows, starts};

#[test]
fn conditions_are_read() {
    use Relation::{Above, AtLeast, AtMost, Below};
    for (text, metric, relation, limit) in [
        ("gbit<90", Metric::GbitPerS, Below, 90.0),
        ("gbit < 90Gb/s", Metric::GbitPerS, Below, 90.0),
        ("bandwidth<=90", Metric::GbitPerS, AtMost, 90.0),
        ("p99>20us", Metric::P99Ns, Above, 20e3),
        ("p99.9>=1.5ms", Metric::P99_9Ns, AtLeast, 1.5e6),
        ("jain<0.98", Metric::Fairness, Below, 0.98),
        ("setup>4ms", Metric::SetupP99Ns, Above, 4e6),
        ("cpu>0.25", Metric::CpuSecondsPerGb, Above, 0.25),
    ] {
        let read: Condition = text.parse().unwrap();
        let found = (read.metric, read.relation, read.limit);
        assert_eq!(found, (metric, relation, Limit::Value(limit)), "{text}");
    }
    let condition: Condition = "p99 > 20us".parse().unwrap();
    assert_eq!(condition.to_string(), "p99>20us");
}

#[test]
fn what_is_none_says_what_there_is() {
    for [text, words] in rows(
        "
gbit | such as gbit<90
gbit=90 | such as gbit<90
<90 | such as gbit<90
gbit< | such as gbit<90
speed<90 | `speed` is not a metric of a condition: metrics are bandwidth, rate, p50, p99, p99.9, fairness, cpu,
load<90 | `load` is not a metric
p99>20 | write a number with ns, us, ms or s
p99>0us | above 0
gbit<-1 | `-1` is not a limit of bandwidth: write a number above 0, in Gb/s
gbit<0 | above 0
gbit<>3 | `>3` is not a limit
jain<nan | `nan` is not a limit of fairness: write a number above 0
",
    ) {
        has(text.parse::<Condition>().unwrap_err().to_string(), [words]);
    }
    assert!("".parse::<Condition>().is_err());
}

#[test]
fn thresholds_are_conditions_of_throughput() {
    let (gbit, of_link) = (Metric::GbitPerS, Metric::PercentOfLimit);
    for (text, metric, limit) in [
        ("90%", gbit, Limit::OfMedian(0.9)),
        ("92.5%median", gbit, Limit::OfMedian(0.925)),
        ("100%link", of_link, Limit::Value(100.0)),
        ("40Gb", gbit, Limit::Value(40.0)),
        ("0.5Gb", gbit, Limit::Value(0.5)),
    ] {
        let read = Condition::below(text).unwrap();
        let found = (read.metric, read.relation, read.limit);
        assert_eq!(found, (metric, Relation::Below, limit), "{text}");
        assert_eq!(read.to_string(), text);
    }
    let error = |text: &str| Condition::below(text).unwrap_err().to_string();
    for text in
        ["", "90", "%", "-5%", "90%peer", "40", "40GB", "nanGb", "infGb", "1e3Gb", "9 0%", "+5%"]
    {
        has(error(text), ["write 90% or 90%median"]);
    }
    for (text, words) in [("0%", "not above 0"), ("0Gb", "not above 0"), ("101%", "at most 100%")] {
        has(error(text), [words]);
    }
}

/// What fails of a file that must reach this, and by these conditions.
fn fails(file: &ResultFile, below: Option<&str>, conditions: &[&str]) -> Option<String> {
    let conditions = conditions.iter().map(|text| text.parse().unwrap());
    let demands = Demands {
        below: below.map(|text| Condition::below(text).unwrap()),
        fail_if: conditions.collect(),
    };
    failing(&judge(file, &demands))
}

fn sentence(file: &ResultFile, threshold: &str) -> Option<String> {
    fails(file, Some(threshold), &[])
}

fn fails_if(file: &ResultFile, conditions: &[&str]) -> Option<String> {
    fails(file, None, conditions)
}

#[test]
fn conditions_name_the_flow_and_the_value() {
    let mut file = results::sample::mixed();
    // A QP alone shares with none.
    assert_eq!(file.cases[0].config.flow(2).qps, 1);
    assert_eq!(fails_if(&file, &["gbit<1", "p99>1s", "jain<0.9"]), None);
    let text = fails_if(&file, &["gbit<2", "p99>5us", "cpu>1000"]).unwrap();
    let expected = "3 of 3 flows fail: small: bandwidth 1.536 Gb/s, below 2.000 Gb/s, and p99 10.9 µs, above 5.00 µs; large: p99 10.9 µs, \
                above 5.00 µs; back: p99 10.9 µs, above 5.00 µs";
    assert_eq!(text, expected);
    let flows = &mut file.cases[0].runs[0].flows;
    flows[0].latency_ns.as_mut().unwrap().p99 = None;
    flows[1].latency_ns = None;
    let unknown = fails_if(&file, &["p99>1s"]).unwrap();
    has(&unknown, ["small: p99 is unknown: too few messages"]);
    has(&unknown, ["large: p99 was not measured"]);
    starts(&unknown, "2 of 3 flows fail");
}

#[test]
fn set_up_is_judged_by_its_own_conditions() {
    let (config, run) = results::sample::connect();
    let mut file = results::sample::mixed();
    (file.cases[0].config, file.cases[0].runs) = (config, vec![run]);
    assert_eq!(fails_if(&file, &["connections<3000", "setup>5ms"]), None);
    let text = fails_if(&file, &["connections<4000"]).unwrap();
    let words = "1 of 2 flows fails: set-up: connections 3.200 k/s, below 4.000 k/s";
    assert_eq!(text, words);
    file.cases[0].config.flows.clear();
    assert_eq!(fails_if(&file, &[]), None, "set-up alone has a figure");
    file.cases[0].runs[0].complete = false;
    let incomplete = fails_if(&file, &["setup>5ms"]).unwrap();
    assert!(incomplete.ends_with("set-up: no run counts"), "{incomplete}");
}

#[test]
fn flows_below_are_named_with_figures() {
    let file = Mesh::quiet(4).with(Slow::Receives(2, 0.5)).pairs();
    assert_eq!(sentence(&file, "49%"), None);
    let below = "bandwidth 4.705 Gb/s, below 8.469 Gb/s (90 % of the median)";
    let named = ["node2>node3", "node1>node3", "node4>node3"];
    let named = named.map(|flow| format!("{flow}: {below}")).join("; ");
    let expected = format!("3 of 12 flows fail: {named}");
    assert_eq!(sentence(&file, "90%"), Some(expected));
    let text = sentence(&file, "9.5Gb").unwrap();
    starts(&text, "12 of 12 flows fail: ");
    assert!(text.ends_with("; and 7 more"), "{text}");
    has(&text, ["9.410 Gb/s, below 9.500 Gb/s;"]);
    assert_eq!(sentence(&file, "4.7Gb"), None);
    let of_link = sentence(&file, "90%link").unwrap();
    has(&of_link, ["48.010 % of its link's limit, below 90.000 %"]);
    starts(&of_link, "3 of 12");
}

#[test]
fn what_cannot_be_judged_has_not_passed() {
    let mesh = Mesh { link_gbit_per_s: None, ..Mesh::quiet(4) };
    let text = sentence(&mesh.pairs(), "1%link").unwrap();
    starts(&text, "12 of 12 flows fail");
    has(&text, ["is unknown"]);
    let failed = Mesh::quiet(4).failing([(0, 1)]);
    let lost = sentence(&failed.pairs(), "1%").unwrap();
    has(lost, ["node1>node2: no run counts"]);
    let alone = Mesh::quiet(2).incast(&[1]);
    let only = sentence(&alone, "1%median").unwrap();
    starts(&only, "1 of 1 flow fails: ");
    has(&only, ["no other flow has the same settings"]);
    let mut empty = Mesh::quiet(2).incast(&[1]);
    empty.cases[0].config.flows.clear();
    let nothing = sentence(&empty, "1Gb").unwrap();
    assert!(nothing.contains("no flow has a throughput"), "{nothing}");
}

#[test]
fn sweeps_without_a_pattern_are_judged_too() {
    let mut file = results::sample::mixed();
    let text = sentence(&file, "5Gb").unwrap();
    let expected = "2 of 3 flows fail: small: bandwidth 1.536 Gb/s, below 5.000 Gb/s; back: ";
    starts(&text, expected);
    starts(sentence(&file, "50%").unwrap(), "3 of 3 flows fail");
    file.cases[0].runs[0].flows[0].totals.errors = 1;
    let broken = sentence(&file, "0.1Gb").unwrap();
    has(broken, ["small: no run counts"]);
    // What was sent and did not come does not pass.
    let flow = &mut file.cases[0].runs[0].flows[1];
    assert!(flow.totals.gbit_per_s > Some(5.0));
    flow.delivery =
        Some(Delivery { goodput_gbit_per_s: Some(4.0), ..Delivery::of_qps(&[2000], &[1000]) });
    let undelivered = sentence(&file, "5Gb").unwrap();
    has(undelivered, ["large: bandwidth 4.000 Gb/s, below 5.000 Gb/s"]);
}

#[test]
fn each_case_has_a_median_of_its_own() {
    let file = Mesh::quiet(9).incast(&[2, 8]);
    assert_eq!(sentence(&file, "99%"), None);
    let slow = Mesh::quiet(9).with(Slow::Sends(1, 0.5)).incast(&[4, 8]);
    let text = sentence(&slow, "60%").unwrap();
    starts(&text, "2 of 12 flows fail: write-incast-F4, node2>node1: ");
}

#[test]
fn steps_are_judged_once_for_all_flows() {
    let file = Mesh::lock_step([60, 62, 72, 62], 21_000.0);
    assert_eq!(fails_if(&file, &["step-p50>22us", "bus<6", "gbit<0.1"]), None);
    let text = fails_if(&file, &["step>25us"]).unwrap();
    starts(&text, "1 of 5 flows fails: steps: step 30.0 µs, above 25.0 µs");
}

#[test]
fn a_flow_is_judged_by_its_runs_of_all_rounds() {
    let mut file = Mesh::quiet(4).with(Slow::Pair(2, 1, 0.5)).pairs();
    has(sentence(&file, "90%").unwrap(), ["1 of 12 flows fails"]);
    // As `--quick` measures again what looks slow.
    let again = Mesh::quiet(4).pairs().cases;
    file.cases.extend(again.clone());
    file.cases.extend(again);
    assert_eq!(sentence(&file, "90%"), None);
}
