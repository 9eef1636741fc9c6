//! `--beside`: a victim alone and beside each attacker, in rounds (alone, A, B; B, A, alone; …), until it is clear for each
//! attacker at a look that was planned whether it harms the victim, or there are enough rounds.

use std::sync::Arc;

use experiment::{Bench, InTurns, Measured, Question, Stop};
use plan::Case;
use report::observe::standing::{self, Standing};
use results::Metric;
use results::model::{CaseComparison, FlowResult, Run};
use statistics::median;

use super::interface::Rounds;
use super::sweeper::{StopReason, Sweeper};

/// Case 0 of the sweep is the victim alone.
const ALONE: usize = 0;

/// Runs the rounds. What they came to is in the sweep's result, after every round.
pub(crate) fn run_cases(sweeper: &mut Sweeper<'_>, rounds: &Rounds) -> Result<(), StopReason> {
    let sweep = Arc::clone(&sweeper.sweep);
    let Some((alone, others)) = sweep.cases.split_first() else {
        return Ok(());
    };
    // Of one size throughput is the rate, of which 5 % matter.
    let margin = Metric::MmsgPerS.default_margin();
    let questions =
        vec![Question { margin, ..Question::new(Metric::GbitPerS) }, Question::new(Metric::P99Ns)];
    let comparisons = others.iter().zip(&rounds.attackers).map(|(case, attacker)| CaseComparison {
        id: case.id.clone(),
        sides: ["alone".to_owned(), format!("beside {attacker}")],
        ..CaseComparison::default()
    });
    let stop = Stop { most: rounds.most, budget: None };
    let mut in_turns = InTurns::new(comparisons, questions, rounds.least, stop);
    let attacked = vec![Vec::new(); others.len()];
    in_turns.run(&mut Victim { sweeper, alone, least: rounds.least, attacked })
}

/// A victim that is run alone and beside attackers.
struct Victim<'a, 'b> {
    sweeper: &'a mut Sweeper<'b>,
    alone: &'a Case,
    least: u32,
    /// Throughput of each attacker, in Gb/s, round by round.
    attacked: Vec<Vec<f64>>,
}

impl Bench for Victim<'_, '_> {
    type Error = StopReason;

    fn measure(&mut self, side: usize, round: u32) -> Result<Measured, StopReason> {
        let sweep = Arc::clone(&self.sweeper.sweep);
        let case = &sweep.cases[side];
        self.sweeper.run(side, case, round, self.least.max(round))?;
        let run = self.sweeper.outcome.result.cases.get(side).and_then(|result| result.runs.last());
        let figures = match run {
            Some(run) => Figures::from_run(run, victims(self.alone)),
            None => Err("there was no run".to_owned()),
        };
        Ok(match figures {
            Ok(figures) => {
                if let Some(attacked) = side.checked_sub(1).and_then(|it| self.attacked.get_mut(it))
                {
                    attacked.push(figures.attacker_gbit_per_s);
                }
                let of_victim = vec![Some(figures.gbit_per_s), figures.p99_ns];
                Measured { figures: of_victim, ..Measured::default() }
            }
            Err(why) if side == ALONE => {
                Measured { doubt: Some(format!("alone: {why}")), ..Measured::default() }
            }
            Err(why) => Measured { doubt: Some(why), ..Measured::default() },
        })
    }

    fn words(&self, error: &StopReason) -> String {
        error.words().to_owned()
    }

    /// Cases are recorded in their order.
    fn leader(&self, round: u32) -> Option<usize> {
        (round == 1).then_some(ALONE)
    }

    fn remark(&self, side: usize) -> Option<String> {
        let of_attacker = median(self.attacked.get(side.checked_sub(1)?)?)?;
        Some(format!("the attacker moved {}", Metric::GbitPerS.text(of_attacker)))
    }

    fn publish(&mut self, side: usize, comparison: &CaseComparison) {
        let sweep = Arc::clone(&self.sweeper.sweep);
        let case = &sweep.cases[side];
        self.sweeper.publish(case, comparison.clone());
    }
}

/// Flows of the victim in a run: one with traffic both ways is told as two.
fn victims(alone: &Case) -> usize {
    alone.flows.iter().map(|flow| 1 + usize::from(flow.bidirectional)).sum()
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    gbit_per_s: f64,
    p99_ns: Option<f64>,
    /// 0 where there is no attacker.
    attacker_gbit_per_s: f64,
}

impl Figures {
    /// Of a run whose first flows are the victim's.
    fn from_run(run: &Run, victims: usize) -> Result<Figures, String> {
        let (victims, attackers) = run.flows.split_at(victims.min(run.flows.len()));
        for flow in victims {
            match standing::of_flow(run, flow) {
                Standing::Counts => {}
                Standing::Bad(why) => return Err(format!("the run {why}")),
                other => return Err(other.words().to_owned()),
            }
        }
        let (victim, attacker) = (rates(run, victims), rates(run, attackers));
        for (rates, what) in [(&victim, "victim"), (&attacker, "attacker")] {
            if rates.contains(&0.0) {
                return Err(format!("the {what} moved nothing"));
            }
        }
        let p99 = victims
            .iter()
            .map(|flow| Metric::P99Ns.of(run, Some(flow)))
            .collect::<Option<Vec<f64>>>();
        Ok(Figures {
            gbit_per_s: victim.iter().sum(),
            p99_ns: p99.and_then(|of_flows| of_flows.into_iter().reduce(f64::max)),
            attacker_gbit_per_s: attacker.iter().sum(),
        })
    }
}

/// Gbit/s of each flow, 0 of one without.
fn rates(run: &Run, flows: &[FlowResult]) -> Vec<f64> {
    flows.iter().map(|flow| Metric::GbitPerS.of(run, Some(flow)).unwrap_or(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_victims_flows_and_both_must_move() {
        let flow = |gbit_per_s| {
            let mut flow = FlowResult::default();
            flow.totals.gbit_per_s = Some(gbit_per_s);
            flow
        };
        let mut run =
            Run { complete: true, flows: [2.0, 3.0, 4.0].map(flow).to_vec(), ..Run::default() };
        let counted = Figures::from_run(&run, 2).unwrap();
        assert_eq!((counted.gbit_per_s, counted.attacker_gbit_per_s), (5.0, 4.0));
        run.flows[2] = flow(0.0);
        let why = |it: &Run| Figures::from_run(it, 2).unwrap_err();
        assert_eq!(why(&run), "the attacker moved nothing");
        run.complete = false;
        assert_eq!(why(&run), "the run is not complete");
    }
}
