//! Results of sweeps that nothing was measured for, of a made-up adapter and a law with noise, to draw from.

use hdrhistogram::Histogram;
use settings::Settings;

use super::mesh::{adapter, steady, worker};
use super::{run, with};
use crate::metric::Metric;
use crate::model::*;

const SECONDS: f64 = 5.0;

/// What the sweep goes through.
#[derive(Clone, Debug)]
pub struct Synthetic {
    pub ops: Vec<&'static str>,
    pub cqs: Vec<&'static str>,
    pub qps: Vec<u32>,
    pub sizes: Vec<u32>,
    pub workers: Vec<u32>,
    pub runs: u32,
    /// Loads of open loops beside each closed one.
    pub rates: Vec<&'static str>,
    /// A search for a load, of each closed loop.
    pub search: bool,
    /// QPs that the rounds of cases of set-up create.
    pub set_up: Vec<u32>,
    /// Speed of the link; without one the device is software.
    pub link_gbit_per_s: Option<f64>,
    /// What the throughput is multiplied by.
    pub factor: f64,
    pub git: &'static str,
    pub started_at: &'static str,
    pub seed: u64,
}

impl Default for Synthetic {
    fn default() -> Synthetic {
        Synthetic {
            ops: vec!["send", "write", "read"],
            cqs: vec!["shared", "per-qp"],
            qps: vec![1, 4, 16],
            sizes: vec![64, 4096, 65536],
            workers: vec![1, 4],
            runs: 3,
            rates: Vec::new(),
            search: false,
            set_up: Vec::new(),
            link_gbit_per_s: Some(100.0),
            factor: 1.0,
            git: "0123456789ab",
            started_at: "2026-11-20T12:00:00Z",
            seed: 7,
        }
    }
}

impl Synthetic {
    pub fn result(&self) -> ResultFile {
        let rng = &mut fastrand::Rng::with_seed(self.seed);
        let mut cases = Vec::new();
        for &op in &self.ops {
            for &cq in &self.cqs {
                for &size in &self.sizes {
                    for &qps in &self.qps {
                        for &workers in &self.workers {
                            let flags = [("op", op), ("cq", cq), ("signal-every", "1")];
                            let settings = Settings {
                                size_bytes: size,
                                qps,
                                workers,
                                ..Settings::from(flags)
                            };
                            let id = format!("{op}-{cq}-q{qps}-{size}-w{workers}");
                            self.add_case(&mut cases, rng, id, settings);
                        }
                    }
                }
            }
        }
        cases.extend(self.set_up.iter().map(|&qps| set_up(rng, qps)));
        ResultFile {
            schema_version: SCHEMA_VERSION,
            tool: Tool {
                name: "rocebench".to_owned(),
                version: "0.1.0".to_owned(),
                git: Some(self.git.to_owned()),
            },
            started_at: self.started_at.to_owned(),
            command_line: vec!["rocebench".to_owned(), "right".to_owned()],
            nodes: vec![self.node(CLIENT, "left"), self.node(SERVER, "right")],
            cases,
            stages: Vec::new(),
        }
    }

    fn node(&self, name: &str, hostname: &str) -> Node {
        let host = Host {
            hostname: hostname.to_owned(),
            kernel: "6.1.0".to_owned(),
            os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
            cpu_model: Some("Example CPU".to_owned()),
            cores: Some(16),
            ..Host::default()
        };
        let device = adapter(self.link_gbit_per_s);
        let name_of_device = if device.software { "soft0" } else { "mlx5_0" }.to_owned();
        Node {
            name: name.to_owned(),
            host,
            devices: vec![Device { name: name_of_device, ..device }],
            left_out: Vec::new(),
        }
    }

    /// The case with all that a run may have; or the closed loop with a search, and a case for each rate.
    fn add_case(
        &self,
        cases: &mut Vec<CaseResult>,
        rng: &mut fastrand::Rng,
        id: String,
        settings: Settings,
    ) {
        let mut closed = CaseResult { id, config: config(settings), ..CaseResult::default() };
        let config = &closed.config;
        let rates: Vec<f64> = (0..self.runs).map(|_| self.rate(rng, config)).collect();
        if self.rates.is_empty() && !self.search {
            closed.runs =
                (1..).zip(&rates).map(|(run, &rate)| self.run(rng, config, rate, run)).collect();
            closed.comparison = Some(perftest(rng, &closed));
            return cases.push(closed);
        }
        closed.runs = runs_of(&rates, |rate| {
            let waiting = f64::from(config.tx_depth * config.qps) * 1e9 / rate;
            flow(&config.flows[0], config, rate, latency(rng, 2_200.0 + waiting, 4000, true))
        });
        closed.searches = self.search.then(|| search(rates[0])).into_iter().collect();
        let open: Vec<CaseResult> =
            self.rates.iter().map(|rate| open(rng, &closed, rate, &rates)).collect();
        cases.push(closed);
        cases.extend(open);
    }

    /// Messages a second of a run.
    fn rate(&self, rng: &mut fastrand::Rng, config: &CaseConfig) -> f64 {
        let (size, qps) = (f64::from(config.size_bytes), f64::from(config.qps));
        let noise = 1.0 + 0.02 * (rng.f64() - 0.5);
        let mut rate = 8e6 * f64::from(config.workers.min(config.qps)).powf(0.8);
        rate *= if config.op.name() == "read" { 0.7 } else { 1.0 };
        rate *= match config.cq.name() {
            "per-qp" => 1.2 / qps.powf(0.05),
            _ => 1.0,
        };
        let link = self.link_gbit_per_s.unwrap_or(40.0) * 1e9 / 8.0 / size;
        (rate * self.factor).min(link * efficiency(size) * 0.97 * self.factor.min(1.0)) * noise
    }

    fn run(&self, rng: &mut fastrand::Rng, config: &CaseConfig, rate: f64, number: u32) -> Run {
        let size = u64::from(config.size_bytes);
        let shares: Vec<f64> = (0..config.qps).map(|_| 0.9 + 0.2 * rng.f64()).collect();
        let sum: f64 = shares.iter().sum();
        let typical_ns = 2_000.0 + 128.0 * f64::from(config.qps) * 1e9 / rate / 20.0;
        let qps: Vec<QpResult> = (0..)
            .zip(&shares)
            .map(|(index, share)| {
                let messages = (rate * SECONDS * share / sum) as u64;
                QpResult {
                    index,
                    qpn: 0x100 + index,
                    messages,
                    bytes: messages * size,
                    gbit_per_s: Some(rate * size as f64 * 8e-9 * share / sum),
                    latency_ns: latency(rng, typical_ns / share, 40, false),
                    ..QpResult::default()
                }
            })
            .collect();
        let messages: u64 = qps.iter().map(|qp| qp.messages).sum();
        let timeline = timeline(rng, messages);
        let bits = size as f64 * 8.0 / timeline.interval_seconds;
        let rates = timeline.messages.iter().map(|&count| count as f64 * bits / 1e9);
        let protocol_efficiency = efficiency(size as f64);
        let flow = FlowResult {
            totals: Totals::in_window(messages, messages * size, 0, SECONDS),
            fairness: Fairness::new(&shares),
            qps,
            limits: self.link_gbit_per_s.map(|link_gbit_per_s| Limits {
                link_gbit_per_s,
                protocol_efficiency,
                share_of_limit: Some(
                    rate * size as f64 * 8e-9 / link_gbit_per_s / protocol_efficiency,
                ),
                narrower: None,
            }),
            bandwidth_gbit_per_s: Bandwidth::of_intervals(timeline.interval_seconds, rates),
            timeline: Some(timeline),
            ..flow(&config.flows[0], config, rate, latency(rng, typical_ns, 400, true))
        };
        let workers = config.workers.min(config.qps);
        let client = NodeResult {
            workers: (0..workers)
                .map(|core| WorkerResult {
                    core: Some(core),
                    window_seconds: Some(SECONDS),
                    cpu_seconds: Some(SECONDS * 0.99),
                    polls: messages,
                    empty_polls: messages / 3,
                    ..worker(part(messages, core, workers))
                })
                .collect(),
            ..NodeResult::named(CLIENT)
        };
        Run {
            run: number,
            started_at: self.started_at.to_owned(),
            nodes: vec![client, NodeResult::named(SERVER)],
            ..run(vec![flow])
        }
    }
}

fn config(settings: Settings) -> CaseConfig {
    let mut config = CaseConfig::from(settings);
    let flow = &mut config.flows[0];
    (flow.path_mtu, flow.from_device) = (Some(4096), Some("mlx5_0".to_owned()));
    config
}

/// Payload in what is on the wire.
fn efficiency(size: f64) -> f64 {
    size / (size + 82.0 * (size / 4096.0).ceil())
}

fn flow(
    config: &FlowConfig,
    settings: &Settings,
    rate: f64,
    latency_ns: Option<Latency>,
) -> FlowResult {
    let messages = (rate * SECONDS) as u64;
    let flow = steady(config, settings, messages, SECONDS, latency_ns);
    FlowResult { window: Window { warmup_seconds: 0.5, ..flow.window }, ..flow }
}

fn runs_of(rates: &[f64], mut flow: impl FnMut(f64) -> FlowResult) -> Vec<Run> {
    (1..)
        .zip(rates)
        .map(|(number, &rate)| Run {
            run: number,
            nodes: [CLIENT, SERVER].map(NodeResult::named).into(),
            ..run(vec![flow(rate)])
        })
        .collect()
}

/// The case at a rate of messages, or a share of what each run of the closed loop moved. Cases of many QPs do not keep
/// high ones.
fn open(rng: &mut fastrand::Rng, closed: &CaseResult, rate: &str, maxima: &[f64]) -> CaseResult {
    let settings = Settings { rate: rate.parse().unwrap(), ..closed.config.settings.clone() };
    let (offered_rate, bytes, qps) = (settings.rate, settings.mean_bytes(), settings.qps);
    let config = config(settings);
    let runs = runs_of(maxima, |maximum| {
        let messages = offered_rate.messages_per_second(bytes);
        let share =
            offered_rate.share().or(messages.map(|per_second| per_second / maximum)).unwrap();
        let (late, overloaded) = (qps > 8 && share > 0.9, share >= 1.0);
        let offered = maximum * share;
        let achieved = if overloaded { maximum * 0.985 } else { offered };
        let waits = if overloaded { 4e8 } else { 1e9 / maximum * share / (1.0 - share) };
        let mut flow =
            flow(&config.flows[0], &config, achieved, latency(rng, 2_200.0 + waits, 4000, true));
        flow.service_ns = flow.latency_ns.clone();
        flow.lateness_ns = latency(rng, if late { 9_000.0 } else { 150.0 }, 400, true);
        flow.load = Some(Load {
            asked_per_second: offered,
            maximum_per_second: offered_rate.share().map(|_| maximum),
            offered: (offered * SECONDS) as u64,
            offered_per_second: offered,
            achieved_per_second: achieved,
            queue_full_messages: if overloaded { 100_000 } else { 0 },
            queue_full_seconds: if overloaded { 3.0 } else { 0.0 },
            recorded_one_in: ((offered * SECONDS) as u64 / 4000).max(1),
            verdict: match (late, overloaded) {
                (true, _) => LoadVerdict::NotKept,
                (_, true) => LoadVerdict::Overloaded,
                _ => LoadVerdict::Kept,
            },
            not_kept_by: late.then_some(NotKeptBy::Lateness),
            ..Load::default()
        });
        let doubt = Doubt {
            kind: DoubtKind::ScheduleNotKept,
            message: "lateness p99 is 45 µs; give --workers more, or a lower --rate".to_owned(),
        };
        flow.window.doubts = late.then_some(doubt).into_iter().collect();
        flow
    });
    CaseResult {
        id: format!("{}-R{offered_rate}", closed.id),
        config,
        runs,
        ..CaseResult::default()
    }
}

/// A search that ended between 60 and 62 % of what the closed loop moves.
fn search(maximum: f64) -> LoadSearch {
    let trials = [0.5, 0.75, 0.62, 0.56, 0.6, 0.62, 0.6].map(|share| Trial {
        asked_per_second: maximum * share,
        achieved_per_second: maximum * share,
        outcome: if share > 0.6 { TrialOutcome::Broke } else { TrialOutcome::Kept },
        p50_ns: Some((5_000.0 * share) as u64),
        p99_ns: Some((16_300.0 * share) as u64),
        lateness_p99_ns: Some(300),
        ..Trial::default()
    });
    let search = LoadSearch {
        maximum_per_second: maximum,
        lower_per_second: Some(maximum * 0.6),
        upper_per_second: Some(maximum * 0.62),
        trials: trials.to_vec(),
        ..LoadSearch::default()
    };
    with(
        &search,
        r#"asked=p99<10us; limits=[{"percentile":99.0,"below_ns":10000}]; trial_seconds=1.0"#,
    )
}

/// Set-up of so many QPs a round, without traffic.
fn set_up(rng: &mut fastrand::Rng, qps: u32) -> CaseResult {
    let steps = ["create", "init", "rtr", "rts", "destroy"].map(|step| ConnectStep {
        step: step.to_owned(),
        per: "connection".to_owned(),
        time_ns: latency(rng, 20_000.0, 400, true).unwrap_or_default(),
    });
    let connect = Connect {
        rounds: 400,
        connections: 400 * u64::from(qps),
        seconds: 2.0,
        connections_per_second: Some(200.0 * f64::from(qps)),
        setup_ns: latency(rng, 1e5 * f64::from(qps), 400, true),
        peer_steps: steps.to_vec(),
        steps: steps.to_vec(),
        ..Connect::default()
    };
    CaseResult {
        id: format!("connect-q{qps}"),
        config: CaseConfig {
            settings: Settings { qps, ..Settings::from([("op", "connect"), ("traffic-qps", "0")]) },
            flows: Vec::new(),
            check: None,
        },
        runs: vec![Run { connect: Some(connect), ..run(Vec::new()) }],
        ..CaseResult::default()
    }
}

/// One of `parts` parts that make up the whole.
fn part(whole: u64, index: u32, parts: u32) -> u64 {
    let (index, parts) = (u64::from(index), u64::from(parts));
    whole * (index + 1) / parts - whole * index / parts
}

/// A skewed distribution with a few outliers.
fn latency(rng: &mut fastrand::Rng, typical_ns: f64, samples: u32, whole: bool) -> Option<Latency> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2).ok()?;
    for _ in 0..samples {
        let skew = -rng.f64().max(1e-6).ln();
        let outlier = if rng.u32(..200) == 0 { 20.0 } else { 1.0 };
        histogram.saturating_record((typical_ns * (0.8 + 0.2 * skew) * outlier) as u64);
    }
    let mut latency = Latency::from_histogram(&histogram, 0)?;
    if !whole {
        latency.histogram = None;
    }
    Some(latency)
}

/// A hundred intervals, of which one has no message.
fn timeline(rng: &mut fastrand::Rng, messages: u64) -> Timeline {
    let interval_seconds = SECONDS / 100.0;
    let mut weights: Vec<f64> = (0..100).map(|_| 0.95 + 0.1 * rng.f64()).collect();
    weights[42] = 0.0;
    let total: f64 = weights.iter().sum();
    let (mut sum, mut before) = (0.0, 0);
    let by_interval = weights
        .into_iter()
        .map(|weight| {
            sum += weight;
            let until = (messages as f64 * (sum / total)).round() as u64;
            until - std::mem::replace(&mut before, until)
        })
        .collect();
    Timeline {
        interval_seconds,
        at_seconds: (1..=100).map(|end| f64::from(end) * interval_seconds).collect(),
        messages: by_interval,
        longest_stall_seconds: Some(interval_seconds),
    }
}

fn perftest(rng: &mut fastrand::Rng, case: &CaseResult) -> CaseComparison {
    let counted = case.runs.iter().filter_map(|run| run.flows[0].totals.gbit_per_s);
    let new: Vec<f64> = counted.collect();
    let base: Vec<f64> = new.iter().map(|gbit| gbit * (0.9 + 0.05 * rng.f64())).collect();
    let rounds = case
        .runs
        .iter()
        .zip(base.iter().zip(&new))
        .map(|(run, (of_base, of_new))| Round {
            number: run.run,
            first: "rocebench".to_owned(),
            base: vec![Some(*of_base)],
            new: vec![Some(*of_new)],
            ..Round::default()
        })
        .collect();
    let mut metric = MetricComparison::unjudged(Metric::GbitPerS, 0.03, base, new);
    metric.low = metric.ratio.map(|ratio| ratio * 0.98);
    metric.high = metric.ratio.map(|ratio| ratio * 1.03);
    metric.verdict = Verdict::Faster;
    CaseComparison {
        id: case.id.clone(),
        sides: ["perftest 6.06", "rocebench"].map(str::to_owned),
        config: case.config.clone(),
        base_command: vec!["ib_send_bw".to_owned()],
        observation: Observation::Round,
        base_count: metric.base.len(),
        new_count: metric.new.len(),
        metrics: vec![metric],
        rounds,
        ..CaseComparison::default()
    }
}
