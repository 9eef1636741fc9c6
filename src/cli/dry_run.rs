//! `--dry-run`: the cases as a table, and how long they would take.

use std::io::{self, Write};
use std::time::Duration;

use crate::coordinator::options::Against;
use crate::node::fabric::Side;
use crate::node::memory_needs::{DeviceKind, MemoryNeeds};
use crate::perftest::{Program, measuring};
use crate::plan::{Case, ConnectMode, Size, Sweep};

use super::errors::Failure;
use super::run::RunPlan;

/// The last two are there where a case is connected otherwise than usual, or measures set-up.
const HEADER: [&str; 15] = [
    "case", "op", "cq", "qps", "size", "workers", "tx", "rx", "signal", "list", "inline", "mtu",
    "poll", "connect", "traffic",
];

/// Columns that are always there.
const USUAL: usize = 13;

fn row(case: &Case) -> [String; 15] {
    let setting = |text: String| match case.moving() {
        Some(_) => text,
        None => "-".to_owned(),
    };
    let size = Size::from_bytes(case.size_bytes).unwrap_or(Size::MAX);
    [
        case.id.clone(),
        case.workload().to_string(),
        setting(case.cq.to_string()),
        case.qps.to_string(),
        setting(size.to_string()),
        setting(case.workers.to_string()),
        setting(case.tx_depth.to_string()),
        if case.op == crate::plan::Op::Send {
            case.rx_depth.to_string()
        } else {
            "-".into()
        },
        setting(case.signal_every.to_string()),
        setting(case.post_list.to_string()),
        setting(case.inline_bytes.to_string()),
        case.mtu
            .map_or_else(|| "port's".to_owned(), |mtu| mtu.to_string()),
        setting(case.poll.to_string()),
        case.connect.to_string(),
        case.setup
            .map_or_else(|| "-".to_owned(), |it| it.traffic_qps.to_string()),
    ]
}

/// `1 h 5 min`, `2 min 30 s`, `45 s`, `1.5 s`.
fn for_people(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{} s", span.as_millis() as f64 / 1e3),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

fn footer(plan: &RunPlan) -> String {
    let sweep = &plan.sweep;
    let cases = sweep.cases.len();
    let plural =
        |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text = plural(u64::try_from(cases).unwrap_or(u64::MAX), "case");
    if let Some(against) = &plan.against {
        text += &format!(
            " x {} to {} pairs with perftest ({})",
            against.pairs,
            against.max_pairs,
            programs(sweep).join(", ")
        );
    } else if sweep.runs > 1 {
        text += &format!(" x {}", plural(sweep.runs.into(), "run"));
    }
    if let Some(case) = sweep.cases.first() {
        text += &format!(
            ", {} each after a warm-up of {}",
            Sweep::stop_text(case),
            case.warmup
        );
    }
    let longest = match &plan.against {
        Some(against) => longest_of_pairs(sweep, against),
        None => sweep.longest(),
    };
    if let Some(longest) = longest {
        text += &format!("; at most {} and the time to connect", for_people(longest));
    }
    text
}

/// What the largest case takes of memory, with all results.
fn memory(plan: &RunPlan) -> Option<String> {
    // No device is opened for this; an adapter's queues are larger than the embedded device's.
    let is_embedded = |name: &str| name.starts_with("soft");
    let device = match plan.endpoint.device.as_deref().is_some_and(is_embedded) {
        true => DeviceKind::Embedded,
        false => DeviceKind::System,
    };
    let beside = plan.host.is_none().then_some(device);
    let (case, needs) = MemoryNeeds::of_sweep(&plan.sweep, device, beside)?;
    let here = format!("memory: {} takes {needs}", case.id);
    Some(match plan.host {
        None => format!("{here}, both ends together"),
        Some(_) => {
            let server = MemoryNeeds::of(case, Side::Server, device);
            format!("{here}, and {server} at the server")
        }
    })
}

/// perftest's programs that the cases need.
fn programs(sweep: &Sweep) -> Vec<&'static str> {
    let mut names: Vec<_> = sweep
        .cases
        .iter()
        .map(|case| Program::for_case(case).name())
        .collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// As [`Sweep::longest`], of all pairs that there may be; `None` where perftest counts messages.
fn longest_of_pairs(sweep: &Sweep, against: &Against) -> Option<Duration> {
    let once = sweep.longest()? / sweep.runs;
    let theirs = sweep
        .cases
        .iter()
        .map(measuring)
        .sum::<Option<Duration>>()?;
    Some(
        once.saturating_add(theirs)
            .saturating_mul(against.max_pairs),
    )
}

fn write(plan: &RunPlan, out: &mut impl Write) -> io::Result<()> {
    let cases = &plan.sweep.cases;
    let rows: Vec<[String; 15]> = cases.iter().map(row).collect();
    // Found out once: a look at every case for every row would take the square of their number.
    let connects_otherwise = (cases.iter()).any(|case| case.connect != ConnectMode::default());
    let measures_setup = cases.iter().any(|case| case.setup.is_some());
    let shown = |column: usize| match column {
        0..USUAL => true,
        USUAL => connects_otherwise,
        _ => measures_setup,
    };
    let mut widths = HEADER.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let header = HEADER.map(str::to_owned);
    for row in std::iter::once(&header).chain(&rows) {
        let mut line = String::new();
        let cells = row.iter().zip(widths).enumerate();
        for (column, (cell, width)) in cells.filter(|(column, _)| shown(*column)) {
            // Words to the left, numbers to the right.
            line += &if column < 3 {
                format!("{cell:<width$}  ")
            } else {
                format!("{cell:>width$}  ")
            };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "\n{}", footer(plan))?;
    if let Some(memory) = memory(plan) {
        writeln!(out, "{memory}")?;
    }
    out.flush()
}

/// Prints the table. A reader that closes the pipe early has seen enough: that is no error.
///
/// # Errors
/// When `out` cannot be written for another reason.
pub fn print(plan: &RunPlan, out: &mut impl Write) -> Result<(), Failure> {
    match write(plan, &mut io::BufWriter::new(out)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write the table: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        for (ms, text) in [
            (1_500, "1.5 s"),
            (45_000, "45 s"),
            (150_000, "2 min 30 s"),
            (3_900_000, "1 h 5 min"),
        ] {
            assert_eq!(for_people(Duration::from_millis(ms)), text);
        }
    }
}
