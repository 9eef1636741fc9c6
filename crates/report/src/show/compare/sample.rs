//! A comparison with something of everything, for the tests of the formats, and what those tests share.

use std::path::Path;

use settings::Settings;

use crate::judge::compare::model::Comparison;
use crate::judge::compare::options::Options;
use results::load::{Found, Loaded};
use results::model::{
    CLIENT, CaseConfig, CaseResult, Device, FlowResult, Latency, NodeResult, ResultFile, Run, Tool,
    Totals, WorkerResult,
};
pub(super) use results::sample::text;
use results::sample::{self, fairness, node, window};

/// Ten launches on a side: one case slower, one faster, one alike, one that scatters, one measured with
/// another MTU, and one only here.
pub(super) fn sides() -> [Found; 2] {
    [
        side("base", 0, 10, |launch| result(0, launch, &["gone"])),
        side("new", 30, 10, |launch| result(1, launch, &["added"])),
    ]
}

pub(super) fn comparison() -> Comparison {
    let [base, new] = sides();
    compared(&base, &new)
}

pub(super) fn compared(base: &Found, new: &Found) -> Comparison {
    let (old, other) = (Path::new("base"), Path::new("new"));
    crate::judge::compare::compare((old, base), (other, new), &Options::default())
}

/// The same small scatter on all sides, in another order on each.
pub(super) fn noise(launch: u32, order: u32) -> f64 {
    1.0 + 0.001 * f64::from((launch * 7 + order) % 10)
}

/// So many launches, in turns with those of a side that begins at another second.
pub(super) fn side(
    name: &str,
    second: u32,
    launches: u32,
    result: impl Fn(u32) -> ResultFile,
) -> Found {
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
