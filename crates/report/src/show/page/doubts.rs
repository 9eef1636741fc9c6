//! Why runs do not count, in plain words: three for a row, and a sentence with the remedy for the page's beginning.

use crate::observe::standing::{LeftOut, Reason, reason};
use results::model::DoubtKind;

const BAD: Reason = Reason {
    short: "the run failed",
    cause: "They failed",
    remedy: "Read why in the result file, and run again",
};
const STOPPED: Reason =
    Reason { short: "stopped by you", cause: "You stopped them", remedy: "Run again" };

fn reasons_of(left_out: &LeftOut) -> impl Iterator<Item = (usize, Reason, Option<DoubtKind>)> + '_ {
    let doubtful =
        left_out.doubtful.iter().map(|(kind, count)| (*count, reason(*kind), Some(*kind)));
    let others = [(left_out.bad, BAD, None), (left_out.stopped, STOPPED, None)];
    others.into_iter().filter(|(count, ..)| *count > 0).chain(doubtful)
}

/// `1 of 5 runs: CPU too busy`; empty where all count.
pub(super) fn remark(left_out: &LeftOut) -> String {
    let mut reasons: Vec<&str> = reasons_of(left_out).map(|(_, reason, _)| reason.short).collect();
    reasons.dedup();
    match (left_out.runs - left_out.count(), left_out.runs) {
        (counted, runs) if counted == runs => String::new(),
        (0, _) => reasons.join(", "),
        (counted, runs) => format!("{counted} of {runs} runs: {}", reasons.join(", ")),
    }
}

/// `The CPU was too busy (2 edge missed). Measure longer (-D).`; empty where all count.
pub(super) fn sentence(left_out: &LeftOut) -> String {
    let mut groups: Vec<(Reason, Vec<String>)> = Vec::new();
    for (count, reason, kind) in reasons_of(left_out) {
        let name = kind.map_or("", DoubtKind::name);
        let counted = format!("{count} {name}").trim_end().to_owned();
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, counts)) => counts.push(counted),
            None => groups.push((reason, vec![counted])),
        }
    }
    groups
        .iter()
        .map(|(reason, counted)| {
            let (cause, remedy) = (reason.cause, reason.remedy);
            format!("{cause} ({}). {remedy}.", counted.join(", "))
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::standing::Standing;

    #[test]
    fn a_row_has_three_words_and_the_page_a_remedy() {
        let doubtful = |kind| Standing::Doubtful(kind);
        let mut all = vec![
            Standing::Counts,
            doubtful(DoubtKind::EdgeMissed),
            doubtful(DoubtKind::WindowLength),
        ];
        let left_out = LeftOut::new(&all);
        assert_eq!(remark(&left_out), "1 of 3 runs: CPU too busy");
        let told = "The CPU was too busy (1 window length, 1 edge missed). Measure longer (-D), or use fewer workers than cores.";
        assert_eq!(sentence(&left_out), told);
        all.remove(0);
        assert_eq!(remark(&LeftOut::new(&all)), "CPU too busy");
        assert_eq!(remark(&LeftOut::new([Standing::Counts])), "");
        assert_eq!(sentence(&LeftOut::new([Standing::Counts])), "");
    }
}
