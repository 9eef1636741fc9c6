//! A base and others measured in rounds, each compared with the base pair by pair.

use std::time::Duration;

use results::Metric;
use results::model::{self, CaseComparison, MetricComparison, Observation, Verdict};
use statistics::{InterimAnalyses, Turn, goes_first};

use crate::judge::judge_in_turns;
use crate::rounds::{Measurer, Round, Stop, run};

/// After so many rounds in a row that do not count there are no more of a side.
const MOST_FAILURES: u32 = 3;

const BASE: usize = 0;

/// Whether a figure of a side differs from the base's.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub metric: Metric,
    /// The flow that it is of; empty of all together.
    pub flow: String,
    /// What does not matter: 0.03 is 3 %.
    pub margin: f64,
}

impl Question {
    /// Of all flows together, with the margin that is usual.
    pub fn new(metric: Metric) -> Question {
        Question { metric, flow: String::new(), margin: metric.default_margin() }
    }
}

/// What a side came to in a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// A figure for each question; `None` where there is none. Nothing where it came to no figure.
    pub figures: Vec<Option<f64>>,
    pub failure: Option<String>,
    /// Why its figures are in doubt.
    pub doubt: Option<String>,
    /// What a program printed that failed.
    pub output: Option<String>,
}

impl Measured {
    /// A side without figures, and why.
    pub fn failed(why: impl Into<String>) -> Measured {
        Measured { failure: Some(why.into()), ..Measured::default() }
    }
}

/// Who can measure the base, which is side 0, and the others.
pub trait Bench {
    /// Why no round follows.
    type Error;

    /// Measures a side; what failed of it alone is in what it came to.
    ///
    /// # Errors
    /// No round follows.
    fn measure(&mut self, side: usize, round: u32) -> Result<Measured, Self::Error>;

    /// The words for an error in the round that it ended.
    fn words(&self, error: &Self::Error) -> String;

    /// A round of a side is over: what it came to so far, beside the base.
    fn publish(&mut self, side: usize, comparison: &CaseComparison);

    /// The side that has to be the first of a round whatever its turn is.
    fn leader(&self, _round: u32) -> Option<usize> {
        None
    }

    /// What is to be known about the figures of a side.
    fn remark(&self, _side: usize) -> Option<String> {
        None
    }

    /// Time since the first round began.
    fn spent(&self) -> Duration {
        Duration::ZERO
    }
}

/// An experiment in turns: a base, others, and what is asked of each.
#[derive(Clone, Debug)]
pub struct InTurns {
    questions: Vec<Question>,
    /// Rounds of a side that have to count before it can be over.
    least: u32,
    stop: Stop,
    looks: InterimAnalyses,
    others: Vec<Other>,
}

/// A side beside the base.
#[derive(Clone, Debug)]
struct Other {
    comparison: CaseComparison,
    failures_in_a_row: u32,
}

impl InTurns {
    /// Others by their names, settings and the base's name, which nothing was measured of yet. A look comes after `least`
    /// rounds that count, the last after the most, and one between.
    pub fn new(
        others: impl IntoIterator<Item = CaseComparison>,
        questions: Vec<Question>,
        least: u32,
        stop: Stop,
    ) -> InTurns {
        InTurns {
            looks: InterimAnalyses::planned(least, stop.most),
            others: others
                .into_iter()
                .map(|comparison| Other {
                    comparison: CaseComparison {
                        observation: Observation::Round,
                        metrics: questions.iter().take(1).map(Question::unjudged).collect(),
                        ..comparison
                    },
                    failures_in_a_row: 0,
                })
                .collect(),
            questions,
            least,
            stop,
        }
    }

    /// Measures round after round until each other is clear, or the stop rule ends it. What it came to was published.
    ///
    /// # Errors
    /// The bench's. The round that it ended was published.
    pub fn run<B: Bench>(&mut self, bench: &mut B) -> Result<(), B::Error> {
        run(&mut Running { experiment: self, bench, order: Vec::new(), measured: Vec::new() })
    }

    /// The sides of a round: the base at either end of it, and the others that are open. Of the rounds that count half begin
    /// with the base, also where others failed.
    fn order(&self, round: u32, leader: Option<usize>) -> Vec<usize> {
        let open: Vec<usize> = (BASE + 1..=self.others.len())
            .filter(|side| !self.others[side - 1].is_over(self.least))
            .collect();
        if open.is_empty() {
            return open;
        }
        let counted = open.iter().flat_map(|side| self.others[side - 1].counted());
        let base_first: Vec<bool> =
            counted.map(|(comparison, made)| made.first == comparison.sides[0]).collect();
        let began = base_first.iter().filter(|is_first| **is_first).count();
        let is_base_first = match leader {
            Some(side) => side == BASE,
            None => match (2 * began).cmp(&base_first.len()) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Greater => false,
                std::cmp::Ordering::Equal => !goes_first(round),
            },
        };
        let mut order = [vec![BASE], open].concat();
        if !is_base_first {
            order.reverse();
        }
        order
    }
}

impl Question {
    fn unjudged(&self) -> MetricComparison {
        self.with_figures(Vec::new(), Vec::new())
    }

    fn with_figures(&self, base: Vec<f64>, new: Vec<f64>) -> MetricComparison {
        let flow = self.flow.clone();
        MetricComparison { flow, ..MetricComparison::unjudged(self.metric, self.margin, base, new) }
    }
}

impl Other {
    fn counted(&self) -> impl Iterator<Item = (&CaseComparison, &model::Round)> {
        let rounds = self.comparison.rounds.iter().filter(|round| round.counts());
        rounds.map(|round| (&self.comparison, round))
    }

    /// More rounds would change nothing, or are no use.
    fn is_over(&self, least: u32) -> bool {
        let is_clear = self.comparison.verdict() != Verdict::Unclear;
        is_clear && self.counted().count() >= least as usize
            || self.failures_in_a_row >= MOST_FAILURES
    }

    /// Adds a round, and judges all so far.
    fn add(
        &mut self,
        round: model::Round,
        experiment: (&[Question], &InterimAnalyses),
        is_last_round: bool,
    ) {
        self.failures_in_a_row = if round.counts() { 0 } else { self.failures_in_a_row + 1 };
        self.comparison.rounds.push(round);
        let is_last = is_last_round || self.failures_in_a_row >= MOST_FAILURES;
        let (questions, looks) = experiment;
        let mut metrics = Vec::new();
        for (place, question) in questions.iter().enumerate() {
            let turns: Vec<Turn> = self
                .counted()
                .filter_map(|(comparison, made)| {
                    let [base, new] = [&made.base, &made.new].map(|side| *side.get(place)?);
                    let new_first = made.first != comparison.sides[0];
                    Some(Turn { new_first, base: base?, new: new? })
                })
                .collect();
            // A case may be measured without latencies.
            if turns.is_empty() && place > 0 {
                continue;
            }
            let [base, new] = [|turn: &Turn| turn.base, |turn: &Turn| turn.new]
                .map(|figure| turns.iter().map(figure).collect());
            let unjudged = question.with_figures(base, new);
            metrics.push(judge_in_turns(unjudged, &turns, looks, is_last));
        }
        let count = self.counted().count();
        let comparison = &mut self.comparison;
        (comparison.base_count, comparison.new_count) = (count, count);
        comparison.metrics = metrics;
        comparison.notes = left_out(&comparison.rounds);
    }
}

/// How many rounds do not count, with the last reason.
fn left_out(rounds: &[model::Round]) -> Vec<String> {
    let failures: Vec<&String> = rounds.iter().filter_map(|round| round.failure.as_ref()).collect();
    let doubts: Vec<&String> = rounds
        .iter()
        .filter(|round| round.failure.is_none())
        .filter_map(|round| round.doubt.as_ref())
        .collect();
    [(failures, "failed"), (doubts, "do not count")]
        .into_iter()
        .filter_map(|(reasons, what)| {
            let why = reasons.last()?;
            Some(format!("{} of {} rounds {what}: {why}", reasons.len(), rounds.len()))
        })
        .collect()
}

/// An experiment on its way through a round.
struct Running<'a, B> {
    experiment: &'a mut InTurns,
    bench: &'a mut B,
    order: Vec<usize>,
    /// What each side came to in this round, in its order.
    measured: Vec<Measured>,
}

impl<B: Bench> Running<'_, B> {
    /// Adds what sides came to in a round, of which some may not have been measured.
    fn add(&mut self, number: u32, is_last: bool) {
        let InTurns { questions, looks, others, .. } = &mut *self.experiment;
        let of_side = |side: usize| {
            let place = self.order.iter().position(|measured| *measured == side)?;
            self.measured.get(place)
        };
        let (base, is_base_first) = (of_side(BASE), self.order.first() == Some(&BASE));
        let nothing = Measured::default();
        for side in self.order.iter().copied().filter(|side| *side != BASE) {
            let Some(other) = others.get_mut(side - 1) else {
                continue;
            };
            let sides = [base, of_side(side)];
            if sides == [None, None] {
                continue;
            }
            let [old, new] = sides.map(|it| it.unwrap_or(&nothing));
            let names = &other.comparison.sides;
            let round = model::Round {
                number,
                first: names[usize::from(!is_base_first)].clone(),
                base: old.figures.clone(),
                new: new.figures.clone(),
                failure: new.failure.clone().or_else(|| old.failure.clone()),
                doubt: new.doubt.clone().or_else(|| old.doubt.clone()),
                output: new.output.clone().or_else(|| old.output.clone()),
            };
            other.add(round, (questions, looks), is_last);
            other.comparison.notes.extend(self.bench.remark(side));
            self.bench.publish(side, &other.comparison);
        }
    }
}

impl<B: Bench> Measurer for Running<'_, B> {
    type Error = B::Error;

    fn order(&mut self, round: u32) -> Vec<usize> {
        self.measured.clear();
        self.order = self.experiment.order(round, self.bench.leader(round));
        self.order.clone()
    }

    fn measure(&mut self, side: usize, round: u32) -> Result<(), B::Error> {
        let measured = self.bench.measure(side, round);
        self.measured.push(match &measured {
            Ok(measured) => measured.clone(),
            Err(error) => Measured::failed(self.bench.words(error)),
        });
        if measured.is_err() {
            self.add(round, true);
        }
        measured.map(drop)
    }

    fn look(&mut self, round: &Round) -> Result<bool, B::Error> {
        self.add(round.number, round.is_last);
        Ok(false)
    }

    fn stop(&self) -> Stop {
        self.experiment.stop
    }

    fn spent(&self) -> Duration {
        self.bench.spent()
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
