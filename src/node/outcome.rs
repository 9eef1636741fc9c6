//! Turns the workers' counts into results.

use crate::datapath::{Trouble, WindowProgress, WorkerReport};
use crate::metrics::clock::Clock;
use crate::metrics::counters::{EMBEDDED_DRIVER, Growth};
use crate::metrics::drift::drift;
use crate::metrics::fairness::shares;
use crate::metrics::histogram::Recorder;
use crate::metrics::limits::{protocol_efficiency, share_of_limit};
use crate::metrics::timeline;
use crate::plan::Case;
use report::results::model::{
    Bandwidth, CaseConfig, ConnectStep, Device, Direction, Doubt, DoubtKind, Fairness, Latency,
    Limits, PathEvent, QpResult, Receiver, Run, Timeline, Totals, Window, WorkerResult,
};
use report::results::rates::gbit_per_s;
use settings::Stop;
use verbs::{LinkLayer, Port};

use crate::node::running_node::Finished;
use crate::node::verbs_objects::VerbsObjects;
use crate::node::window::Windows;
use crate::protocol::end_report::{DeviceCounters, EndReport, shorten};

impl EndReport {
    /// The report of an end that measured set-up, without traffic.
    pub fn of_setup(port: &Port, setup_steps: Vec<ConnectStep>) -> EndReport {
        EndReport {
            device: device(port),
            direction: None,
            receiver: None,
            received_in_all: Vec::new(),
            counters: None,
            setup_steps,
        }
    }

    /// The report of a finished end.
    pub fn of(case: &Case, finished: &Finished, clock: &Clock) -> EndReport {
        let duties = finished.objects.duties();
        let direction = duties.sends.then(|| {
            let mut direction = direction(case, finished, clock);
            shorten(&mut direction.qps);
            direction
        });
        EndReport {
            device: device(finished.objects.port()),
            direction,
            counters: None,
            setup_steps: Vec::new(),
            receiver: duties.receives.then(|| receiver(case, finished, clock)),
            received_in_all: per_qp(finished, |worker, qp| {
                worker.qps.get(qp).map_or(0, |qp| qp.received_in_all)
            }),
        }
    }
}

impl EndReport {
    /// The workers of each direction that has some.
    pub fn workers_mut(&mut self) -> impl Iterator<Item = &mut [WorkerResult]> {
        let sent = self.direction.as_mut().map(|it| &mut it.workers[..]);
        let received = self.receiver.as_mut().map(|it| &mut it.workers[..]);
        sent.into_iter().chain(received)
    }
}

impl DeviceCounters {
    /// The counter growth seen at the end `end`.
    pub fn of(growth: &Growth, end: &str) -> DeviceCounters {
        let events = growth
            .by_meaning()
            .into_iter()
            .map(|(kind, (count, counters))| PathEvent {
                end: end.to_owned(),
                kind,
                count,
                counters,
            });
        DeviceCounters {
            grown: growth.told(),
            events: events.collect(),
        }
    }
}

/// Adds the throughput over time in the closed window to `run.forward`; nothing if the window was too short for a
/// sample.
pub fn tell_timeline(
    case: &Case,
    mut sampled: timeline::Timeline,
    window: WindowProgress,
    run: &mut Run,
) {
    sampled.finish(window.elapsed_ns, window.completed);
    if sampled.samples().is_empty() {
        return;
    }
    let drift = drift(sampled.samples()).map(|drift| Doubt {
        kind: DoubtKind::Drift,
        message: drift.to_string(),
    });
    run.forward.window.doubts.extend(drift);
    let bits = f64::from(case.size_bytes) * 8.0;
    let gbit_per_s = sampled.rates_per_s().map(|rate| rate * bits / 1e9);
    let interval_seconds = sampled.interval_ns() as f64 / 1e9;
    run.forward.bandwidth_gbit_per_s = Bandwidth::of_intervals(interval_seconds, gbit_per_s);
    let samples = sampled.samples().iter();
    run.timeline = Some(Timeline {
        interval_seconds,
        // Microseconds are precise enough for intervals of 10 ms, and take half the digits.
        at_seconds: samples
            .clone()
            .map(|sample| (sample.at_ns / 1000) as f64 / 1e6)
            .collect(),
        messages: samples.map(|sample| sample.messages).collect(),
        longest_stall_seconds: Some(sampled.longest_stall_ns() as f64 / 1e9),
    });
}

/// The result of what one end sent, wrote or read in its window.
pub fn direction(case: &Case, finished: &Finished, clock: &Clock) -> Direction {
    let windows = Windows::of(case, finished, clock);
    let completed =
        |worker: &WorkerReport, qp: usize| worker.qps.get(qp).map_or(0, |report| report.completed);
    let messages = per_qp(finished, completed);
    let of_workers = |worker: &WorkerReport| worker.qps.iter().map(|qp| qp.completed).sum();
    let seconds = windows.seconds_for(finished.workers.iter().map(of_workers));
    let size = u64::from(case.size_bytes);
    let errors = finished.troubles().map(Trouble::errors).sum();
    let sum: u64 = messages.iter().sum();
    let totals = Totals::in_window(sum, sum * size, errors, seconds);
    let recorders = |qp: usize| {
        finished
            .workers
            .iter()
            .filter_map(move |worker| worker.qps.get(qp)?.latency.as_ref())
    };
    let qps = messages
        .iter()
        .zip(&finished.qpns)
        .enumerate()
        .map(|(index, (&messages, &qpn))| QpResult {
            index: index as u32,
            qpn,
            messages,
            bytes: messages * size,
            gbit_per_s: gbit_per_s(
                messages * size,
                windows.seconds_for(finished.workers.iter().map(|it| completed(it, index))),
            ),
            latency_ns: Recorder::merged(recorders(index))
                .as_ref()
                .and_then(latency),
        })
        .collect();
    let all = Recorder::merged((0..messages.len()).flat_map(recorders));
    Direction {
        limits: limits(case, &finished.objects, totals.gbit_per_s),
        totals,
        latency_ns: all.as_ref().and_then(latency),
        bandwidth_gbit_per_s: None,
        fairness: shares(&messages).map(|shares| Fairness {
            jain: shares.jain,
            min_share: shares.min_share,
            max_share: shares.max_share,
        }),
        qps,
        workers: finished
            .workers
            .iter()
            .map(|worker| worker_result(worker, &windows, of_workers(worker)))
            .collect(),
        window: Window {
            seconds,
            doubts: windows.into_doubts(),
            ..Window::default()
        },
    }
}

/// The result of what one end received in its window.
fn receiver(case: &Case, finished: &Finished, clock: &Clock) -> Receiver {
    let windows = Windows::of(case, finished, clock);
    let workers: Vec<WorkerResult> = finished
        .workers
        .iter()
        .map(|worker| {
            let received = worker.qps.iter().map(|qp| qp.received).sum();
            worker_result(worker, &windows, received)
        })
        .collect();
    let messages: u64 = workers.iter().map(|worker| worker.messages).sum();
    Receiver {
        messages,
        bytes: messages * u64::from(case.size_bytes),
        window_seconds: matches!(case.stop(), Stop::DurationNs(_))
            .then(|| windows.seconds_for(workers.iter().map(|worker| worker.messages)))
            .filter(|&seconds| seconds > 0.0),
        workers,
    }
}

/// A count of each QP, summed over the workers.
pub fn per_qp(finished: &Finished, figure: impl Fn(&WorkerReport, usize) -> u64) -> Vec<u64> {
    (0..finished.qpns.len())
        .map(|qp| {
            finished
                .workers
                .iter()
                .map(|worker| figure(worker, qp))
                .sum()
        })
        .collect()
}

pub(crate) fn latency(recorder: &Recorder) -> Option<Latency> {
    Latency::from_histogram(recorder.histogram(), recorder.overflows())
}

fn worker_result(worker: &WorkerReport, windows: &Windows, messages: u64) -> WorkerResult {
    WorkerResult {
        window_seconds: windows.of_worker(worker.index),
        core: worker.core.map(|core| core as u32),
        core_shared_with: None,
        messages,
        cpu_seconds: worker.window_raw.map(|_| worker.cpu_seconds),
        polls: worker.polls,
        empty_polls: worker.empty_polls,
    }
}

fn limits(case: &Case, objects: &VerbsObjects, gbit_per_s: Option<f64>) -> Option<Limits> {
    let link_gbit_per_s = objects.port().info.link_gbit_per_s()?;
    let size = u64::from(case.size_bytes);
    let efficiency = protocol_efficiency(
        case.transfer(),
        size,
        objects.path_mtu_bytes(),
        objects.wire(),
    );
    Some(Limits {
        link_gbit_per_s,
        protocol_efficiency: efficiency,
        share_of_limit: gbit_per_s
            .and_then(|rate| share_of_limit(rate, link_gbit_per_s, efficiency)),
    })
}

/// Facts of the device and port in use, from the kernel and corrected from verbs.
pub fn device(port: &Port) -> Device {
    let name = port.context.name();
    let read =
        crate::machine::device::read(name, port.info.port, port.gid.map(|gid| gid.index.into()));
    let link_layer = match port.info.link_layer {
        LinkLayer::Ethernet => "Ethernet",
        LinkLayer::Infiniband => "InfiniBand",
    };
    let embedded = port.embedded.as_ref();
    let firmware = Some(port.limits.firmware.clone()).filter(|text| !text.is_empty());
    Device {
        library: port.context.library().name.to_owned(),
        software: embedded.is_some() || read.software,
        driver: embedded.map(|_| EMBEDDED_DRIVER.to_owned()).or(read.driver),
        faults: embedded.and_then(|embedded| Some(embedded.faults?.to_string())),
        firmware: firmware.or(read.firmware),
        link_layer: Some(link_layer.to_owned()),
        state: Some(port.info.state.to_owned()),
        link_gbit_per_s: port.info.link_gbit_per_s(),
        speed_gbit_per_s_per_lane: port.info.lane_gbit_per_s,
        width_lanes: port.info.lanes,
        active_mtu_bytes: Some(port.info.active_mtu_bytes),
        max_mtu_bytes: Some(port.info.max_mtu_bytes),
        gid: port.gid.map(|entry| entry.gid.to_string()),
        gid_type: port.gid.map(|entry| entry.gid_type.name().to_owned()),
        ..read
    }
}

/// The settings of a case in the form of a result file.
pub fn config(case: &Case, device: &str) -> CaseConfig {
    CaseConfig {
        device: Some(device.to_owned()),
        ..case.settings.clone().into()
    }
}
