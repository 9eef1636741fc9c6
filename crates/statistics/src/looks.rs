//! When to look whether what is added to until it is clear is clear, chosen beforehand: whoever looks more often finds
//! more by chance. Each look has its part of the chance of error (Bonferroni). It must not know what is looked at.

use super::asked::LEAST_OBSERVATIONS;

/// Fewer pairs decide nothing: four that begin with the one and four with the other can be dealt in 70 ways.
pub const FEWEST_PAIRS: u32 = 8;

/// Chance of error on either side of pairs, all looks together. At most 5 % are promised on both, and are to hold in a
/// count of 1,000 comparisons too.
const TAIL: f64 = 0.02;

/// The part of it that the first look has. Most comparisons end there, and 8 pairs tell nothing with less.
const PART_OF_FIRST_LOOK: f64 = 0.72;

/// Launches a side at the first look: six and six can be dealt in 924 ways, enough for a quarter of what a metric over
/// all cases has.
const FIRST_LAUNCHES: u32 = 6;

/// Looks at launches. A fifth of what a metric over all cases has is less than one deal of a sample.
const MOST_LOOKS: u32 = 4;

/// How many times as many launches there are at a look as at the one before it, at least.
const GROWTH: f64 = 1.5;

/// After how many it is looked, and the part of the chance of error that each look has.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    /// In order.
    planned: Vec<u32>,
    /// Before so many there is no look.
    fewest: u32,
    part_of_first: f64,
}

impl Looks {
    /// Looks after `first` pairs, after `last`, and once between; all are even.
    pub fn planned(first: u32, last: u32) -> Looks {
        let first = first.max(FEWEST_PAIRS);
        let middle = u32::midpoint(first, last).next_multiple_of(2);
        let mut planned = vec![first, middle, last - last % 2];
        planned.retain(|pairs| (first..=last).contains(pairs));
        planned.dedup();
        Looks {
            planned,
            fewest: FEWEST_PAIRS,
            part_of_first: PART_OF_FIRST_LOOK,
        }
    }

    /// Looks at launches of which there are at most `last` a side: the further apart, the more there are, all with the
    /// same part.
    pub fn of_launches(last: u32) -> Looks {
        let times = f64::from(last) / f64::from(FIRST_LAUNCHES);
        let steps = (times.ln() / GROWTH.ln()).clamp(0.0, f64::from(MOST_LOOKS - 1)) as u32;
        let before_last = (0..steps).map(|step| {
            let part = f64::from(step) / f64::from(steps);
            (f64::from(FIRST_LAUNCHES) * times.powf(part)).round() as u32
        });
        Looks {
            planned: before_last.chain([last]).collect(),
            fewest: LEAST_OBSERVATIONS as u32,
            part_of_first: 1.0 / f64::from(steps + 1),
        }
    }

    /// The first of them.
    pub fn first(&self) -> u32 {
        self.planned.first().copied().unwrap_or(self.fewest)
    }

    /// Whether it is looked after so many. The end is a look whenever it comes, but not before the fewest.
    pub fn is_look(&self, count: u32, is_last: bool) -> bool {
        count >= self.fewest && (is_last || self.planned.contains(&count))
    }

    /// The part of the chance of error that a look after so many has: that of the next one that was planned.
    pub fn part(&self, count: u32) -> f64 {
        let next = self.planned.iter().position(|look| *look >= count);
        match (next, self.planned.len()) {
            (_, 0 | 1) => 1.0,
            (Some(0), _) => self.part_of_first,
            (_, looks) => (1.0 - self.part_of_first) / (looks - 1) as f64,
        }
    }

    /// Chance of error on either side that a look after so many pairs has.
    pub fn tail(&self, pairs: u32) -> f64 {
        TAIL * self.part(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many of `last` it is looked, and the parts of all looks together.
    fn all(looks: &Looks, last: u32) -> (Vec<u32>, f64) {
        let counts = (1..=last).filter(|count| looks.is_look(*count, false));
        let counts: Vec<u32> = counts.collect();
        let parts = counts.iter().map(|count| looks.part(*count)).sum();
        (counts, parts)
    }

    #[test]
    fn looks_at_pairs_are_planned_and_share_the_chance_of_error() {
        let looks = Looks::planned(8, 24);
        let (planned, parts) = all(&looks, 24);
        assert_eq!(planned, [8, 16, 24]);
        assert!((parts - 1.0).abs() < 1e-12);
        assert!(looks.is_look(10, true) && !looks.is_look(6, true));
        assert_eq!(looks.tail(10), looks.tail(16));
        assert_eq!(Looks::planned(12, 12).tail(12), TAIL);
        assert!(!Looks::planned(2, 6).is_look(6, true));
        let early = Looks::planned(2, 24);
        assert!(!early.is_look(2, false) && early.is_look(8, false));
    }

    #[test]
    fn looks_at_launches_are_few_and_share_it_alike() {
        for (last, expected) in [
            (3, vec![3]),
            (8, vec![8]),
            (9, vec![6, 9]),
            (14, vec![6, 9, 14]),
            (40, vec![6, 11, 21, 40]),
            (1_000, vec![6, 33, 182, 1_000]),
        ] {
            let looks = Looks::of_launches(last);
            let (planned, parts) = all(&looks, last);
            assert_eq!((looks.first(), &planned), (expected[0], &expected));
            assert!((parts - 1.0).abs() < 1e-12, "{last}: {parts}");
        }
        let looks = Looks::of_launches(40);
        assert!(looks.is_look(25, true) && !looks.is_look(2, true));
        assert_eq!(looks.part(25), 0.25);
    }
}
