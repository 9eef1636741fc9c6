//! Measures what an open loop costs the harness itself, on `null0`, a verbs library in this process that completes
//! every WR at once and moves no bytes: the cost of a message beside the closed loop's, how late messages are posted at
//! half of the closed loop's rate, beside what the machine's own pauses make late, and the highest rate at which the
//! schedule is kept. docs/dev/performance.md has the table.
//!
//! `cargo bench --bench open_loop`; words select rows, as in `-- write q4`.

#![allow(clippy::print_stdout)] // printing is what it is for

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use datapath::{Phase, Shared, WindowEdges, WorkerPool};
use machine::threads;
use metrics::Clock;
use metrics::latency::{Digits, Recorder};
use node::open_loop::is_spoilt;
use plan::Case;
use settings::{Op, Rate, Settings, Stop};
use testing::null_node::{Outcome, qp_contexts, specs, wait_until};
use verbs::Port;

const WARMUP: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_millis(300);

/// Windows of each figure; the table has their medians.
const REPETITIONS: usize = 5;

/// More than a core can do: all planned times are in the past.
const BEYOND: Rate = Rate::Messages(200_000_000);

/// Shares of the closed loop's rate that are tried for the highest that is kept, in percent.
const SHARES: [u32; 12] = [10, 20, 30, 40, 50, 60, 65, 70, 75, 80, 85, 90];

/// A pause of the machine, and a message that is late.
const LONG_NS: u64 = 1_000;

/// What a window came to.
struct Window {
    messages_per_second: f64,
    offered_per_second: f64,
    /// Lateness spoils p50, p99 or p99.9 of latency.
    is_spoilt: bool,
    lateness_p50_ns: u64,
    lateness_p99_ns: u64,
    /// The share of messages that were later than [`LONG_NS`].
    late: f64,
}

fn main() -> Outcome<()> {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let port = testing::null_node::port()?;
    let clock = Clock::new();
    let cores = threads::allowed_cores()?;
    let paused = share_of_pauses(&clock, &cores)?;
    println!(
        "64 bytes, shared CQ, one worker, depth 128, every message signalled; medians of {REPETITIONS} windows of {} ms. In 2 s the machine took the worker's core away for {:.2} % of the time, in pauses of over 1 us.\n",
        WINDOW.as_millis(),
        paused * 100.0
    );
    println!(
        "| op | QPs | closed loop, ns | open loop, ns | highest rate | lateness p50, ns | p99, ns | later than 1 us | by pauses alone | kept up to |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for op in Op::BASIC {
        for qps in [1, 4, 64] {
            if words.iter().all(|word| *word == op.name() || *word == format!("q{qps}")) {
                print_row(op, qps, paused, &|rate| {
                    measure(&port, &clock, &case(op, qps, rate), &cores)
                })?;
            }
        }
    }
    Ok(())
}

/// The part of the time that the machine takes from a core, in pauses of over [`LONG_NS`].
fn share_of_pauses(clock: &Clock, cores: &[usize]) -> Outcome<f64> {
    let core = *cores.last().ok_or("no core")?;
    let clock = clock.clone();
    let measured = std::thread::spawn(move || {
        threads::pin_current_thread(core)?;
        let begin_raw = clock.raw();
        let end_raw = clock.raw_after(begin_raw, 2_000_000_000);
        let (mut last_raw, mut paused_ns) = (begin_raw, 0);
        while last_raw < end_raw {
            let now_raw = clock.raw();
            let gap_ns = clock.ns_between(last_raw, now_raw);
            if gap_ns > LONG_NS {
                paused_ns += gap_ns;
            }
            last_raw = now_raw;
        }
        let all_ns = clock.ns_between(begin_raw, last_raw);
        Ok::<_, threads::CoreError>(paused_ns as f64 / all_ns as f64)
    });
    Ok(measured.join().map_err(|_| "the measuring thread died")??)
}

fn print_row(op: Op, qps: u32, paused: f64, run: &dyn Fn(Rate) -> Outcome<Window>) -> Outcome<()> {
    let several =
        |rate: Rate| -> Outcome<Vec<Window>> { (0..REPETITIONS).map(|_| run(rate)).collect() };
    let closed = median(&several(Rate::Closed)?, |it| it.messages_per_second);
    let share = |percent: u32| Rate::Messages((closed * f64::from(percent) / 100.0) as u64);
    let most = median(&several(BEYOND)?, |it| it.messages_per_second);
    let (mut half, mut kept) = (Vec::new(), 0);
    for percent in SHARES {
        let windows = several(share(percent))?;
        if windows.iter().filter(|it| it.is_kept()).count() * 2 > REPETITIONS {
            kept = percent;
        }
        if percent == 50 {
            half = windows;
        }
    }
    let load = 0.5 * closed / most;
    println!(
        "| {} | {qps} | {:.2} | {:.2} | {:.0} % | {:.0} | {:.0} | {:.2} % | {:.2} % | {kept} % |",
        op.name(),
        1e9 / closed,
        1e9 / most,
        most / closed * 100.0,
        median(&half, |it| it.lateness_p50_ns as f64),
        median(&half, |it| it.lateness_p99_ns as f64),
        median(&half, |it| it.late * 100.0),
        paused / (1.0 - load) * 100.0,
    );
    Ok(())
}

impl Window {
    fn is_kept(&self) -> bool {
        !self.is_spoilt && self.messages_per_second >= 0.99 * self.offered_per_second
    }
}

fn median(windows: &[Window], figure: impl Fn(&Window) -> f64) -> f64 {
    let mut values: Vec<f64> = windows.iter().map(figure).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn case(op: Op, qps: u32, rate: Rate) -> Case {
    let settings = Settings {
        op: op.into(),
        qps,
        size_bytes: 64,
        signal_every: 1,
        rate,
        ..Settings::default()
    };
    let mut case = Case::new("null".into(), settings);
    case.set_stop(Stop::DurationNs(WINDOW.as_nanos() as u64));
    case
}

fn measure(port: &Port, clock: &Clock, case: &Case, cores: &[usize]) -> Outcome<Window> {
    null_verbs::null::set_locked(false);
    let (qp_contexts, cqs) = qp_contexts(port, case)?;
    let shared =
        Arc::new(Shared::new(case.settings.clone(), qp_contexts, clock.clone(), Digits::Three, 1));
    let pool = WorkerPool::start(&[Arc::clone(&shared)], specs(case, &cqs, cores))?;
    // What is asked for more than can be done has no window before it: its backlog would be measured instead.
    let is_beyond = case.rate == BEYOND;
    if !is_beyond {
        shared.set_phase(Phase::Warmup);
        wait_until(&shared, || shared.all_entered(Phase::Warmup))?;
        sleep(WARMUP);
    }
    let opens_raw = clock.raw_after(clock.raw(), 5_000_000);
    if !is_beyond {
        shared.set_edges(WindowEdges {
            opens_raw,
            closes_raw: clock.raw_after(opens_raw, WINDOW.as_nanos() as u64),
        });
    }
    shared.set_phase(Phase::Measure);
    if is_beyond {
        sleep(WINDOW);
        shared.set_phase(Phase::Abort);
    } else {
        wait_until(&shared, || shared.window().is_closed)?;
        shared.set_phase(Phase::Drain);
        wait_until(&shared, || shared.at_rest())?;
    }
    let reports: Vec<_> = pool.finish()?.into_iter().flatten().collect();
    let report = reports.first().ok_or("no worker")?;
    let (start_raw, end_raw) = report.window_raw.ok_or("no window")?;
    let seconds = clock.ns_between(start_raw, end_raw) as f64 * 1e-9;
    let messages: u64 = report.qps.iter().map(|qp| qp.completed).sum();
    let latency = Recorder::merged(report.qps.iter().filter_map(|qp| qp.latency.as_ref()));
    let load = report.load.as_ref();
    let lateness = load.and_then(|load| Recorder::merged(load.lateness.iter().map(|it| &it.1)));
    let quantile = |of: &Option<Recorder>, quantile: f64| {
        of.as_ref().map_or(0, |it| it.histogram().value_at_quantile(quantile))
    };
    Ok(Window {
        messages_per_second: messages as f64 / seconds,
        offered_per_second: load.map_or(0.0, |it| it.offered as f64 / WINDOW.as_secs_f64()),
        is_spoilt: (latency.as_ref().zip(lateness.as_ref()))
            .is_some_and(|(latency, lateness)| is_spoilt(latency, lateness)),
        lateness_p50_ns: quantile(&lateness, 0.5),
        lateness_p99_ns: quantile(&lateness, 0.99),
        late: lateness.map_or(0.0, |it| {
            let histogram = it.histogram();
            let in_time = histogram.count_between(0, LONG_NS);
            1.0 - in_time as f64 / histogram.len() as f64
        }),
    })
}
