//! `--quick`: pairs in short rounds, then further rounds of what looks slow. Which settings it takes where none are
//! given, what it cannot have, and how many rounds there are at most.

use settings::{Given, Pattern, Settings};

use crate::matrix::ROUND;
use crate::sweep::Case;
use crate::sweep::PlanError;
use crate::sweep::Sweep;

/// Settings of quick rounds, unless others are given: enough QPs to fill a link, and windows that are enough for a rate.
const USUAL: [(&str, &str); 4] =
    [("pattern", "pairs"), ("qps", "4"), ("duration", "200ms"), ("warmup", "200ms")];

/// Further rounds that there may be, of few nodes and of many.
const FURTHER: [usize; 2] = [16, 128];

/// These settings, and the usual ones where none are given.
#[must_use]
pub fn with_usual(given: Given) -> Given {
    with(given, &USUAL)
}

/// These settings, and those of a mode where none are given.
pub(crate) fn with(mut given: Given, usual: &[(&str, &str)]) -> Given {
    let is_counted = given.has("iters");
    for &(flag, text) in usual {
        let is_open = !(given.has(flag) || flag == "duration" && is_counted);
        if let Some(row) = Settings::row(flag).filter(|_| is_open) {
            // It is what the row takes.
            given.set(row, text).unwrap_or_default();
        }
    }
    given
}

/// Checks that there are rounds, and that it is left to them how often a flow is measured.
///
/// # Errors
/// The first setting that does not fit.
pub fn check(sweep: &Sweep) -> Result<(), PlanError> {
    if rounds(&sweep.cases).is_empty() {
        return refused("pattern", "it needs the rounds of pairs");
    }
    if sweep.runs() > 1 {
        return refused("runs", "it decides itself how often a flow is measured");
    }
    if sweep.cases.iter().any(Case::has_shares) {
        return refused("rate", "a further round has no closed loop to be a share of");
    }
    Ok(())
}

fn refused(flag: &'static str, why: &'static str) -> Result<(), PlanError> {
    Err(PlanError::NotWithMode { flag, mode: "quick", why })
}

/// The rounds of pairs, those with equal settings together.
pub fn rounds(cases: &[Case]) -> Vec<Vec<&Case>> {
    let mut groups: Vec<Vec<&Case>> = Vec::new();
    for case in cases.iter().filter(|case| case.pattern == Some(Pattern::Pairs)) {
        match groups.last_mut() {
            Some(group) if group[0].settings == case.settings => group.push(case),
            _ => groups.push(vec![case]),
        }
    }
    groups
}

/// The name of a further round, which goes on with their numbers.
pub fn further_id(rounds: &[&Case], number: usize) -> String {
    let first = rounds.first().map_or("", |case| &case.id);
    let of_all = first.rfind(ROUND).map_or(first, |at| &first[..at]);
    format!("{of_all}{ROUND}{number}")
}

/// How many further rounds there are at most after so many.
pub fn most_further(rounds: usize) -> usize {
    rounds.clamp(FURTHER[0], FURTHER[1])
}

/// How many further rounds these cases have at most.
pub fn most_of(cases: &[Case]) -> usize {
    rounds(cases).into_iter().map(|group| most_further(group.len())).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Nodes;
    use results::sample::has;

    fn sweep(nodes: u32, given: &[(&str, &str)]) -> Sweep {
        let given = with_usual(given.iter().copied().collect());
        Sweep::with_flows(&given, &[], Nodes::Local(nodes)).unwrap()
    }

    /// Set-up and steps of a round of 64 nodes take 0.15 s on the null library (docs/dev/performance.md), and a real
    /// network is given four times as much.
    #[test]
    fn sixty_four_nodes_take_less_than_five_minutes_with_all_rounds_that_there_may_be() {
        let sweep = sweep(64, &[]);
        check(&sweep).unwrap();
        assert_eq!((sweep.cases.len(), most_of(&sweep.cases)), (126, 126));
        let windows = sweep.longest(1).unwrap() * 2;
        assert_eq!(windows, Duration::from_millis(252 * 400));
        let besides = Duration::from_millis(600) * 252;
        assert!(windows + besides < Duration::from_secs(5 * 60));
    }

    #[test]
    fn what_is_given_stays_and_what_does_not_fit_is_refused() {
        let several = sweep(4, &[("pattern", "ring,pairs"), ("qps", "1,2")]);
        check(&several).unwrap();
        assert_eq!((rounds(&several.cases).len(), most_of(&several.cases)), (2, 32));
        for (flag, text) in [("pattern", "ring"), ("runs", "2"), ("rate", "50%")] {
            let error = check(&sweep(4, &[(flag, text)])).unwrap_err();
            assert_eq!(error.flag(), flag);
            has(error.to_string(), ["--quick"]);
            assert!(!error.hint().is_empty());
        }
    }
}
