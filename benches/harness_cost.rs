//! Measures the harness's own cost per message: runs the real workers on `null0`, a verbs library in this process
//! that completes every WR at once and moves no bytes.
//!
//! `cargo bench` measures every cell; `cargo bench -- --quick` only the cells that perftest also has (one worker,
//! four QPs, shared CQ). Words select cells, as in `cargo bench -- write q16 w1`.

#![allow(clippy::print_stdout)] // printing is what it is for

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use datapath::{Geometry, Phase, Shared, WorkerPool};
use machine::threads;
use metrics::{Clock, latency};
use testing::null_node::{Outcome, capacity, qp_contexts, specs, wait_until};

use plan::Case;
use settings::{CqMode, Op, Settings, Stop, Warmup};
use verbs::{
    Access, CompletionQueue, MemoryRegion, Port, ProtectionDomain, QueuePair, SendOpcode, SendRing,
    SendTemplate, WcBatch,
};

const SIZE_BYTES: u32 = 64;
const DEPTH: u32 = 128;
const WARMUP: Duration = Duration::from_millis(5);
const WINDOW: Duration = Duration::from_millis(30);

/// Post list and signalling interval.
const POSTING: [(u32, u32); 3] = [(1, 1), (1, 64), (32, 32)];

/// The option of a process that measures every cell once. Each round has its own: where a process happens to have its stacks
/// and rings in memory changes a figure by up to a third, for as long as it runs.
const ROUND: &str = "--round";

/// One line of the table.
struct Cell {
    case: Case,
    on_ns: Vec<f64>,
    off_ns: Vec<f64>,
    floor_ns: Vec<f64>,
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let quick = words.iter().any(|word| word == "--quick");
    let wanted: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    let cores = threads::allowed_cores()?;
    let mut cells: Vec<Cell> = cases(quick, cores.len())
        .into_iter()
        .filter(|cell| wanted.iter().all(|word| cell.has(word)))
        .collect();
    if words.iter().any(|word| word == ROUND) {
        return round(&cells, &cores);
    }
    let repetitions = if quick { 9 } else { 5 };
    // Repeats the whole table, so that other load on the machine affects all cells alike.
    for _ in 0..repetitions {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.args(&words).arg(ROUND).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("a round failed: {}", output.status).into());
        }
        for (cell, line) in cells.iter_mut().zip(String::from_utf8(output.stdout)?.lines()) {
            let figures = line.split(' ').map(str::parse).collect::<Result<Vec<f64>, _>>()?;
            let lists = [&mut cell.on_ns, &mut cell.off_ns, &mut cell.floor_ns];
            for (list, figure) in lists.into_iter().zip(figures) {
                list.push(figure);
            }
        }
    }
    println!(
        "ns of CPU time a message, {SIZE_BYTES} B, depth {DEPTH}, median of {repetitions} processes, {} ms each;",
        WINDOW.as_millis()
    );
    println!("on/off: with and without per-QP latency histograms; floor: only post and poll");
    println!("op    cq          QPs workers  -l  -Q      on     off   floor");
    for cell in &mut cells {
        cell.print();
    }
    Ok(())
}

/// Measures every cell once and prints a line each.
fn round(cells: &[Cell], cores: &[usize]) -> Outcome<()> {
    let (port, clock) = (testing::null_node::port()?, Clock::new());
    for cell in cells {
        let measure = |no_latency: bool| {
            let mut case = cell.case.clone();
            case.no_latency = no_latency;
            measure(&port, &clock, &case, cores)
        };
        let (on, off, floor) = (measure(false)?, measure(true)?, floor(&port, &cell.case)?);
        println!("{on} {off} {floor}");
    }
    Ok(())
}

impl Cell {
    fn has(&self, word: &str) -> bool {
        let case = &self.case;
        word == case.op.name()
            || word == case.cq.name()
            || word == format!("q{}", case.qps)
            || word == format!("w{}", case.workers)
            || word == format!("l{}", case.post_list)
            || word == format!("Q{}", case.signal_every)
    }

    fn print(&mut self) {
        let case = &self.case;
        println!(
            "{:<5} {:<10} {:>4} {:>7} {:>3} {:>3} {:>7.2} {:>7.2} {:>7.2}",
            case.op.name(),
            case.cq.name(),
            case.qps,
            case.workers,
            case.post_list,
            case.signal_every,
            median(&mut self.on_ns),
            median(&mut self.off_ns),
            median(&mut self.floor_ns),
        );
    }
}

/// The cells of the table. Leaves out workers without a QP, and more workers than cores, which would measure the
/// scheduler.
fn cases(quick: bool, cores: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    for op in Op::BASIC {
        for cq in [CqMode::Shared, CqMode::PerWorker, CqMode::PerQp] {
            for qps in [1, 4, 16] {
                for workers in [1, 2] {
                    if workers > qps || workers as usize > cores {
                        continue;
                    }
                    if quick && (cq, qps, workers) != (CqMode::Shared, 4, 1) {
                        continue;
                    }
                    for (post_list, signal_every) in POSTING {
                        cells.push(Cell {
                            case: case(op, cq, qps, workers, post_list, signal_every),
                            on_ns: Vec::new(),
                            off_ns: Vec::new(),
                            floor_ns: Vec::new(),
                        });
                    }
                }
            }
        }
    }
    cells
}

fn case(op: Op, cq: CqMode, qps: u32, workers: u32, post_list: u32, signal_every: u32) -> Case {
    let settings = Settings {
        op: op.into(),
        cq,
        qps,
        size_bytes: SIZE_BYTES,
        tx_depth: DEPTH,
        rx_depth: DEPTH,
        signal_every,
        post_list,
        workers,
        warmup: Warmup::FixedNs(WARMUP.as_nanos() as u64),
        ..Settings::default()
    };
    let id = "null".into();
    let mut case = Case::new(id, settings);
    case.set_stop(Stop::DurationNs(WINDOW.as_nanos() as u64));
    case
}

/// One run of the workers; the CPU time of all workers per message.
fn measure(port: &Port, clock: &Clock, case: &Case, cores: &[usize]) -> Outcome<f64> {
    // Locks a CQ that threads share, as a real device does.
    null_verbs::null::set_locked(case.cq == CqMode::Shared && case.workers > 1);
    let (qp_contexts, cqs) = qp_contexts(port, case)?;
    let workers = case.workers as usize;
    let digits = latency::digits_for(qp_contexts.len() * workers);
    let shared =
        Arc::new(Shared::new(case.settings.clone(), qp_contexts, clock.clone(), digits, workers));
    let pool = WorkerPool::start(&[Arc::clone(&shared)], specs(case, &cqs, cores))?;
    for (phase, time) in [(Phase::Warmup, WARMUP), (Phase::Measure, WINDOW)] {
        shared.set_phase(phase);
        // On a busy machine a worker may not run for a while, so its window may not be open yet.
        wait_until(&shared, || shared.all_entered(phase))?;
        let before = shared.counts().completed;
        sleep(time);
        wait_until(&shared, || shared.counts().completed > before)?;
    }
    shared.set_phase(Phase::Drain);
    wait_until(&shared, || shared.at_rest())?;
    let reports: Vec<_> = pool.finish()?.into_iter().flatten().collect();
    let cpu_seconds: f64 = reports.iter().map(|report| report.cpu_seconds).sum();
    let of_qps = reports.iter().flat_map(|report| &report.qps);
    let messages: u64 = of_qps.clone().map(|qp| qp.completed).sum();
    let samples: u64 =
        of_qps.filter_map(|qp| qp.latency.as_ref()).map(latency::Samples::count).sum();
    // The figure is worthless if messages are missing. A message posted in the window has a sample even if it
    // completes later.
    let signalled = u64::from(case.signal_every);
    let expected = if case.no_latency {
        0..=0
    } else {
        let in_flight = u64::from(case.tx_depth) * u64::from(case.qps);
        messages / signalled..=(messages + in_flight) / signalled
    };
    if messages == 0 || !expected.contains(&samples) {
        return Err(format!("{messages} messages gave {samples} samples, not {expected:?}").into());
    }
    Ok(cpu_seconds * 1e9 / messages as f64)
}

/// The shortest loop that posts and polls the same WRs on one CQ; its cost is that of the library and the memory.
fn floor(port: &Port, case: &Case) -> Outcome<f64> {
    null_verbs::null::set_locked(false);
    let geometry = Geometry::new(DEPTH, case.signal_every, case.post_list, true);
    let pd = ProtectionDomain::new(&port.context)?;
    let memory = MemoryRegion::new(&pd, 1 << 16, Access::LocalWrite, None)?;
    let cq = CompletionQueue::new(&port.context, case.qps * geometry.completions_in_flight())?;
    let mut rings = Vec::new();
    for qp in 0..u64::from(case.qps) {
        let templates: Vec<SendTemplate> = (0..geometry.ring())
            .map(|position| SendTemplate {
                wr_id: qp << 32 | u64::from(position / geometry.unit * geometry.unit),
                opcode: SendOpcode::Write { address: 0x1000, rkey: 1 },
                offset: position as usize % 64 * 64,
                length_bytes: SIZE_BYTES,
                sges: 1,
                signalled: geometry.signalled(position),
                inline: false,
                ends_chain: geometry.ends_chain(position),
            })
            .collect();
        let measured_qp = QueuePair::new(&pd, &cq, &cq, capacity(DEPTH))?;
        rings.push(SendRing::new(&measured_qp, &memory, &templates)?);
    }
    let post_slot = |ring: &SendRing, first: u32| {
        (first..first + geometry.unit)
            .step_by(geometry.post_list as usize)
            .try_for_each(|position| ring.post(position as usize))
            .map_err(|_| "the null library refused a WR")
    };
    for ring in &rings {
        for slot in 0..geometry.slots {
            post_slot(ring, slot * geometry.unit)?;
        }
    }
    let mut batch = WcBatch::new();
    let mut messages = 0_u64;
    let (deadline, start_seconds) = (Instant::now() + WINDOW / 3, threads::thread_seconds());
    while Instant::now() < deadline {
        for _ in 0..1000 {
            for completion in black_box(cq.poll(&mut batch)?) {
                let id = completion.wr_id();
                if let Some(ring) = rings.get((id >> 32) as usize) {
                    post_slot(ring, id as u32)?;
                }
                messages += u64::from(geometry.unit);
            }
        }
    }
    Ok((threads::thread_seconds() - start_seconds) * 1e9 / messages as f64)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
