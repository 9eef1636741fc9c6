//! The words of what rails say. It must not know how they are compared.

use settings::listed;

use super::nodes::{figure, than};
use crate::judge::findings::SlowRail;

/// `Rail mlx5_2 is slow: 49.000 Gb/s, 50 % less than the median 98.000 Gb/s of the other 3 (CASE): look at …`.
pub(super) fn slow_rail(rail: &SlowRail) -> String {
    format!(
        "Rail {} is slow: {} {} of the other {} ({}): look at its ports, cable and PCIe slots.",
        name(rail),
        compared(rail, "the median "),
        figure(rail.metric, rail.usual),
        rail.rails.saturating_sub(1),
        rail.case
    )
}

/// `Rails differ: mlx5_1 has 70.000 Gb/s, 29 % less than the other, 98.000 Gb/s (CASE): …`.
pub(super) fn rails_differ(rail: &SlowRail) -> String {
    format!(
        "Rails differ: {} has {} {} ({}). Two rails do not show which is normal: look at both.",
        name(rail),
        compared(rail, "the other,"),
        figure(rail.metric, rail.usual),
        rail.case
    )
}

fn compared(rail: &SlowRail, what: &str) -> String {
    let value = figure(rail.metric, rail.value);
    let than = than(rail.metric, rail.value / rail.usual);
    format!("{value}, {than} {}", what.trim_end())
}

/// The rail, with its nodes where it does not have one name at both ends.
fn name(rail: &SlowRail) -> String {
    match &rail.ends[..] {
        [(_, one), (_, two)] if one == two => one.clone(),
        ends => {
            let ends: Vec<String> = ends
                .iter()
                .map(|(node, name)| format!("{name} of {node}"))
                .collect();
            listed(&ends)
        }
    }
}
