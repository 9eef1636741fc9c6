//! Synthetic comparisons with perftest: pairs in turns whose noise and true ratio are known, looked at as the program does.

use fastrand::Rng;
use statistics::{InterimAnalyses, Turn, Verdict, goes_first, ratio_in_turns, verdict};

use super::noise::Noise;

/// What a comparison is made of.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub noise: Noise,
    /// Spread of one program's figure.
    pub spread: f64,
    /// The true ratio, as a change: -0.05 for 5 % slower.
    pub change: f64,
    /// What going first is worth.
    pub order: f64,
    /// Least pairs, and most.
    pub pairs: (u32, u32),
}

/// How much does not matter: bandwidth's.
pub const MARGIN: f64 = 0.03;

/// Adds pairs until it is clear: the word, and the pairs that it took.
pub fn compare(setup: &Setup, rng: &mut Rng) -> (Verdict, u32) {
    let looks = InterimAnalyses::planned(setup.pairs.0, setup.pairs.1);
    let mut turns = Vec::new();
    let mut before = 0.0;
    let mut draw = |random: &mut Rng| {
        let own = setup.noise.draw(random);
        before = match setup.noise {
            Noise::Correlated => 0.6 * before + 0.8 * own,
            _ => own,
        };
        setup.spread * before
    };
    for pair in 1..=setup.pairs.1 {
        let new_first = goes_first(pair);
        let (first, second) = (draw(rng) + setup.order, draw(rng));
        let (base, new) = if new_first { (second, first) } else { (first, second) };
        turns.push(Turn { new_first, base: base.exp(), new: new.exp() * (1.0 + setup.change) });
        if !looks.is_due(pair, pair == setup.pairs.1) {
            continue;
        }
        let estimate = ratio_in_turns(&turns, looks.tail(pair));
        let word = estimate.map_or(Verdict::Unclear, |it| verdict(&it, MARGIN, true));
        if word != Verdict::Unclear {
            return (word, pair);
        }
    }
    (Verdict::Unclear, setup.pairs.1)
}

/// How comparisons ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended {
    pub faster: usize,
    pub equal: usize,
    pub slower: usize,
    pub pairs: u32,
}

/// Compares so many times.
pub fn compared(setup: &Setup, comparisons: usize, seed: u64) -> Ended {
    let mut rng = Rng::with_seed(seed);
    let mut ended = Ended::default();
    for _ in 0..comparisons {
        let (word, pairs) = compare(setup, &mut rng);
        ended.pairs += pairs;
        match word {
            Verdict::Better => ended.faster += 1,
            Verdict::Equal => ended.equal += 1,
            Verdict::Worse => ended.slower += 1,
            Verdict::Unclear => {}
        }
    }
    ended
}
