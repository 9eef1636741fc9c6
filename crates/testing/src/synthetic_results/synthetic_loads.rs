//! Open loops that nothing was measured for: an M/D/1 queue, message by message, behind a path of constant length, with
//! a stall now and then. The closed loop keeps a queue of constant length.

use hdrhistogram::Histogram;
use report::results::model::{
    CaseConfig, CaseResult, Doubt, DoubtKind, FlowResult, Gaps, Latency, LatencyLimit, Load,
    LoadSearch, LoadVerdict, NodeResult, Run, SearchEnd, Totals, Trial, TrialOutcome, Window,
};
use settings::{Rate, Settings};

const SECONDS: f64 = 5.0;
const PATH_NS: f64 = 2_200.0;
const MESSAGES: u32 = 40_000;
/// A message in so many finds the server stopped, for so long.
const STALL: (u32, f64) = (2_000, 8_000.0);
/// Rates from this share on are not kept where a case has many QPs.
const HARNESS_KEEPS: f64 = 0.9;

/// A system with one server.
#[derive(Clone, Debug)]
pub struct Served {
    pub settings: Settings,
    pub id: String,
    /// Messages a second that it serves.
    pub rate: f64,
    pub runs: u32,
    /// Highest rates are not posted in time.
    pub slow_harness: bool,
}

impl Served {
    /// The closed loop, with a search where it is asked for, and a case for each rate.
    pub fn cases(&self, rng: &mut fastrand::Rng, rates: &[&str], search: bool) -> Vec<CaseResult> {
        let mut closed = self.case(self.id.clone(), self.settings.clone());
        closed.runs = (1..=self.runs)
            .map(|run| self.closed(rng, &closed, run))
            .collect();
        if search {
            closed.searches = vec![self.slo(rng)];
        }
        let mut cases = vec![closed];
        for rate in rates {
            let settings = Settings {
                rate: rate.parse().unwrap_or_default(),
                ..self.settings.clone()
            };
            let rate = settings.rate;
            let mut case = self.case(format!("{}-R{rate}", self.id), settings);
            case.runs = (1..=self.runs)
                .map(|run| self.open(rng, &case, run, rate))
                .collect();
            cases.push(case);
        }
        cases
    }

    fn case(&self, id: String, settings: Settings) -> CaseResult {
        let mut config = CaseConfig::from(settings);
        let flow = &mut config.flows[0];
        (flow.path_mtu, flow.from_device) = (Some(4096), Some("mlx5_0".to_owned()));
        CaseResult {
            id,
            config,
            ..CaseResult::default()
        }
    }

    fn run(&self, case: &CaseResult, run: u32, rate: f64, latency: Latency) -> Run {
        let messages = (rate * SECONDS) as u64;
        let bytes = messages * u64::from(self.settings.size_bytes);
        Run {
            run,
            complete: true,
            flows: vec![FlowResult {
                window: Window {
                    seconds: SECONDS,
                    warmup_seconds: 0.5,
                    ..Window::default()
                },
                totals: Totals::in_window(messages, bytes, 0, SECONDS),
                latency_ns: Some(latency),
                ..FlowResult::of(&case.config.flows[0])
            }],
            nodes: vec![NodeResult::named("client"), NodeResult::named("server")],
            ..Run::default()
        }
    }

    fn closed(&self, rng: &mut fastrand::Rng, case: &CaseResult, run: u32) -> Run {
        let depth = f64::from(self.settings.tx_depth * self.settings.qps);
        let waiting = depth * 1e9 / self.rate;
        let mut histogram = histogram();
        for _ in 0..MESSAGES {
            let noise = 0.95 + 0.1 * rng.f64();
            // All that are in flight wait while the server is stopped, and no others come.
            let stall = if rng.u32(..STALL.0) == 0 {
                STALL.1
            } else {
                0.0
            };
            histogram.saturating_record((PATH_NS + waiting * noise + stall) as u64);
        }
        let rate = self.rate * (0.995 + 0.01 * rng.f64());
        self.run(case, run, rate, summary(&histogram))
    }

    fn open(&self, rng: &mut fastrand::Rng, case: &CaseResult, number: u32, asked: Rate) -> Run {
        let mean_bytes = self.settings.mean_bytes();
        let share = asked.share().unwrap_or_else(|| {
            asked.messages_per_second(mean_bytes).unwrap_or_default() / self.rate
        });
        let late = self.slow_harness && share > HARNESS_KEEPS;
        let offered = self.rate * share;
        let achieved = if share >= 1.0 {
            self.rate * 0.985
        } else {
            offered
        };
        let noise = 1.0 + 0.002 * (rng.f64() - 0.5);
        let latency = self.latency(rng, share);
        let mut run = self.run(case, number, achieved * noise, summary(&latency));
        let flow = &mut run.flows[0];
        flow.service_ns = Some(summary(&latency));
        flow.lateness_ns = Some(lateness(rng, if late { 9_000.0 } else { 150.0 }));
        flow.load = Some(Load {
            asked_per_second: offered,
            maximum_per_second: asked.share().map(|_| self.rate),
            offered: (offered * SECONDS) as u64,
            offered_per_second: offered,
            achieved_per_second: achieved * noise,
            never_sent: ((offered - achieved) * (SECONDS - 1.0)).max(0.0) as u64,
            queue_full_messages: if share >= 1.0 { 100_000 } else { 0 },
            queue_full_seconds: if share >= 1.0 { 3.0 } else { 0.0 },
            recorded_one_in: 1,
            gaps: Some(Gaps {
                messages_of_gap: 1,
                samples: 10_000,
                p_value: 0.4,
            }),
            verdict: match (late, share >= 1.0) {
                (true, _) => LoadVerdict::NotKept,
                (_, true) => LoadVerdict::Overloaded,
                _ => LoadVerdict::Kept,
            },
        });
        if late {
            flow.window.doubts.push(Doubt {
                kind: DoubtKind::ScheduleNotKept,
                message: "lateness p99 is 45 µs; give --workers more, or a lower --rate".to_owned(),
            });
        }
        run
    }

    /// Latencies at a share of what is served: Lindley's recursion.
    fn latency(&self, rng: &mut fastrand::Rng, share: f64) -> Histogram<u64> {
        let service = 1e9 / self.rate;
        let gap = service / share.min(1.05);
        let mut histogram = histogram();
        let mut wait = 0.0;
        for _ in 0..MESSAGES {
            let stall = if rng.u32(..STALL.0) == 0 {
                STALL.1
            } else {
                0.0
            };
            let noise = 100.0 * rng.f64();
            histogram.saturating_record((PATH_NS + noise + service + stall + wait) as u64);
            let next = -rng.f64().max(1e-9).ln() * gap;
            wait = f64::max(0.0, wait + service + stall - next);
            if share >= 1.0 {
                // Over the window the queue grows without end.
                wait += 40_000.0;
            }
        }
        histogram
    }

    /// A search by halves, with two trials at the end.
    fn slo(&self, rng: &mut fastrand::Rng) -> LoadSearch {
        let limit = LatencyLimit {
            percentile: 99.0,
            below_ns: 10_000,
        };
        let (mut lower, mut upper) = (0.0, 1.0);
        let mut trials = Vec::new();
        for _ in 0..9 {
            let share = f64::midpoint(lower, upper);
            let latency = summary(&self.latency(rng, share));
            let broke = latency.p99.is_none_or(|ns| ns >= limit.below_ns);
            let rate = self.rate * share;
            trials.push(Trial {
                asked_per_second: rate,
                achieved_per_second: rate,
                outcome: match broke {
                    true => TrialOutcome::Broke,
                    false => TrialOutcome::Kept,
                },
                p50_ns: Some(latency.p50),
                p99_ns: latency.p99,
                p99_9_ns: latency.p99_9,
                lateness_p99_ns: Some(300),
                ..Trial::default()
            });
            if upper - lower > 0.02 {
                *(if broke { &mut upper } else { &mut lower }) = share;
            }
        }
        LoadSearch {
            asked: "p99<10us".to_owned(),
            limits: vec![limit],
            reference_p99_ns: None,
            maximum_per_second: self.rate,
            lower_per_second: (lower > 0.0).then_some(lower * self.rate),
            upper_per_second: (upper < 1.0).then_some(upper * self.rate),
            end: SearchEnd::Found,
            trial_seconds: 1.0,
            trials,
            ..LoadSearch::default()
        }
    }
}

#[allow(clippy::panic, reason = "the bounds are constants")]
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap_or_else(|error| panic!("{error}"))
}

fn summary(histogram: &Histogram<u64>) -> Latency {
    Latency::from_histogram(histogram, 0).unwrap_or_default()
}

fn lateness(rng: &mut fastrand::Rng, mean_ns: f64) -> Latency {
    let mut histogram = histogram();
    for _ in 0..MESSAGES {
        histogram.saturating_record((-rng.f64().max(1e-9).ln() * mean_ns) as u64 + 1);
    }
    summary(&histogram)
}
