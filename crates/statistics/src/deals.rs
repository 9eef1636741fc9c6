//! Deals: the ways in which launches could have been dealt to the two sides, all of them where there are few, else a sample;
//! and how far chance sets any of many figures apart in them. A launch is dealt with all its figures, so that figures which
//! go up and down together count as one (Westfall and Young 1993).

use std::collections::HashMap;

use fastrand::Rng;

use super::distributions::winsorise;

/// So many deals are looked at where there are more in all, the real one among them.
const DRAWN: usize = 1_000;

/// Where the drawing starts, so that the same figures always give the same answer.
const SEED: u64 = 0x0715_2026;

/// Deals of launches to two sides, the real one first. Launches of the base have the numbers before those of the new side.
#[derive(Clone, Debug)]
pub(super) struct Deals {
    /// Launches that the new side gets.
    new: usize,
    /// Launches of both sides.
    launches: usize,
    /// Deal after deal: all launches, those of the new side first.
    orders: Vec<u32>,
}

impl Deals {
    /// All deals, or a sample of them.
    pub(super) fn new(base: usize, new: usize) -> Deals {
        if count(base, new) <= DRAWN as f64 {
            Deals::complete(base, new)
        } else {
            Deals::drawn(base, new)
        }
    }

    fn complete(base: usize, new: usize) -> Deals {
        let launches = base + new;
        // Downwards from the real deal, which has the last launches.
        let mut deal: Vec<u32> = (base as u32..launches as u32).collect();
        let mut orders = Vec::new();
        loop {
            orders.extend(&deal);
            orders.extend((0..launches as u32).filter(|launch| !deal.contains(launch)));
            // The first that can go down does, and those before it go up as far as they can.
            let Some(place) = (0..new).find(|place| deal[*place] > *place as u32) else {
                return Deals { new, launches, orders };
            };
            deal[place] -= 1;
            for before in (0..place).rev() {
                deal[before] = deal[before + 1] - 1;
            }
        }
    }

    fn drawn(base: usize, new: usize) -> Deals {
        let mut rng = Rng::with_seed(SEED);
        let launches = base + new;
        let mut order: Vec<u32> = (base as u32..launches as u32).chain(0..base as u32).collect();
        let mut orders = order.clone();
        for _ in 1..DRAWN {
            rng.shuffle(&mut order);
            orders.extend(&order);
        }
        Deals { new, launches, orders }
    }

    pub(super) fn len(&self) -> usize {
        self.orders.len() / self.launches.max(1)
    }

    /// What the new side gets in each.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.orders().map(|order| &order[..self.new])
    }

    fn orders(&self) -> impl Iterator<Item = &[u32]> {
        self.orders.chunks_exact(self.launches.max(1))
    }
}

/// In how many ways launches can be dealt to two sides of these sizes.
pub(super) fn count(base: usize, new: usize) -> f64 {
    (1..=base).fold(1.0, |ways, k| ways * (new + k) as f64 / k as f64)
}

/// The least chance of error that a test in both directions can have. Where the sides have the same size, each deal has its
/// opposite, which sets them apart as far.
pub(super) fn least_chance(base: usize, new: usize) -> f64 {
    f64::from(1 + u8::from(base == new)) / count(base, new)
}

/// Launches on each side without which no test can come out at this level.
pub(super) fn launches_for(level: f64) -> usize {
    (1..).find(|launches| least_chance(*launches, *launches) <= level).unwrap_or(usize::MAX)
}

/// Deals by the sizes of the sides, each made once.
#[derive(Debug, Default)]
pub(super) struct DealsBySize(HashMap<(usize, usize), Deals>);

impl DealsBySize {
    pub(super) fn get(&mut self, base: usize, new: usize) -> &Deals {
        self.0.entry((base, new)).or_insert_with(|| Deals::new(base, new))
    }
}

/// This part of a figure's margin is added to its scatter, so that figures which by luck hardly scatter do not pass for
/// differences (after Tusher and others 2001).
const WIDENING: f64 = 0.25;

/// Statistics that differ by less are the same figures added in another order.
const ROUNDING: f64 = 1e-9;

/// Which run of a side a figure is of. Figures of several runs of a launch count as the launch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// Number of the launch on its side.
    pub launch: usize,
    /// Number of the run in it; `None` for the launch as a whole.
    pub run: Option<u32>,
}

/// One figure on both sides.
#[derive(Clone, Debug)]
pub(super) struct Series<'a> {
    /// Which runs it is of: those of the base, those of the new side.
    units: [&'a [Unit]; 2],
    /// Winsorised logarithms about their mean, those of the base first.
    scores: Vec<f64>,
    squares: f64,
    /// Added to the standard error.
    widening: f64,
}

impl<'a> Series<'a> {
    /// `margin` is what does not matter, on the scale of the logarithms.
    pub(super) fn new(units: [&'a [Unit]; 2], logs: [&[f64]; 2], margin: f64) -> Series<'a> {
        let mut scores = logs.concat();
        winsorise(&mut scores);
        let centre = scores.iter().sum::<f64>() / scores.len() as f64;
        scores.iter_mut().for_each(|score| *score -= centre);
        let squares = scores.iter().map(|score| score * score).sum();
        Series { units, scores, squares, widening: WIDENING * margin }
    }

    /// How far the new side really lies above the base, in widened standard errors, and such an error.
    pub(super) fn statistic(&self) -> (f64, f64) {
        let (shift, error) = self.shift(self.scores.iter().skip(self.units[0].len()).sum());
        (shift / error, error)
    }

    /// Difference of the means and its widened standard error where the new side's scores have this sum.
    fn shift(&self, sum: f64) -> (f64, f64) {
        let inverses: f64 = self.units.iter().map(|side| 1.0 / side.len() as f64).sum();
        let within = (self.squares - sum * sum * inverses).max(0.0);
        let degrees = self.scores.len() as f64 - 2.0;
        (sum * inverses, (within / degrees * inverses).sqrt() + self.widening)
    }
}

/// How far chance sets figures apart that are asked about together.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    /// Each deal's largest statistic in either direction, the largest first.
    largest: Vec<f64>,
}

impl Chance {
    /// Deals all launches of these figures. A figure that some launches lack is dealt in the same order without them.
    pub(super) fn new(series: &[&Series<'_>]) -> Chance {
        let [base, new] = [0, 1].map(|side| {
            let mut units: Vec<Unit> =
                series.iter().flat_map(|one| one.units[side]).copied().collect();
            units.sort_unstable();
            units.dedup();
            units
        });
        let count = base.len() + new.len();
        let deals = if series.iter().all(|one| one.scores.len() == count) {
            Deals::new(base.len(), new.len())
        } else {
            Deals::drawn(base.len(), new.len())
        };
        let mut largest = vec![0.0_f64; deals.len()];
        for one in series {
            let mut scores = vec![None; count];
            let of_base = one.units[0].iter().map(|unit| base.binary_search(unit));
            let of_new = one.units[1].iter().map(|unit| Ok(base.len() + new.binary_search(unit)?));
            for (place, score) in of_base.chain(of_new).flatten().zip(&one.scores) {
                scores[place] = Some(*score);
            }
            let dealt = one.units[1].len();
            for (order, most) in deals.orders().zip(&mut largest) {
                let in_order = order.iter().filter_map(|number| scores[*number as usize]);
                let (shift, error) = one.shift(in_order.take(dealt).sum());
                *most = most.max((shift / error).abs());
            }
        }
        largest.sort_unstable_by(|one, other| other.total_cmp(one));
        Chance { largest }
    }

    /// Probability that chance sets any of the figures apart so far.
    pub(super) fn p(&self, statistic: f64) -> f64 {
        let least = statistic.abs() * (1.0 - ROUNDING);
        self.largest.partition_point(|most| *most >= least) as f64 / self.largest.len() as f64
    }

    /// The statistic that chance reaches with this probability.
    pub(super) fn reached(&self, level: f64) -> f64 {
        let beyond = (level * self.largest.len() as f64) as usize;
        self.largest.get(beyond.saturating_sub(1)).copied().unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_deals_are_there_once_and_the_real_one_is_first() {
        for (base, new) in [(1, 1), (2, 3), (5, 5), (6, 3)] {
            let deals = Deals::new(base, new);
            let mut found: Vec<Vec<u32>> = deals.iter().map(<[u32]>::to_vec).collect();
            let real: Vec<u32> = (base as u32..(base + new) as u32).collect();
            assert_eq!(found[0], real);
            assert!(found.iter().all(|deal| deal.is_sorted_by(|a, b| a < b)));
            found.sort();
            found.dedup();
            let counts = (found.len(), deals.len());
            assert_eq!(counts, (count(base, new) as usize, found.len()));
        }
        assert_eq!(count(5, 5) as u64, 252);
        assert_eq!((launches_for(0.05), launches_for(0.01)), (4, 5));
    }

    #[test]
    fn a_sample_deals_every_launch_equally_often() {
        let deals = Deals::new(10, 12);
        assert_eq!(deals.len(), DRAWN);
        let mut dealt = [0; 22];
        for deal in deals.iter() {
            let mut launches = deal.to_vec();
            launches.sort_unstable();
            launches.dedup();
            assert_eq!(launches.len(), 12);
            launches.iter().for_each(|launch| dealt[*launch as usize] += 1);
        }
        let is_usual = |times| (470..620).contains(times);
        assert!(dealt.iter().all(is_usual), "{dealt:?}");
    }
}
