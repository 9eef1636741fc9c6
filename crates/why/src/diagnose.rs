//! The way to an answer: runs of the case, then batches of the changes that tell most, in turns with the case, then the words.

use std::time::Duration;

use experiment::{Bench, InTurns, Measured, Question, Stop};
use plan::Case;
use report::observe::standing::{self, Standing};
use results::Metric;
use results::model::{
    CaseComparison, Certainty, ChangeTrial, Diagnosis, FoundCause, LeftOut, RuledOut, Run,
};

use crate::causes::Weight;
use crate::changes::{CHANGES, Change, changed_options};
use crate::effect::{Effect, Losses, Outcome};
use crate::evidence::{Evidence, Situation, losses, metric, speed};
use crate::verdict::{Candidate, Outcomes, State, candidates, worth};

/// Changes that are tried together, each beside the same runs of the case.
const OF_A_BATCH: usize = 3;

/// Rounds of a batch that have to count, and at most.
const ROUNDS: (u32, u32) = (8, 12);

/// Runs of the case before anything is changed.
pub const FIRST_RUNS: u32 = 2;

/// Runs cases at nodes, or in virtual time.
pub trait Laboratory {
    /// Why no other run follows.
    type Error;

    /// Runs a case once.
    ///
    /// # Errors
    /// The session is over.
    fn run(&mut self, case: &Case) -> Result<Run, Self::Error>;

    /// Why the nodes cannot run a case; `None` if they can.
    fn refusal(&self, case: &Case) -> Option<String>;

    /// Time since the first run began.
    fn spent(&self) -> Duration;

    /// What one run takes, as the runs so far show; `None` if they do not.
    fn run_takes(&self) -> Option<Duration> {
        None
    }

    /// Takes notice of what begins now.
    fn announce(&mut self, _step: &Step<'_>) {}
}

/// What comes next, before it begins.
pub enum Step<'a> {
    /// Runs of the case as it was requested.
    Case { runs: u32 },
    /// So many rounds of the case and of each of these changes.
    Changes { changes: &'a [Change], rounds: u32 },
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// No batch begins that would not end within it.
    pub budget: Duration,
    /// What one run takes, about.
    pub run: Duration,
}

impl Request {
    /// The least budget that makes sense: the first runs, and a batch of one change.
    pub fn least_budget(&self) -> Duration {
        self.run * (FIRST_RUNS + 2 * ROUNDS.0)
    }
}

/// The changes that a case could be tried with, and those that its nodes refuse, each with its reason.
pub fn planned<L: Laboratory>(
    evidence: &Evidence<'_>,
    laboratory: &L,
) -> (Vec<(Change, Case)>, Vec<LeftOut>) {
    let mut left_out = Vec::new();
    let mut changed = Vec::new();
    for change in CHANGES {
        let Some(case) = change.apply(evidence) else { continue };
        match laboratory.refusal(&case) {
            None => changed.push((*change, case)),
            Some(why) => left_out.push(LeftOut { change: change.words().to_owned(), why }),
        }
    }
    (changed, left_out)
}

/// Finds out what limits a case.
///
/// # Errors
/// The laboratory's, with what was found before.
pub fn diagnose<L: Laboratory>(
    laboratory: &mut L,
    case: &Case,
    situation: &Situation,
    request: Request,
) -> (Diagnosis, Result<(), L::Error>) {
    let (found, ended) = found(laboratory, case, situation, request);
    (Diagnosis { seconds: laboratory.spent().as_secs_f64(), ..found }, ended)
}

/// What is found, without the time that it took.
fn found<L: Laboratory>(
    laboratory: &mut L,
    case: &Case,
    situation: &Situation,
    request: Request,
) -> (Diagnosis, Result<(), L::Error>) {
    laboratory.announce(&Step::Case { runs: FIRST_RUNS });
    let mut runs = Vec::new();
    for _ in 0..FIRST_RUNS {
        match laboratory.run(case) {
            Ok(run) => runs.push(run),
            Err(error) => return (not_measured(case, "it was stopped"), Err(error)),
        }
    }
    let evidence = Evidence::new(case, situation, &runs);
    if evidence.runs.is_empty() {
        let why = runs.last().map(|run| standing::of_run(run).words().to_owned());
        return (not_measured(case, &why.unwrap_or_default()), Ok(()));
    }
    if evidence.share_of_link().is_some_and(|share| share >= AT_THE_LINK) {
        return (at_the_link(&evidence), Ok(()));
    }
    let (changed, left_out) = planned(&evidence, laboratory);
    let mut search = Search {
        evidence,
        changed,
        outcomes: Vec::new(),
        repeated: Vec::new(),
        left_out,
        ended_by: None,
    };
    let ended = search.run(laboratory, request);
    if ended.is_err() {
        search.ended_by = Some("it was stopped".to_owned());
    }
    (search.conclude(), ended)
}

/// The part of what a link carries above which nothing else is worth finding; less than all, as two runs scatter.
const AT_THE_LINK: f64 = 0.92;

fn empty(case: &Case, certainty: Certainty, answer: String) -> Diagnosis {
    Diagnosis {
        metric: metric(case),
        value: None,
        certainty,
        causes: Vec::new(),
        answer,
        trials: Vec::new(),
        ruled_out: Vec::new(),
        left_out: Vec::new(),
        would_tell: Vec::new(),
        ended_by: None,
        seconds: 0.0,
    }
}

fn not_measured(case: &Case, why: &str) -> Diagnosis {
    empty(case, Certainty::NotMeasured, format!("The case could not be measured: {why}."))
}

fn at_the_link(evidence: &Evidence<'_>) -> Diagnosis {
    let percent = evidence.share_of_link().unwrap_or(1.0) * 100.0;
    let answer =
        format!("Nothing but the link: the case moves {percent:.0} % of what it can carry.");
    Diagnosis { value: evidence.gbit_per_s(), ..empty(evidence.case, Certainty::AtTheLink, answer) }
}

/// What is known on the way.
struct Search<'a> {
    evidence: Evidence<'a>,
    /// The changes that the nodes can do.
    changed: Vec<(Change, Case)>,
    outcomes: Outcomes,
    /// Changes that were tried a second time.
    repeated: Vec<Change>,
    left_out: Vec<LeftOut>,
    ended_by: Option<String>,
}

impl Search<'_> {
    fn run<L: Laboratory>(&mut self, laboratory: &mut L, request: Request) -> Result<(), L::Error> {
        loop {
            let wanted = self.next_batch();
            if wanted.is_empty() {
                return Ok(());
            }
            let room = request.budget.saturating_sub(laboratory.spent());
            let of_run = laboratory.run_takes().unwrap_or(request.run);
            let of_round = of_run.max(Duration::from_millis(1));
            let runs = (room.as_nanos() / of_round.as_nanos()) as usize / ROUNDS.0 as usize;
            let Some(fitting) = runs.checked_sub(1).filter(|fitting| *fitting > 0) else {
                self.ended_by = Some("the budget was used up: --budget gives more".to_owned());
                return Ok(());
            };
            let batch = &wanted[..wanted.len().min(fitting)];
            laboratory.announce(&Step::Changes { changes: batch, rounds: ROUNDS.0 });
            self.measure(laboratory, batch)?;
        }
    }

    /// Changes that were not tried.
    fn open(&self) -> Vec<Change> {
        let changes = self.changed.iter().map(|(change, _)| *change);
        changes.filter(|change| self.outcomes.iter().all(|(tried, _)| tried != change)).collect()
    }

    /// The causes that the case may have, and how far each has come.
    fn candidates(&self) -> Vec<(Candidate, State)> {
        let changes: Vec<Change> = self.changed.iter().map(|(change, _)| *change).collect();
        let open = self.open();
        let with_state = candidates(&self.evidence, &changes).into_iter().map(|candidate| {
            let state = candidate.state(&self.evidence, &self.outcomes, &open);
            (candidate, state)
        });
        with_state.collect()
    }

    /// The changes that tell most now; none where it is decided, or nothing is left.
    fn next_batch(&self) -> Vec<Change> {
        let candidates = self.candidates();
        let mut open = self.open();
        let (mut left, mut rivals, mut proven) = (Vec::new(), Vec::new(), 0);
        for (candidate, state) in &candidates {
            match state {
                State::RuledOut(_) => continue,
                State::Proven(_) => proven += 1,
                State::Left { can_be_proven: true } => rivals.push(candidate),
                State::Left { can_be_proven: false } => {}
            }
            left.push(candidate);
        }
        if proven == 1 && rivals.is_empty() {
            return self.to_repeat(&candidates);
        }
        // The likeliest first.
        rivals.sort_by_key(|rival| std::cmp::Reverse(rival.weight));
        let mut batch = Vec::new();
        while batch.len() < OF_A_BATCH {
            let best = open
                .iter()
                .copied()
                .map(|change| (worth(change, &batch, &left, &self.evidence), change))
                // Of as many points the first of the table.
                .rev()
                .max_by_key(|(points, _)| *points)
                .filter(|(points, _)| *points > 0)
                .map(|(_, change)| change)
                // What would prove the likeliest of those that nothing tells apart.
                .or_else(|| {
                    let causes = rivals.iter().map(|rival| rival.cause);
                    let mut proofs =
                        causes.flat_map(|cause| cause.proof.iter().chain(cause.besides));
                    proofs.find(|change| open.contains(change)).copied()
                })
                // Nothing explains it: what helps all the same?
                .or_else(|| {
                    let is_unexplained = proven == 0 && rivals.is_empty();
                    open.first().copied().filter(|_| is_unexplained)
                });
            let Some(change) = best else { break };
            open.retain(|it| *it != change);
            batch.push(change);
        }
        batch
    }

    /// Changes to try once more: of many that scatter one comes out well by chance, so where nothing else showed the proven
    /// cause, and its proof scatters, new rounds decide in place of those that made it look proven.
    fn to_repeat(&self, candidates: &[(Candidate, State)]) -> Vec<Change> {
        let proofs = candidates.iter().filter_map(|(candidate, state)| match state {
            State::Proven(changes) if candidate.weight == Weight::Open => Some(changes),
            _ => None,
        });
        let scatters = |change: &Change| {
            let mut outcomes = self.outcomes.iter().filter(|(tried, _)| tried == change);
            outcomes.any(|(_, outcome)| outcome.high > SCATTERS * outcome.low)
        };
        let wanted = proofs.flatten().filter(|change| scatters(change));
        wanted.filter(|change| !self.repeated.contains(change)).take(OF_A_BATCH).copied().collect()
    }

    /// Measures changes in turns with the case.
    fn measure<L: Laboratory>(
        &mut self,
        laboratory: &mut L,
        batch: &[Change],
    ) -> Result<(), L::Error> {
        let cases: Vec<&Case> = batch
            .iter()
            .filter_map(|change| self.changed.iter().find(|(it, _)| it == change))
            .map(|(_, case)| case)
            .collect();
        let names = batch.iter().map(|change| CaseComparison {
            id: change.id().to_owned(),
            sides: ["the case".to_owned(), change.id().to_owned()],
            ..CaseComparison::default()
        });
        let speed_metric = metric(self.evidence.case);
        let question = Question { margin: MARGIN, ..Question::new(speed_metric) };
        let stop = Stop { most: ROUNDS.1, budget: None };
        let mut bench = Side {
            laboratory,
            evidence: &self.evidence,
            cases,
            metric: speed_metric,
            losses: vec![Some(Losses::default()); batch.len() + 1],
            comparisons: vec![CaseComparison::default(); batch.len()],
        };
        let ended = InTurns::new(names, vec![question], ROUNDS.0, stop).run(&mut bench);
        let Side { comparisons, losses, .. } = bench;
        let before = losses[0];
        for ((change, comparison), with) in batch.iter().zip(comparisons).zip(&losses[1..]) {
            let of_losses = before.zip(*with).map(|(before, with)| [before, with]);
            let tried_before = self.outcomes.len();
            self.outcomes.retain(|(tried, _)| tried != change);
            if self.outcomes.len() < tried_before {
                self.repeated.push(*change);
            }
            self.outcomes.push((*change, outcome(&comparison, speed_metric, of_losses)));
        }
        ended
    }

    /// What all of it says.
    fn conclude(self) -> Diagnosis {
        let candidates = self.candidates();
        let proven: Vec<(&Candidate, &Vec<Change>)> = candidates
            .iter()
            .filter_map(|(candidate, state)| match state {
                State::Proven(changes) => Some((candidate, changes)),
                _ => None,
            })
            .collect();
        let likely: Vec<&Candidate> = candidates
            .iter()
            .filter(|(candidate, state)| {
                matches!(state, State::Left { .. }) && candidate.weight == Weight::Shown
            })
            .map(|(candidate, _)| candidate)
            .collect();
        let mut states = candidates.iter().map(|(_, state)| state);
        let has_rivals = self.ended_by.is_some()
            && states.any(|state| *state == State::Left { can_be_proven: true });
        // What is shown explains what is proven of it, or stands where nothing is proven.
        let shown = likely
            .iter()
            .filter(|candidate| {
                let mut others = proven.iter().map(|(other, _)| other.cause.id);
                proven.is_empty() || others.any(|id| candidate.cause.covers.contains(&id))
            })
            .map(|candidate| (*candidate, Vec::new()));
        let all_found = proven.iter().map(|(candidate, changes)| (*candidate, (*changes).clone()));
        let found = without_covered(all_found.chain(shown).collect());
        let certainty = match found.as_slice() {
            [] => Certainty::Unknown,
            [(_, proofs)] if proofs.is_empty() || has_rivals => Certainty::Likely,
            [_] => Certainty::Proven,
            _ => Certainty::OneOfSeveral,
        };
        let causes: Vec<FoundCause> = found
            .iter()
            .map(|(candidate, proofs)| FoundCause {
                id: candidate.cause.id.to_owned(),
                sentence: (candidate.cause.sentence)(&self.evidence),
                remedy: (candidate.cause.remedy)(&self.evidence),
                proven_by: proofs.iter().map(|change| change.id().to_owned()).collect(),
            })
            .collect();
        let first = found.first().map(|(candidate, _)| *candidate);
        let mut trials: Vec<ChangeTrial> = self
            .outcomes
            .iter()
            .map(|(change, outcome)| self.trial(*change, outcome, first))
            .collect();
        let proofs: Vec<&String> = causes.iter().flat_map(|cause| &cause.proven_by).collect();
        trials.sort_by_key(|trial| (!proofs.contains(&&trial.id), trial.holds.is_none()));
        Diagnosis {
            metric: metric(self.evidence.case),
            value: self.evidence.over_runs(|run| speed(run, metric(self.evidence.case))),
            answer: answer(certainty, &causes, &trials),
            ruled_out: candidates
                .iter()
                .filter_map(|(candidate, state)| match state {
                    State::RuledOut(change) => Some(RuledOut {
                        id: candidate.cause.id.to_owned(),
                        by: change.id().to_owned(),
                    }),
                    _ => None,
                })
                .collect(),
            would_tell: would_tell(certainty, &self.open()),
            certainty,
            causes,
            trials,
            left_out: self.left_out,
            ended_by: self.ended_by,
            seconds: 0.0,
        }
    }

    fn trial(&self, change: Change, outcome: &Outcome, cause: Option<&Candidate>) -> ChangeTrial {
        let expected = cause
            .map(|candidate| (candidate.cause.effect)(&self.evidence, change))
            .filter(|effect| *effect != Effect::Anything);
        let case = self.changed.iter().find(|(it, _)| *it == change).map(|(_, case)| case);
        ChangeTrial {
            id: change.id().to_owned(),
            changed: change.words().to_owned(),
            options: case.map_or_else(String::new, |it| changed_options(self.evidence.case, it)),
            expected: expected.map(|effect| effect.words().to_owned()),
            ratio: outcome.ratio,
            low: outcome.ratio.map(|_| outcome.low).filter(|low| low.is_finite()),
            high: outcome.ratio.map(|_| outcome.high).filter(|high| high.is_finite()),
            lost_ppm: outcome.losses.map(|losses| losses.map(Losses::ppm)),
            holds: expected.and_then(|effect| effect.holds(outcome)),
            rounds: outcome.rounds,
            failure: outcome.failure.clone(),
        }
    }
}

/// A result whose interval reaches from one value to so many times that is tried again.
const SCATTERS: f64 = 1.25;

/// A difference that does not matter here.
const MARGIN: f64 = 0.1;

/// Leaves out what another explains.
fn without_covered(found: Vec<(&Candidate, Vec<Change>)>) -> Vec<(&Candidate, Vec<Change>)> {
    let covered: Vec<&str> =
        found.iter().flat_map(|(candidate, _)| candidate.cause.covers).copied().collect();
    found.into_iter().filter(|(candidate, _)| !covered.contains(&candidate.cause.id)).collect()
}

fn answer(certainty: Certainty, causes: &[FoundCause], trials: &[ChangeTrial]) -> String {
    let sentences: Vec<&str> = causes.iter().map(|cause| cause.sentence.as_str()).collect();
    match (certainty, sentences.as_slice()) {
        (Certainty::Likely, [one]) => format!("Likely: {one}"),
        (Certainty::OneOfSeveral, several) => {
            format!("These cannot be told apart: {}", several.join(" Or: "))
        }
        (Certainty::Unknown, _) => {
            let helps = trials.iter().filter(|trial| {
                trial.low.is_some_and(|low| low > 1.0) && trial.ratio.is_some_and(|it| it > 1.05)
            });
            let words: Vec<&str> = helps.map(|trial| trial.changed.as_str()).collect();
            if words.is_empty() {
                "Unknown: no known cause explains it, and no change that was tried helps."
                    .to_owned()
            } else {
                format!("Unknown: no known cause explains it. What helps: {}.", words.join("; "))
            }
        }
        (_, [one, ..]) => (*one).to_owned(),
        _ => String::new(),
    }
}

fn would_tell(certainty: Certainty, open: &[Change]) -> Vec<String> {
    match certainty {
        Certainty::OneOfSeveral | Certainty::Likely => {
            open.iter().take(3).map(|change| change.words().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// The case and changes of it, as sides of an experiment.
struct Side<'a, 'b, L> {
    laboratory: &'a mut L,
    evidence: &'a Evidence<'b>,
    cases: Vec<&'a Case>,
    metric: Metric,
    /// Of each side in all its rounds; `None` once a device did not count them.
    losses: Vec<Option<Losses>>,
    comparisons: Vec<CaseComparison>,
}

impl<L: Laboratory> Bench for Side<'_, '_, L> {
    type Error = L::Error;

    fn measure(&mut self, side: usize, _: u32) -> Result<Measured, L::Error> {
        let case = side.checked_sub(1).map_or(self.evidence.case, |place| self.cases[place]);
        let run = self.laboratory.run(case)?;
        Ok(match standing::of_run(&run) {
            Standing::Counts => {
                let lost = losses(&run, case, self.evidence.situation);
                self.losses[side] = self.losses[side].zip(lost).map(|(sum, more)| sum.plus(more));
                Measured { figures: vec![speed(&run, self.metric)], ..Measured::default() }
            }
            Standing::Doubtful(kind) => {
                Measured { doubt: Some(kind.name().to_owned()), ..Measured::default() }
            }
            standing => Measured::failed(format!("the run {}", standing.words())),
        })
    }

    fn words(&self, _: &L::Error) -> String {
        "it was stopped".to_owned()
    }

    fn publish(&mut self, side: usize, comparison: &CaseComparison) {
        if let Some(place) = side.checked_sub(1) {
            self.comparisons[place] = comparison.clone();
        }
    }
}

/// What rounds came to: of a latency, how much faster.
fn outcome(comparison: &CaseComparison, metric: Metric, losses: Option<[Losses; 2]>) -> Outcome {
    let figures = comparison.metrics.first();
    let judged = figures.and_then(|it| Some((it.ratio?, it.low?, it.high?)));
    let (ratio, low, high) = match judged {
        Some((ratio, low, high)) if metric.higher_is_better() => (Some(ratio), low, high),
        Some((ratio, low, high)) => (Some(1.0 / ratio), 1.0 / high, 1.0 / low),
        None => (None, 0.0, f64::INFINITY),
    };
    Outcome {
        ratio,
        low,
        high,
        losses,
        rounds: comparison.new_count,
        failure: judged.is_none().then(|| comparison.notes.first().cloned().unwrap_or_default()),
    }
}
