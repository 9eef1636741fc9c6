//! What the steps of a node's run share: its identity, what it has learnt, and its progress reports to the coordinator.

use crate::outcome::add_growth;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metrics::IntervalLatency;
use metrics::steady::SteadyDetector;
use plan::Case;
use results::model::LossUnknown;
use settings::{Settings, Stop, Warmup};
use verbs::Port;

use crate::cpu_times::{CpuTimes, CpuWatch};
use crate::port_counters::PortCounters;
use crate::resources::NodeResources;
use crate::running_node::{EarlyEnd, RunningNode};
use crate::sampled::Sampled;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{Message, Progress, WarmUp};
use protocol::node_report::{DeviceCounters, SetUpReport};

/// Longest time between two commands in a run: the longest measurement, and then some.
pub(crate) const COMMAND_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Interval between a node's progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Interval between looks at latencies for the progress display: each look disturbs the workers' caches a little.
const LATENCY_EVERY: Duration = Duration::from_secs(1);

/// An open loop's throughput is that of its schedule: its warm-up lasts until queues have their length. Those of a
/// server with Poisson arrivals have it after some (1 - load)^-2 service times.
const OPEN_LOOP_WARM_UP: Duration = Duration::from_millis(500);

/// A run at a node.
pub(crate) struct NodeRun<'a> {
    pub(crate) link: &'a Link,
    pub(crate) resources: &'a NodeResources,
    pub(crate) case: &'a Case,
    /// Number of each of its flows in the coordinator's case.
    pub(crate) flows: &'a [u32],
    /// The number of the run within its case.
    pub(crate) run: u32,
    /// The node's number in the session.
    pub(crate) number: u32,
    /// The wish to end this node.
    pub(crate) stop: &'a AtomicBool,
    /// Says something that a person should know.
    pub(crate) note: &'a dyn Fn(&str),
}

/// What is learnt on the way, kept if the run ends early.
#[derive(Default)]
pub(crate) struct Notes {
    /// Samples of each end's window, by its number; `None` until the window opens, and for ends that do not send.
    pub(crate) sampled: Vec<Option<Sampled>>,
    /// Counters of each device that the flows use, with its name; the first has none.
    watches: Vec<(Option<String>, PortCounters)>,
    pub(crate) counters: Option<DeviceCounters>,
    pub(crate) loss_unknown: Vec<LossUnknown>,
    cpu_watch: Option<CpuWatch>,
    pub(crate) cpu_times: CpuTimes,
    pub(crate) set_up: Option<SetUpReport>,
}

impl Notes {
    /// The windows of all ends that send open now.
    pub(crate) fn open(&mut self, node: &RunningNode) {
        self.sampled = Sampled::of_ends(node);
    }

    /// Samples the windows.
    pub(crate) fn sample(&mut self, node: &RunningNode) {
        Sampled::sample(&mut self.sampled, node);
    }

    /// Watches the counters of all devices from now on.
    pub(crate) fn watch_counters(&mut self, node: &RunningNode, own: &Port) {
        let mut ports = vec![own];
        for end in node.ends() {
            let port = end.objects.port();
            if ports.iter().all(|known| !Arc::ptr_eq(&known.context, &port.context)) {
                ports.push(port);
            }
        }
        let name = |index, port: &Port| (index > 0).then(|| port.context.name().to_owned());
        self.watches = ports
            .into_iter()
            .enumerate()
            .map(|(index, port)| (name(index, port), PortCounters::watch(port)))
            .collect();
    }

    /// Begins to watch CPU times at the first call that finds a window open, or no window to wait for. `at_once`: without
    /// waiting, since the window may end before the next call.
    pub(crate) fn watch_cpu(&mut self, node: &RunningNode, own: &Port, at_once: bool) {
        let mut windows = node.windows().peekable();
        let is_open = windows.peek().is_none() || windows.any(|(_, window)| window.elapsed_ns > 0);
        if self.cpu_watch.is_none() && (is_open || at_once) {
            let mut contexts = vec![Arc::clone(&own.context)];
            for context in node.ends().map(|end| &end.objects.port().context) {
                if contexts.iter().all(|known| !Arc::ptr_eq(known, context)) {
                    contexts.push(Arc::clone(context));
                }
            }
            self.cpu_watch = Some(CpuWatch::start(contexts));
        }
    }

    /// Ends both watches, if there are any. The windows have this length, or just end.
    pub(crate) fn read_counters(&mut self, window: Option<Duration>) {
        if let Some(watch) = self.cpu_watch.take() {
            self.cpu_times = watch.finish(window);
        }
        for (name, watch) in self.watches.drain(..) {
            let (growth, unknown) = watch.finish();
            self.loss_unknown.extend(unknown);
            if let Some(growth) = growth {
                let counters = self.counters.get_or_insert_with(DeviceCounters::default);
                add_growth(counters, name.as_deref(), &growth);
            }
        }
    }
}

impl NodeRun<'_> {
    /// Lets the traffic from this node warm up; returns how that went, or a message that came first.
    ///
    /// # Errors
    /// As [`RunningNode::wait`].
    pub(crate) fn warm(&self, node: &RunningNode) -> Result<Result<WarmUp, Message>, EarlyEnd> {
        let limit = self.case.warmup.longest();
        let is_auto = matches!(self.case.warmup, Warmup::AutoCapNs(_));
        let sent = node.sent();
        let mut steady: Vec<_> = sent
            .map(|(flow, _)| {
                let window_s = match flow.stop() {
                    Stop::DurationNs(ns) => ns as f64 / 1e9,
                    Stop::MessagesPerQp(_) => f64::INFINITY,
                };
                (SteadyDetector::before(window_s, flow.signal_every), false)
            })
            .collect();
        if steady.is_empty() {
            return Ok(Ok(WarmUp::default()));
        }
        if let Some(early) = node.warm_up(self.link, self.stop)? {
            return Ok(Err(early));
        }
        let started = Instant::now();
        let mut meter = Meter::new(self.link);
        let early = node.wait(self.link, self.stop, |node| {
            let elapsed = started.elapsed();
            let ns = elapsed.as_nanos() as u64;
            meter.tell(|| progress(node, ns));
            if is_auto {
                for ((detector, is_steady), (flow, counts)) in steady.iter_mut().zip(node.sent()) {
                    *is_steady |= if flow.is_closed_loop() {
                        detector.push(ns, counts.completed)
                    } else {
                        elapsed >= OPEN_LOOP_WARM_UP
                    };
                }
            }
            steady.iter().all(|(_, is_steady)| *is_steady) || elapsed >= limit
        })?;
        Ok(match early {
            Some(early) => Err(early),
            None => Ok(WarmUp {
                seconds: started.elapsed().as_secs_f64(),
                is_steady: is_auto.then(|| steady.iter().all(|(_, is_steady)| *is_steady)),
            }),
        })
    }

    /// How long its windows are, where they are of one length.
    pub(crate) fn window(&self) -> Option<Duration> {
        self.case
            .flows
            .iter()
            .map(|flow| match flow.stop() {
                Stop::DurationNs(ns) => Some(Duration::from_nanos(ns)),
                Stop::MessagesPerQp(_) => None,
            })
            .reduce(|one, other| one.filter(|_| one == other))
            .flatten()
    }

    /// Goes on as long as the link and this node's owner want it.
    pub(crate) fn alive(&self) -> Result<(), RunFailure> {
        self.link.progressed();
        if self.stop.load(Ordering::Relaxed) {
            return Err(RunFailure::server_stopped());
        }
        self.link.check().map_err(RunFailure::from)
    }
}

/// How far all flows from this node are since they began.
pub(crate) fn progress(node: &RunningNode, elapsed_ns: u64) -> Progress {
    let mut progress = Progress { elapsed_ns, ..Progress::default() };
    for (flow, counts) in node.sent() {
        add(&mut progress, flow, counts.completed);
        progress.outstanding += counts.posted.saturating_sub(counts.completed);
    }
    progress
}

/// How far they are in their windows.
pub(crate) fn progress_of_windows(node: &RunningNode) -> Progress {
    let mut progress = Progress::default();
    let windows = node.windows().map(|(_, window)| window);
    for ((flow, _), window) in node.sent().zip(windows) {
        progress.elapsed_ns = progress.elapsed_ns.max(window.elapsed_ns);
        add(&mut progress, flow, window.completed);
    }
    progress
}

fn add(progress: &mut Progress, flow: &Settings, messages: u64) {
    progress.messages += messages;
    progress.bytes += (messages as f64 * flow.mean_bytes()) as u64;
}

/// Latencies of the flows from a node while their windows are open.
pub(crate) struct LiveLatency {
    of_flows: Vec<IntervalLatency>,
    looked_at: Instant,
}

impl LiveLatency {
    pub(crate) fn new(node: &RunningNode) -> LiveLatency {
        LiveLatency { of_flows: node.live_latencies(), looked_at: Instant::now() }
    }

    /// The highest of the flows' 99th percentiles since the last look, if the next look is due.
    pub(crate) fn p99_ns(&mut self) -> Option<u64> {
        if self.looked_at.elapsed() < LATENCY_EVERY {
            return None;
        }
        self.looked_at = Instant::now();
        self.of_flows.iter_mut().filter_map(IntervalLatency::p99_ns).max()
    }
}

/// Reports the traffic's progress to the coordinator at intervals.
pub(crate) struct Meter<'a> {
    link: &'a Link,
    told_at: Instant,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(link: &'a Link) -> Self {
        Meter { link, told_at: Instant::now() }
    }

    pub(crate) fn tell(&mut self, progress: impl FnOnce() -> Progress) {
        if self.told_at.elapsed() >= PROGRESS_EVERY {
            self.told_at = Instant::now();
            // The next check of the link finds why it was lost.
            let _ = self.link.send(&Message::Progress(progress()));
        }
    }
}
