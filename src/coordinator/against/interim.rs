//! What pairs of runs in turns say so far, and which run is first in the next pair.

use statistics::{FEWEST_PAIRS, InterimAnalyses, RatioEstimate, Turn, Verdict};
use statistics::{goes_first, ratio_in_turns, verdict};

/// What pairs say so far.
pub(super) struct InterimResult {
    /// New over base.
    pub(super) estimate: Option<RatioEstimate>,
    /// Of its ratio. Few pairs have none: it would be everything. Between looks it is that of the next one.
    pub(super) interval: Option<(f64, f64)>,
    /// Unclear between the looks that are planned.
    pub(super) verdict: Verdict,
}

/// Looks at the pairs that count, of so many at least and at most; `is_last` where no other comes. A metric is how much
/// of it does not matter, and whether more is better.
pub(super) fn look(
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
pub(super) fn note(count: usize, pairs: &str, is_last: bool, verdict: Verdict) -> Option<String> {
    if count < FEWEST_PAIRS as usize {
        return Some(format!("a verdict needs at least {FEWEST_PAIRS} {pairs}"));
    }
    let is_open = is_last && verdict == Verdict::Unclear;
    is_open.then(|| format!("{count} {pairs} did not settle it"))
}
