//! What is learnt in a run: samples and counters for the report, and its progress for the coordinator's display.

use std::{
    cell::RefCell,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use datapath::{Activity, Geometry};
use machine::{
    control_groups::{cpu_quota, throttled_seconds},
    optional_counters::OptionalCounters,
    threads::{core_megahertz, machine_times, waiting_seconds},
};
use metrics::{
    IntervalLatency, QpTimeline, StateTimeline, Timeline, concerns_rdma,
    counters::{CounterWatch, Growth, Reading, lifespan_ns, why_loss_is_unknown},
    node_state::Sums,
    timeline::MOST_COUNTS,
};
use protocol::{
    link::Link,
    message::{Progress, RunMessage},
    node_report::{DeviceCounters, SetUpReport},
};
use results::model::{Doubt, LossUnknown, NodeState};
use softroce::transport::ENGINE_CPU_NS;
use verbs::{Context, Port, interface_counters, kernel_driver};

use crate::{
    outcome::{add_growth, quota_doubt},
    run::{FlowEnd, flow_end::senders},
};

/// Below it are the kernel's files.
const ROOT: &str = "/";

/// Interval between a node's progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Interval between looks at latencies for the progress display: each look disturbs the workers' caches a little.
const LATENCY_EVERY: Duration = Duration::from_secs(1);

/// Reading the counters of an interface asks its adapter for all of them, also those of each queue. Where that takes longer than
/// the first time here, it is done each second at most.
const SLOW_READING: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(1)];

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
    state_watch: RefCell<Option<StateWatch>>,
    pub(crate) state: Option<NodeState>,
    pub(crate) doubts: Vec<Doubt>,
    pub(crate) set_up: Option<SetUpReport>,
}

impl Notes {
    /// The windows of all ends that send open now.
    pub(crate) fn open(&mut self, ends: &[FlowEnd]) {
        self.sampled = Sampled::for_ends(ends);
    }

    /// Watches what the node and its device do, with these threads as workers, from the opening of the windows on.
    pub(crate) fn watch_state(&mut self, own: &Port, threads: Vec<u32>, cores: Vec<usize>) {
        self.state_watch = RefCell::new(Some(StateWatch::new(own, threads, cores)));
    }

    /// Looks at what the node and its device do, if that is watched.
    pub(crate) fn look(&self, ends: &[FlowEnd]) {
        if let Some(watch) = self.state_watch.borrow_mut().as_mut() {
            watch.look(ends);
        }
    }

    /// Events on the path of packets since the window opened, if they are watched.
    pub(crate) fn path_events(&self) -> Option<u64> {
        self.state_watch.borrow().as_ref()?.timeline.path_events()
    }

    /// Takes a sample of each window: what it has completed, and where they are few what its QPs have.
    pub(crate) fn sample(&mut self, ends: &[FlowEnd]) {
        self.look(ends);
        for (end, sampled) in ends.iter().zip(&mut self.sampled) {
            let Some(sampled) = sampled else { continue };
            let window = end.shared.window();
            sampled.flow.push(window.elapsed_ns, window.completed);
            if let Some(qps) = &mut sampled.qps {
                qps.push(window.elapsed_ns, |of_qps| end.shared.read_completed(of_qps));
            }
        }
    }

    /// Watches the counters of all devices from now on.
    pub(crate) fn watch_counters(&mut self, ends: &[FlowEnd], own: &Port) {
        let mut ports = vec![own];
        for end in ends {
            let port = end.objects.port();
            if ports.iter().all(|known| !Arc::ptr_eq(&known.context, &port.context)) {
                ports.push(port);
            }
        }
        self.watches = ports
            .into_iter()
            .enumerate()
            .map(|(index, port)| {
                let name = (index > 0).then(|| port.context.name().to_owned());
                (name, PortCounters::watch(port))
            })
            .collect();
    }

    /// Begins to watch CPU times at the first call that finds a window open, or no window to wait for. `at_once`: without
    /// waiting, since the window may end before the next call.
    pub(crate) fn watch_cpu(&mut self, ends: &[FlowEnd], own: &Port, at_once: bool) {
        if self.cpu_watch.is_none() && (at_once || is_window_open(ends)) {
            let mut contexts = vec![Arc::clone(&own.context)];
            for context in ends.iter().map(|end| &end.objects.port().context) {
                if contexts.iter().all(|known| !Arc::ptr_eq(known, context)) {
                    contexts.push(Arc::clone(context));
                }
            }
            self.cpu_watch = Some(CpuWatch::start(contexts));
        }
    }

    /// Ends both watches, if there are any. The windows have this length, or just end.
    pub(crate) fn read_counters(&mut self, window: Option<Duration>) {
        self.state = self.state_watch.take().and_then(StateWatch::finish).or(self.state.take());
        if let Some(watch) = self.cpu_watch.take() {
            // First, since looking for quotas takes CPU time too.
            self.cpu_times = watch.finish(window);
            self.doubts.extend(watch.doubt());
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

/// Whether a window of a flow from this node is open; without one there is nothing to wait for.
fn is_window_open(ends: &[FlowEnd]) -> bool {
    let mut windows = senders(ends).map(|end| end.shared.window()).peekable();
    windows.peek().is_none() || windows.any(|window| window.elapsed_ns > 0)
}

/// Samples of an end that sends.
pub struct Sampled {
    pub flow: Timeline,
    /// Of its QPs, where they are several and not too many.
    pub qps: Option<QpTimeline>,
}

impl Sampled {
    /// Makes room for samples of those of the ends that send. They share the counts that a node keeps.
    fn for_ends(ends: &[FlowEnd]) -> Vec<Option<Sampled>> {
        let counts = MOST_COUNTS / senders(ends).count().max(1);
        ends.iter()
            .map(|end| {
                end.initiates().then(|| Sampled {
                    flow: Timeline::default(),
                    qps: QpTimeline::new(end.flow.qps as usize, counts, end.flow.window_ns()),
                })
            })
            .collect()
    }
}

/// Reads the counters of a port.
#[derive(Clone)]
struct PortReader {
    context: Arc<Context>,
    number: u8,
    driver: Option<String>,
    /// What counts besides, as root has switched it on.
    optional: Option<Arc<OptionalCounters>>,
}

impl PortReader {
    fn new(port: &Port) -> PortReader {
        let (context, number) = (Arc::clone(&port.context), port.info.port);
        let driver = kernel_driver(context.root(), context.name());
        let is_kernels = driver.is_some() && context.root() == Path::new(ROOT);
        let known = is_kernels.then(|| OptionalCounters::open(context.name(), number)).flatten();
        let optional = known.filter(OptionalCounters::are_on).map(Arc::new);
        PortReader { context, number, driver, optional }
    }

    fn of_device(&self) -> Option<Reading> {
        if let Some(own) = self.context.counters() {
            return Some(Reading::of_embedded(own));
        }
        let (root, name) = (self.context.root(), self.context.name());
        let reading = Reading::of_kernel(root, self.driver.as_deref(), name, self.number)?;
        let optional = self.optional.as_ref().map(|counters| counters.values());
        Some(reading.with_optional(optional.unwrap_or_default()))
    }

    fn of_interface(&self) -> Vec<(String, u64)> {
        interface_counters(self.context.root(), self.context.name(), self.number, concerns_rdma)
    }

    fn read(&self) -> Option<Reading> {
        Some(self.of_device()?.with_interface(&self.of_interface()))
    }

    fn lifespan_ns(&self) -> u64 {
        lifespan_ns(self.context.root(), self.context.name(), self.number)
    }
}

/// Looks at a node and its device while windows are open: at what the flows have under way each time, at the rest each interval.
struct StateWatch {
    reader: PortReader,
    of_interface: Vec<(String, u64)>,
    /// When those are read again, from the opening.
    interface_due_ns: u64,
    /// Of its workers.
    threads: Vec<u32>,
    cores: Vec<usize>,
    /// When the first window was open, and the last look.
    opened: Option<(Instant, Instant)>,
    outstanding_seconds: f64,
    full_seconds: f64,
    receives_seconds: f64,
    empty_polls_seconds: f64,
    megahertz_seconds: f64,
    /// At the last sums, which [`Self::sums`] takes each interval.
    activity: Activity,
    /// When the sums were last taken, from the opening.
    summed_ns: u64,
    timeline: StateTimeline,
}

impl StateWatch {
    fn new(own: &Port, threads: Vec<u32>, cores: Vec<usize>) -> StateWatch {
        let reader = PortReader::new(own);
        StateWatch {
            timeline: StateTimeline::new(reader.lifespan_ns()),
            reader,
            of_interface: Vec::new(),
            interface_due_ns: 0,
            threads,
            cores,
            opened: None,
            outstanding_seconds: 0.0,
            full_seconds: 0.0,
            receives_seconds: 0.0,
            empty_polls_seconds: 0.0,
            megahertz_seconds: 0.0,
            activity: Activity::default(),
            summed_ns: 0,
        }
    }

    fn look(&mut self, ends: &[FlowEnd]) {
        if !is_window_open(ends) {
            return;
        }
        let now = Instant::now();
        let (opened, last) = *self.opened.get_or_insert((now, now));
        self.opened = Some((opened, now));
        let since_last = (now - last).as_secs_f64();
        self.outstanding_seconds += since_last * progress(ends, 0).outstanding as f64;
        self.full_seconds += since_last * full_part(ends);
        self.receives_seconds += since_last * receives_posted(ends) as f64;
        let at_ns = (now - opened).as_nanos() as u64;
        if self.timeline.is_due(at_ns) {
            let sums = self.sums(at_ns, ends);
            let reading = self.reading(at_ns);
            self.timeline.push(at_ns, sums, reading);
        }
    }

    /// The device's counters, and the interface's as they were last read.
    fn reading(&mut self, at_ns: u64) -> Option<Reading> {
        if at_ns >= self.interface_due_ns {
            let began = Instant::now();
            self.of_interface = self.reader.of_interface();
            let [slow, pause] = SLOW_READING;
            let is_slow = began.elapsed() > slow;
            self.interface_due_ns = at_ns + if is_slow { pause.as_nanos() as u64 } else { 0 };
        }
        Some(self.reader.of_device()?.with_interface(&self.of_interface))
    }

    /// In the order of [`NodeFact::ALL`], `at_ns` into the window.
    fn sums(&mut self, at_ns: u64, ends: &[FlowEnd]) -> Sums {
        let machine = machine_times();
        let waiting: Option<f64> = self.threads.iter().map(|it| waiting_seconds(*it)).sum();
        let clocks = self.cores.iter().map(|core| core_megahertz(ROOT.as_ref(), *core));
        let summed: Option<f64> = clocks.sum();
        let since_last = (at_ns - std::mem::replace(&mut self.summed_ns, at_ns)) as f64 * 1e-9;
        let now = activity(ends);
        let before = std::mem::replace(&mut self.activity, now);
        let polls = now.polls.saturating_sub(before.polls);
        let empty_polls = now.empty_polls.saturating_sub(before.empty_polls);
        self.empty_polls_seconds += empty_polls as f64 / polls.max(1) as f64 * since_last;
        let megahertz = summed.filter(|_| !self.cores.is_empty());
        self.megahertz_seconds +=
            megahertz.unwrap_or(0.0) / self.cores.len().max(1) as f64 * since_last;
        [
            Some(self.outstanding_seconds),
            Some(self.full_seconds),
            Some(self.receives_seconds),
            Some(self.empty_polls_seconds),
            waiting,
            machine.map(|times| times.busy_seconds),
            machine.map(|times| times.stolen_seconds),
            machine.map(|times| times.soft_interrupt_seconds),
            throttled_seconds(ROOT.as_ref()),
            megahertz.map(|_| self.megahertz_seconds),
        ]
    }

    fn finish(self) -> Option<NodeState> {
        self.timeline.finish()
    }
}

/// Watches the counters of a port.
pub(crate) struct PortCounters {
    device: String,
    driver: Option<String>,
    /// `None` where there are none.
    watch: Option<CounterWatch>,
}

impl PortCounters {
    pub(crate) fn watch(port: &Port) -> PortCounters {
        let device = port.context.name().to_owned();
        let reader = PortReader::new(port);
        let driver = reader.driver.clone();
        PortCounters { device, driver, watch: CounterWatch::start(move || reader.read()) }
    }

    /// Up to now: what they grew by, and why that would not show lost packets. The coordinator knows the node.
    pub(crate) fn finish(self) -> (Option<Growth>, Option<LossUnknown>) {
        let growth = self.watch.and_then(CounterWatch::finish);
        // Ports of iWARP are not taken.
        let reason = why_loss_is_unknown(growth.as_ref().map(Growth::last), false);
        let unknown = reason.map(|reason| LossUnknown {
            node: String::new(),
            device: self.device,
            driver: self.driver,
            reason,
        });
        (growth, unknown)
    }
}

/// What was used between two instants close to a window's edges.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTimes {
    /// By the threads of embedded devices; `None` without one.
    pub(crate) engine_seconds: Option<f64>,
    /// By everything on this machine; `None` where the kernel does not say.
    pub(crate) machine_seconds: Option<f64>,
}

impl CpuTimes {
    fn read(contexts: &[Arc<Context>]) -> CpuTimes {
        let of_engines = contexts.iter().filter_map(|context| {
            let mut own =
                context.counters()?.into_iter().filter(|(name, _)| *name == ENGINE_CPU_NS);
            own.next().map(|(_, ns)| ns as f64 * 1e-9)
        });
        CpuTimes {
            engine_seconds: of_engines.reduce(|one, other| one + other),
            machine_seconds: machine::threads::machine_seconds(),
        }
    }
}

/// Reads CPU times at the start and at the end of a window.
pub(crate) struct CpuWatch {
    contexts: Vec<Arc<Context>>,
    began: Instant,
    before: CpuTimes,
    throttled_before_seconds: Option<f64>,
}

impl CpuWatch {
    pub(crate) fn start(contexts: Vec<Arc<Context>>) -> CpuWatch {
        CpuWatch {
            throttled_before_seconds: throttled_seconds(ROOT.as_ref()),
            began: Instant::now(),
            before: CpuTimes::read(&contexts),
            contexts,
        }
    }

    /// Whether a quota of CPU time stopped threads of this process since.
    fn doubt(&self) -> Option<Doubt> {
        let now_seconds = throttled_seconds(ROOT.as_ref())?;
        quota_doubt(
            cpu_quota(ROOT.as_ref()).as_ref(),
            now_seconds - self.throttled_before_seconds?,
            self.began.elapsed().as_secs_f64(),
        )
    }

    /// What was used since, in a window of this length, or in all of the time if it has none. A node looks each 10 ms, and its
    /// window is told in proportion: what is used in a second hardly changes at its edges.
    pub(crate) fn finish(&self, window: Option<Duration>) -> CpuTimes {
        let now = CpuTimes::read(&self.contexts);
        let share = window.map_or(1.0, |window| in_proportion(window, self.began.elapsed()));
        CpuTimes {
            engine_seconds: used(now.engine_seconds, self.before.engine_seconds, share),
            machine_seconds: used(now.machine_seconds, self.before.machine_seconds, share),
        }
    }
}

fn used(now: Option<f64>, before: Option<f64>, share: f64) -> Option<f64> {
    Some((now? - before?).max(0.0) * share)
}

/// A window over the time for which it was watched.
fn in_proportion(window: Duration, watched: Duration) -> f64 {
    window.as_secs_f64() / watched.as_secs_f64().max(1e-9)
}

/// How far all flows from this node are since they began.
pub(crate) fn progress(ends: &[FlowEnd], elapsed_ns: u64) -> Progress {
    let mut progress = Progress { elapsed_ns, ..Progress::default() };
    for end in senders(ends) {
        let counts = end.shared.counts();
        add(&mut progress, end, counts.completed);
        progress.outstanding += counts.posted.saturating_sub(counts.completed);
    }
    progress
}

/// The part of the QPs of the flows from a node that have no room for another slot of messages, at least: where the others lack
/// no more than one each.
fn full_part(ends: &[FlowEnd]) -> f64 {
    let (mut full, mut qps) = (0.0, 0.0);
    for end in senders(ends) {
        let (counts, geometry) = (end.shared.counts(), Geometry::from_flow(end.shared.flow()));
        let of_end = f64::from(end.flow.qps);
        let outstanding = counts.posted.saturating_sub(counts.completed) as f64;
        full += full_qps(outstanding, of_end, &geometry);
        qps += of_end;
    }
    full / f64::max(qps, 1.0)
}

fn full_qps(outstanding: f64, qps: f64, geometry: &Geometry) -> f64 {
    let [depth, unit] = [geometry.depth(), geometry.unit].map(f64::from);
    ((outstanding - qps * (depth - unit)) / unit).clamp(0.0, qps)
}

/// Receives of the flows to a node that its workers have not seen used.
fn receives_posted(ends: &[FlowEnd]) -> u64 {
    let receiving = ends.iter().filter(|end| end.receives());
    let of_ends = receiving.map(|end| {
        // First what lowers it, so that it is never above the depth.
        let received = end.shared.counts().received;
        let posted = end.shared.activity().receives_posted;
        (end.flow.receives() + posted).saturating_sub(received)
    });
    of_ends.sum()
}

fn activity(ends: &[FlowEnd]) -> Activity {
    ends.iter().fold(Activity::default(), |sum, end| {
        let of_end = end.shared.activity();
        Activity {
            polls: sum.polls + of_end.polls,
            empty_polls: sum.empty_polls + of_end.empty_polls,
            receives_posted: sum.receives_posted + of_end.receives_posted,
        }
    })
}

/// How far they are in their windows.
pub(crate) fn progress_of_windows(ends: &[FlowEnd]) -> Progress {
    let mut progress = Progress::default();
    for end in senders(ends) {
        let window = end.shared.window();
        progress.elapsed_ns = progress.elapsed_ns.max(window.elapsed_ns);
        add(&mut progress, end, window.completed);
    }
    progress
}

fn add(progress: &mut Progress, end: &FlowEnd, messages: u64) {
    progress.messages += messages;
    progress.bytes += (messages as f64 * end.flow.mean_bytes()) as u64;
}

/// Latencies of the flows from a node while their windows are open.
pub(crate) struct LiveLatency {
    of_flows: Vec<IntervalLatency>,
    looked_at: Instant,
}

impl LiveLatency {
    /// From now on. Those of many ends are of fewer QPs each, so that a look takes no longer.
    pub(crate) fn new(ends: &[FlowEnd]) -> LiveLatency {
        let every = senders(ends).count().max(1);
        let of_flows = senders(ends)
            .map(|end| {
                IntervalLatency::new(
                    end.shared.live_latencies().into_iter().step_by(every).collect(),
                )
            })
            .collect();
        LiveLatency { of_flows, looked_at: Instant::now() }
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
            let _ = self.link.send(RunMessage::Progress(progress()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qps_without_room_for_a_slot_are_full() {
        // 128 messages, of which 64 at a time are signalled; then each of 16.
        for (depth, signal_every, outstanding, full) in [
            (128, 64, 4.0 * 128.0, 4.0),
            (128, 64, 3.0 * 128.0 + 64.0, 3.0),
            (128, 64, 4.0 * 64.0, 0.0),
            (16, 1, 4.0 * 16.0, 4.0),
            (16, 1, 4.0 * 15.0, 0.0),
            (16, 1, 3.0, 0.0),
            (1, 1, 2.0, 2.0),
        ] {
            let geometry = Geometry::new(depth, signal_every, 1, false);
            assert_eq!(full_qps(outstanding, 4.0, &geometry), full, "{depth} {outstanding}");
        }
    }

    #[test]
    fn what_was_used_is_of_the_windows_length() {
        for (window_ms, watched_ms, expected) in
            [(1000, 1000, 1.0), (1000, 1250, 0.8), (20, 16, 1.25)]
        {
            let [window, watched] = [window_ms, watched_ms].map(Duration::from_millis);
            assert_eq!(in_proportion(window, watched), expected);
        }
    }
}
