//! Proves the verdicts of `rocebench compare` and `--against perftest` on synthetic figures, whose truth is known, and
//! prints the tables of `docs/statistics.md`: `cargo run --release --example verdicts [SITTINGS]`.
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

use noise::NOISES;
use promises::Promises;
use sittings::{Found, Setup, found};
use workers::each;

const SEED: u64 = 0x0715_2026;

fn main() -> std::process::ExitCode {
    let sittings = match std::env::args().nth(1).map(|word| word.parse()) {
        None => 1_000,
        Some(Ok(sittings)) => sittings,
        Some(Err(error)) => {
            eprintln!("SITTINGS is a number: {error}");
            return std::process::ExitCode::from(2);
        }
    };
    let mut promises = Promises::default();
    false_alarms(sittings, &mut promises);
    slower_everywhere(sittings, &mut promises);
    slower_in_one(sittings, &mut promises);
    intervals::tables(sittings, &mut promises);
    open_loop_table::table(sittings, &mut promises);
    against_table::table(sittings, &mut promises);
    promises.tell()
}

fn percent(part: usize, of: usize) -> String {
    format!("{:.1}", 100.0 * part as f64 / of as f64)
}

/// Cells of a table, counted side by side.
fn counted(setups: &[Setup], sittings: usize) -> Vec<Found> {
    each(setups, |setup| found(setup, sittings, SEED))
}

fn false_alarms(sittings: usize, promises: &mut Promises) {
    const SPREADS: [f64; 3] = [0.01, 0.03, 0.1];
    println!("### Nothing changed: sittings that call a regression\n");
    println!("In % of {sittings} sittings: anywhere (over all cases).\n");
    println!("| noise | cases | launches a side | 1 % | 3 % | 10 % spread |");
    println!("|---|--:|--:|--:|--:|--:|");
    for noise in NOISES {
        for (cases, launches) in [(1, 5), (1, 10), (18, 5), (18, 10), (200, 5)] {
            let setups = SPREADS.map(|spread| Setup {
                noise,
                spread,
                cases,
                launches,
                slower: 0.0,
                slower_cases: 0,
            });
            let cells = counted(&setups, sittings);
            for cell in &cells {
                promises.at_most("a false alarm anywhere", cell.anywhere, sittings, 0.05);
                promises.at_most("a false alarm over all", cell.over_all, sittings, 0.005);
            }
            row(noise.name(), cases, launches, &cells, sittings);
        }
    }
    println!();
}

fn slower_everywhere(sittings: usize, promises: &mut Promises) {
    const SLOWER: [f64; 5] = [0.02, 0.03, 0.05, 0.1, 0.5];
    println!("### Slower in all cases: sittings that find it\n");
    println!("In % of {sittings} sittings at 1 % spread: anywhere (over all cases).\n");
    println!("| noise | cases | launches a side | 2 % | 3 % | 5 % | 10 % | 50 % slower |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for noise in NOISES {
        for (cases, launches) in [(1, 5), (1, 10), (18, 5), (18, 10), (200, 5)] {
            let setups = SLOWER.map(|slower| Setup {
                noise,
                spread: 0.01,
                cases,
                launches,
                slower,
                slower_cases: cases,
            });
            let cells = counted(&setups, sittings);
            if cases > 1 {
                promises.at_least("5 % slower everywhere", cells[2].anywhere, sittings, 0.95);
                promises.at_least("10 % slower over all", cells[3].over_all, sittings, 0.995);
                promises.at_least("50 % slower over all", cells[4].over_all, sittings, 1.0);
            }
            row(noise.name(), cases, launches, &cells, sittings);
        }
    }
    println!();
}

fn slower_in_one(sittings: usize, promises: &mut Promises) {
    const SLOWER: [f64; 4] = [0.03, 0.05, 0.1, 0.5];
    println!("### Slower in one case: sittings that find it there\n");
    println!("In % of {sittings} sittings.\n");
    println!("| noise | cases | launches a side | spread | 3 % | 5 % | 10 % | 50 % slower |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for noise in NOISES {
        for (cases, launches, spread) in
            [(18, 5, 0.01), (18, 10, 0.01), (18, 8, 0.03), (200, 5, 0.01)]
        {
            let setups = SLOWER.map(|slower| Setup {
                noise,
                spread,
                cases,
                launches,
                slower,
                slower_cases: 1,
            });
            let cells = counted(&setups, sittings);
            if cases == 18 && launches >= 8 {
                promises.at_least(
                    "10 % slower in one of 18",
                    cells[2].in_slower,
                    sittings,
                    0.95,
                );
            }
            let cells: Vec<String> = cells
                .iter()
                .map(|cell| percent(cell.in_slower, sittings))
                .collect();
            println!(
                "| {} | {cases} | {launches} | {:.0} % | {} |",
                noise.name(),
                spread * 100.0,
                cells.join(" | ")
            );
        }
    }
    println!();
}

fn row(noise: &str, cases: usize, launches: usize, cells: &[Found], sittings: usize) {
    let cell = |cell: &Found| match cases {
        1 => percent(cell.anywhere, sittings),
        _ => format!(
            "{} ({})",
            percent(cell.anywhere, sittings),
            percent(cell.over_all, sittings)
        ),
    };
    let cells: Vec<String> = cells.iter().map(cell).collect();
    println!("| {noise} | {cases} | {launches} | {} |", cells.join(" | "));
}
