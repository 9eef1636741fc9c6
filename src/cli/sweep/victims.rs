//! `--fail-victim`: whether an attacker harms a victim more than it may, for the exit code and the last lines.

use report::show::in_turns::factor_text;
use results::model::BesideAttacker;

/// What is surely above a limit or could not be measured, and what may be above it, in words.
pub(in crate::cli) fn harm(attackers: &[BesideAttacker], limit: f64) -> [Vec<String>; 2] {
    let (mut failing, mut unclear) = (Vec::new(), Vec::new());
    for attacker in attackers {
        // A victim may be measured without latencies.
        if attacker.gbit_per_s.factor.is_none() {
            failing.push(format!("{}: could not be measured", attacker.attacker));
        }
        for (what, factor) in [("throughput", &attacker.gbit_per_s), ("p99", &attacker.p99_ns)] {
            let Some(text) = factor_text(factor) else {
                continue;
            };
            let text = format!("{}: {what} is {text} times worse", attacker.attacker);
            match (factor.factor_low, factor.factor_high) {
                (Some(low), _) if low > limit => failing.push(text),
                (_, Some(high)) if high <= limit => {}
                _ => unclear.push(text),
            }
        }
    }
    [failing, unclear]
}

#[cfg(test)]
mod tests {
    use results::model::HarmFactor;

    use super::*;

    #[test]
    fn only_what_is_proven_or_not_known_fails() {
        let told = |attacker: &str, [gbit, p99]: [(f64, f64); 2]| {
            let factor = |(low, high): (f64, f64)| HarmFactor {
                factor: (high > 0.0).then_some(high),
                factor_low: (low > 0.0).then_some(low),
                factor_high: (low > 0.0).then_some(high),
                ..HarmFactor::default()
            };
            BesideAttacker {
                attacker: attacker.to_owned(),
                gbit_per_s: factor(gbit),
                p99_ns: factor(p99),
                ..BesideAttacker::default()
            }
        };
        let none = (0.0, 0.0);
        let all = [
            told("a", [(1.0, 1.5), (1.6, 1.8)]),
            told("b", [(1.4, 1.6), none]),
            told("c", [none; 2]),
            told("few", [(0.0, 3.0), none]),
        ];
        let failing = ["a: p99 is 1.80 [1.60, 1.80] times worse", "c: could not be measured"];
        let may = [
            "b: throughput is 1.60 [1.40, 1.60] times worse",
            "few: throughput is 3.00 times worse",
        ];
        assert_eq!(harm(&all, 1.5), [failing, may].map(|all| all.map(str::to_owned).to_vec()));
    }
}
