//! What a set of results says in a few sentences: which case is best, where more of something gains nothing, and what
//! looks wrong. Differences that runs alone may make are told as such. It must not know where the sentences are shown.

mod best;
mod noise;
mod scaling;
mod subject;
#[cfg(test)]
mod tests;
mod wrong;

use crate::observe::Metric;
use crate::results::model::ResultFile;
use subject::{Subject, subjects};

/// What a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The best cases.
    Best,
    /// What more of a setting gains.
    Scaling,
    /// What spoils figures, or should be looked at.
    Wrong,
    /// There is nothing of the kind.
    NothingWrong,
}

/// One sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// What it is about.
    pub topic: Topic,
    /// Its words, with a full stop.
    pub text: String,
}

/// The sentences, at most three. Cases are compared where all results are of the same nodes and devices; flows with an
/// offered load, and patterns of nodes, have sentences of their own elsewhere.
pub fn headlines(results: &[&ResultFile]) -> Vec<Headline> {
    let mut told = Vec::new();
    if let Some((subjects, metrics)) = compared(results) {
        let best = best::sentence(&subjects, metrics);
        told.extend(best.map(|text| Headline {
            topic: Topic::Best,
            text,
        }));
        let scaling = scaling::sentence(&subjects, metrics[0]);
        told.extend(scaling.map(|text| Headline {
            topic: Topic::Scaling,
            text,
        }));
    }
    match wrong::sentence(results) {
        Some(text) => told.push(Headline {
            topic: Topic::Wrong,
            text,
        }),
        None if !told.is_empty() => told.push(Headline {
            topic: Topic::NothingWrong,
            text: wrong::nothing(results),
        }),
        None => {}
    }
    told
}

/// What is compared, and by which figures, that which scales first: transfers, or set-ups where there are no transfers.
fn compared<'a>(results: &[&'a ResultFile]) -> Option<(Vec<Subject<'a>>, [Metric; 2])> {
    let all = subjects(results)?;
    let (set_ups, transfers): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|subject| subject.case.config.is_set_up());
    let (subjects, metrics) = match transfers.is_empty() {
        true => (set_ups, [Metric::ConnectionsPerS, Metric::SetupP99Ns]),
        false => (transfers, [Metric::GbitPerS, Metric::P99Ns]),
    };
    (subjects.len() > 1).then_some((subjects, metrics))
}
