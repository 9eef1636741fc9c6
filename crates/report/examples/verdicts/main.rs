//! Proves the verdicts of `rocebench compare` and `--against perftest` on synthetic figures, whose truth is known, and
//! prints the tables of `docs/dev/statistics.md`: `cargo run --release --example verdicts [EXPERIMENTS]`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod against;
mod against_table;
mod experiments;
mod intervals;
mod noise;
mod open_loop;
mod open_loop_table;
mod promises;
mod workers;

use experiments::{Found, Setup, found};
use noise::Noise;
use promises::{Promises, head};
use workers::each;

const SEED: u64 = 0x0715_2026;

fn main() -> std::process::ExitCode {
    promises::check("EXPERIMENTS", 1_000, |experiments, promises| {
        false_alarms(experiments, promises);
        slower_everywhere(experiments, promises);
        slower_in_one(experiments, promises);
        intervals::tables(experiments, promises);
        open_loop_table::table(experiments, promises);
        against_table::table(experiments, promises);
    })
}

fn percent(part: usize, of: usize) -> String {
    format!("{:.1}", 100.0 * part as f64 / of as f64)
}

/// Cases, launches a side, and spread.
type Size = (usize, usize, f64);
const SIZES: [Size; 5] =
    [(1, 5, 0.01), (1, 10, 0.01), (18, 5, 0.01), (18, 10, 0.01), (200, 5, 0.01)];

/// The rows of a table: all of these sizes for each noise.
fn rows(sizes: &[Size]) -> impl Iterator<Item = Setup> {
    Noise::ALL.iter().flat_map(move |&noise| {
        sizes.iter().map(move |&(cases, launches, spread)| Setup {
            cases,
            launches,
            spread,
            ..Setup::new(noise)
        })
    })
}

/// A row's experiments, side by side, told in a cell each.
fn row<const N: usize>(
    setups: [Setup; N],
    experiments: usize,
    cell: impl Fn(&Setup, &Found) -> String,
) -> Vec<Found> {
    let found = each(&setups, |setup| found(setup, experiments, SEED));
    let cells: Vec<String> =
        setups.iter().zip(&found).map(|(setup, found)| cell(setup, found)).collect();
    let (name, cells) = (setups[0].noise.name(), cells.join(" | "));
    let (cases, launches) = (setups[0].cases, setups[0].launches);
    println!("| {name} | {cases} | {launches} | {cells} |");
    found
}

/// Anywhere, and of several cases over all.
fn anywhere(experiments: usize) -> impl Fn(&Setup, &Found) -> String {
    move |setup, found| {
        let anywhere = percent(found.anywhere, experiments);
        match setup.cases {
            1 => anywhere,
            _ => format!("{anywhere} ({})", percent(found.over_all, experiments)),
        }
    }
}

fn false_alarms(experiments: usize, promises: &mut Promises) {
    println!("### Nothing changed: experiments that call a regression\n");
    println!("In % of {experiments} experiments: anywhere (over all cases).\n");
    head("| noise | cases | launches a side | 1 % | 3 % | 10 % spread |");
    for setup in rows(&SIZES) {
        let setups = [0.01, 0.03, 0.1].map(|spread| Setup { spread, ..setup });
        for found in row(setups, experiments, anywhere(experiments)) {
            promises.at_most("a false alarm anywhere", found.anywhere, experiments, 0.05);
        }
    }
    println!();
}

fn slower_everywhere(experiments: usize, promises: &mut Promises) {
    println!("### Slower in all cases: experiments that find it\n");
    println!("In % of {experiments} experiments at 1 % spread: anywhere (over all cases).\n");
    head("| noise | cases | launches a side | 2 % | 3 % | 5 % | 10 % | 50 % slower |");
    for setup in rows(&SIZES) {
        let setups =
            [0.02, 0.03, 0.05, 0.1, 0.5].map(|slower| setup.slower_by(slower, setup.cases));
        let found = row(setups, experiments, anywhere(experiments));
        if setup.cases > 1 {
            promises.at_least("5 % slower everywhere", found[2].anywhere, experiments, 0.95);
            promises.at_least("10 % slower over all", found[3].over_all, experiments, 0.995);
            promises.at_least("50 % slower over all", found[4].over_all, experiments, 1.0);
        }
    }
    println!();
}

fn slower_in_one(experiments: usize, promises: &mut Promises) {
    println!("### Slower in one case: experiments that find it there\n");
    println!("In % of {experiments} experiments; the spread is 1 %, of 8 launches 3 %.\n");
    head("| noise | cases | launches a side | 3 % | 5 % | 10 % | 50 % slower |");
    for setup in rows(&[(18, 5, 0.01), (18, 10, 0.01), (18, 8, 0.03), (200, 5, 0.01)]) {
        let setups = [0.03, 0.05, 0.1, 0.5].map(|slower| setup.slower_by(slower, 1));
        let found = row(setups, experiments, |_: &Setup, found: &Found| {
            percent(found.in_slower, experiments)
        });
        if setup.cases == 18 && setup.launches >= 8 {
            promises.at_least("10 % slower in one of 18", found[2].in_slower, experiments, 0.95);
        }
    }
    println!();
}
