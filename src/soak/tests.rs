//! Days in virtual time, with made-up samples.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    path::Path,
};

use protocol::failure::RunFailure;
use results::{
    load::load,
    model::{Device, SCHEMA_VERSION},
    sample::{self, has, starts},
};
use serde_json::Value;
use settings::Settings;
use testing::own_network::{SMALL_DISK, in_own_network};

use super::*;

const DAY: i64 = 24 * 60;

/// So many minutes from a full hour on.
fn minute(count: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_795_824_000 + 60 * count).unwrap()
}

/// A sample of that minute between two nodes, with this throughput and this p99.
fn sample(count: i64, gbit_per_s: f64, p99_us: u64) -> ResultFile {
    let mut case = sample::moved(Settings::default(), Some(gbit_per_s));
    case.id = "send".to_owned();
    let run = &mut case.runs[0];
    run.started_at = minute(count - 1).format(&Rfc3339).unwrap();
    run.flows[0].latency_ns = sample::times(3, [(1_000 * p99_us, 2_000)].into_iter());
    (run.flows[0].totals.messages, run.flows[0].totals.bytes) = (1_000, 64_000);
    let nodes = ["client", "server"].map(|name| sample::node(name, name, vec![Device::default()]));
    ResultFile { schema_version: SCHEMA_VERSION, nodes: nodes.into(), ..sample::cases(vec![case]) }
}

fn taken(count: i64, gbit_per_s: f64, p99_us: u64) -> Taken {
    Taken::Sample(Box::new(sample(count, gbit_per_s, p99_us)))
}

fn options(folder: &Path) -> Options {
    let fail_if = vec!["p99>20us".parse().unwrap()];
    Options {
        folder: folder.to_owned(),
        keep: 24,
        open_metrics: Some(folder.join("soak.prom")),
        on_alert: None,
        demands: Demands { fail_if, ..Demands::default() },
        ends_at: None,
    }
}

#[derive(Default)]
struct Said {
    samples: Vec<String>,
    alerts: Vec<String>,
}

impl Screen for Said {
    fn sample(&mut self, line: &str) {
        self.samples.push(line.to_owned());
    }

    fn alert(&mut self, line: &str) {
        self.alerts.push(line.to_owned());
    }
}

fn alerts(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(AlertFile::NAME)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn runs(folder: &Path) -> Vec<usize> {
    let found = load(&[folder]);
    assert!(found.refused.is_empty(), "{:?}", found.refused);
    found.results.iter().map(|loaded| loaded.result.cases[0].runs.len()).collect()
}

/// As many samples as will come, one a minute.
struct MadeUp(i64);

impl Samples for MadeUp {
    fn take(&mut self) -> Taken {
        self.0 += 1;
        taken(self.0, 90.0, 10)
    }
}

#[test]
fn the_time_ends_a_soak() {
    let folder = tempfile::tempdir().unwrap();
    let now = std::cell::Cell::new(0);
    let clock = || {
        now.set(now.get() + 1);
        minute(now.get())
    };
    let (mut said, until) = (Said::default(), Some(minute(90)));
    let options = Options { ends_at: until, ..options(folder.path()) };
    assert_eq!(run(&mut MadeUp(0), options, &clock, &mut said).unwrap(), []);
    assert_eq!((said.samples.len(), said.alerts.len()), (90, 0));
    let line = "2026-11-28 00:01:00    90.000 Gb/s  p99   10.0 µs  counts";
    assert_eq!(said.samples[0], line);
    // Up to a full hour, and from there on.
    assert_eq!(runs(folder.path()), [59, 31]);
}

#[test]
fn seven_days_take_as_much_as_three() {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut said = Said::default();
    let mut soak = Soak::new(options(folder.path()), &mut said).unwrap();
    let mut taken_up = Vec::new();
    for count in 1..=7 * DAY {
        let (more, longer) = (count % 7, count % 11 == 0);
        soak.take(taken(count, 90.0 + more as f64, 10 + u64::from(longer)), minute(count));
        if [3 * DAY, 7 * DAY].contains(&count) {
            let names = sample::file_names(folder.path());
            let sizes = names.iter().map(|it| folder.path().join(it).metadata().unwrap().len());
            let bytes: u64 = sizes.sum();
            let drifts: usize = soak.drifts.iter().map(Drift::held).sum();
            let held = (soak.files.held(), drifts, soak.figures.held());
            taken_up.push((names.len(), bytes >> 20, held, soak.conditions.standing().count()));
        }
    }
    assert_eq!(taken_up[0], taken_up[1]);
    assert_eq!(taken_up[0].0, 24 + 2, "results, the journal and figures for Prometheus");
    assert_eq!(soak.finish(), []);
    assert_eq!(said.alerts, [""; 0]);
}

#[test]
fn a_limit_that_is_broken_for_a_hundred_samples_is_told_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Said::default();
    let fail_if = vec!["gbit<89".parse().unwrap()];
    let demands = Demands { fail_if, ..Demands::default() };
    let options = Options { demands, ..options(folder.path()) };
    let mut soak = Soak::new(options, &mut said).unwrap();
    for count in 1..=160 {
        // What is better for two samples is not over.
        let is_low = (11..=110).contains(&count) && ![50, 51].contains(&count);
        soak.take(taken(count, if is_low { 88.0 } else { 90.0 }, 10), minute(count));
    }
    assert_eq!(runs(folder.path()), [59, 60, 41], "the journal too, as after a kill");
    assert_eq!(soak.finish(), []);
    let text =
        "--fail-if gbit<89: 1 of 1 flow fails: forward: bandwidth 88.000 Gb/s, below 89.000 Gb/s";
    let lines = [
        format!("rocebench: 2026-11-28T00:11:00Z alert: {text}"),
        format!("rocebench: 2026-11-28T01:53:00Z over after 1 h 40 min: {text}"),
    ];
    assert_eq!(said.alerts, lines);
    let of_file = alerts(folder.path());
    let parts = ["state", "id", "severity", "lasted_seconds"].map(|name| of_file[1][name].clone());
    assert_eq!(
        Value::from(parts.to_vec()),
        serde_json::json!(["ends", "beyond_limit", "problem", 6_000])
    );
    assert_eq!(of_file[0]["subject"], serde_json::json!({"cases": ["send"], "flows": ["forward"]}));
}

#[test]
fn a_node_that_was_away_is_told_with_the_time_and_with_its_new_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Said::default();
    let mut soak = Soak::new(options(folder.path()), &mut said).unwrap();
    soak.take(taken(1, 90.0, 10), minute(1));
    for count in 2..19 {
        let nodes = vec!["server".to_owned()];
        let failure = RunFailure { nodes, ..RunFailure::new("it closed the connection", None) };
        soak.take(Taken::Away(failure), minute(count));
    }
    let away = soak.figures.text(soak.conditions.standing());
    has(&away, ["rocebench_up{case=\"send\",node=\"client\"} 1.0\n", "node=\"server\"} 0.0\n"]);
    has(&away, ["rocebench_alerts_standing{case=\"send\",id=\"away\"} 1.0\n"]);
    let mut back = sample(19, 90.0, 10);
    back.nodes[1].host.kernel = "6.2.0".to_owned();
    soak.take(Taken::Sample(Box::new(back)), minute(19));
    let figures = soak.figures.text(soak.conditions.standing());
    has(
        figures,
        ["rocebench_away_seconds_total{case=\"send\"} 1020.0\n", "node=\"server\"} 1.0\n"],
    );
    assert_eq!(soak.finish(), []);
    assert_eq!(runs(folder.path()), [1, 1], "what was measured with other nodes is apart");
    let lines = [
        "rocebench: 2026-11-28T00:02:00Z alert: server is away: it closed the connection",
        "rocebench: 2026-11-28T00:19:00Z over after 17 min 0 s: server is away: it closed the connection",
        "rocebench: 2026-11-28T00:19:00Z changed: server: kernel was 6.1.0 and is 6.2.0",
    ];
    assert_eq!(said.alerts, lines);
    let states: Vec<Value> = alerts(folder.path()).iter().map(|it| it["state"].clone()).collect();
    assert_eq!(states, ["begins", "ends", "once"]);
}

/// From sample 50 to 190 something else takes all the room.
fn soak_on_a_disk_that_is_full_for_a_while() {
    let [folder, ballast] = ["/mnt/soak", "/mnt/ballast"].map(Path::new);
    fs::create_dir(folder).unwrap();
    let mut said = Said::default();
    let mut soak = Soak::new(options(folder), &mut said).unwrap();
    for count in 1..=250 {
        if count == 50 {
            let mut file = File::create(ballast).unwrap();
            let error = io::copy(&mut io::repeat(0), &mut file).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        if count == 190 {
            fs::remove_file(ballast).unwrap();
        }
        soak.take(taken(count, 90.0, 10), minute(count));
    }
    assert_eq!(soak.finish(), []);
    assert_eq!(said.alerts.len(), 2, "{:?}", said.alerts);
    has(&said.alerts[0], ["alert: cannot write ", "free some space"]);
    has(&said.alerts[1], ["over after 2 h 20 min: cannot write "]);
    assert_eq!(runs(folder), [59, 60, 60, 60, 11]);
    assert_eq!(alerts(folder).len(), 2);
}

#[test]
fn a_full_disk_is_told_once_and_nothing_is_lost() {
    let own = "soak::tests::a_full_disk_is_told_once_and_nothing_is_lost";
    in_own_network(own, SMALL_DISK, soak_on_a_disk_that_is_full_for_a_while);
}

#[test]
fn a_failed_sample_and_a_demand_that_cannot_be_judged_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Said::default();
    let mut soak = Soak::new(options(folder.path()), &mut said).unwrap();
    let failed = sample::with(&sample(1, 90.0, 10), "cases/0/runs/0/complete=false");
    soak.take(Taken::Sample(Box::new(failed)), minute(1));
    let untimed = sample::with(&sample(2, 90.0, 10), "cases/0/runs/0/flows/0/latency_ns=null");
    for count in 2..20 {
        soak.take(Taken::Sample(Box::new(untimed.clone())), minute(count));
    }
    let standing = soak.finish();
    assert_eq!(standing.iter().map(|it| it.id).collect::<Vec<_>>(), ["not_judged"]);
    let words = [
        "alert: A sample is not complete",
        "over after 1 min 0 s: A sample",
        "p99 was not measured",
    ];
    for (line, part) in said.alerts.iter().zip(words) {
        has(line, [part]);
    }
    assert_eq!(said.alerts.len(), 3);
}

#[test]
fn what_gets_worse_for_good_is_told_and_that_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Said::default();
    let mut soak = Soak::new(options(folder.path()), &mut said).unwrap();
    for count in 1..=300 {
        let less = if (70..180).contains(&count) { 10.0 } else { 0.0 };
        let noise = (count * 37 % 11) as f64 / 20.0;
        soak.take(taken(count, 90.0 - less + noise, 10), minute(count));
    }
    assert_eq!(soak.finish(), []);
    assert_eq!(said.alerts.len(), 2, "{:?}", said.alerts);
    has(
        &said.alerts[0],
        ["alert: Since 2026-11-28 01:10 UTC throughput is 80.", "before it was 90."],
    );
}

/// By the rules of OpenMetrics, with names of nodes that somebody else chose.
#[test]
fn figures_are_open_metrics() {
    let mut result = sample(1, 90.0, 10);
    result.nodes[1].name = "ser\"ver\\\n".to_owned();
    let mut figures = Figures::default();
    figures.add(&result, &result.cases[0].runs[0], &Standing::Counts, minute(1));
    figures.add_away(&["client".to_owned()], 1.5);
    figures.add(&result, &result.cases[0].runs[0], &Standing::Counts, minute(2));
    let finding = Finding::problem("away", Subject::default(), String::new());
    let text = figures.text([&finding].into_iter());
    let body = text.strip_suffix("# EOF\n").unwrap();
    let (mut types, mut series) = (BTreeSet::new(), BTreeSet::new());
    for line in body.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["#", "TYPE", name, "gauge" | "counter"] => assert!(types.insert(name), "{line}"),
            ["#", "HELP" | "UNIT", ..] => {}
            _ => {
                let (name, rest) = line.split_once('{').unwrap();
                let (labels, value) = rest.rsplit_once("} ").unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(types.contains(name.trim_end_matches("_total")), "{line}");
                assert!(series.insert((name, labels)), "{line}");
                starts(name, "rocebench_");
            }
        }
    }
    insta::assert_snapshot!(text);
}
