//! Figures of searches for a load.

use super::loads::{SVG, closed, drawn, kept, parsed};
use super::*;

pub(super) fn search() -> LoadSearch {
    let trial = |asked_per_second: f64, outcome, p99_ns| Trial {
        asked_per_second,
        achieved_per_second: asked_per_second,
        outcome,
        p50_ns: Some(2_000),
        p99_ns: Some(p99_ns),
        seconds: 1.0,
        ..Trial::default()
    };
    let steering = Trial { seconds: 0.25, ..trial(618_000.0, TrialOutcome::Broke, 99_000) };
    let told = "maximum_per_second=1e6; lower_per_second=600000.0; upper_per_second=620000.0";
    LoadSearch {
        trials: vec![
            steering,
            trial(500_000.0, TrialOutcome::Kept, 12_000),
            trial(900_000.0, TrialOutcome::NotKept, 90_000),
            trial(620_000.0, TrialOutcome::Broke, 22_000),
            trial(610_000.0, TrialOutcome::Kept, 18_000),
            trial(700_000.0, TrialOutcome::Failed, 1),
        ],
        ..sample::with(&sample::search(0), told)
    }
}

#[test]
fn a_search_has_its_band_its_limit_and_its_trials() {
    let mut case = closed();
    case.searches = vec![search()];
    let figure = &drawn(vec![case.clone()])[0];
    assert_eq!(texts(figure, 1, 2), ["600000"]);
    assert_eq!(texts(figure, 2, 9).len(), 6);
    // A point a trial, without those that only steered or failed before they had a figure.
    assert_eq!(figure.svg.matches(", trial: p99 ").count(), 5);
    let words = "p99\u{a0}&lt;\u{a0}20\u{a0}µs: 0.600 to 0.620\u{a0}Mmsg/s</title></rect>";
    has(&figure.svg, [words, ">p99\u{a0}&lt;\u{a0}20\u{a0}µs</text>"]);
    // With rates of its own the line is theirs.
    let figure = &drawn(vec![case, kept("10%", 2_000)])[0];
    assert!(texts(figure, 0, 1).contains(&"10%".to_owned()));
    has(&figure.svg, [words]);
}

#[test]
fn a_band_is_where_the_highest_load_must_be() {
    for (end, bands, least, most) in [
        (SearchEnd::Found, 1, 6.0, 60.0),
        (SearchEnd::AllKeep, 1, 3.0, 3.0),
        (SearchEnd::ScheduleNotKept, 1, 3.0, 3.0),
        (SearchEnd::NoneKeeps, 0, 0.0, 0.0),
    ] {
        let mut case = closed();
        case.searches = vec![LoadSearch { end, ..search() }];
        let figures = drawn(vec![case]);
        let document = parsed(&figures[0]);
        let widths: Vec<f64> = document
            .descendants()
            .filter(|it| it.has_tag_name((SVG, "rect")))
            .filter(|it| it.children().any(|it| it.has_tag_name((SVG, "title"))))
            .map(|it| it.attribute("width").unwrap().parse().unwrap())
            .collect();
        assert_eq!(widths.len(), bands, "{end}");
        let are_wide = widths.iter().all(|width| (least..=most).contains(width));
        assert!(are_wide, "{end}: {widths:?}");
    }
}
