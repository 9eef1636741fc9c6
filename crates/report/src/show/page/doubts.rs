//! Why runs do not count, in plain words: three for a row, and a sentence with the remedy for the page's beginning.

use crate::observe::standing::LeftOut;
use crate::results::model::DoubtKind;

/// Three words, the cause, and what helps.
struct Words(&'static str, &'static str, &'static str);

const TOO_BUSY: &str = "the CPU was too busy";
const LESS_WORK: &str = "Measure longer or use fewer workers.";
const BAD: Words = Words(
    "the run failed",
    "they failed",
    "Read why in the result file, and run again.",
);
const STOPPED: Words = Words("stopped by you", "you stopped them", "Run again.");

fn words(kind: DoubtKind) -> Words {
    match kind {
        DoubtKind::NotTogether => Words(
            "flows not together",
            "flows did not run together",
            "Measure longer.",
        ),
        DoubtKind::ScheduleNotKept => Words(
            "messages posted late",
            "messages were posted late",
            "Lower the load or use more workers.",
        ),
        _ => Words("CPU too busy", TOO_BUSY, LESS_WORK),
    }
}

fn all(left_out: &LeftOut) -> impl Iterator<Item = (usize, Words, Option<DoubtKind>)> + '_ {
    let doubtful = left_out.doubtful.iter();
    let doubtful = doubtful.map(|(kind, count)| (*count, words(*kind), Some(*kind)));
    let others = [(left_out.bad, BAD, None), (left_out.stopped, STOPPED, None)];
    let others = others.into_iter().filter(|(count, ..)| *count > 0);
    others.chain(doubtful)
}

/// `1 of 5 runs: CPU too busy`; empty where all count.
pub(super) fn remark(left_out: &LeftOut) -> String {
    let mut reasons: Vec<&str> = all(left_out).map(|(_, words, _)| words.0).collect();
    reasons.dedup();
    match (left_out.all - left_out.count(), left_out.all) {
        (counted, all) if counted == all => String::new(),
        (0, _) => reasons.join(", "),
        (counted, all) => format!("{counted} of {all} runs: {}", reasons.join(", ")),
    }
}

/// `The CPU was too busy (2 edge missed). Measure longer or use fewer workers.`; empty where all count.
pub(super) fn sentence(left_out: &LeftOut) -> String {
    let mut told: Vec<(Words, Vec<String>)> = Vec::new();
    for (count, words, kind) in all(left_out) {
        let name = kind.map_or("", DoubtKind::name);
        let reason = format!("{count} {name}").trim_end().to_owned();
        match told.iter_mut().find(|(known, _)| known.1 == words.1) {
            Some((_, reasons)) => reasons.push(reason),
            None => told.push((words, vec![reason])),
        }
    }
    let sentence = |(words, reasons): &(Words, Vec<String>)| {
        let (first, rest) = words.1.split_at(1);
        let cause = format!("{}{rest}", first.to_uppercase());
        format!("{cause} ({}). {}", reasons.join(", "), words.2)
    };
    told.iter().map(sentence).collect::<Vec<_>>().join(" ")
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
        let left_out = LeftOut::of(&all);
        assert_eq!(remark(&left_out), "1 of 3 runs: CPU too busy");
        let told = "The CPU was too busy (1 window length, 1 edge missed). Measure longer or use fewer workers.";
        assert_eq!(sentence(&left_out), told);
        all.remove(0);
        assert_eq!(remark(&LeftOut::of(&all)), "CPU too busy");
        assert_eq!(remark(&LeftOut::of([Standing::Counts])), "");
        assert_eq!(sentence(&LeftOut::of([Standing::Counts])), "");
    }
}
