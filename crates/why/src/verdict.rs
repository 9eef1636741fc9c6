//! Which causes are left after some changes were tried, what would tell them apart, and what is said of them.

use crate::causes::{CAUSES, Cause, Weight};
use crate::changes::Change;
use crate::effect::Outcome;
use crate::evidence::Evidence;

/// What was tried so far, in the order of the trials.
pub(crate) type Outcomes = Vec<(Change, Outcome)>;

/// How far a cause has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// This change's result contradicts it.
    RuledOut(Change),
    /// These came out as only it explains.
    Proven(Vec<Change>),
    /// Nothing contradicts it. Whether something would still prove it.
    Left { can_be_proven: bool },
}

/// A cause that the case may have.
pub(crate) struct Candidate {
    pub cause: &'static Cause,
    pub weight: Weight,
}

/// The causes that the evidence leaves and that a change can prove, or that it shows.
pub(crate) fn candidates(evidence: &Evidence<'_>, changes: &[Change]) -> Vec<Candidate> {
    CAUSES
        .iter()
        .map(|cause| Candidate { cause, weight: (cause.weight)(evidence) })
        .filter(|candidate| match candidate.weight {
            Weight::Against => false,
            Weight::Open | Weight::Hinted => {
                candidate.cause.proof.iter().any(|change| changes.contains(change))
            }
            Weight::Shown => true,
        })
        .collect()
}

impl Candidate {
    /// What becomes of it with these outcomes; `open` are the changes that can still be tried.
    pub fn state(&self, evidence: &Evidence<'_>, outcomes: &Outcomes, open: &[Change]) -> State {
        let mut held = Vec::new();
        for (change, outcome) in outcomes {
            match (self.cause.effect)(evidence, *change).holds(outcome) {
                Some(false) => return State::RuledOut(*change),
                Some(true) => held.push(*change),
                None => {}
            }
        }
        let Cause { proof, besides, needs_all, .. } = self.cause;
        // What cannot be tried at all is not asked for.
        let is_done = |change: &Change| {
            let tried = outcomes.iter().any(|(it, _)| it == change);
            held.contains(change) || !tried && !open.contains(change)
        };
        let is_whole = besides.iter().all(&is_done) && (!needs_all || proof.iter().all(is_done));
        let still = proof.iter().chain(*besides).any(|it| open.contains(it));
        let proven: Vec<Change> = held.iter().copied().filter(|it| proof.contains(it)).collect();
        if !proven.is_empty() && is_whole {
            State::Proven(proven)
        } else {
            State::Left { can_be_proven: still }
        }
    }
}

/// How much a change would tell: the weights of pairs of causes that it separates, and that nothing of `chosen` does.
pub(crate) fn worth(
    change: Change,
    chosen: &[Change],
    left: &[&Candidate],
    evidence: &Evidence<'_>,
) -> u32 {
    let separates = |by: Change, one: &Candidate, other: &Candidate| {
        !(one.cause.effect)(evidence, by).fits((other.cause.effect)(evidence, by))
    };
    let mut sum = 0;
    for (place, one) in left.iter().enumerate() {
        for other in &left[place + 1..] {
            let is_new = !chosen.iter().any(|it| separates(*it, one, other));
            if is_new && separates(change, one, other) {
                sum += points(one.weight) * points(other.weight);
            }
        }
    }
    sum
}

fn points(weight: Weight) -> u32 {
    match weight {
        Weight::Against => 0,
        Weight::Open => 1,
        Weight::Hinted => 3,
        Weight::Shown => 9,
    }
}
