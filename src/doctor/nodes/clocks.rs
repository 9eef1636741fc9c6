//! Clocks of many nodes against each other and against this machine's.

use crate::doctor::peer::{FAR_NS, WHY_CLOCK, milliseconds};
use protocol::clock_offset::ClockOffset;
use protocol::finding::{Finding, State};

use super::spread::named;

/// Clocks that are off, each with the numbers of the nodes: those far from the middle one of all nodes, and this
/// machine's where it is far from that.
pub(super) fn findings(
    names: &[String],
    offsets: &[Option<ClockOffset>],
) -> Vec<(Vec<usize>, Finding)> {
    let mut known: Vec<i128> = offsets.iter().flatten().map(|it| it.offset_ns).collect();
    known.sort_unstable();
    let Some(&middle_ns) = known.get(known.len() / 2) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (number, offset) in offsets.iter().enumerate() {
        let Some(offset) = offset else { continue };
        let away_ns = offset.offset_ns - middle_ns;
        if is_far(away_ns, offset.uncertainty_ns) {
            let others = if known.len() == 2 { "the other's" } else { "most others'" };
            let found = format!(
                "{}'s clock is {} {others}, ±{}",
                named(names, &[number]),
                distance(away_ns),
                milliseconds(offset.uncertainty_ns as f64),
            );
            findings.push((vec![number], finding(found)));
        }
    }
    let middle = offsets.iter().flatten().find(|offset| offset.offset_ns == middle_ns);
    if let Some(middle) = middle
        && is_far(middle_ns, middle.uncertainty_ns)
    {
        let found = format!("this machine's clock is {} the nodes'", distance(-middle_ns));
        findings.push((Vec::new(), finding(found)));
    }
    findings
}

fn is_far(away_ns: i128, uncertainty_ns: u64) -> bool {
    away_ns.abs() - i128::from(uncertainty_ns) >= FAR_NS
}

/// `1.5 s ahead of`.
fn distance(away_ns: i128) -> String {
    let side = if away_ns < 0 { "behind" } else { "ahead of" };
    format!("{} {side}", milliseconds(away_ns.unsigned_abs() as f64))
}

fn finding(found: String) -> Finding {
    Finding::new("clock", State::Warning, found, WHY_CLOCK)
        .remedy("sudo timedatectl set-ntp true, at both")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(offsets_s: &[f64]) -> Vec<String> {
        let names: Vec<String> = (0..offsets_s.len()).map(|it| format!("n{it}")).collect();
        let offsets: Vec<_> = offsets_s
            .iter()
            .map(|seconds| {
                (!seconds.is_nan()).then_some(ClockOffset {
                    offset_ns: (seconds * 1e9) as i128,
                    uncertainty_ns: 200_000,
                })
            })
            .collect();
        findings(&names, &offsets).into_iter().map(|(_, finding)| finding.found).collect()
    }

    #[test]
    fn a_clock_far_from_most_is_named() {
        let told = "n2's clock is 3599.9 s ahead of most others', ±0.20 ms";
        assert_eq!(found(&[0.1, -0.2, 3600.0, 0.0]), [told]);
        assert!(found(&[0.4, -0.4, f64::NAN, 0.9]).is_empty());
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn this_machine_may_be_the_one_that_is_off() {
        let told = "this machine's clock is 5.0 s ahead of the nodes'";
        assert_eq!(found(&[-5.0, -5.0, -5.0]), [told]);
    }
}
