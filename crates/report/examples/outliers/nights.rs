//! Nights whose truth is known: nodes, pairs of them and nights differ, and in the last night a node may be 10 % slower.

use fastrand::Rng;
use report::judge::compare::nodes::{End, Night, places};
use report::observe::Metric;
use results::model::{Direction, Verdict};

use crate::SEED;
use crate::mesh::{Noise, normal};
use crate::promises::{self, Promises};
use crate::workers::each;

/// Standard deviations: of a run, of a pair of nodes and of a side of a node in all nights, of a night.
const RUN: f64 = 0.05;
const PAIR: f64 = 0.05;
const NODE: f64 = 0.03;
const NIGHT: f64 = 0.03;
/// The same of a side of a node from night to night; with the noise `nodes differ` three times as much.
const NODE_IN_A_NIGHT: f64 = 0.003;
const SLOWER: f64 = 0.1;
const MARGIN: f64 = 0.03;

#[derive(Clone, Copy, Debug)]
struct Setup {
    noise: Noise,
    nodes: usize,
    /// Nights before the last one.
    good: usize,
    /// Directions in which the first node is slower in the last night: 0, 1 (what it sends), or 2.
    slower: usize,
}

fn deviations(count: usize, spread: f64, rng: &mut Rng) -> Vec<f64> {
    (0..count).map(|_| spread * normal(rng)).collect()
}

/// One run of each flow; `flows` has what is the same every night, by from × nodes + to.
fn night<'a>(
    setup: &Setup,
    names: &'a [String],
    flows: &[f64],
    slower: usize,
    rng: &mut Rng,
) -> Night<'a> {
    let of_node = if setup.noise == Noise::Nodes { 3.0 } else { 1.0 } * NODE_IN_A_NIGHT;
    let mut sides = [(); 2].map(|()| deviations(setup.nodes, of_node, rng));
    for side in sides.iter_mut().take(slower) {
        side[0] += (-SLOWER).ln_1p();
    }
    let level = NIGHT * normal(rng);
    let pairs = (0..flows.len()).map(|flow| (flow / setup.nodes, flow % setup.nodes));
    (pairs.zip(flows).filter(|((from, to), _)| from != to))
        .map(|((from, to), own)| {
            let run = level + own + sides[0][from] + sides[1][to] + RUN * setup.noise.draw(rng);
            ([from, to].map(|node| -> End<'a> { (&names[node], "") }), vec![run])
        })
        .collect()
}

/// Whether the slower node is named, and whether another is named slower or faster.
fn named(setup: &Setup, seed: u64) -> (bool, bool) {
    let (rng, nodes) = (&mut Rng::with_seed(seed), setup.nodes);
    let names: Vec<String> = (1..=nodes).map(|it| format!("node{it:02}")).collect();
    let [sends, receives] = [(); 2].map(|()| deviations(nodes, NODE, rng));
    let flows: Vec<f64> = deviations(nodes * nodes, PAIR, rng)
        .into_iter()
        .enumerate()
        .map(|(flow, pair)| sends[flow / nodes] + receives[flow % nodes] + pair)
        .collect();
    let base: Vec<Night<'_>> =
        (0..setup.good).map(|_| night(setup, &names, &flows, 0, rng)).collect();
    let new = night(setup, &names, &flows, setup.slower, rng);
    let mut named = (false, false);
    for place in places(&base, &[new], Metric::GbitPerS, MARGIN).1 {
        let slower = &[Direction::Sends, Direction::Receives][..setup.slower];
        if place.nodes[0] == names[0] && slower.contains(&place.direction) {
            named.0 |= place.verdict == Verdict::Slower;
        } else {
            named.1 |= [Verdict::Slower, Verdict::Faster].contains(&place.verdict);
        }
    }
    named
}

pub fn table(tries: usize, promises: &mut Promises) {
    println!("### A node is 10 % slower than in good nights\n");
    println!(
        "In % of {tries} nights: none is slower and one is named; one sends less and is named; one sends and receives less \
         and is named.\n"
    );
    promises::head(
        "| noise | good nights | 16 nodes: none | sends | both | 64 nodes: none | sends | both |",
    );
    for (&noise, good) in Noise::ALL.iter().flat_map(|noise| [1, 3, 7].map(|good| (noise, good))) {
        let setups: Vec<Setup> = [16, 64]
            .into_iter()
            .flat_map(|nodes| [0, 1, 2].map(|slower| Setup { noise, nodes, good, slower }))
            .collect();
        let counts = each(&setups, |setup| {
            let nights = (0..tries as u64).map(|number| named(setup, SEED + number));
            nights.fold((0, 0), |(owns, others), (own, other)| {
                (owns + usize::from(own), others + usize::from(other))
            })
        });
        let cells = setups.iter().zip(&counts).map(|(setup, (own, others))| {
            // What is told of one good night, of skewed runs and of nodes that differ, is no promise.
            if good > 1 && matches!(noise, Noise::Normal | Noise::HeavyTails) {
                promises.at_most(&format!("others of {setup:?}"), *others, tries, 0.02);
                if setup.slower > 0 {
                    promises.at_least(&format!("{setup:?}"), *own, tries, 0.95);
                }
            }
            let count = if setup.slower > 0 { own } else { others };
            format!("{:.1}", 100.0 * *count as f64 / tries as f64)
        });
        println!("| {noise} | {good} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    println!();
}
