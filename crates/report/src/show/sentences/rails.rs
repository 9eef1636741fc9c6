//! Sentences about rails.

use settings::listed;

use super::nodes::{figure, than};
use crate::judge::findings::SlowRail;
use results::model::{CLIENT, SERVER};

/// `Rail mlx5_2 is slow: 49.000 Gb/s, 50 % less than the median 98.000 Gb/s of the other 3 (CASE): look at …`.
pub(super) fn slow_rail(rail: &SlowRail) -> String {
    let [name, value, than, usual] = parts(rail);
    let (others, case) = (rail.rails.saturating_sub(1), &rail.case);
    format!(
        "Rail {name} is slow: {value}, {than} the median {usual} of the other {others} ({case}): look at its ports, \
         cable and PCIe slots."
    )
}

/// `Rails differ: mlx5_1 has 70.000 Gb/s, 29 % less than the other, 98.000 Gb/s (CASE). Two …`.
pub(super) fn rails_differ(rail: &SlowRail) -> String {
    let [name, value, than, usual] = parts(rail);
    let case = &rail.case;
    format!(
        "Rails differ: {name} has {value}, {than} the other, {usual} ({case}). Two rails do not show which is normal: look \
         at both."
    )
}

/// Its name, its figure, how that compares with the usual one, and the usual one.
fn parts(rail: &SlowRail) -> [String; 4] {
    let [value, usual] = [rail.value, rail.usual].map(|it| figure(rail.metric, it));
    [name(rail), value, than(rail.metric, rail.value / rail.usual), usual]
}

/// The rail, with its nodes where they are others than client and server, or call it differently.
fn name(rail: &SlowRail) -> String {
    match &rail.ends[..] {
        [(node, one), (_, two)] if one == two && [CLIENT, SERVER].contains(&&**node) => one.clone(),
        ends => {
            let ends: Vec<String> =
                ends.iter().map(|(node, name)| format!("{name} of {node}")).collect();
            listed(&ends)
        }
    }
}
