//! Many questions of one sitting answered together, so that chance seldom makes a difference out of none:
//! exact rank tests, corrected after Holm (1979) over those questions that could come out at all (after
//! Tarone 1990).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::rank::{RankTest, least_p};
use super::ratio::{RatioEstimate, middle, ratio};
use super::verdict::Verdict;

/// Fewer figures on a side are not judged.
pub const LEAST_OBSERVATIONS: usize = 3;

/// How often a sitting without any change may call one for the worse, and how often one for the better. At
/// most 5 % are promised, and are to hold in a count of 1,000 sittings too.
const FALSE_ALARMS: f64 = 0.03;

/// Confidence of the intervals that are reported.
const CONFIDENCE: f64 = 0.95;

/// Above this many runs a side nobody is told to make as many.
const MOST_RUNS: f64 = 200.0;

/// Has one figure changed?
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Figures of the same runs have the same number: when they go up and down together they are one
    /// question, as bandwidth and message rate are.
    pub group: usize,
    /// What was measured before.
    pub base: &'a [f64],
    /// What was measured now.
    pub new: &'a [f64],
    /// How much does not matter: 0.03 for 3 %.
    pub margin: f64,
    /// Whether more is better.
    pub higher_is_better: bool,
}

/// Why a question is open still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsettled {
    /// So few figures tell nothing; with `needed` on each side they could.
    TooFew {
        /// Figures on each side.
        needed: usize,
    },
    /// The sides lie apart, but among so many questions chance does that: `needed` figures on each side
    /// could tell.
    TooMany {
        /// Questions that were corrected for.
        questions: usize,
        /// Figures on each side.
        needed: usize,
    },
    /// The figures scatter too much.
    Noise {
        /// About how many on each side would do; `None` when no sensible number would.
        about: Option<usize>,
    },
}

/// What the figures say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Ratio and its 95 % interval; `None` when one of the sides is empty or not positive.
    pub estimate: Option<RatioEstimate>,
    /// The word.
    pub verdict: Verdict,
    /// Probability that chance sets the sides apart so clearly anywhere in the family, in the direction in
    /// which they differ; `None` when there were too few to test.
    pub p_corrected: Option<f64>,
    /// Why it is unclear.
    pub unsettled: Option<Unsettled>,
}

/// Answers all questions of one sitting.
pub fn judge(questions: &[Question<'_>]) -> Vec<Answer> {
    let mut test = RankTest::default();
    let worse = corrected(questions, &mut test, true);
    let better = corrected(questions, &mut test, false);
    questions
        .iter()
        .enumerate()
        .map(|(index, question)| answer(question, worse.at(index), better.at(index)))
        .collect()
}

/// One direction's tests.
struct Tests {
    /// Corrected p of each question; 1 where no deal of the figures could reach the margin.
    p: Vec<f64>,
    /// Questions that could come out.
    questions: usize,
}

/// One question's test in one direction.
#[derive(Clone, Copy)]
struct Tested {
    p: f64,
    questions: usize,
}

impl Tests {
    fn at(&self, index: usize) -> Tested {
        Tested {
            p: self.p.get(index).copied().unwrap_or(1.0),
            questions: self.questions,
        }
    }
}

/// Tests each question for a change for the worse, or for the better, and corrects for how many there are.
///
/// What is counted depends on the figures of both sides together and not on which side they are of, so
/// the choice does not spoil the test.
fn corrected(questions: &[Question<'_>], test: &mut RankTest, worse: bool) -> Tests {
    let mut p = vec![1.0; questions.len()];
    let mut firsts = HashMap::new();
    // Each different question's p and number, and those that repeat one.
    let mut asked: Vec<(f64, usize)> = Vec::new();
    let mut twins: Vec<(usize, usize)> = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        let up = question.higher_is_better != worse;
        if !can_come_out(question, up) {
            continue;
        }
        match firsts.entry((question.group, ranks(question, up))) {
            Entry::Occupied(first) => twins.push((index, *first.get())),
            Entry::Vacant(entry) => {
                entry.insert(index);
                let raw = if up {
                    test.p_above(question.base, question.new)
                } else {
                    test.p_above(question.new, question.base)
                };
                asked.push((raw, index));
            }
        }
    }
    asked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut so_far: f64 = 0.0;
    for (rank, (raw, index)) in asked.iter().enumerate() {
        so_far = so_far.max((raw * (asked.len() - rank) as f64).min(1.0));
        p[*index] = so_far;
    }
    for (twin, first) in twins {
        p[twin] = p[first];
    }
    Tests {
        p,
        questions: asked.len(),
    }
}

/// Whether any deal of these figures to the sides gives medians that differ by more than the margin.
fn can_come_out(question: &Question<'_>, up: bool) -> bool {
    if question.base.len() < LEAST_OBSERVATIONS || question.new.len() < LEAST_OBSERVATIONS {
        return false;
    }
    let mut all: Vec<f64> = question.base.iter().chain(question.new).copied().collect();
    if all.iter().any(|value| !value.is_finite()) {
        return false;
    }
    all.sort_by(f64::total_cmp);
    let extreme = if up {
        let (base, new) = all.split_at(question.base.len());
        middle(new).zip(middle(base))
    } else {
        let (new, base) = all.split_at(question.new.len());
        middle(new).zip(middle(base))
    };
    extreme.is_some_and(|(new, base)| {
        if up {
            new > base * (1.0 + question.margin)
        } else {
            new < base * (1.0 - question.margin)
        }
    })
}

/// The rank of each run, from the least likely to have changed so: the same for figures that go up and down
/// together.
fn ranks(question: &Question<'_>, up: bool) -> Vec<u32> {
    let all: Vec<f64> = question.base.iter().chain(question.new).copied().collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| {
        let order = all[*a].total_cmp(&all[*b]);
        if up { order } else { order.reverse() }
    });
    let mut ranks = vec![0; all.len()];
    let mut rank = 0;
    for pair in order.windows(2) {
        if all[pair[0]] != all[pair[1]] {
            rank += 1;
        }
        ranks[pair[1]] = rank;
    }
    ranks
}

fn answer(question: &Question<'_>, worse: Tested, better: Tested) -> Answer {
    let estimate = ratio(question.base, question.new, CONFIDENCE);
    let fewest = question.base.len().min(question.new.len());
    let (Some(found), true) = (estimate, fewest >= LEAST_OBSERVATIONS) else {
        return Answer {
            estimate,
            verdict: Verdict::Unclear,
            p_corrected: None,
            unsettled: Some(Unsettled::TooFew {
                needed: runs_for(1),
            }),
        };
    };
    let is_worse = (found.ratio > 1.0) != question.higher_is_better;
    let tested = if is_worse { worse } else { better };
    let beyond = found.ratio > 1.0 + question.margin || found.ratio < 1.0 - question.margin;
    let excludes_1 = found.low > 1.0 || found.high < 1.0;
    let verdict = if found.low > 1.0 - question.margin && found.high < 1.0 + question.margin {
        Verdict::Equal
    } else if beyond && excludes_1 && tested.p <= FALSE_ALARMS {
        if is_worse {
            Verdict::Worse
        } else {
            Verdict::Better
        }
    } else {
        Verdict::Unclear
    };
    Answer {
        estimate,
        verdict,
        p_corrected: Some(tested.p),
        unsettled: (verdict == Verdict::Unclear)
            .then(|| unsettled(question, &found, tested.questions, beyond)),
    }
}

/// What stands between these figures and an answer.
fn unsettled(
    question: &Question<'_>,
    found: &RatioEstimate,
    questions: usize,
    beyond: bool,
) -> Unsettled {
    let (base, new) = (question.base.len(), question.new.len());
    let apart = found.low > 1.0 || found.high < 1.0;
    let needed = runs_for(questions.max(1));
    if beyond && apart && least_p(base, new) * questions as f64 > FALSE_ALARMS {
        return if questions > 1 {
            Unsettled::TooMany { questions, needed }
        } else {
            Unsettled::TooFew { needed }
        };
    }
    let width = (found.high / found.low).ln() / 2.0;
    let shift = found.ratio.ln().abs();
    let to_the_margin = (question.margin - (found.ratio - 1.0).abs()).abs();
    // Beyond the margin the interval must leave out 1, within it the margin; it narrows with the root.
    let wanted = if beyond { shift } else { to_the_margin };
    let count = base.min(new);
    let about = count as f64 * (width / wanted).powi(2);
    let about = (about.is_finite() && about <= MOST_RUNS).then(|| {
        (about.ceil() as usize)
            .max(count + 1)
            .max(if beyond { needed } else { 0 })
    });
    Unsettled::Noise { about }
}

/// Figures on each side without which so many questions cannot be answered.
fn runs_for(questions: usize) -> usize {
    let mut runs = 5;
    while least_p(runs, runs) * questions as f64 > FALSE_ALARMS {
        runs += 1;
    }
    runs
}
