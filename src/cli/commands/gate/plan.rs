//! How many rounds a gate has, when it is looked whether it is clear, and which side is first in a round.

use std::time::Duration;

use statistics::{InterimAnalyses, LEAST_OBSERVATIONS};

/// The places of base and new in the order of a round: A B, B A, and so on.
pub(super) fn order(round: u32) -> [usize; 2] {
    match round % 2 {
        1 => [0, 1],
        _ => [1, 0],
    }
}

/// A plan, made after the first round.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    looks: InterimAnalyses,
    /// Rounds, at most.
    pub(super) last: u32,
    budget: Duration,
}

impl Plan {
    /// As many rounds as the first one fits into the budget, at most `most`; `None` where they are too few for a verdict.
    pub(super) fn new(budget: Duration, first_round: Duration, most: u32) -> Option<Plan> {
        let fit = budget.as_secs_f64() / first_round.as_secs_f64().max(1e-9);
        let last = (fit as u32).min(most);
        (last as usize >= LEAST_OBSERVATIONS).then(|| Plan {
            looks: InterimAnalyses::of_launches(last),
            last,
            budget,
        })
    }

    /// What follows `rounds` that have taken so long: a look with this part of the chance of error, and whether no round
    /// follows it; or `None`, another round.
    pub(super) fn after(&self, rounds: u32, spent: Duration) -> Option<(f64, bool)> {
        let no_room = spent + spent / rounds.max(1) > self.budget;
        let is_last = rounds >= self.last || no_room;
        let is_look = is_last || self.looks.is_due(rounds, false);
        is_look.then(|| (self.looks.part(rounds), is_last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn sides_take_turns() {
        let all: Vec<usize> = (1..=4).flat_map(order).collect();
        assert_eq!(all, [0, 1, 1, 0, 0, 1, 1, 0]);
    }

    /// Rounds of so many seconds, the first and each other, until there is no other: those after which it was looked, with
    /// their parts.
    fn looks(budget: u32, first: u32, other: u32) -> Option<Vec<(u32, f64)>> {
        let mut spent = SECOND * first;
        let plan = Plan::new(SECOND * budget, spent, 40)?;
        let mut found = Vec::new();
        for round in 1.. {
            let look = plan.after(round, spent);
            found.extend(look.map(|(part, _)| (round, part)));
            if look.is_some_and(|(_, is_last)| is_last) {
                break;
            }
            spent += SECOND * other;
        }
        Some(found)
    }

    #[test]
    fn looks_follow_from_the_budget_and_the_first_round() {
        let all = [6, 11, 21, 40].map(|round| (round, 0.25)).to_vec();
        for (budget, first, other, expected) in [
            (600, 60, 60, Some(vec![(6, 0.5), (10, 0.5)])),
            (480, 60, 60, Some(vec![(8, 1.0)])),
            (600, 1, 1, Some(all)),
            (179, 60, 60, None),
            // Slow rounds end it within the budget, with the part of the next look.
            (600, 60, 120, Some(vec![(5, 0.5)])),
        ] {
            assert_eq!(looks(budget, first, other), expected, "{budget}, {other}");
        }
        assert_eq!(looks(600, 0, 0).map(|it| it.len()), Some(4));
    }
}
