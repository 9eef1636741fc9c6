//! `--beside`: a victim alone and beside each attacker, in rounds (alone, A, B; B, A, alone; …), until it is clear for each
//! attacker at a look that was planned whether it harms the victim, or there are enough rounds.

use plan::Case;
use report::observe::Metric;
use report::observe::standing::{self, Standing};
use results::model::{BesideAttacker, FlowResult, HarmFactor, Run};
use statistics::{
    FEWEST_PAIRS, InterimAnalyses, RatioEstimate, Turn, Verdict, goes_first, median,
    ratio_in_turns, verdict,
};

use super::interface::Rounds;
use super::sweeper::{StopReason, Sweeper};

/// After so many rounds in a row that do not count there are no more beside an attacker.
const MOST_FAILURES: u32 = 3;

/// Case 0 of the sweep is the victim alone.
const ALONE: usize = 0;

/// Runs the rounds. What they came to is in the sweep's result, after every round.
pub(crate) fn run_cases(sweeper: &mut Sweeper<'_>, rounds: &Rounds) -> Result<(), StopReason> {
    let cases = &sweeper.sweep.cases;
    let Some((alone, others)) = cases.split_first() else {
        return Ok(());
    };
    let mut comparisons: Vec<Attacked> = others
        .iter()
        .zip(&rounds.attackers)
        .map(|(case, name)| Attacked::new(rounds, name, alone, case))
        .collect();
    for number in 1..=rounds.most {
        let order = order(&comparisons, number);
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
            figures[index] = run.map(|run| Figures::from_run(run, victims(alone)));
        }
        let is_last = done.is_err() || number == rounds.most;
        let alone_first = order.first() == Some(&ALONE);
        for (attacked, beside) in comparisons.iter_mut().zip(&figures[ALONE + 1..]) {
            if let (Some(own), Some(beside)) = (&figures[ALONE], beside) {
                attacked.add(alone_first, own, beside, is_last);
            }
        }
        sweeper.outcome.result.beside = comparisons.iter().map(|it| it.report.clone()).collect();
        done?;
    }
    Ok(())
}

/// Flows of the victim in a run: one with traffic both ways is told as two.
fn victims(alone: &Case) -> usize {
    alone.flows.iter().map(|flow| 1 + usize::from(flow.bidirectional)).sum()
}

/// The cases of a round: the victim alone at either end of it, and all attackers of which it is not clear yet.
fn order(attacked: &[Attacked], number: u32) -> Vec<usize> {
    let (mut order, turns): (Vec<usize>, Vec<&[Turn]>) = (ALONE + 1..)
        .zip(attacked)
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
    fn from_run(run: &Run, victims: usize) -> Counted {
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

/// A victim beside one attacker, so far.
struct Attacked {
    rounds: Rounds,
    report: BesideAttacker,
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
        Attacked {
            rounds: rounds.clone(),
            report: BesideAttacker {
                attacker: name.to_owned(),
                alone: alone.id.clone(),
                beside: beside.id.clone(),
                // Of one size throughput is the rate, of which 5 % matter.
                gbit_per_s: unclear_factor(Metric::MmsgPerS),
                p99_ns: unclear_factor(Metric::P99Ns),
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
        let is_clear = self.report.verdict != UNCLEAR;
        is_clear && self.throughput.len() >= self.rounds.least as usize
            || self.failures_in_a_row >= MOST_FAILURES
    }

    fn add(&mut self, alone_first: bool, alone: &Counted, beside: &Counted, is_last: bool) {
        self.report.rounds += 1;
        self.failures_in_a_row += 1;
        match (alone, beside) {
            (Ok(alone), Ok(beside)) => {
                self.promptness.extend(alone.p99_ns.zip(beside.p99_ns).map(|(alone, beside)| {
                    Turn { new_first: alone_first, base: 1.0 / beside, new: 1.0 / alone }
                }));
                self.throughput.push(Turn {
                    new_first: alone_first,
                    base: beside.gbit_per_s,
                    new: alone.gbit_per_s,
                });
                self.attacker_gbit_per_s.push(beside.attacker_gbit_per_s);
                self.failures_in_a_row = 0;
            }
            (Err(why), _) => self.doubt = format!("alone: {why}"),
            (_, Err(why)) => self.doubt.clone_from(why),
        }
        self.judge(is_last || self.failures_in_a_row >= MOST_FAILURES);
    }

    fn judge(&mut self, is_last: bool) {
        let (report, count) = (&mut self.report, self.throughput.len());
        report.attacker_gbit_per_s = median(&self.attacker_gbit_per_s);
        let rounds = &self.rounds;
        let throughput = fill(&mut report.gbit_per_s, &self.throughput, rounds, is_last);
        let p99 = fill(&mut report.p99_ns, &self.promptness, rounds, is_last);
        for rate in [&mut report.p99_ns.alone, &mut report.p99_ns.beside] {
            *rate = rate.map(|rate| 1.0 / rate);
        }
        let verdict = match (throughput, p99) {
            (Verdict::Worse, _) | (_, Verdict::Worse) => Verdict::Worse,
            // A victim may be measured without latencies.
            (throughput, _) if self.promptness.is_empty() => throughput,
            (Verdict::Unclear, _) | (_, Verdict::Unclear) => Verdict::Unclear,
            (throughput, _) => throughput,
        };
        word(verdict).clone_into(&mut report.verdict);
        report.counted = u32::try_from(count).unwrap_or(u32::MAX);
        let mut notes = Vec::new();
        let failed = report.rounds - report.counted;
        if failed > 0 {
            notes
                .push(format!("{failed} of {} rounds do not count: {}", report.rounds, self.doubt));
        }
        notes.extend(verdict_note(count, "rounds", is_last, verdict));
        report.note = (!notes.is_empty()).then(|| notes.join("; "));
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

fn unclear_factor(metric: Metric) -> HarmFactor {
    HarmFactor {
        margin: metric.default_margin(),
        verdict: UNCLEAR.to_owned(),
        ..HarmFactor::default()
    }
}

/// Fills in a factor by the turns so far.
fn fill(factor: &mut HarmFactor, turns: &[Turn], rounds: &Rounds, is_last: bool) -> Verdict {
    let planned = (rounds.least, rounds.most);
    let result = interim_result(turns, planned, (factor.margin, false), is_last);
    factor.alone = result.estimate.map(|it| it.new_median);
    factor.beside = result.estimate.map(|it| it.base_median);
    factor.factor = result.estimate.map(|it| it.ratio);
    (factor.factor_low, factor.factor_high) = result.interval.unzip();
    word(result.verdict).clone_into(&mut factor.verdict);
    result.verdict
}

/// What pairs say so far.
pub(super) struct InterimResult {
    /// The new figure over the base.
    pub(super) estimate: Option<RatioEstimate>,
    /// Of the ratio. Few pairs have none: it would be everything. Between looks it is that of the next one.
    pub(super) interval: Option<(f64, f64)>,
    /// Unclear between the looks that are planned.
    pub(super) verdict: Verdict,
}

/// Looks at the pairs that count, of so many at least and at most; `is_last` where no other comes. A metric is how much
/// of it does not matter, and whether more is better.
pub(super) fn interim_result(
    turns: &[Turn],
    (least, most): (u32, u32),
    (margin, higher_is_better): (f64, bool),
    is_last: bool,
) -> InterimResult {
    let count = u32::try_from(turns.len()).unwrap_or(u32::MAX);
    let looks = InterimAnalyses::planned(least, most);
    let estimate = ratio_in_turns(turns, looks.tail(count));
    let interval = estimate.filter(|it| it.low > 0.0 && it.high.is_finite());
    let verdict = estimate
        .filter(|_| looks.is_due(count, is_last))
        .map(|it| verdict(&it, margin, higher_is_better));
    InterimResult {
        estimate,
        interval: interval.map(|it| (it.low, it.high)),
        verdict: verdict.unwrap_or(Verdict::Unclear),
    }
}

/// Whether the new one is first in the next pair: of those that count half begin with either, also where others failed.
pub(super) fn is_new_first(turns: &[Turn], number: u32) -> bool {
    let new = turns.iter().filter(|turn| turn.new_first).count();
    match (2 * new).cmp(&turns.len()) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Greater => false,
        std::cmp::Ordering::Equal => goes_first(number),
    }
}

/// What is to be known of a verdict after so many `pairs` that count.
pub(super) fn verdict_note(
    count: usize,
    pairs: &str,
    is_last: bool,
    verdict: Verdict,
) -> Option<String> {
    if count < FEWEST_PAIRS as usize {
        return Some(format!("a verdict needs at least {FEWEST_PAIRS} {pairs}"));
    }
    let is_open = is_last && verdict == Verdict::Unclear;
    is_open.then(|| format!("{count} {pairs} did not settle it"))
}

#[cfg(test)]
#[path = "beside_tests.rs"]
mod tests;
