//! Results that nothing was measured for, of a made-up adapter and a law with noise, to draw from.

#![allow(dead_code)] // not every user needs all of it

mod synthetic_loads;

use hdrhistogram::Histogram;
use report::results::model::{
    Bandwidth, CLIENT, CaseConfig, CaseResult, Connect, ConnectStep, Device, FORWARD, Fairness,
    FlowResult, Host, Latency, Limits, Node, NodeResult, PerftestComparison, PerftestPair,
    QpResult, ResultFile, Run, SCHEMA_VERSION, SERVER, Timeline, Tool, Totals, Window,
    WorkerResult,
};
use settings::Settings;
use synthetic_loads::Served;

/// What the sweep goes through.
#[derive(Clone, Debug)]
pub struct Synthetic {
    pub ops: Vec<&'static str>,
    pub cqs: Vec<&'static str>,
    pub qps: Vec<u32>,
    pub sizes: Vec<u64>,
    pub workers: Vec<u32>,
    pub runs: u32,
    /// Loads of open loops, which each case then has instead of a closed loop alone.
    pub rates: Vec<&'static str>,
    /// A search for a load, of each of those cases.
    pub search: bool,
    /// QPs that the rounds of cases of set-up create.
    pub set_up: Vec<u32>,
    /// Speed of the link; without one the device is software.
    pub link_gbit_per_s: Option<f64>,
    /// perftest's figures too.
    pub perftest: bool,
    /// Samples over the window.
    pub timeline: bool,
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
            perftest: true,
            timeline: true,
            factor: 1.0,
            git: "0123456789ab",
            started_at: "2026-11-20T12:00:00Z",
            seed: 7,
        }
    }
}

impl Synthetic {
    pub fn result(&self) -> ResultFile {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut cases = Vec::new();
        for &op in &self.ops {
            for &cq in &self.cqs {
                for &size in &self.sizes {
                    for &qps in &self.qps {
                        for &workers in &self.workers {
                            let case = self.case(&mut rng, op, cq, size, qps, workers);
                            if self.rates.is_empty() && !self.search {
                                cases.push(case);
                            } else {
                                cases.extend(self.loads(&mut rng, case));
                            }
                        }
                    }
                }
            }
        }
        let set_up = self.set_up.iter().map(|&qps| set_up(&mut rng, qps));
        cases.extend(set_up);
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
        }
    }

    fn node(&self, name: &str, hostname: &str) -> Node {
        let device = match self.link_gbit_per_s {
            Some(_) => "mlx5_0",
            None => "soft0",
        };
        Node {
            name: name.to_owned(),
            host: Host {
                hostname: hostname.to_owned(),
                kernel: "6.1.0".to_owned(),
                os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
                cpu_model: Some("Example CPU".to_owned()),
                cores: 16,
                ..Host::default()
            },
            devices: vec![Device {
                name: device.to_owned(),
                library: "libibverbs".to_owned(),
                software: self.link_gbit_per_s.is_none(),
                port: 1,
                link_gbit_per_s: self.link_gbit_per_s,
                active_mtu_bytes: Some(4096),
                ..Device::default()
            }],
        }
    }

    /// The case as a closed loop, and under each load.
    fn loads(&self, rng: &mut fastrand::Rng, case: CaseResult) -> Vec<CaseResult> {
        let rates = case.runs[0].flows[0].totals.mmsg_per_s;
        let settings = case.config.flow(0);
        let served = Served {
            id: case.id,
            rate: rates.unwrap_or(1.0) * 1e6 / 4.0,
            runs: self.runs,
            slow_harness: settings.qps > 8,
            settings,
        };
        served.cases(rng, &self.rates, self.search)
    }

    fn case(
        &self,
        rng: &mut fastrand::Rng,
        op: &str,
        cq: &str,
        size: u64,
        qps: u32,
        workers: u32,
    ) -> CaseResult {
        let runs: Vec<Run> = (1..=self.runs)
            .map(|number| self.run(rng, op, cq, size, qps, workers, number))
            .collect();
        let perftest = self.perftest.then(|| perftest(rng, op, &runs));
        let settings = Settings::from([
            ("op", op),
            ("qps", qps.to_string().as_str()),
            ("cq", cq),
            ("size", size.to_string().as_str()),
            ("signal-every", "1"),
            ("workers", workers.to_string().as_str()),
        ]);
        let mut config = CaseConfig::from(settings);
        let flow = &mut config.flows[0];
        (flow.path_mtu, flow.from_device) = (Some(4096), Some("mlx5_0".to_owned()));
        CaseResult {
            id: format!("{op}-{cq}-q{qps}-{size}-w{workers}"),
            config,
            runs,
            perftest,
            ..CaseResult::default()
        }
    }

    #[allow(clippy::too_many_arguments)] // a law of so many variables
    fn run(
        &self,
        rng: &mut fastrand::Rng,
        op: &str,
        cq: &str,
        size: u64,
        qps: u32,
        workers: u32,
        run: u32,
    ) -> Run {
        let efficiency = size as f64 / (size as f64 + 82.0 * (size as f64 / 4096.0).ceil());
        let noise = 1.0 + 0.02 * (rng.f64() - 0.5);
        let mut mmsg_per_s = 8.0 * f64::from(workers.min(qps)).powf(0.8) * self.factor * noise;
        mmsg_per_s *= if op == "read" { 0.7 } else { 1.0 };
        mmsg_per_s *= if cq == "per-qp" {
            1.2 / f64::from(qps).powf(0.05)
        } else {
            1.0
        };
        let top =
            self.link_gbit_per_s.unwrap_or(40.0) * efficiency * 0.97 * self.factor.min(1.0) * noise;
        let gbit_per_s = (mmsg_per_s * 1e6 * size as f64 * 8.0 / 1e9).min(top);
        mmsg_per_s = gbit_per_s * 1e9 / 8.0 / size as f64 / 1e6;
        let seconds = 5.0;
        let share = |rng: &mut fastrand::Rng| 0.9 + 0.2 * rng.f64();
        let shares: Vec<f64> = (0..qps).map(|_| share(rng)).collect();
        let sum: f64 = shares.iter().sum();
        let of_qp = |share: f64| (mmsg_per_s * 1e6 * seconds * share / sum) as u64;
        let messages: u64 = shares.iter().map(|share| of_qp(*share)).sum();
        let typical_ns = 2_000.0 + 128.0 * f64::from(qps) * 1e3 / mmsg_per_s / 20.0;
        let qp_results: Vec<QpResult> = (0..)
            .zip(&shares)
            .map(|(index, share)| {
                let messages = of_qp(*share);
                QpResult {
                    index,
                    qpn: 0x100 + index,
                    messages,
                    bytes: messages * size,
                    gbit_per_s: Some(gbit_per_s * share / sum),
                    latency_ns: latency(rng, typical_ns / share, 40, false),
                    ..QpResult::default()
                }
            })
            .collect();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        let even = sum / f64::from(qps);
        let mut flow = FlowResult {
            name: FORWARD.to_owned(),
            from: CLIENT.to_owned(),
            to: SERVER.to_owned(),
            window: Window {
                seconds,
                warmup_seconds: 0.5,
                warmup_steady: Some(true),
                doubts: Vec::new(),
            },
            totals: Totals::in_window(messages, messages * size, 0, seconds),
            latency_ns: latency(rng, typical_ns, 400, true),
            fairness: Some(Fairness {
                jain: sum * sum / f64::from(qps) / squares,
                min_share: shares.iter().copied().fold(f64::INFINITY, f64::min) / even,
                max_share: shares.iter().copied().fold(0.0, f64::max) / even,
            }),
            qps: qp_results,
            limits: self.link_gbit_per_s.map(|link_gbit_per_s| Limits {
                link_gbit_per_s,
                protocol_efficiency: efficiency,
                share_of_limit: Some(gbit_per_s / link_gbit_per_s / efficiency),
            }),
            timeline: self.timeline.then(|| timeline(rng, messages, seconds)),
            ..FlowResult::default()
        };
        let mut client = NodeResult::named(CLIENT);
        let worker = |core| WorkerResult {
            core: Some(core),
            core_shared_with: Some(0),
            window_seconds: Some(seconds),
            messages: part(messages, core, workers.min(qps)),
            cpu_seconds: Some(seconds * 0.99),
            polls: messages,
            empty_polls: messages / 3,
            blocked: 0,
        };
        client.workers = (0..workers.min(qps)).map(worker).collect();
        flow.bandwidth_gbit_per_s = flow.timeline.as_ref().and_then(|timeline| {
            let bits = size as f64 * 8.0 / timeline.interval_seconds;
            let counts = timeline.messages.iter();
            let rates = counts.map(|&messages| messages as f64 * bits / 1e9);
            Bandwidth::of_intervals(timeline.interval_seconds, rates)
        });
        Run {
            run,
            started_at: self.started_at.to_owned(),
            complete: true,
            flows: vec![flow],
            nodes: vec![client, NodeResult::named(SERVER)],
            ..Run::default()
        }
    }
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
            settings: Settings::from([
                ("op", "connect"),
                ("qps", qps.to_string().as_str()),
                ("traffic-qps", "0"),
            ]),
            flows: Vec::new(),
        },
        runs: vec![Run {
            run: 1,
            complete: true,
            connect: Some(connect),
            ..Run::default()
        }],
        ..CaseResult::default()
    }
}

/// One of `parts` parts that make up the whole.
fn part(whole: u64, index: u32, parts: u32) -> u64 {
    let end = |index: u32| whole * u64::from(index) / u64::from(parts);
    end(index + 1) - end(index)
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

fn timeline(rng: &mut fastrand::Rng, messages: u64, seconds: f64) -> Timeline {
    let count = 100;
    let each = messages as f64 / f64::from(count);
    let counts: Vec<u64> = (0..count)
        .map(|index| {
            if index == 42 {
                0
            } else {
                (each * (0.95 + 0.1 * rng.f64())) as u64
            }
        })
        .collect();
    Timeline {
        interval_seconds: seconds / f64::from(count),
        at_seconds: (1..=count)
            .map(|index| f64::from(index) * seconds / f64::from(count))
            .collect(),
        messages: counts,
        longest_stall_seconds: Some(seconds / f64::from(count)),
    }
}

fn perftest(rng: &mut fastrand::Rng, op: &str, runs: &[Run]) -> PerftestComparison {
    let pairs: Vec<PerftestPair> = (1..)
        .zip(runs)
        .map(|(number, run)| PerftestPair {
            first: "rocebench".to_owned(),
            run: number,
            rocebench: run.flows[0].totals.gbit_per_s,
            perftest: run.flows[0]
                .totals
                .gbit_per_s
                .map(|gbit| gbit * (0.9 + 0.05 * rng.f64())),
            ..PerftestPair::default()
        })
        .collect();
    let (base, new) = (pairs[0].perftest, pairs[0].rocebench);
    let ratio = new.zip(base).map(|(new, base)| new / base);
    PerftestComparison {
        program: format!("ib_{op}_bw"),
        version: Some("6.06".to_owned()),
        metric: "gbit_per_s".to_owned(),
        pairs,
        rocebench_median: new,
        perftest_median: base,
        ratio,
        ratio_low: ratio.map(|ratio| ratio * 0.98),
        ratio_high: ratio.map(|ratio| ratio * 1.03),
        verdict: "faster".to_owned(),
        ..PerftestComparison::default()
    }
}
