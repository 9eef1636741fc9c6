//! Proves on made-up series, whose truth is known, what is called a step, and prints the table of `docs/dev/statistics.md`:
//! `cargo run --release -p report --example steps [SERIES]`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../verdicts/noise.rs"]
mod noise;
#[path = "../verdicts/promises.rs"]
mod promises;
#[path = "../verdicts/workers.rs"]
mod workers;

use fastrand::Rng;
use noise::Noise;
use statistics::steps;
use workers::each;

const SPREAD: f64 = 0.03;
const SEED: u64 = 0x1128_2026;

/// Figures of a series, which of them is the first that is a tenth lower, and of how many series it is one.
type Kind = (usize, Option<usize>, usize);

const KINDS: [Kind; 7] = [
    (30, None, 1),
    (60, None, 1),
    (60, Some(30), 1),
    (60, Some(50), 1),
    (30, Some(20), 1),
    (30, Some(20), 128),
    (30, Some(25), 128),
];

fn main() -> std::process::ExitCode {
    promises::check("SERIES", 2_000, |series, promises| {
        println!(
            "In % of {series} series at a spread of 3 %. Found: one step, within 5 figures of its place.\n"
        );
        promises::head(
            "| noise | 30: a step | 60: a step | 60, from 31: found | 60, from 51 | 30, from 21 | 30, from 21, of 128 | 30, from 26, of 128 |",
        );
        for noise in Noise::ALL.iter().filter(|noise| **noise != Noise::Launches) {
            let counts = each(&KINDS, |kind| count(*noise, *kind, series));
            let cells: Vec<String> = counts
                .iter()
                .map(|count| format!("{:.1}", 100.0 * *count as f64 / series as f64))
                .collect();
            println!("| {} | {} |", noise.name(), cells.join(" | "));
            if *noise != Noise::Correlated {
                promises.at_most(noise.name(), counts[1], series, 0.01);
            }
            if *noise == Noise::Normal {
                promises.at_least(noise.name(), counts[2], series, 0.95);
            }
        }
    })
}

/// In how many series a step was found: where nothing changed any, else the one that was made.
fn count(noise: Noise, (figures, change, together): Kind, series: usize) -> usize {
    let mut rng = Rng::with_seed(SEED);
    let right = (0..series).filter(|_| {
        let found = steps(&made(noise, figures, change, &mut rng), together);
        match (change, &found[..]) {
            (None, found) => !found.is_empty(),
            (Some(place), [step]) => step.at.abs_diff(place) <= 5,
            (Some(_), _) => false,
        }
    });
    right.count()
}

fn made(noise: Noise, figures: usize, change: Option<usize>, rng: &mut Rng) -> Vec<f64> {
    let mut before = 0.0;
    let level = |place| if change.is_some_and(|change| place >= change) { 9.0 } else { 10.0 };
    (0..figures)
        .map(|place| {
            let own = noise.draw(rng) * noise.of_case(place);
            before = if noise == Noise::Correlated { 0.6 * before + 0.8 * own } else { own };
            level(place) * (SPREAD * before).exp()
        })
        .collect()
}
