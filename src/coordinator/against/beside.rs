//! `--beside`: a victim alone and beside each attacker, in rounds (alone, A, B; B, A, alone; …), until it is clear for each
//! attacker at a look that was planned whether it harms the victim, or there are enough rounds.

use report::observe::Metric;
use report::observe::standing::{self, Standing};
use report::results::model::{BesideAttacker, FlowResult, HarmFactor, Run};
use statistics::{Turn, Verdict, median};

use crate::coordinator::against::looked::{self, is_new_first};
use crate::coordinator::options::Rounds;
use crate::coordinator::sweeper::{Halt, Sweeper};
use crate::plan::Case;

/// After so many rounds in a row that do not count there are no more beside an attacker.
const MOST_FAILURES: u32 = 3;

/// Case 0 of the sweep is the victim alone.
const ALONE: usize = 0;

/// Runs the rounds. What they came to is in the sweep's result, after every round.
pub(crate) fn run_cases(sweeper: &mut Sweeper<'_>, rounds: &Rounds) -> Result<(), Halt> {
    let cases = &sweeper.sweep.cases;
    let Some((alone, others)) = cases.split_first() else {
        return Ok(());
    };
    let mut all: Vec<Attacked> = others
        .iter()
        .zip(&rounds.attackers)
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
                attacked.add(alone_first, alone, beside, is_last);
            }
        }
        sweeper.outcome.result.beside = all.iter().map(|it| it.told.clone()).collect();
        done?;
    }
    Ok(())
}

/// Flows of the victim in a run: one with traffic both ways is told as two.
fn victims(alone: &Case) -> usize {
    alone.flows.iter().map(|flow| 1 + usize::from(flow.bidirectional)).sum()
}

/// The cases of a round: the victim alone at either end of it, and all attackers of which it is not clear yet.
fn order(all: &[Attacked], number: u32) -> Vec<usize> {
    let (mut order, turns): (Vec<usize>, Vec<&[Turn]>) = (ALONE + 1..)
        .zip(all)
        .filter(|(_, it)| !it.is_over())
        .map(|(index, it)| (index, &it.throughput[..]))
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
        let moved = |flows: &[FlowResult]| {
            flows
                .iter()
                .map(|flow| Metric::GbitPerS.of(run, Some(flow)).unwrap_or(0.0))
                .collect::<Vec<f64>>()
        };
        let (victim, attacker) = (moved(victims), moved(attackers));
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
            p99_ns: p99.and_then(|all| all.into_iter().reduce(f64::max)),
            attacker_gbit_per_s: attacker.iter().sum(),
        })
    }
}

/// A victim beside one attacker, so far.
struct Attacked {
    rounds: Rounds,
    told: BesideAttacker,
    /// Of the rounds that count: the victim alone over the victim beside it.
    throughput: Vec<Turn>,
    /// The same of rates that are 1 over p99, so that more is better too.
    promptness: Vec<Turn>,
    attacker_gbit_per_s: Vec<f64>,
    failures_in_a_row: u32,
    /// Why the last one did not count that did not.
    doubt: String,
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
                // Of one size throughput is the rate, of which 5 % matter.
                gbit_per_s: factor(Metric::MmsgPerS),
                p99_ns: factor(Metric::P99Ns),
                verdict: UNCLEAR.to_owned(),
                ..BesideAttacker::default()
            },
            throughput: Vec::new(),
            promptness: Vec::new(),
            attacker_gbit_per_s: Vec::new(),
            failures_in_a_row: 0,
            doubt: String::new(),
        }
    }

    /// More rounds would change nothing, or are no use.
    fn is_over(&self) -> bool {
        let is_clear = self.told.verdict != UNCLEAR;
        is_clear && self.throughput.len() >= self.rounds.least as usize
            || self.failures_in_a_row >= MOST_FAILURES
    }

    fn add(&mut self, alone_first: bool, alone: &Counted, beside: &Counted, is_last: bool) {
        let turn = |base, new| Turn { new_first: alone_first, base, new };
        self.told.rounds += 1;
        self.failures_in_a_row += 1;
        match (alone, beside) {
            (Ok(alone), Ok(beside)) => {
                let p99 = alone
                    .p99_ns
                    .zip(beside.p99_ns)
                    .map(|(alone, beside)| turn(1.0 / beside, 1.0 / alone));
                self.promptness.extend(p99);
                let gbit = turn(beside.gbit_per_s, alone.gbit_per_s);
                self.throughput.push(gbit);
                self.attacker_gbit_per_s.push(beside.attacker_gbit_per_s);
                self.failures_in_a_row = 0;
            }
            (Err(why), _) => self.doubt = format!("alone: {why}"),
            (_, Err(why)) => self.doubt.clone_from(why),
        }
        self.judge(is_last || self.failures_in_a_row >= MOST_FAILURES);
    }

    fn judge(&mut self, is_last: bool) {
        let (told, count) = (&mut self.told, self.throughput.len());
        told.attacker_gbit_per_s = median(&self.attacker_gbit_per_s);
        let rounds = &self.rounds;
        let throughput = tell(&mut told.gbit_per_s, &self.throughput, rounds, is_last);
        let p99 = tell(&mut told.p99_ns, &self.promptness, rounds, is_last);
        let of_ns = |rate: Option<f64>| rate.map(|rate| 1.0 / rate);
        (told.p99_ns.alone, told.p99_ns.beside) =
            (of_ns(told.p99_ns.alone), of_ns(told.p99_ns.beside));
        let verdict = match (throughput, p99) {
            (Verdict::Worse, _) | (_, Verdict::Worse) => Verdict::Worse,
            // A victim may be measured without latencies.
            (it, _) if self.promptness.is_empty() => it,
            (Verdict::Unclear, _) | (_, Verdict::Unclear) => Verdict::Unclear,
            (it, _) => it,
        };
        word(verdict).clone_into(&mut told.verdict);
        told.counted = u32::try_from(count).unwrap_or(u32::MAX);
        let failed = told.rounds - told.counted;
        let failed = (failed > 0)
            .then(|| format!("{failed} of {} rounds do not count: {}", told.rounds, self.doubt));
        let notes = failed
            .into_iter()
            .chain(looked::note(count, "rounds", is_last, verdict))
            .collect::<Vec<_>>()
            .join("; ");
        told.note = (!notes.is_empty()).then_some(notes);
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

fn tell(told: &mut HarmFactor, turns: &[Turn], rounds: &Rounds, is_last: bool) -> Verdict {
    let planned = (rounds.least, rounds.most);
    let looked = looked::look(turns, planned, (told.margin, false), is_last);
    told.alone = looked.estimate.map(|it| it.new_median);
    told.beside = looked.estimate.map(|it| it.base_median);
    told.factor = looked.estimate.map(|it| it.ratio);
    (told.factor_low, told.factor_high) = looked.interval.unzip();
    word(looked.verdict).clone_into(&mut told.verdict);
    looked.verdict
}

#[cfg(test)]
#[path = "beside_tests.rs"]
mod tests;
