//! The size of the message at each position of a QP's ring. Both ends compute it from the flow alone.
//!
//! A position keeps its size for the whole run, since its WR is built once. Sizes by weight are dealt along the ring of
//! the first QP, then on along that of the next, so that the shares are right over all QPs.

use std::sync::Arc;

use settings::Settings;

use super::Geometry;

/// The sizes of a flow's messages.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// In bytes, in the order in which they are dealt, until it repeats.
    order: Arc<[u32]>,
    ring: u32,
}

impl Sizes {
    pub fn of(flow: &Settings) -> Sizes {
        let order = match &flow.size_mix {
            Some(mix) => mix.order().into(),
            None => [flow.size_bytes].into(),
        };
        Sizes { order, ring: Geometry::of(flow).ring() }
    }

    /// Whether messages differ in size.
    pub fn is_mixed(&self) -> bool {
        self.order.len() > 1
    }

    /// The size of the message at a position of a QP's ring, in bytes.
    pub fn at(&self, qp: u32, position: u32) -> u32 {
        let dealt = u64::from(qp) * u64::from(self.ring) + u64::from(position);
        let place = dealt % self.order.len().max(1) as u64;
        self.order.get(place as usize).copied().unwrap_or(0)
    }

    /// Bytes of the messages at `count` positions from `first`.
    pub fn sum(&self, qp: u32, first: u32, count: u32) -> u64 {
        (first..first + count).map(|position| u64::from(self.at(qp, position))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Over all positions of all QPs each size has its share, but for less than one turn.
        #[test]
        fn shares_are_right_over_all_qps(weights in proptest::collection::vec(1u32..20, 2..6), qps in 1u32..20, depth in 1u32..70) {
            let mix: Vec<String> = (1..).zip(&weights).map(|(bytes, weight)| format!("{bytes}:{weight}")).collect();
            let flow = Settings {
                size_mix: mix.join(",").parse().ok(),
                qps,
                tx_depth: depth,
                signal_every: 1,
                ..Settings::default()
            };
            let sizes = Sizes::of(&flow);
            prop_assert!(sizes.is_mixed());
            let sum: u32 = weights.iter().sum();
            let positions = qps * depth;
            for (bytes, weight) in (1..).zip(&weights) {
                let count = (0..qps)
                    .flat_map(|qp| (0..depth).map(move |position| (qp, position)))
                    .filter(|(qp, position)| sizes.at(*qp, *position) == bytes)
                    .count() as f64;
                let share = f64::from(positions) * f64::from(*weight) / f64::from(sum);
                prop_assert!((count - share).abs() < 2.0, "{} of {}, not {}", count, positions, share);
            }
            let all: u64 = (0..qps).map(|qp| sizes.sum(qp, 0, depth)).sum();
            let one_by_one: u64 = (0..positions).map(|k| u64::from(sizes.at(k / depth, k % depth))).sum();
            prop_assert_eq!(all, one_by_one);
        }
    }

    #[test]
    fn one_size_is_that_of_all() {
        let sizes = Sizes::of(&Settings::default());
        assert!(!sizes.is_mixed());
        assert_eq!((sizes.at(7, 3), sizes.sum(7, 3, 2)), (65_536, 131_072));
    }
}
