//! `--fail-victim`: whether an attacker harms a victim more than it may, for the exit code and the last lines.

use report::results::model::{BesideAttacker, HarmFactor};
use report::show::beside::factor_text;

/// What a limit makes of factors, in words.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Harm {
    /// Those that are for sure above it, and attackers of which nothing is known.
    pub(super) failing: Vec<String>,
    /// Those that may be above it.
    pub(super) unclear: Vec<String>,
}

/// Holds all factors against a limit.
pub(super) fn harm(all: &[BesideAttacker], limit: f64) -> Harm {
    let mut harm = Harm::default();
    for told in all {
        // A victim may be measured without latencies.
        if told.gbit_per_s.factor.is_none() {
            harm.failing.push(format!("{}: not known", told.attacker));
        }
        for (what, factor) in told.factors() {
            let Some(text) = factor_text(factor) else {
                continue;
            };
            let text = format!("{}: {what} is {text} times worse", told.attacker);
            match is_above(factor, limit) {
                Some(true) => harm.failing.push(text),
                Some(false) => {}
                None => harm.unclear.push(text),
            }
        }
    }
    harm
}

/// Whether a factor is above a limit for sure; `None` where it may be.
fn is_above(factor: &HarmFactor, limit: f64) -> Option<bool> {
    match (factor.factor_low?, factor.factor_high?) {
        (low, _) if low > limit => Some(true),
        (_, high) if high <= limit => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(attacker: &str, gbit: Option<(f64, f64)>, p99: Option<(f64, f64)>) -> BesideAttacker {
        let factor = |ends: Option<(f64, f64)>| HarmFactor {
            factor: ends.map(|(low, high)| f64::midpoint(low, high)),
            factor_low: ends.map(|it| it.0),
            factor_high: ends.map(|it| it.1),
            ..HarmFactor::default()
        };
        BesideAttacker {
            attacker: attacker.to_owned(),
            gbit_per_s: factor(gbit),
            p99_ns: factor(p99),
            ..BesideAttacker::default()
        }
    }

    #[test]
    fn only_what_is_proven_or_not_known_fails() {
        let mut few = told("few", Some((3.0, 3.0)), None);
        (few.gbit_per_s.factor_low, few.gbit_per_s.factor_high) = (None, None);
        let all = [
            told("a", Some((1.0, 1.5)), Some((1.6, 1.8))),
            told("b", Some((1.4, 1.6)), None),
            told("c", None, None),
            few,
        ];
        let harm = harm(&all, 1.5);
        let failing = ["a: p99 is 1.70 [1.60, 1.80] times worse", "c: not known"];
        let unclear = [
            "b: throughput is 1.50 [1.40, 1.60] times worse",
            "few: throughput is 3.00 times worse",
        ];
        assert_eq!(harm.failing, failing);
        assert_eq!(harm.unclear, unclear);
    }
}
