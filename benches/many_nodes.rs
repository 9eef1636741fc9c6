//! Measures what many nodes cost a coordinator: time from the first word of a run until all its flows are ready,
//! memory and control traffic, for rounds of pairs of 16, 64 and 256 nodes and for all-to-all of 64. All nodes are in this process, on
//! `loop0`, a device that moves bytes inside this process and does nothing else, so that memory is that of the nodes and
//! their coordinator together. docs/dev/performance.md has the table.
//!
//! `cargo bench --bench many_nodes`; words select rows, as in `-- pairs 256`.

#![allow(clippy::print_stdout)] // printing is what it is for

use std::error::Error;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use node::resources::{NodeOptions, PortRequest};
use plan::{Case, Nodes, Sweep};
use results::model::{CaseConfig, ResultFile, Run};
use rocebench::coordinator::interface::Observer;
use rocebench::coordinator::interface::{Ends, SweepOptions, Target};
use rocebench::coordinator::sweep::run_sweep;
use settings::{Given, Settings};

/// Pattern, nodes, and how many of its cases are run.
const ROWS: [(&str, u32, usize); 4] =
    [("pairs", 16, 6), ("pairs", 64, 6), ("pairs", 256, 6), ("all-to-all", 64, 3)];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [row, pattern, nodes, cases] = &words[..]
        && row == "--row"
    {
        return measure(pattern, nodes.parse()?, cases.parse()?);
    }
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    println!(
        "{:>10} {:>5} {:>6} {:>11} {:>16} {:>16} {:>14} {:>9} {:>12} {:>16}",
        "pattern",
        "nodes",
        "flows",
        "connect ms",
        "set-up ms (max)",
        "run ms (max)",
        "step ms (max)",
        "MiB",
        "KiB a node",
        "traffic KiB"
    );
    for (pattern, nodes, cases) in ROWS {
        let nodes = nodes.to_string();
        if !wanted.iter().all(|word| [pattern, &nodes].contains(&word.as_str())) {
            continue;
        }
        // A process of its own: memory is that of this row alone. A network of its own: loopback carries nothing but its
        // control connections.
        let row = ["--row", pattern, &nodes, &cases.to_string()];
        let status = Command::new("unshare")
            .args(["-rn", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""])
            .arg(std::env::current_exe()?)
            .args(row)
            .status()?;
        if !status.success() {
            return Err(format!("{pattern} of {nodes} nodes: {status}").into());
        }
    }
    Ok(())
}

fn measure(pattern: &str, nodes: u32, cases: usize) -> Result<(), Box<dyn Error>> {
    let mut given = Given::default();
    for (flag, text) in [
        ("pattern", pattern),
        ("op", "write"),
        ("size", "64"),
        ("tx-depth", "8"),
        ("iters", "1000"),
        ("warmup", "0"),
        ("poll", "event"),
    ] {
        let row = Settings::row(flag).ok_or("no such setting")?;
        given.set(row, text)?;
    }
    let mut sweep = Sweep::with_flows(&given, &[], Nodes::Local(nodes))?;
    // The first case has all that the later ones find ready.
    sweep.cases.truncate(cases);
    if pattern != "pairs" {
        let case = sweep.cases[0].clone();
        sweep.cases = vec![case; cases];
    }
    let flows = sweep.cases[0].flows.len();
    let request = PortRequest { device: Some("loop0".into()), ..PortRequest::default() };
    let resources = NodeOptions {
        library: testing::null_library::null_library(),
        ..NodeOptions::system(request, None)
    };
    let options = SweepOptions::new(sweep, Ends::new(Target::Local, resources));
    let (before, sent_before) = (memory_kib("VmRSS")?, loopback_kib()?);
    let mut times = Times {
        began: Instant::now(),
        connected: None,
        run: Instant::now(),
        set_up: Vec::new(),
        drain: Instant::now(),
        steps: Vec::new(),
        runs: Vec::new(),
    };
    let outcome = run_sweep(&options, &AtomicBool::new(false), &mut times)
        .map_err(|failure| failure.message)?;
    for run in outcome.result.cases.iter().flat_map(|case| &case.runs) {
        if let Some(failure) = &run.failure {
            return Err(failure.message.clone().into());
        }
    }
    let grown = memory_kib("VmHWM")? - before;
    let sent = (loopback_kib()? - sent_before) / (cases as f64 * f64::from(nodes));
    let median_and_most = |times_of_step: &mut Vec<Duration>| {
        times_of_step.sort();
        let ms = |at: usize| times_of_step.get(at).map_or(0.0, |it| it.as_secs_f64() * 1e3);
        format!(
            "{:.0} ({:.0})",
            ms(times_of_step.len() / 2),
            ms(times_of_step.len().saturating_sub(1))
        )
    };
    println!(
        "{pattern:>10} {nodes:>5} {flows:>6} {:>11.0} {:>16} {:>16} {:>14} {:>9.0} {:>12.0} {sent:>16.1}",
        times.connected.unwrap_or_default().as_secs_f64() * 1e3,
        median_and_most(&mut times.set_up),
        median_and_most(&mut times.runs),
        median_and_most(&mut times.steps),
        grown / 1024.0,
        grown / f64::from(nodes),
    );
    Ok(())
}

/// When each step of a run was reached.
struct Times {
    began: Instant,
    connected: Option<Duration>,
    run: Instant,
    set_up: Vec<Duration>,
    drain: Instant,
    /// What each of the steps takes from the last message of a run on, with what becomes of their answers.
    steps: Vec<Duration>,
    runs: Vec<Duration>,
}

impl Observer for Times {
    fn run_started(&mut self, _: usize, _: usize, _: &Case, _: u32, _: u32) {
        self.connected.get_or_insert(self.began.elapsed());
        self.run = Instant::now();
    }

    fn phase(&mut self, name: &str, _: Option<Duration>) {
        match name {
            "measure" => self.set_up.push(self.run.elapsed()),
            "drain" => self.drain = Instant::now(),
            _ => {}
        }
    }

    fn run_finished(&mut self, _: &CaseConfig, _: &Run, _: &ResultFile) {
        // They are stop, settle and finish.
        self.steps.push(self.drain.elapsed() / 3);
        self.runs.push(self.run.elapsed());
    }
}

/// What loopback has carried in this network, in KiB: both ends of the control connections, with the kernel's headers.
fn loopback_kib() -> Result<f64, Box<dyn Error>> {
    let devices = std::fs::read_to_string("/proc/net/dev")?;
    let line = devices.lines().find_map(|line| line.trim().strip_prefix("lo:"));
    let received = line.and_then(|line| line.split_whitespace().next());
    Ok(received.ok_or("no loopback")?.parse::<f64>()? / 1024.0)
}

/// A figure of this process' memory, in KiB.
fn memory_kib(field: &str) -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let words = line.ok_or("no such field")?;
    Ok(words.trim().trim_end_matches(" kB").parse()?)
}
