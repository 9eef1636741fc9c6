//! Whether the searches of a sweep came to loads, for the exit code and the last line.

use results::model::{CaseResult, LoadSearch, SearchEnd, TrialOutcome};

use crate::cli::terminal::errors::Failure;

/// Nothing, where each search that was made came to a load.
///
/// # Errors
/// The first that did not, and how many more.
pub(in crate::cli) fn verdict(cases: &[CaseResult]) -> Result<(), Failure> {
    let mut without = cases.iter().flat_map(|case| {
        case.searches.iter().filter_map(|search| why_unfound(&case.id, search)).collect::<Vec<_>>()
    });
    let Some((mut text, is_bad_input, hint)) = without.next() else {
        return Ok(());
    };
    let more = without.count();
    if more > 0 {
        let made: usize = cases.iter().map(|case| case.searches.len()).sum();
        text += &format!("; {} of {made} searches found no load", more + 1);
    }
    Err(Failure::new(text, is_bad_input, Some(hint.to_owned())))
}

/// Why a search found no load, whether it could not with what was asked for, and what to do about it.
fn why_unfound(id: &str, search: &LoadSearch) -> Option<(String, bool, &'static str)> {
    let (text, hint) = match search.end {
        SearchEnd::NoneKeeps => (
            none_keeps(search),
            "raise the limit, or look at the trials in the JSON file (cases[].searches[].trials)",
        ),
        SearchEnd::TooFewMessages => (
            search.note.clone().unwrap_or_default(),
            "measure longer with -D, or choose a lower percentile",
        ),
        SearchEnd::Stopped => (
            search.note.clone().unwrap_or_default(),
            "the bounds so far are in the JSON file (cases[].searches[])",
        ),
        SearchEnd::ScheduleNotKept if search.lower_per_second.is_none() => (
            "rocebench could not keep its schedule at any load".to_owned(),
            "give the workers cores of their own (--cores), or take more of them (--workers)",
        ),
        _ => return None,
    };
    let is_bad_input = search.end == SearchEnd::TooFewMessages;
    Some((format!("{id}: {}: {text}", search.asked), is_bad_input, hint))
}

/// What the lowest load did that broke the limits.
fn none_keeps(search: &LoadSearch) -> String {
    let lowest = (search.trials.iter())
        .filter(|trial| trial.outcome == TrialOutcome::Broke)
        .min_by(|one, other| one.asked_per_second.total_cmp(&other.asked_per_second));
    let Some(trial) = lowest else {
        return "no load keeps the limit".to_owned();
    };
    let figures = [("p50", trial.p50_ns), ("p99", trial.p99_ns), ("p99.9", trial.p99_9_ns)];
    let known = figures
        .into_iter()
        .filter_map(|(name, ns)| Some(format!("{name} {:.1} us", ns? as f64 / 1e3)));
    format!(
        "no load keeps the limit: even the lowest, {:.0} messages a second, had {}",
        trial.asked_per_second,
        known.collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use results::model::Trial;

    use super::*;
    use crate::cli::terminal::errors::ExitKind;
    use results::sample::has;

    fn case(end: SearchEnd, lower_per_second: Option<f64>) -> CaseResult {
        let trial = |asked_per_second, p50_ns| Trial {
            asked_per_second,
            p50_ns: Some(p50_ns),
            outcome: TrialOutcome::Broke,
            ..Trial::default()
        };
        let search = LoadSearch {
            asked: "p99<1us".into(),
            end,
            lower_per_second,
            note: Some("a note".into()),
            trials: vec![trial(5e4, 70_000), trial(1e3, 4_321)],
            ..LoadSearch::default()
        };
        CaseResult { id: "q4".into(), searches: vec![search], ..CaseResult::default() }
    }

    #[test]
    fn a_search_without_a_load_fails_the_sweep() {
        let text = |cases: &[CaseResult]| verdict(cases).map_err(|it| (it.kind(), it.text()));
        for end in [SearchEnd::Found, SearchEnd::AllKeep, SearchEnd::TrialsSpent] {
            assert_eq!(text(&[case(end, Some(1.0))]), Ok(()));
        }
        assert_eq!(text(&[case(SearchEnd::ScheduleNotKept, Some(1.0))]), Ok(()));
        let (kind, said) = text(&[case(SearchEnd::NoneKeeps, None)]).unwrap_err();
        assert_eq!(kind, ExitKind::Failed);
        let parts =
            ["q4: p99<1us: no load keeps the limit", "1000 messages a second, had p50 4.3 us"];
        has(said, parts);
        let (kind, said) = text(&[case(SearchEnd::TooFewMessages, None)]).unwrap_err();
        assert_eq!(kind, ExitKind::BadInput);
        has(said, ["a note"]);
        let two = [
            case(SearchEnd::ScheduleNotKept, None),
            case(SearchEnd::Found, Some(1.0)),
            case(SearchEnd::Stopped, Some(1.0)),
        ];
        let (_, said) = text(&two).unwrap_err();
        has(said, ["2 of 3 searches found no load"]);
    }
}
