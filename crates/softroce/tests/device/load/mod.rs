//! Transfers between ends on a network in memory, without a model: many QPs, many senders, marks, losses.

mod corks;
mod crowd;
mod faults;
mod incast;
mod losses;
mod read_order;

use crate::support::end::{End, Plan};

/// Ends that are connected, of which each has faults of its own.
fn pair_with(plan: &Plan, faults: [&str; 2]) -> (End, End) {
    let [a, b] =
        faults.map(|faults| End::new(&Plan { faults: faults.parse().unwrap(), ..plan.clone() }));
    a.connect(&b);
    b.connect(&a);
    (a, b)
}
