//! Proves the verdicts of `rocebench compare` and `--against perftest` on synthetic figures, whose truth is known, and
//! prints the tables of `docs/dev/statistics.md`: `cargo run --release --example verdicts [SITTINGS]`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod against;
mod against_table;
mod intervals;
mod noise;
mod open_loop;
mod open_loop_table;
mod promises;
mod sittings;
mod workers;

use noise::Noise;
use promises::{Promises, head};
use sittings::{Found, Setup, found};
use workers::each;

const SEED: u64 = 0x0715_2026;

fn main() -> std::process::ExitCode {
    promises::check("SITTINGS", 1_000, |sittings, promises| {
        false_alarms(sittings, promises);
        slower_everywhere(sittings, promises);
        slower_in_one(sittings, promises);
        intervals::tables(sittings, promises);
        open_loop_table::table(sittings, promises);
        against_table::table(sittings, promises);
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

/// A row's sittings, side by side, told in a cell each.
fn row<const N: usize>(
    setups: [Setup; N],
    sittings: usize,
    cell: impl Fn(&Setup, &Found) -> String,
) -> Vec<Found> {
    let found = each(&setups, |setup| found(setup, sittings, SEED));
    let cells: Vec<String> =
        setups.iter().zip(&found).map(|(setup, found)| cell(setup, found)).collect();
    let (name, cells) = (setups[0].noise.name(), cells.join(" | "));
    let (cases, launches) = (setups[0].cases, setups[0].launches);
    println!("| {name} | {cases} | {launches} | {cells} |");
    found
}

/// Anywhere, and of several cases over all.
fn anywhere(sittings: usize) -> impl Fn(&Setup, &Found) -> String {
    move |setup, found| {
        let anywhere = percent(found.anywhere, sittings);
        match setup.cases {
            1 => anywhere,
            _ => format!("{anywhere} ({})", percent(found.over_all, sittings)),
        }
    }
}

fn false_alarms(sittings: usize, promises: &mut Promises) {
    println!("### Nothing changed: sittings that call a regression\n");
    println!("In % of {sittings} sittings: anywhere (over all cases).\n");
    head("| noise | cases | launches a side | 1 % | 3 % | 10 % spread |");
    for setup in rows(&SIZES) {
        let setups = [0.01, 0.03, 0.1].map(|spread| Setup { spread, ..setup });
        for found in row(setups, sittings, anywhere(sittings)) {
            promises.at_most("a false alarm anywhere", found.anywhere, sittings, 0.05);
            promises.at_most("a false alarm over all", found.over_all, sittings, 0.005);
        }
    }
    println!();
}

fn slower_everywhere(sittings: usize, promises: &mut Promises) {
    println!("### Slower in all cases: sittings that find it\n");
    println!("In % of {sittings} sittings at 1 % spread: anywhere (over all cases).\n");
    head("| noise | cases | launches a side | 2 % | 3 % | 5 % | 10 % | 50 % slower |");
    for setup in rows(&SIZES) {
        let setups =
            [0.02, 0.03, 0.05, 0.1, 0.5].map(|slower| setup.slower_by(slower, setup.cases));
        let found = row(setups, sittings, anywhere(sittings));
        if setup.cases > 1 {
            promises.at_least("5 % slower everywhere", found[2].anywhere, sittings, 0.95);
            promises.at_least("10 % slower over all", found[3].over_all, sittings, 0.995);
            promises.at_least("50 % slower over all", found[4].over_all, sittings, 1.0);
        }
    }
    println!();
}

fn slower_in_one(sittings: usize, promises: &mut Promises) {
    println!("### Slower in one case: sittings that find it there\n");
    println!("In % of {sittings} sittings; the spread is 1 %, of 8 launches 3 %.\n");
    head("| noise | cases | launches a side | 3 % | 5 % | 10 % | 50 % slower |");
    for setup in rows(&[(18, 5, 0.01), (18, 10, 0.01), (18, 8, 0.03), (200, 5, 0.01)]) {
        let setups = [0.03, 0.05, 0.1, 0.5].map(|slower| setup.slower_by(slower, 1));
        let found =
            row(setups, sittings, |_: &Setup, found: &Found| percent(found.in_slower, sittings));
        if setup.cases == 18 && setup.launches >= 8 {
            promises.at_least("10 % slower in one of 18", found[2].in_slower, sittings, 0.95);
        }
    }
    println!();
}
