//! Experiments of open loops as a table.

use super::open_loop::{Setup, found};
use super::promises::{Promises, head};
use super::workers::each;
use super::{SEED, percent};

/// Of one case, and of a sweep over all of them.
const LOADS: [f64; 7] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95];

pub fn table(experiments: usize, promises: &mut Promises) {
    println!("### Open loops: experiments that call a regression\n");
    println!(
        "In % of {experiments} experiments; runs of 5,000 and of 50,000 messages; service times that scatter by so much from \
         launch to launch, at the same rate. Slower: the service time is 10 % longer, in runs of 50,000 messages at 1 %.\n"
    );
    head("| load | launches a side | 5,000: 0 % | 1 % | 3 % | 50,000: 0 % | 1 % | 3 % | slower |");
    for loads in
        [0.3, 0.5, 0.8, 0.9, 0.95].map(|load| vec![load]).into_iter().chain([LOADS.to_vec()])
    {
        for launches in [5, 10] {
            let setup = |messages, spread, slower| Setup {
                loads: loads.clone(),
                messages,
                launches,
                spread,
                slower,
            };
            let mut setups: Vec<Setup> = Vec::new();
            for messages in [5_000, 50_000] {
                setups.extend([0.0, 0.01, 0.03].map(|spread| setup(messages, spread, 0.0)));
            }
            setups.push(setup(50_000, 0.01, 0.1));
            let counts = each(&setups, |one| found(one, experiments, SEED));
            for (one, count) in setups.iter().zip(&counts) {
                if one.slower == 0.0 {
                    promises.at_most("a false alarm of an open loop", *count, experiments, 0.05);
                }
            }
            let name = match &loads[..] {
                [load] => format!("{:.0} %", load * 100.0),
                _ => "7 loads, 10 to 95 %".to_owned(),
            };
            let cells: Vec<String> =
                counts.iter().map(|count| percent(*count, experiments)).collect();
            println!("| {name} | {launches} | {} |", cells.join(" | "));
        }
    }
    println!();
}
