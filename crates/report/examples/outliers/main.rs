//! Proves what is called an outlier among nodes on made-up matrices, whose truth is known, and prints the tables of
//! `docs/dev/statistics.md`: `cargo run --release -p report --example outliers [TRIES]`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod mesh;
mod nights;
#[path = "../verdicts/promises.rs"]
mod promises;
#[path = "../verdicts/workers.rs"]
mod workers;

use mesh::{Fault, Noise, Setup, right};
use promises::Promises;
use workers::each;

const NODES: [usize; 4] = [4, 8, 16, 64];
const SPREADS: [f64; 3] = [0.005, 0.02, 0.05];
const RUNS: [usize; 2] = [1, 3];
const SEED: u64 = 0x1422_2026;

fn main() -> std::process::ExitCode {
    promises::check("TRIES", 400, |tries, promises| {
        false_alarms(tries, promises);
        for &fault in Fault::ALL {
            power(tries, fault, promises);
        }
        nights::table(tries, promises);
    })
}

/// Matrices of 64 nodes take long, and their many flows tell the same with fewer of them.
fn tries_of(nodes: usize, tries: usize) -> usize {
    if nodes < 64 { tries } else { tries.div_ceil(4) }
}

fn setups(noise: Noise, runs: usize, fault: Option<Fault>) -> Vec<Setup> {
    SPREADS
        .into_iter()
        .flat_map(|spread| NODES.map(|nodes| Setup { noise, spread, nodes, runs, fault }))
        .collect()
}

fn head(title: &str, tries: usize) {
    println!("### {title}\n");
    let fewer = tries_of(64, tries);
    println!("In % of {tries} matrices ({fewer} of 64 nodes), for a spread of 0.5 / 2 / 5 %.\n");
    promises::head("| noise | runs | 4 | 8 | 16 | 64 nodes |");
}

/// Prints a row, and gives for each number of nodes and spread how many matrices were as counted, of how many.
fn row(
    tries: usize,
    setups: &[Setup],
    is_counted: impl Fn(bool) -> bool + Sync,
) -> Vec<(usize, usize)> {
    let counts = each(setups, |setup| {
        let tries = tries_of(setup.nodes, tries);
        (
            (0..tries as u64)
                .map(|number| SEED + number)
                .filter(|seed| is_counted(right(setup, *seed)))
                .count(),
            tries,
        )
    });
    let cells: Vec<String> = (0..NODES.len())
        .map(|nodes| {
            counts
                .iter()
                .skip(nodes)
                .step_by(NODES.len())
                .map(|(count, of)| {
                    let percent = 100.0 * *count as f64 / *of as f64;
                    format!("{percent:.1}")
                })
                .collect::<Vec<_>>()
                .join(" / ")
        })
        .collect();
    let (noise, runs) = setups.first().map_or(("", 0), |it| (it.noise.name(), it.runs));
    println!("| {noise} | {runs} | {} |", cells.join(" | "));
    counts
}

fn false_alarms(tries: usize, promises: &mut Promises) {
    head("All nodes are alike: matrices of which something is told", tries);
    for &noise in Noise::ALL {
        for runs in RUNS {
            let counts = row(tries, &setups(noise, runs, None), |is_right| !is_right);
            let matrices: usize = counts.iter().map(|(_, number)| number).sum();
            let alarms: usize = counts.iter().map(|(count, _)| count).sum();
            if noise != Noise::Stalls || runs > 1 {
                promises.at_most(&format!("{}, {runs} runs", noise.name()), alarms, matrices, 0.01);
            }
        }
    }
    println!();
}

fn power(tries: usize, fault: Fault, promises: &mut Promises) {
    head(fault.name(), tries);
    for &noise in Noise::ALL {
        for runs in RUNS {
            let counts = row(tries, &setups(noise, runs, Some(fault)), |it| it);
            // Spreads of 0.5 and 2 %, which stand first; three runs, and noise that is the same for all nodes.
            let is_promised = runs > 1 && matches!(noise, Noise::Normal | Noise::HeavyTails);
            for (count, of) in counts.iter().take(2 * NODES.len()).filter(|_| is_promised) {
                let what = format!("{}, {}", fault.name(), noise.name());
                promises.at_least(&what, *count, *of, 0.95);
            }
        }
    }
    println!();
}
