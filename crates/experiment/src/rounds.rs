//! The loop over rounds, which sides a round begins with, and when it ends.

use std::time::Duration;

use statistics::{InterimAnalyses, can_tell, goes_first};

/// When no round follows, clear or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The number of rounds after which it ends.
    pub most: u32,
    /// No round begins that would not end within this, as long as the others took.
    pub budget: Option<Duration>,
}

impl Stop {
    fn is_last(&self, round: u32, spent: Duration) -> bool {
        let no_room = self.budget.is_some_and(|budget| spent + spent / round.max(1) > budget);
        round >= self.most || no_room
    }
}

/// A round that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// Time since the first round began.
    pub spent: Duration,
    /// No other follows.
    pub is_last: bool,
}

/// Who can measure sides, by their numbers.
pub trait Measurer {
    /// Why it cannot go on.
    type Error;

    /// The sides of a round, in order: none where no side is open any more. A base is side 0.
    fn order(&mut self, round: u32) -> Vec<usize> {
        turn(round).to_vec()
    }

    /// Measures a side.
    ///
    /// # Errors
    /// It cannot, and no round follows.
    fn measure(&mut self, side: usize, round: u32) -> Result<(), Self::Error>;

    /// Looks at what the rounds came to; whether more of them would change nothing.
    ///
    /// # Errors
    /// What they came to cannot be judged.
    fn look(&mut self, round: &Round) -> Result<bool, Self::Error>;

    /// The stop rule, which may depend on how long the first round took.
    fn stop(&self) -> Stop;

    /// Time since the first round began, by the measurer's clock.
    fn spent(&self) -> Duration {
        Duration::ZERO
    }
}

/// Measures round after round until nothing is open or the stop rule ends it.
///
/// # Errors
/// The measurer's, at once.
pub fn run<M: Measurer>(measurer: &mut M) -> Result<(), M::Error> {
    for number in 1.. {
        let order = measurer.order(number);
        if order.is_empty() {
            break;
        }
        for side in order {
            measurer.measure(side, number)?;
        }
        let spent = measurer.spent();
        let is_last = measurer.stop().is_last(number, spent);
        if measurer.look(&Round { number, spent, is_last })? || is_last {
            break;
        }
    }
    Ok(())
}

/// Base and new side in the order of a round: A B, B A, B A, A B, and so on.
pub fn turn(round: u32) -> [usize; 2] {
    if goes_first(round) { [0, 1] } else { [1, 0] }
}

/// When launches are looked at, planned after the first round of them.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchPlan {
    looks: InterimAnalyses,
    /// After this round it ends, clear or not.
    pub most: u32,
}

impl LaunchPlan {
    /// As many rounds as the first one fits into the budget, at most `most`; `None` where they are too few for a verdict.
    pub fn new(budget: Duration, first_round: Duration, most: u32) -> Option<LaunchPlan> {
        let fit = budget.as_secs_f64() / first_round.as_secs_f64().max(1e-9);
        let last = (fit as u32).min(most);
        can_tell(last as usize, last as usize, 1.0)
            .then(|| LaunchPlan { looks: InterimAnalyses::of_launches(last), most: last })
    }

    /// The part of the chance of error of a look after this round; `None` where none is due.
    pub fn look(&self, round: &Round) -> Option<f64> {
        let is_look = round.is_last || self.looks.is_due(round.number, false);
        is_look.then(|| self.looks.part(round.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Launches of so many seconds a round, the first and each other, in virtual time.
    struct Launches {
        budget: Duration,
        seconds: [u32; 2],
        spent: Duration,
        plan: Option<LaunchPlan>,
        order: Vec<usize>,
        /// Rounds after which it was looked, with their parts.
        looks: Vec<(u32, f64)>,
    }

    impl Measurer for Launches {
        /// The budget is too small.
        type Error = ();

        fn measure(&mut self, side: usize, round: u32) -> Result<(), ()> {
            self.order.push(side);
            self.spent += SECOND * self.seconds[usize::from(round > 1)] / 2;
            Ok(())
        }

        fn look(&mut self, round: &Round) -> Result<bool, ()> {
            let plan = match self.plan.take() {
                Some(plan) => plan,
                None => LaunchPlan::new(self.budget, round.spent, 40).ok_or(())?,
            };
            self.looks.extend(plan.look(round).map(|part| (round.number, part)));
            self.plan = Some(plan);
            Ok(false)
        }

        fn stop(&self) -> Stop {
            Stop { most: self.plan.as_ref().map_or(40, |it| it.most), budget: Some(self.budget) }
        }

        fn spent(&self) -> Duration {
            self.spent
        }
    }

    fn launches(budget: u32, seconds: [u32; 2]) -> Result<Launches, ()> {
        let mut launches = Launches {
            budget: SECOND * budget,
            seconds,
            spent: Duration::ZERO,
            plan: None,
            order: Vec::new(),
            looks: Vec::new(),
        };
        run(&mut launches).map(|()| launches)
    }

    #[test]
    fn looks_follow_from_the_budget_and_the_first_round() {
        let planned = [6, 11, 21, 40].map(|round| (round, 0.25)).to_vec();
        for (budget, first, other, expected) in [
            (600, 60, 60, Ok(vec![(6, 0.5), (10, 0.5)])),
            (480, 60, 60, Ok(vec![(8, 1.0)])),
            (600, 2, 2, Ok(planned)),
            (239, 60, 60, Err(())),
            // Slow rounds end it within the budget, with the part of the next look.
            (600, 60, 120, Ok(vec![(5, 0.5)])),
        ] {
            let looks = launches(budget, [first, other]).map(|it| it.looks);
            assert_eq!(looks, expected, "{budget}, {other}");
        }
        assert_eq!(launches(600, [0, 0]).unwrap().looks.len(), 4);
    }

    #[test]
    fn sides_take_turns() {
        let order = launches(480, [60, 60]).unwrap().order;
        assert_eq!(order, [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1]);
    }
}
