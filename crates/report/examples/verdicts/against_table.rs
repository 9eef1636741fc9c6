//! Comparisons with perftest as a table.

use super::against::{Setup, compared};
use super::noise::Noise;
use super::promises::{Promises, head};
use super::workers::each;
use super::{SEED, percent};

/// What going first is worth in all of them.
const ORDER: f64 = 0.02;

pub fn table(comparisons: usize, promises: &mut Promises) {
    println!("### Against perftest: how comparisons end\n");
    println!(
        "In % of {comparisons} comparisons of 8 to 24 pairs, margin 3 %; whoever goes first is 2 % faster. False: faster or \
         slower where both are alike, equal where the difference is just the margin, and faster where rocebench is 10 % \
         slower.\n"
    );
    head(
        "| noise | spread | alike: false | alike: equal | pairs | 3 % slower: false | 10 % slower: false | slower | pairs |",
    );
    // Pairs know neither launches nor cases.
    for noise in
        Noise::ALL.iter().copied().filter(|noise| !matches!(noise, Noise::Launches | Noise::Uneven))
    {
        for spread in [0.01, 0.03, 0.1] {
            let setups = [0.0, -0.03, -0.1].map(|change| Setup {
                noise,
                spread,
                change,
                order: ORDER,
                pairs: (8, 24),
            });
            let ended = each(&setups, |setup| compared(setup, comparisons, SEED));
            let mean = |pairs: u32| format!("{:.0}", f64::from(pairs) / comparisons as f64);
            let [alike, margin, slower] = [ended[0], ended[1], ended[2]];
            let wrong = [
                alike.faster + alike.slower,
                margin.equal + margin.faster,
                slower.faster + slower.equal,
            ];
            for count in wrong {
                promises.at_most("a false verdict against perftest", count, comparisons, 0.05);
            }
            println!(
                "| {} | {:.0} % | {} | {} | {} | {} | {} | {} | {} |",
                noise.name(),
                spread * 100.0,
                percent(wrong[0], comparisons),
                percent(alike.equal, comparisons),
                mean(alike.pairs),
                percent(wrong[1], comparisons),
                percent(wrong[2], comparisons),
                percent(slower.slower, comparisons),
                mean(slower.pairs),
            );
        }
    }
    println!();
}
