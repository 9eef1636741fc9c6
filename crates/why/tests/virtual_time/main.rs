//! `why` in virtual time, over real queue pairs of the embedded device on a network in memory: what it names where a cause is
//! planted. `examples/confusion` prints the whole table.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod confusion;
mod laboratory;
mod plants;
mod traffic;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use confusion::Counts;
use plants::{PLANTS, Truth};

/// Cases of each plant: as many as take a minute on two cores.
const CASES: u64 = 200;

#[test]
fn what_is_planted_is_named_and_nothing_else() {
    let next = AtomicUsize::new(0);
    // Each of two threads takes the next plant until none is left.
    let take_plants = || -> Vec<(usize, Counts)> {
        let places = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let plants = places.map_while(|place| Some((place, PLANTS.get(place)?)));
        plants.map(|(place, plant)| (place, Counts::new(plant, 0..CASES, 0.03))).collect()
    };
    let mut counted = thread::scope(|scope| {
        let other = scope.spawn(take_plants);
        [take_plants(), other.join().unwrap()].concat()
    });
    counted.sort_by_key(|(place, _)| *place);
    let of_causes = || counted.iter().filter(|(place, _)| PLANTS[*place].truth() == Truth::Cause);
    let sum = |count: fn(&Counts) -> u32| of_causes().map(|(_, it)| count(it)).sum::<u32>();
    let [right, wrong, diagnoses] =
        [sum(Counts::right), sum(|it| it.wrong), sum(|it| it.diagnoses)];
    assert!(right * 100 >= diagnoses * 95, "{right} of {diagnoses} right: {counted:#?}");
    assert!(wrong * 100 <= diagnoses, "{wrong} of {diagnoses} wrong: {counted:#?}");
    for (place, counts) in &counted {
        let name = PLANTS[*place].name;
        assert!(counts.right() * 100 >= counts.diagnoses * 90, "{name}: {counts:#?}");
        if PLANTS[*place].truth() != Truth::Cause {
            assert!(counts.wrong * 100 <= counts.diagnoses, "{name}: {counts:#?}");
        }
    }
}
