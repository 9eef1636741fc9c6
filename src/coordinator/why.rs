//! `rocebench why`, and `--why` behind a sweep: a case and changes of it are run in turns at the sweep's nodes until it is
//! clear what limits the case. What may limit it, and what to change next, is said by the crate `why`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use machine::device::pcie_gbit_per_s;
use plan::{Case, Flow, Sweep};
use report::judge::mesh::{Mesh, Place};
use report::observe::format::counted;
use report::observe::standing;
use results::Metric;
use results::model::{CaseResult, Run};
use results::numbers::for_people;
use settings::{ConnectMode, Settings, Stop, Warmup};
use statistics::median;
use why::{Change, FIRST_RUNS, Laboratory, Port, Request, Situation, Step, diagnose};

use super::interface::WhyRequest;
use super::nodes::Node;
use super::sweep::check_sweep;
use super::sweeper::{StopReason, Sweeper};

/// The first runs of a case are as long as the states of nodes need, which are sampled every 100 ms.
const FIRST_WINDOW: Duration = Duration::from_millis(600);

/// A window has room for so many of the longest stalls of the case, up to the longest window.
const STALLS: u32 = 4;
const LONGEST_WINDOW: Duration = Duration::from_secs(2);

/// To connect and to drain takes about so long in each run, as long as no run has shown it.
const BESIDES: Duration = Duration::from_millis(150);

impl WhyRequest {
    /// With what a run takes, about.
    pub fn to_request(self) -> Request {
        Request { budget: self.budget, run: self.of_a_run(self.window) + BESIDES }
    }

    /// The case as its runs are.
    pub fn timed(self, case: &Case) -> Case {
        self.with_window(case, self.window)
    }

    fn with_window(self, case: &Case, window: Duration) -> Case {
        let [window_ns, warmup_ns] =
            [window, self.warmup].map(|span| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        let mut changed = case.clone();
        let of_flows = changed.flows.iter_mut().map(|flow| &mut flow.settings);
        for settings in of_flows.chain([&mut changed.settings]) {
            settings.set_stop(Stop::DurationNs(window_ns));
            settings.warmup = Warmup::FixedNs(warmup_ns);
        }
        changed
    }

    fn of_a_run(self, window: Duration) -> Duration {
        self.warmup + window
    }
}

/// Explains the only case of a sweep. Its first runs are those of its result. Where a node holds up the others in lock-step, they
/// show which, and a flow of it is explained.
///
/// # Errors
/// The sweep ended before the answer; what was found so far is in the result.
pub(super) fn explain_case(
    sweeper: &mut Sweeper<'_>,
    request: WhyRequest,
) -> Result<(), StopReason> {
    let sweep = Arc::clone(&sweeper.sweep);
    let Some(case) = sweep.cases.first() else {
        return Ok(());
    };
    if !case.lock_step {
        return explain(sweeper, (0, case), true, request);
    }
    let timed_case = request.with_window(case, request.window.max(FIRST_WINDOW));
    for number in 1..=FIRST_RUNS {
        sweeper.run(0, &timed_case, number, FIRST_RUNS)?;
    }
    let slow = slow_flow(sweeper, case);
    explain(sweeper, (0, &slow), false, request)
}

/// Explains the slowest case of a sweep that has run; of nodes the flow that they say is slow.
///
/// # Errors
/// As [`explain_case`].
pub(super) fn explain_slowest(
    sweeper: &mut Sweeper<'_>,
    request: WhyRequest,
) -> Result<(), StopReason> {
    let sweep = Arc::clone(&sweeper.sweep);
    let Some((index, case)) = slowest(&sweep.cases, &sweeper.outcome.result.cases)
        .map(|(index, case)| (index, slow_flow(sweeper, case)))
    else {
        sweeper
            .observer
            .note("--why: no case has figures that count, so there is nothing to explain");
        return Ok(());
    };
    explain(sweeper, (index, &case), false, request)
}

/// The slowest case of those that count, with its place in the results: that with the lowest throughput.
fn slowest<'a>(cases: &'a [Case], results: &[CaseResult]) -> Option<(usize, &'a Case)> {
    let with_speed = results.iter().enumerate().filter_map(|(index, result)| {
        let case = cases.iter().find(|case| case.id == result.id)?;
        let can_be_explained = !case.is_set_up() && !case.has_shares();
        let rates =
            result.runs.iter().filter(|run| standing::of_run(run).has_figures()).map(|run| {
                run.flows.iter().filter_map(|flow| Metric::GbitPerS.of(run, Some(flow))).sum()
            });
        let speed = median(&rates.collect::<Vec<f64>>()).filter(|_| can_be_explained)?;
        Some((speed, index, case))
    });
    let least = with_speed.min_by(|(one, ..), (other, ..)| one.total_cmp(other));
    least.map(|(_, index, case)| (index, case))
}

/// Of a pattern the flow of the slow node or path, alone; else the case, as in lock-step without a slow node.
fn slow_flow(sweeper: &mut Sweeper<'_>, case: &Case) -> Case {
    let meshes = Mesh::of_file(&sweeper.outcome.result);
    let mesh = meshes.iter().find(|mesh| mesh.matrix.cases.contains(&case.id));
    let Some(mesh) = mesh.filter(|it| {
        let waits_for_others = case.lock_step && it.outliers.is_empty();
        case.pattern.is_some() && !waits_for_others
    }) else {
        return case.clone();
    };
    let place: Option<Place> = mesh.outliers.first().map(|outlier| outlier.place);
    let quantity = mesh.outliers.first().map_or(mesh.matrix.quantity(), |it| it.quantity);
    let cells =
        mesh.matrix.cells.iter().filter(|cell| place.is_none_or(|it| it.has(cell.from, cell.to)));
    let slow = cells.filter_map(|cell| Some((cell.figures.of(quantity)?, cell)));
    let worst = slow.min_by(|(one, _), (other, _)| {
        let order = one.total_cmp(other);
        if quantity.higher_is_better() { order } else { order.reverse() }
    });
    let of_cell = worst.and_then(|(_, cell)| {
        let names = [cell.from, cell.to].map(|node| &mesh.matrix.nodes[node]);
        let nodes = sweeper.sweep.nodes.names();
        let mut flows = sweeper.sweep.cases.iter().flat_map(|it| &it.flows);
        flows.find(|flow| {
            [flow.from, flow.to].map(|number| nodes.get(number as usize)) == names.map(Some)
        })
    });
    let mut alone = case.clone();
    alone.flows = of_cell.or(case.flows.first()).cloned().into_iter().collect();
    for flow in &mut alone.flows {
        let names = sweeper.sweep.nodes.names();
        let [from, to] =
            [flow.from, flow.to].map(|node| names.get(node as usize).map_or("", String::as_str));
        sweeper.observer.note(&format!("why: the slowest flow is that from {from} to {to}"));
        Flow::FORWARD.clone_into(&mut flow.name);
        flow.steps = 0;
        leave_pattern(&mut flow.settings);
    }
    leave_pattern(&mut alone.settings);
    alone
}

/// Makes it a flow of its own, which waits for no other.
fn leave_pattern(settings: &mut Settings) {
    (settings.pattern, settings.lock_step) = (None, false);
    settings.drop_idle();
}

/// Explains a case, and stores the answer at its place in the results.
fn explain(
    sweeper: &mut Sweeper<'_>,
    (index, case): (usize, &Case),
    is_recorded: bool,
    request: WhyRequest,
) -> Result<(), StopReason> {
    let nodes = sweeper.take_nodes()?;
    let situation = situation(sweeper, &nodes, request.may_load_more);
    sweeper.nodes = Some(nodes);
    let case = request.timed(case);
    let mut bench = CaseBench {
        sweeper,
        case: &case,
        index,
        is_recorded,
        request,
        window: request.window,
        runs: 0,
        besides: Duration::ZERO,
        began: Instant::now(),
    };
    let (mut diagnosis, ended) = diagnose(&mut bench, &case, &situation, request.to_request());
    if let Err(reason) = &ended {
        diagnosis.ended_by = Some(match reason {
            StopReason::Interrupted => "it was interrupted".to_owned(),
            StopReason::Lost(error) => error.to_string(),
            StopReason::Broken(failure) => failure.message.clone(),
        });
    }
    let entry = sweeper.outcome.result.cases.get_mut(index);
    if let Some(entry) = entry {
        entry.diagnosis = Some(diagnosis);
        sweeper.observer.diagnosed(&case, &sweeper.outcome.result);
    }
    match ended {
        // Without this end there is no result at all; what was found is more than that.
        Err(StopReason::Broken(failure)) => {
            sweeper.observer.note(&format!("why: {}", failure.message));
            Ok(())
        }
        ended => ended,
    }
}

/// Runs a case and changes of it at the nodes of a sweep.
struct CaseBench<'a, 's> {
    sweeper: &'a mut Sweeper<'s>,
    /// The case as it was requested, without changes.
    case: &'a Case,
    /// Its place in the results.
    index: usize,
    /// Its first runs are those of its result.
    is_recorded: bool,
    request: WhyRequest,
    window: Duration,
    runs: u32,
    /// What runs took beside warm-up and window.
    besides: Duration,
    began: Instant,
}

impl Laboratory for CaseBench<'_, '_> {
    type Error = StopReason;

    fn run(&mut self, case: &Case) -> Result<Run, StopReason> {
        self.runs += 1;
        let is_first = self.runs <= FIRST_RUNS;
        let window = if is_first { self.window.max(FIRST_WINDOW) } else { self.window };
        let timed_case = self.request.with_window(case, window);
        let began = Instant::now();
        let run = if is_first && self.is_recorded {
            self.sweeper.run(self.index, &timed_case, self.runs, FIRST_RUNS)?;
            let entry = self.sweeper.outcome.result.cases.get(self.index);
            entry.and_then(|entry| entry.runs.last()).cloned().unwrap_or_default()
        } else {
            self.sweeper.trial(&timed_case, self.runs)?
        };
        self.besides += began.elapsed().saturating_sub(self.request.of_a_run(window));
        if run.interrupted {
            return Err(StopReason::Interrupted);
        }
        if is_first {
            let stalls =
                run.flows.iter().filter_map(|flow| flow.timeline.as_ref()?.longest_stall_seconds);
            let longest = stalls.fold(0.0, f64::max);
            let needed = Duration::try_from_secs_f64(longest).unwrap_or_default() * STALLS;
            self.window = self.window.max(needed.min(LONGEST_WINDOW));
        }
        Ok(run)
    }

    fn refusal(&self, case: &Case) -> Option<String> {
        if let Err(error) = Sweep::check(case) {
            return Some(error.to_string());
        }
        let nodes = self.sweeper.nodes.as_deref()?;
        let is_new_way = case.connect == ConnectMode::Cm && self.case.connect != ConnectMode::Cm;
        let mut link_layers = nodes.iter().map(|node| node.facts.device.link_layer.as_deref());
        if is_new_way && link_layers.any(|layer| layer == Some("InfiniBand")) {
            return Some("--connect cm needs RoCE ports".to_owned());
        }
        let sweep = Sweep { cases: vec![case.clone()], nodes: self.sweeper.sweep.nodes.clone() };
        let refused = check_sweep(&sweep, nodes).err()?;
        Some(refused.message.replace(&format!("{}: ", case.id), ""))
    }

    fn spent(&self) -> Duration {
        self.began.elapsed()
    }

    fn run_takes(&self) -> Option<Duration> {
        let besides = self.besides.checked_div(self.runs)?;
        Some(self.request.of_a_run(self.window) + besides)
    }

    fn announce(&mut self, step: &Step<'_>) {
        let case = &self.case.id;
        let (title, text) = match step {
            Step::Case { runs } => (
                format!("{case}: {}", counted(*runs as usize, "run")),
                format!("why is {case} not faster?"),
            ),
            Step::Changes { changes, rounds } => {
                let each = self.run_takes().unwrap_or_default();
                let sides = u32::try_from(changes.len()).unwrap_or(u32::MAX).saturating_add(1);
                let takes = each.saturating_mul(rounds.saturating_mul(sides));
                let seconds = Duration::from_secs(takes.as_secs_f64().ceil() as u64);
                let words: Vec<&str> = changes.iter().copied().map(Change::words).collect();
                (
                    format!("{case} beside {}", counted(changes.len(), "change")),
                    format!(
                        "trying in {rounds} rounds with the case, about {}: {}",
                        for_people(seconds),
                        words.join("; ")
                    ),
                )
            }
        };
        self.sweeper.observer.step(&title, &text);
    }
}

/// What the nodes can do.
fn situation(sweeper: &Sweeper<'_>, nodes: &[Node], may_load_more: bool) -> Situation {
    let hosts: Vec<_> = sweeper.outcome.result.nodes.iter().map(|node| &node.host).collect();
    let machines: BTreeSet<&str> = hosts.iter().map(|host| &*host.hostname).collect();
    let is_one_machine = machines.len() < 2 || nodes.iter().all(|node| node.link.is_within_host());
    let cores_listed = sweeper.options.ends.resources.cores.as_ref().map(Vec::len);
    let alone = nodes.iter().zip(&hosts).map(|(node, host)| {
        let shared_by = if is_one_machine { nodes.len() } else { 1 }.try_into().unwrap_or(u32::MAX);
        let cores = host.cores.unwrap_or(0) / shared_by;
        let listed =
            cores_listed.filter(|_| node.is_in_process).and_then(|it| u32::try_from(it).ok());
        Port { cores: listed.map_or(cores, |listed| listed.min(cores)), ..port(node) }
    });
    let mut ports: Vec<Port> = alone.collect();
    let fastest = ports.iter().filter_map(|port| port.link_gbit_per_s).fold(0.0, f64::max);
    for port in &mut ports {
        if let Some(link) = port.link_gbit_per_s.filter(|link| *link < fastest * 0.99) {
            port.slow_parts.push(format!(
                "a link of {link:.0} Gb/s, though another node has {fastest:.0} Gb/s"
            ));
        }
    }
    Situation {
        ports,
        names: nodes.iter().map(|node| node.name.clone()).collect(),
        is_one_machine,
        may_load_more,
    }
}

/// What a node's device can do.
fn port(node: &Node) -> Port {
    let (limits, device) = (&node.facts.limits, &node.facts.device);
    let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let reads = limits.device.max_initiator_reads.min(limits.device.max_responder_reads);
    let pci_gbit_per_s = device
        .pci_gtransfer_per_s
        .zip(device.pci_width_lanes)
        .map(|(speed, lanes)| (speed, lanes, pcie_gbit_per_s(speed, lanes)));
    let slow_pci =
        pci_gbit_per_s.zip(device.link_gbit_per_s).filter(|((_, _, pci), link)| pci < link);
    Port {
        mtu_bytes: limits.packet_bytes,
        link_gbit_per_s: device.link_gbit_per_s,
        max_reads: reads.into(),
        max_wrs: count(limits.device.max_qp_wr),
        max_qps: count(limits.device.max_qp),
        cores: 0,
        is_embedded: device.is_embedded(),
        takes_udp_ports: limits.takes_udp_ports,
        lossless_dscp: node.facts.lossless.lossless_dscp(),
        numa_node: device.numa_node,
        surroundings: node.facts.surroundings.clone(),
        slow_parts: slow_pci
            .map(|((speed, lanes, pci), link)| {
                format!(
                    "PCIe {speed} GT/s x{lanes}, {pci:.0} Gb/s, below its link of {link:.0} Gb/s"
                )
            })
            .into_iter()
            .collect(),
    }
}
