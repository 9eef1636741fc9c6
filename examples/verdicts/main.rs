//! Proves the verdicts of `rocebench compare` on synthetic sittings, whose truth is known, and prints the tables
//! of `docs/statistics.md`: `cargo run --release --example verdicts [SITTINGS]`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod sittings;

use rocebench::statistics::{Answer, Verdict};
use sittings::{NOISES, Noise, Setup, count};

const SPREADS: [f64; 5] = [0.005, 0.01, 0.02, 0.05, 0.1];
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
    let alarms = false_alarms(sittings);
    let found = power(sittings);
    coverage(sittings);
    // What docs/statistics.md promises.
    if alarms > 0.05 || found < 0.9 {
        eprintln!("promised: at most 5 % false alarms, at least 90 % found");
        return std::process::ExitCode::FAILURE;
    }
    std::process::ExitCode::SUCCESS
}

fn regressed(answers: &[Answer]) -> bool {
    answers
        .iter()
        .any(|answer| answer.verdict == Verdict::Worse)
}

fn percent(part: usize, of: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / of as f64)
}

/// Sittings with nothing changed that call a regression anywhere; the worst share.
fn false_alarms(sittings: usize) -> f64 {
    println!("### Nothing changed: sittings that call a regression anywhere\n");
    println!("{sittings} sittings a cell, each of so many cases × 7 metrics.\n");
    println!("| noise | cases | runs a side | 0.5 % | 1 % | 2 % | 5 % | 10 % spread |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let mut worst: f64 = 0.0;
    for noise in NOISES {
        for (cases, runs) in [(1, 5), (1, 10), (18, 5), (18, 10)] {
            let cells = SPREADS.map(|spread| {
                let setup = Setup {
                    noise,
                    spread,
                    cases,
                    runs,
                    slower: 0.0,
                    slower_cases: 0,
                };
                let alarms = count(&setup, sittings, SEED, regressed);
                worst = worst.max(alarms as f64 / sittings as f64);
                percent(alarms, sittings)
            });
            println!(
                "| {} | {cases} | {runs} | {} |",
                noise.name(),
                cells.join(" | ")
            );
        }
    }
    println!();
    worst
}

/// Sittings that find a true slow-down; the least share of those that were promised.
fn power(sittings: usize) -> f64 {
    println!("### Slower in truth: sittings that find it\n");
    println!("{sittings} sittings a cell; 1 % spread; slower in so many of the cases.\n");
    println!("| noise | cases | slower | runs a side | 3 % | 5 % | 10 % slower |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let mut least: f64 = 1.0;
    for noise in NOISES {
        for (cases, slower_cases, runs) in [
            (1, 1, 5),
            (1, 1, 10),
            (18, 1, 5),
            (18, 1, 10),
            (18, 18, 5),
            (18, 18, 10),
        ] {
            let cells = [0.03, 0.05, 0.1].map(|slower| {
                let setup = Setup {
                    noise,
                    spread: 0.01,
                    cases,
                    runs,
                    slower,
                    slower_cases,
                };
                let found = count(&setup, sittings, SEED, |answers| {
                    regressed(&answers[..7 * slower_cases])
                });
                if slower >= 0.05 && runs == 10 {
                    least = least.min(found as f64 / sittings as f64);
                }
                percent(found, sittings)
            });
            println!(
                "| {} | {cases} | {slower_cases} | {runs} | {} |",
                noise.name(),
                cells.join(" | ")
            );
        }
    }
    println!();
    least
}

/// How often the 95 % interval of bandwidth holds the truth, and how often a change of just the margin
/// is called equal.
fn coverage(sittings: usize) {
    println!("### The interval, and \"equal\"\n");
    println!(
        "Bandwidth at 1 % spread. Called equal falsely: the truth is a change of just the margin, 3 %.\n"
    );
    println!(
        "| noise | runs a side | the 95 % interval holds the truth | median half-width | called equal, nothing changed | called equal falsely |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for noise in [
        Noise::Normal,
        Noise::Lognormal,
        Noise::HeavyTails,
        Noise::Bimodal,
    ] {
        for runs in [5, 8, 10, 20] {
            let same = Setup {
                noise,
                spread: 0.01,
                cases: 1,
                runs,
                slower: 0.0,
                slower_cases: 0,
            };
            let changed = Setup {
                slower: 0.03,
                slower_cases: 1,
                ..same
            };
            let draws = sittings * 5;
            let held = count(&same, draws, SEED, |answers| {
                answers[0]
                    .estimate
                    .is_some_and(|found| found.low <= 1.0 && found.high >= 1.0)
            });
            let equal = |answers: &[Answer]| answers[0].verdict == Verdict::Equal;
            let mut widths: Vec<f64> = Vec::new();
            let mut rng = fastrand::Rng::with_seed(SEED);
            for _ in 0..sittings {
                let answers = sittings::sitting(&same, &mut rng);
                widths.extend(answers[0].estimate.map(|found| found.high - found.low));
            }
            println!(
                "| {} | {runs} | {} | ±{:.1} % | {} | {} |",
                noise.name(),
                percent(held, draws),
                rocebench::statistics::median(&widths).unwrap_or(f64::NAN) * 50.0,
                percent(count(&same, draws, SEED, equal), draws),
                percent(count(&changed, draws, SEED, equal), draws),
            );
        }
    }
}
