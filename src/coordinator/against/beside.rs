//! `--beside`: a victim alone and beside each attacker, in rounds (alone, A, B; B, A, alone; …), until it is clear for each
//! attacker at a look that was planned whether it harms the victim, or there are enough rounds.

use report::observe::Metric;
use report::observe::standing::{self, Standing};
use report::results::model::{BesideAttacker, BesideRound, HarmFactor, Run};
use statistics::{Turn, Verdict, median};

use crate::coordinator::against::looked::{self, Asked, is_new_first};
use crate::coordinator::options::Rounds;
use crate::coordinator::sweeper::{Halt, Sweeper};
use crate::plan::Case;

/// After so many rounds in a row that do not count there are no more beside an attacker.
const MOST_FAILURES: u32 = 3;

/// Case 0 of the sweep is the victim alone.
const ALONE: usize = 0;

/// Runs the rounds. What they came to is in the sweep's result, after every round.
///
/// # Errors
/// The sweep cannot go on.
pub(crate) fn run_cases(sweeper: &mut Sweeper<'_>, rounds: &Rounds) -> Result<(), Halt> {
    let cases = &sweeper.options.sweep.cases;
    let Some((alone, others)) = cases.split_first() else {
        return Ok(());
    };
    let named = others.iter().zip(&rounds.attackers);
    let mut all: Vec<Attacked> = named
        .map(|(case, name)| Attacked::new(rounds, name, alone, case))
        .collect();
    for number in 1..=rounds.most {
        let order = order(&all, number);
        if order.is_empty() {
            break;
        }
        let mut figures: Vec<Option<Counted>> = vec![None; cases.len()];
        let mut done = Ok(());
        for &index in &order {
            let runs = rounds.least.max(number);
            done = sweeper.run(index, &cases[index], number, runs).map(drop);
            if done.is_err() {
                break;
            }
            let case = sweeper.outcome.result.cases.get(index);
            let run = case.and_then(|case| case.runs.last());
            figures[index] = run.map(|run| Figures::of(run, victims(alone)));
        }
        let is_last = done.is_err() || number == rounds.most;
        let alone_first = order.first() == Some(&ALONE);
        for (attacked, beside) in all.iter_mut().zip(&figures[ALONE + 1..]) {
            if let (Some(alone), Some(beside)) = (&figures[ALONE], beside) {
                attacked.add((number, alone_first), alone, beside, is_last);
            }
        }
        let told = all.iter().map(|it| it.told.clone());
        sweeper.outcome.result.beside = told.collect();
        done?;
    }
    Ok(())
}

/// Flows of the victim in a run: one with traffic both ways is told as two.
fn victims(alone: &Case) -> usize {
    let directions = alone.flows.iter();
    directions
        .map(|flow| 1 + usize::from(flow.bidirectional))
        .sum()
}

/// The cases of a round: the victim alone at either end of it, and all attackers of which it is not clear yet.
fn order(all: &[Attacked], number: u32) -> Vec<usize> {
    let open = (ALONE + 1..).zip(all).filter(|(_, it)| !it.is_over());
    let (mut order, turns): (Vec<usize>, Vec<Vec<Turn>>) = open
        .map(|(index, it)| (index, it.turns(Figures::throughput)))
        .unzip();
    if order.is_empty() {
        return order;
    }
    order.insert(0, ALONE);
    if !is_new_first(&turns.concat(), number) {
        order.reverse();
    }
    order
}

/// Figures of a run, or why they do not count.
type Counted = Result<Figures, String>;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    gbit_per_s: f64,
    p99_ns: Option<f64>,
    /// 0 where there is no attacker.
    attacker_gbit_per_s: f64,
}

impl Figures {
    /// Of a run whose first flows are the victim's.
    fn of(run: &Run, victims: usize) -> Counted {
        let (victims, attackers) = run.flows.split_at(victims.min(run.flows.len()));
        for flow in victims {
            match standing::of_flow(run, flow) {
                Standing::Counts => {}
                Standing::Bad(why) => return Err(format!("the run {why}")),
                other => return Err(other.words().to_owned()),
            }
        }
        let figure = |metric: Metric| victims.iter().map(move |it| metric.of(run, Some(it)));
        let gbit: Option<f64> = figure(Metric::GbitPerS).sum();
        let p99 = figure(Metric::P99Ns).collect::<Option<Vec<f64>>>();
        let attackers = attackers.iter();
        let moved = attackers.map(|it| Metric::GbitPerS.of(run, Some(it)).unwrap_or(0.0));
        let moved: Vec<f64> = moved.collect();
        if moved.contains(&0.0) {
            return Err("the attacker moved nothing".to_owned());
        }
        Ok(Figures {
            gbit_per_s: gbit
                .filter(|it| *it > 0.0)
                .ok_or("the victim moved nothing")?,
            p99_ns: p99.and_then(|all| all.into_iter().reduce(f64::max)),
            attacker_gbit_per_s: moved.iter().sum(),
        })
    }

    fn throughput(&self) -> Option<f64> {
        Some(self.gbit_per_s)
    }

    /// As a rate, of which more is better.
    fn promptness(&self) -> Option<f64> {
        Some(1.0 / self.p99_ns?)
    }
}

/// A victim beside one attacker, so far.
struct Attacked {
    rounds: Rounds,
    told: BesideAttacker,
    /// Of the rounds that count: whether the victim was alone first, its figures alone, and beside the attacker.
    pairs: Vec<(bool, Figures, Figures)>,
    failures_in_a_row: u32,
}

impl Attacked {
    fn new(rounds: &Rounds, name: &str, alone: &Case, beside: &Case) -> Attacked {
        let factor = |metric: Metric| HarmFactor {
            margin: metric.default_margin(),
            verdict: UNCLEAR.to_owned(),
            ..HarmFactor::default()
        };
        Attacked {
            rounds: rounds.clone(),
            told: BesideAttacker {
                attacker: name.to_owned(),
                alone: alone.id.clone(),
                beside: beside.id.clone(),
                // Of one size the rate is the throughput, and 5 % of it matter.
                gbit_per_s: factor(Metric::MmsgPerS),
                p99_ns: factor(Metric::P99Ns),
                verdict: UNCLEAR.to_owned(),
                ..BesideAttacker::default()
            },
            pairs: Vec::new(),
            failures_in_a_row: 0,
        }
    }

    /// More rounds would change nothing, or are no use.
    fn is_over(&self) -> bool {
        let is_clear = self.told.verdict != UNCLEAR;
        is_clear && self.pairs.len() >= self.rounds.least as usize
            || self.failures_in_a_row >= MOST_FAILURES
    }

    /// The victim alone over the victim beside it, by a figure of which more is better.
    fn turns(&self, figure: fn(&Figures) -> Option<f64>) -> Vec<Turn> {
        let pairs = self
            .pairs
            .iter()
            .filter_map(|(alone_first, alone, beside)| {
                Some(Turn {
                    new_first: *alone_first,
                    base: figure(beside)?,
                    new: figure(alone)?,
                })
            });
        pairs.collect()
    }

    fn add(
        &mut self,
        (number, alone_first): (u32, bool),
        alone: &Counted,
        beside: &Counted,
        is_last: bool,
    ) {
        let mut round = BesideRound {
            run: number,
            first: if alone_first { "alone" } else { "beside" }.to_owned(),
            doubt: None,
        };
        match (alone, beside) {
            (Ok(alone), Ok(beside)) => {
                self.pairs.push((alone_first, *alone, *beside));
                self.failures_in_a_row = 0;
            }
            (Err(why), _) => round.doubt = Some(format!("alone: {why}")),
            (_, Err(why)) => round.doubt = Some(why.clone()),
        }
        self.failures_in_a_row += u32::from(round.doubt.is_some());
        self.told.rounds.push(round);
        self.judge(is_last || self.failures_in_a_row >= MOST_FAILURES);
    }

    fn judge(&mut self, is_last: bool) {
        let moved = self.pairs.iter().map(|it| it.2.attacker_gbit_per_s);
        self.told.attacker_gbit_per_s = median(&moved.collect::<Vec<_>>());
        let (gbit, p99) = (
            self.turns(Figures::throughput),
            self.turns(Figures::promptness),
        );
        let has_p99 = !p99.is_empty();
        let told = &mut self.told;
        let gbit = tell(&mut told.gbit_per_s, &gbit, &self.rounds, is_last, |it| it);
        let p99 = tell(&mut told.p99_ns, &p99, &self.rounds, is_last, |it| 1.0 / it);
        let all = if has_p99 { vec![gbit, p99] } else { vec![gbit] };
        let all = if all.contains(&Verdict::Worse) {
            Verdict::Worse
        } else if all.contains(&Verdict::Unclear) {
            Verdict::Unclear
        } else {
            Verdict::Equal
        };
        word(all).clone_into(&mut told.verdict);
        let (count, rounds) = (self.pairs.len(), told.rounds.len());
        let mut notes = Vec::new();
        if count < rounds {
            let why = told.rounds.iter().find_map(|it| it.doubt.clone());
            let why = why.unwrap_or_default();
            notes.push(format!(
                "{} of {rounds} rounds do not count: {why}",
                rounds - count
            ));
        }
        notes.extend(looked::note(count, is_last, all).map(|it| it.replace("pairs", "rounds")));
        told.note = (!notes.is_empty()).then(|| notes.join("; "));
    }
}

const UNCLEAR: &str = "unclear";

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "harmed",
        Verdict::Equal | Verdict::Better => "not harmed",
        Verdict::Unclear => UNCLEAR,
    }
}

/// Tells a factor; `figure` makes of a turn's figure that of the result.
fn tell(
    told: &mut HarmFactor,
    turns: &[Turn],
    rounds: &Rounds,
    is_last: bool,
    figure: fn(f64) -> f64,
) -> Verdict {
    let asked = Asked {
        pairs: rounds.least,
        max_pairs: rounds.most,
        margin: told.margin,
        higher_is_better: false,
    };
    let looked = looked::look(turns, asked, is_last);
    told.alone = looked.estimate.map(|it| figure(it.new_median));
    told.beside = looked.estimate.map(|it| figure(it.base_median));
    told.factor = looked.estimate.map(|it| it.ratio);
    (told.factor_low, told.factor_high) = looked.interval.unzip();
    word(looked.verdict).clone_into(&mut told.verdict);
    looked.verdict
}

#[cfg(test)]
#[path = "beside_tests.rs"]
mod tests;
