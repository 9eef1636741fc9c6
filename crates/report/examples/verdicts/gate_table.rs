//! Gates as a table.

use super::gate::gates;
use super::noise::NOISES;
use super::promises::{Promises, head};
use super::sittings::Setup;
use super::workers::each;
use super::{SEED, percent};

pub fn table(count: usize, promises: &mut Promises) {
    println!("### Gates: how they end\n");
    println!(
        "In % of {count} gates of 12 cases with at most 14 launches a side; in brackets: launches a side that they took.\n"
    );
    head(
        "| noise | spread | alike: slower | alike: clear | 5 % slower: equal | 10 % slower: found |",
    );
    for noise in NOISES {
        for spread in [0.01, 0.03, 0.1] {
            let setup = Setup {
                cases: 12,
                launches: 14,
                spread,
                ..Setup::of(noise)
            };
            let setups = [0.0, 0.05, 0.1].map(|slower| setup.slower_by(slower, 12));
            let [alike, margin, slower] = each(&setups, |setup| gates(setup, count, SEED))[..]
            else {
                return;
            };
            promises.at_most("a gate calls a regression", alike.regressed, count, 0.05);
            promises.at_most("a gate calls the margin equal", margin.equal, count, 0.05);
            if spread < 0.1 {
                let found = slower.regressed;
                promises.at_least("a gate finds 10 % slower", found, count, 0.95);
            }
            let took = |launches: u32| format!("{:.0}", f64::from(launches) / count as f64);
            println!(
                "| {} | {:.0} % | {} | {} ({}) | {} | {} ({}) |",
                noise.name(),
                spread * 100.0,
                percent(alike.regressed, count),
                percent(alike.clear, count),
                took(alike.launches),
                percent(margin.equal, count),
                percent(slower.regressed, count),
                took(slower.launches),
            );
        }
    }
    println!();
}
