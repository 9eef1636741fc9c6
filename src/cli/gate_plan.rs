//! How many rounds a gate has, when it is looked whether it is clear, and which side is first in a round. It must not
//! know what is launched.

use std::time::Duration;

use statistics::{LEAST_OBSERVATIONS, Looks};

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
    pub(super) looks: Looks,
    /// Rounds, at most.
    pub(super) last: u32,
    budget: Duration,
}

/// A look at the results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    /// The part of the chance of error that it has.
    pub(super) part: f64,
    /// No round follows.
    pub(super) is_last: bool,
}

impl Plan {
    /// As many rounds as the first one fits into the budget, at most `most`; the number that fits where it is too few for
    /// a verdict.
    pub(super) fn new(budget: Duration, first_round: Duration, most: u32) -> Result<Plan, u32> {
        let fit = budget.as_secs_f64() / first_round.as_secs_f64().max(1e-9);
        let last = (fit as u32).min(most);
        if (last as usize) < LEAST_OBSERVATIONS {
            return Err(last);
        }
        Ok(Plan {
            looks: Looks::of_launches(last),
            last,
            budget,
        })
    }

    /// What follows `rounds` that have taken so long: a look, or `None`, another round.
    pub(super) fn after(&self, rounds: u32, spent: Duration) -> Option<Look> {
        let no_room = spent + spent / rounds.max(1) > self.budget;
        let is_last = rounds >= self.last || no_room;
        let part = self.looks.part(rounds);
        let is_look = is_last || self.looks.is_look(rounds, false);
        is_look.then_some(Look { part, is_last })
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

    /// Rounds of so many seconds each, until there is no other: those after which it was looked, with their parts.
    fn looks(budget: u32, seconds: &[u32]) -> Result<Vec<(u32, f64)>, u32> {
        let plan = Plan::new(SECOND * budget, SECOND * seconds[0], 40)?;
        let (mut spent, mut found) = (Duration::ZERO, Vec::new());
        for (round, length) in (1..).zip(seconds.iter().chain(seconds.last()).cycle()) {
            spent += SECOND * *length;
            let Some(look) = plan.after(round, spent) else {
                continue;
            };
            found.push((round, look.part));
            if look.is_last {
                break;
            }
        }
        Ok(found)
    }

    #[test]
    fn looks_follow_from_the_budget_and_the_first_round() {
        assert_eq!(looks(600, &[60]), Ok(vec![(6, 0.5), (10, 0.5)]));
        assert_eq!(looks(480, &[60]), Ok(vec![(8, 1.0)]));
        let quarter = |round| (round, 0.25);
        let all = [6, 11, 21, 40].map(quarter).to_vec();
        assert_eq!(looks(600, &[1]), Ok(all));
        assert_eq!(looks(600, &[0]).map(|it| it.len()), Ok(4));
        assert_eq!(looks(100, &[60]), Err(1));
        assert_eq!(looks(179, &[60]), Err(2));
    }

    #[test]
    fn slow_rounds_end_it_within_the_budget_with_the_part_of_the_next_look() {
        // Ten were planned; later ones take twice as long.
        let slow = [60, 120, 120, 120, 120, 120, 120, 120, 120, 120];
        assert_eq!(looks(600, &slow), Ok(vec![(5, 0.5)]));
    }
}
