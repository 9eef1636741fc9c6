//! The interval of a ratio, and "equal".

use fastrand::Rng;
use statistics::{Verdict, median, ratio, verdicts};

use super::experiments::{Experiment, Setup, found};
use super::noise::Noise;
use super::promises::{Promises, head};
use super::workers::each;
use super::{SEED, percent};

/// How often the interval holds the truth.
const CONFIDENCE: f64 = 0.95;

/// So many times as many experiments show whether it does.
const MORE: usize = 5;

/// How many standard deviations a count may lie below what is promised. The interval is exact, so half of all counts lie below it.
const ALLOWED_DEVIATIONS: f64 = 3.0;

/// What is told of so many launches a side.
struct Cell {
    launches: usize,
    /// Experiments whose interval holds the truth.
    held: usize,
    /// Half the interval's width in %: the median, and of all but one experiment in 20.
    width: f64,
    /// The same where one of the base's launches has half its figure.
    with_outlier: [f64; 2],
    equal: usize,
    falsely_equal: usize,
}

pub fn tables(experiments: usize, promises: &mut Promises) {
    println!("### The interval, and \"equal\"\n");
    println!(
        "Bandwidth at 1 % spread, in % of {experiments} experiments. With an outlier: one launch of the base has half its \
         bandwidth. Called equal falsely: the truth is a change of just the margin, 3 %.\n"
    );
    head(
        "| noise | launches a side | the 95 % interval holds the truth | half-width | with an outlier | 95 of 100 with an \
         outlier | called equal, nothing changed | called equal falsely |",
    );
    let total = MORE * experiments;
    let deviation = (CONFIDENCE * (1.0 - CONFIDENCE) / total as f64).sqrt();
    let least = CONFIDENCE - ALLOWED_DEVIATIONS * deviation;
    for &noise in Noise::ALL {
        for cell in each(&[5, 8, 10, 20], |launches| cell(noise, *launches, experiments)) {
            println!(
                "| {} | {} | {} | ±{:.1} % | ±{:.1} % | ±{:.1} % | {} | {} |",
                noise.name(),
                cell.launches,
                percent(cell.held, total),
                cell.width,
                cell.with_outlier[0],
                cell.with_outlier[1],
                percent(cell.equal, experiments),
                percent(cell.falsely_equal, experiments),
            );
            promises.at_least("the interval holds the truth", cell.held, total, least);
            promises.at_most("called equal falsely", cell.falsely_equal, experiments, 0.05);
        }
    }
    println!();
}

fn cell(noise: Noise, launches: usize, experiments: usize) -> Cell {
    let setup = Setup { launches, ..Setup::new(noise) };
    let mut rng = Rng::with_seed(SEED);
    let (mut held, mut widths, mut with_outlier, mut equal) = (0, Vec::new(), Vec::new(), 0);
    for number in 0..MORE * experiments {
        let experiment = Experiment::new(&setup, &mut rng);
        let questions = experiment.questions();
        let (base, new) = (questions[0].base.values, questions[0].new.values);
        if let Some(found) = ratio(base, new, CONFIDENCE) {
            held += usize::from(found.low <= 1.0 && found.high >= 1.0);
            widths.push((found.high - found.low) * 50.0);
        }
        if number >= experiments {
            continue;
        }
        equal += usize::from(verdicts(&questions, 1.0).by_case[0] == Verdict::Equal);
        let mut base = base.to_vec();
        base[0] *= 0.5;
        with_outlier
            .extend(ratio(&base, new, CONFIDENCE).map(|found| (found.high - found.low) * 50.0));
    }
    with_outlier.sort_by(f64::total_cmp);
    let changed = setup.slower_by(0.03, 1);
    Cell {
        launches,
        held,
        width: median(&widths).unwrap_or(f64::NAN),
        with_outlier: [0.5, 0.95].map(|part| {
            let place = (part * with_outlier.len() as f64) as usize;
            with_outlier.get(place).copied().unwrap_or(f64::NAN)
        }),
        equal,
        falsely_equal: found(&changed, experiments, SEED).bandwidth_equal,
    }
}
