//! The ways in which runs could have been dealt to the two sides: all of them where there are few, else a sample. It
//! must not know what was measured in them.

use std::collections::HashMap;
use std::rc::Rc;

use fastrand::Rng;

/// So many deals are looked at where there are more in all, that which was made among them.
const DRAWN: usize = 1_000;

/// Where the drawing starts, so that the same figures always give the same answer.
const SEED: u64 = 0x0715_2026;

/// Deals of runs to two sides, that which was made first. Runs of the base have the numbers before those of the new side.
#[derive(Clone, Debug)]
pub(super) struct Deals {
    /// Runs that a deal gives to the new side.
    new: usize,
    /// Those runs, deal after deal.
    runs: Vec<u32>,
}

impl Deals {
    /// All deals, or a sample of them.
    pub(super) fn of(base: usize, new: usize) -> Deals {
        if count(base, new) <= DRAWN as f64 {
            Deals::all(base, new)
        } else {
            Deals::drawn(base, new, 0)
        }
    }

    fn all(base: usize, new: usize) -> Deals {
        // Downwards from the deal that was made, which has the last runs.
        let mut deal: Vec<u32> = (base as u32..(base + new) as u32).collect();
        let mut runs = deal.clone();
        // The first that can go down does, and those before it go up as far as they can.
        while let Some(place) = (0..new).find(|place| deal[*place] > *place as u32) {
            deal[place] -= 1;
            for before in (0..place).rev() {
                deal[before] = deal[before + 1] - 1;
            }
            runs.extend(&deal);
        }
        Deals { new, runs }
    }

    /// A sample; each `stream` has its own.
    pub(super) fn drawn(base: usize, new: usize, stream: u64) -> Deals {
        let mut rng = Rng::with_seed(SEED ^ stream);
        let mut order: Vec<u32> = (0..(base + new) as u32).collect();
        let mut runs: Vec<u32> = order[base..].to_vec();
        runs.reserve(new * (DRAWN - 1));
        for _ in 1..DRAWN {
            for place in 0..new {
                let other = rng.usize(place..order.len());
                order.swap(place, other);
            }
            runs.extend(&order[..new]);
        }
        Deals { new, runs }
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len() / self.new.max(1)
    }

    /// The new side's runs in each.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.runs.chunks_exact(self.new.max(1))
    }
}

/// In how many ways runs can be dealt to two sides of these sizes.
pub(super) fn count(base: usize, new: usize) -> f64 {
    (1..=base).fold(1.0, |ways, k| ways * (new + k) as f64 / k as f64)
}

/// Runs on each side without which no test can come out at this level.
pub(super) fn runs_for(level: f64) -> usize {
    (1..).find(|runs| count(*runs, *runs) * level >= 1.0).unwrap_or(usize::MAX)
}

/// Deals by the sizes of the sides, each made once.
#[derive(Debug, Default)]
pub(super) struct DealsBySize(HashMap<(usize, usize), Rc<Deals>>);

impl DealsBySize {
    pub(super) fn of(&mut self, base: usize, new: usize) -> Rc<Deals> {
        let deals = self.0.entry((base, new));
        Rc::clone(deals.or_insert_with(|| Rc::new(Deals::of(base, new))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_deals_are_there_once_and_the_one_that_was_made_is_first() {
        for (base, new) in [(1, 1), (2, 3), (5, 5), (6, 3)] {
            let deals = Deals::of(base, new);
            let mut all: Vec<Vec<u32>> = deals.iter().map(<[u32]>::to_vec).collect();
            let made: Vec<u32> = (base as u32..(base + new) as u32).collect();
            assert_eq!(all[0], made);
            assert!(all.iter().all(|deal| deal.is_sorted_by(|a, b| a < b)));
            all.sort();
            all.dedup();
            let counts = (all.len(), deals.len());
            assert_eq!(counts, (count(base, new) as usize, all.len()));
        }
        assert_eq!(count(5, 5) as u64, 252);
        assert_eq!((runs_for(0.025), runs_for(0.005)), (4, 5));
    }

    #[test]
    fn a_sample_deals_every_run_equally_often() {
        let deals = Deals::of(10, 12);
        assert_eq!(deals.len(), DRAWN);
        let mut dealt = [0; 22];
        for deal in deals.iter() {
            let mut runs = deal.to_vec();
            runs.sort_unstable();
            runs.dedup();
            assert_eq!(runs.len(), 12);
            runs.iter().for_each(|run| dealt[*run as usize] += 1);
        }
        let is_usual = |times| (470..620).contains(times);
        assert!(dealt.iter().all(is_usual), "{dealt:?}");
    }
}
