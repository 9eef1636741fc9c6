//! Results of many nodes that nothing was measured for: patterns over nodes of one network, with noise, and nodes and
//! pairs that are slower than the others. Tests of other crates have it by the feature `samples`.

use super::window;
use crate::model::*;
use hdrhistogram::Histogram;
use settings::{Pattern, Settings};
use std::collections::BTreeSet;

/// What is slower than the others, by index of the node from 0, and what its rate is multiplied by.
#[derive(Clone, Copy, Debug)]
pub enum Slow {
    /// All that a node sends.
    Sends(usize, f64),
    /// All that a node receives.
    Receives(usize, f64),
    /// What the first node sends to the second one.
    Pair(usize, usize, f64),
}

/// Nodes and how their network is.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Number of nodes, which are `node1`, `node2` and so on.
    pub nodes: usize,
    /// Number of runs of each case, from 1.
    pub runs: u32,
    /// Standard deviation of a run's rate, as a part of it.
    pub noise: f64,
    /// What is slower than the others; where several of them slow a flow, it has the product of their factors.
    pub slow: Vec<Slow>,
    /// Flows that failed in every run, by indices of their nodes.
    pub failed: Vec<(usize, usize)>,
    /// Flags of all flows, with the values that they have in each case.
    pub flags: Vec<(&'static str, &'static str)>,
    /// Speed of each node's link; without one the devices are software.
    pub link_gbit_per_s: Option<f64>,
    /// Latencies with their whole distributions, which an incast always has.
    pub histograms: bool,
    /// Seed of the noise: with the same seed the same results come out.
    pub seed: u64,
}

/// What a flow that has both links to itself moves, in Gb/s.
pub const ALONE_GBIT_PER_S: f64 = 9.41;

const SECONDS: f64 = 1.0;

impl Mesh {
    /// So many nodes, of which none is slow.
    pub fn new(nodes: usize) -> Mesh {
        Mesh {
            nodes,
            runs: 3,
            noise: 0.005,
            slow: Vec::new(),
            failed: Vec::new(),
            flags: vec![("op", "write")],
            link_gbit_per_s: Some(10.0),
            histograms: false,
            seed: 7,
        }
    }

    pub fn with(mut self, slow: Slow) -> Mesh {
        self.slow.push(slow);
        self
    }

    /// So many nodes without noise.
    pub fn quiet(nodes: usize) -> Mesh {
        Mesh::new(nodes).noise(0.0)
    }

    pub fn noise(self, noise: f64) -> Mesh {
        Mesh { noise, ..self }
    }

    pub fn runs(self, runs: u32) -> Mesh {
        Mesh { runs, ..self }
    }

    /// With flows that fail in every run, by indices of their nodes.
    pub fn failing(self, flows: impl IntoIterator<Item = (usize, usize)>) -> Mesh {
        Mesh { failed: flows.into_iter().collect(), ..self }
    }

    /// With this value of a flag, in place of the one that it has.
    pub fn flag(mut self, flag: &'static str, value: &'static str) -> Mesh {
        self.flags.retain(|(known, _)| *known != flag);
        self.flags.push((flag, value));
        self
    }

    /// A case for each round of pairs, in which no node has two flows.
    pub fn pairs(&self) -> ResultFile {
        let rounds = rounds(self.nodes);
        let cases = (1..).zip(rounds).map(|(number, flows)| {
            let round = format!("-pairs-round{number:02}");
            (round, vec![("pattern", "pairs".to_owned())], flows)
        });
        self.file(&cases.collect::<Vec<_>>())
    }

    /// Each node to each other one at once.
    pub fn all_to_all(&self) -> ResultFile {
        let flows = (0..self.nodes).flat_map(|from| {
            (0..self.nodes).filter(move |to| *to != from).map(move |to| (from, to))
        });
        self.one("all-to-all", flows.collect())
    }

    /// Each node to the next one.
    pub fn ring(&self) -> ResultFile {
        let flows = (0..self.nodes).map(|from| (from, (from + 1) % self.nodes));
        self.one("ring", flows.collect())
    }

    /// A ring of four in lock-step: the steps of each run in which each node was last, and how long flows of the third took.
    pub fn lock_step(last_in: [u64; 4], slow_ns: f64) -> ResultFile {
        let mut file = Mesh::quiet(4).flag("op", "send").flag("lock-step", "true").ring();
        let nodes = last_in.into_iter().zip(0..).map(|(last_in, index)| StepsOfNode {
            name: name(index),
            last_in,
            median_ns: Some(if index == 2 { slow_ns } else { 20_000.0 }),
        });
        let times = |p50, p99| Latency { count: 1000, p50, p99, ..Latency::default() };
        let steps = LockStep {
            steps_of_iteration: 6,
            step_ns: Some(times(Some(21_500), Some(30_000))),
            iteration_ns: Some(times(Some(130_000), None)),
            bus_gbit_per_s: Some(6.05),
            share_of_ideal: None,
            compared_steps: last_in.iter().sum(),
            nodes: nodes.collect(),
        };
        for run in file.cases.iter_mut().flat_map(|case| &mut case.runs) {
            run.lock_step = Some(steps.clone());
        }
        file
    }

    /// A case for each fan-in: so many nodes from the second one on send to the first one.
    pub fn incast(&self, fan_ins: &[usize]) -> ResultFile {
        let cases = fan_ins.iter().map(|&fan_in| {
            let flags = vec![("pattern", "incast".to_owned()), ("fan-in", fan_in.to_string())];
            let flows = (1..=fan_in).map(|from| (from, 0)).collect();
            (format!("-incast-F{fan_in}"), flags, flows)
        });
        self.file(&cases.collect::<Vec<_>>())
    }

    fn one(&self, pattern: &str, flows: Vec<(usize, usize)>) -> ResultFile {
        let flags = vec![("pattern", pattern.to_owned())];
        self.file(&[(format!("-{pattern}"), flags, flows)])
    }

    fn file(&self, cases: &[PatternCase]) -> ResultFile {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        ResultFile {
            cases: cases.iter().map(|case| self.case(&mut rng, case)).collect(),
            nodes: (0..self.nodes).map(|index| self.node(index)).collect(),
            ..sweep("mesh")
        }
    }

    fn node(&self, index: usize) -> Node {
        let hostname = name(index);
        Node {
            name: hostname.clone(),
            host: Host { hostname, kernel: "6.1.0".to_owned(), cores: Some(16), ..Host::default() },
            devices: vec![adapter(self.link_gbit_per_s)],
            left_out: Vec::new(),
        }
    }

    fn case(&self, rng: &mut fastrand::Rng, (suffix, flags, flows): &PatternCase) -> CaseResult {
        let usual = [("duration", "1"), ("size", "64K")];
        let of_case = flags.iter().map(|(flag, text)| (*flag, text.as_str()));
        let settings: Settings =
            usual.into_iter().chain(self.flags.iter().copied()).chain(of_case).collect();
        let config = CaseConfig {
            flows: flows
                .iter()
                .map(|&(from, to)| {
                    let (from, to) = (name(from), name(to));
                    FlowConfig {
                        from_device: Some("mlx5_0".to_owned()),
                        to_device: Some("mlx5_0".to_owned()),
                        path_mtu: Some(4096),
                        ..FlowConfig::new(&format!("{from}>{to}"), &from, &to, &settings, &settings)
                    }
                })
                .collect(),
            settings,
            check: None,
        };
        let shared: Vec<&str> = self.flags.iter().map(|(_, value)| *value).collect();
        let runs = (1..=self.runs).map(|number| self.run(rng, number, &config, flows));
        CaseResult {
            id: format!("{}{suffix}", shared.join("-")),
            runs: runs.collect(),
            config,
            ..CaseResult::default()
        }
    }

    fn run(
        &self,
        rng: &mut fastrand::Rng,
        run: u32,
        config: &CaseConfig,
        flows: &[(usize, usize)],
    ) -> Run {
        let failed = flows.iter().find(|flow| self.failed.contains(flow));
        let failure = failed.map(|(_, to)| Failure {
            message: format!("{} did not answer", name(*to)),
            hint: None,
        });
        let (mut sent, mut received) = (vec![0; self.nodes], vec![0; self.nodes]);
        for (from, to) in flows {
            sent[*from] += 1;
            received[*to] += 1;
        }
        let moved: Vec<FlowResult> = config
            .flows
            .iter()
            .zip(flows)
            .map(|(own, &(from, to))| match failed {
                Some(_) => FlowResult::new(own),
                None => self.flow(rng, config, own, (from, to), sent[from].max(received[to])),
            })
            .collect();
        let nodes: BTreeSet<usize> = flows.iter().flat_map(|(from, to)| [*from, *to]).collect();
        Run {
            run,
            started_at: "2026-11-20T12:00:01Z".to_owned(),
            complete: failure.is_none(),
            failure,
            overlap: (flows.len() > 1).then_some(0.998),
            nodes: (nodes.into_iter().map(|node| worked(node, &moved))).collect(),
            flows: moved,
            ..Run::default()
        }
    }

    fn latency(
        &self,
        rng: &mut fastrand::Rng,
        case: &CaseConfig,
        p50: f64,
        count: u64,
    ) -> Option<Latency> {
        if self.histograms || matches!(case.pattern, Some(Pattern::Incast(_))) {
            return whole(rng, p50);
        }
        let median = p50 * (1.0 + 0.01 * normal(rng));
        let ns = |factor: f64| (median * factor) as u64;
        Some(Latency {
            count,
            min: ns(0.5),
            mean: median * 1.02,
            stddev: median * 0.1,
            p50: Some(ns(1.0)),
            p90: Some(ns(1.2)),
            p95: Some(ns(1.3)),
            p99: Some(ns(1.5 + 0.05 * rng.f64())),
            p99_9: Some(ns(2.5)),
            p99_99: can_tell(count, 0.9999).then(|| ns(3.0)),
            max: ns(4.0),
            ..Latency::default()
        })
    }

    /// A flow that shares the busier one of its two links with so many, itself included.
    fn flow(
        &self,
        rng: &mut fastrand::Rng,
        case: &CaseConfig,
        config: &FlowConfig,
        (from, to): (usize, usize),
        sharing: usize,
    ) -> FlowResult {
        let factor: f64 = self
            .slow
            .iter()
            .map(|slow| match *slow {
                Slow::Sends(node, factor) if node == from => factor,
                Slow::Receives(node, factor) if node == to => factor,
                Slow::Pair(one, other, factor) if (one, other) == (from, to) => factor,
                _ => 1.0,
            })
            .product();
        let noise = (1.0 + self.noise * normal(rng)).max(0.01);
        let allowed = ALONE_GBIT_PER_S / sharing as f64 * factor * noise;
        let size = f64::from(case.size_bytes);
        let is_open = !case.rate.is_closed();
        let requested = allowed * 0.5;
        let gbit_per_s = if is_open { requested.min(allowed) } else { allowed };
        let messages = (gbit_per_s * 1e9 / 8.0 / size * SECONDS) as u64;
        // So many messages of a closed loop wait for each other (J. Little, 1961).
        let waiting = f64::from(case.qps) * 16.0;
        let closed_p50 = waiting * size * 8.0 / allowed;
        let p50 = if is_open { closed_p50 / 8.0 } else { closed_p50 };
        FlowResult {
            load: is_open.then(|| {
                let requested_per_second = requested * 1e9 / 8.0 / size;
                Load {
                    asked_per_second: requested_per_second,
                    offered: (requested_per_second * SECONDS) as u64,
                    offered_per_second: requested_per_second,
                    achieved_per_second: messages as f64 / SECONDS,
                    ..Load::default()
                }
            }),
            limits: self.link_gbit_per_s.map(|link_gbit_per_s| Limits {
                link_gbit_per_s,
                protocol_efficiency: 0.98,
                share_of_limit: Some(gbit_per_s / link_gbit_per_s / 0.98),
                narrower: None,
            }),
            ..steady(config, case, messages, SECONDS, self.latency(rng, case, p50, messages))
        }
    }
}

/// An adapter with such a link, or a device of software.
pub(super) fn adapter(link_gbit_per_s: Option<f64>) -> Device {
    Device {
        name: "mlx5_0".to_owned(),
        library: "libibverbs".to_owned(),
        software: link_gbit_per_s.is_none(),
        port: 1,
        link_gbit_per_s,
        active_mtu_bytes: Some(4096),
        ..Device::default()
    }
}

/// A flow whose QPs moved the same, after a warm-up that found it steady.
pub(super) fn steady(
    config: &FlowConfig,
    settings: &Settings,
    messages: u64,
    seconds: f64,
    latency_ns: Option<Latency>,
) -> FlowResult {
    FlowResult {
        window: Window { warmup_seconds: 0.3, warmup_steady: Some(true), ..window(seconds) },
        totals: Totals::in_window(messages, messages * u64::from(settings.size_bytes), 0, seconds),
        fairness: Fairness::new(&vec![1.0; settings.qps as usize]),
        latency_ns,
        ..FlowResult::new(config)
    }
}

pub(crate) fn sweep(argument: &str) -> ResultFile {
    ResultFile {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "rocebench".to_owned(),
            version: "0.1.0".to_owned(),
            git: Some("0123456789ab".to_owned()),
        },
        started_at: "2026-11-20T12:00:00Z".to_owned(),
        command_line: ["rocebench", argument].map(str::to_owned).into(),
        ..ResultFile::default()
    }
}

/// A skewed distribution around a median, in nanoseconds.
fn whole(rng: &mut fastrand::Rng, p50: f64) -> Option<Latency> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2).ok()?;
    for _ in 0..1000 {
        let skew = -(1.0 - rng.f64()).ln();
        histogram.saturating_record((p50 * (0.9 + 0.14 * skew)) as u64);
    }
    Latency::from_histogram(&histogram, 0)
}

/// What its id ends with, its flags, and who sends to whom.
type PatternCase = (String, Vec<(&'static str, String)>, Vec<(usize, usize)>);

fn name(index: usize) -> String {
    format!("node{}", index + 1)
}

/// A node with one worker, which posted all that the node sent.
fn worked(index: usize, flows: &[FlowResult]) -> NodeResult {
    let name = name(index);
    let messages =
        flows.iter().filter(|flow| flow.from == name).map(|flow| flow.totals.messages).sum();
    NodeResult { workers: vec![worker(messages)], ..NodeResult::named(&name) }
}

pub(super) fn worker(messages: u64) -> WorkerResult {
    WorkerResult {
        messages,
        window_seconds: Some(SECONDS),
        core: Some(3),
        core_shared_with: Some(0),
        away_seconds: Some(0.0625),
        cpu_seconds: Some(SECONDS * 0.99),
        polls: 900_000,
        empty_polls: 600_000,
        ..WorkerResult::default()
    }
}

/// A normal deviate (G. Box, M. Muller, 1958).
fn normal(rng: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// A tournament: the first node stays, the others go round; then all the other way. With an odd number each node
/// rests once.
fn rounds(nodes: usize) -> Vec<Vec<(usize, usize)>> {
    let even = nodes + nodes % 2;
    let mut circle: Vec<usize> = (0..even).collect();
    let mut one_way = Vec::new();
    for _ in 1..even {
        let playing = (0..even / 2)
            .map(|at| (circle[at], circle[even - 1 - at]))
            .filter(|(one, other)| *one < nodes && *other < nodes);
        one_way.push(playing.collect::<Vec<_>>());
        circle[1..].rotate_right(1);
    }
    let other_way: Vec<Vec<_>> =
        one_way.iter().map(|round| round.iter().map(|(from, to)| (*to, *from)).collect()).collect();
    one_way.into_iter().chain(other_way).collect()
}

#[test]
fn each_pair_meets_once_each_way_and_no_node_twice_in_a_round() {
    for nodes in [2, 3, 8, 9] {
        let mut met = BTreeSet::new();
        for round in rounds(nodes) {
            let mut used = BTreeSet::new();
            for (from, to) in round {
                assert!(used.insert(from) && used.insert(to) && met.insert((from, to)));
            }
        }
        assert_eq!(met.len(), nodes * (nodes - 1));
    }
}
