//! Made-up runs whose stalls and shares are known.

use proptest::prelude::*;

use super::*;

/// Intervals of 40 ms.
fn flow(messages: Vec<Vec<u64>>) -> FlowResult {
    FlowResult {
        qp_timeline: results::sample::qp_timeline(0.04, messages),
        ..FlowResult::default()
    }
}

fn settings(flags: &[(&str, &str)]) -> Settings {
    let usual = [("qps", "4"), ("duration", "1"), ("signal-every", "1")];
    usual.iter().chain(flags).copied().collect()
}

fn over_time(messages: Vec<Vec<u64>>, flags: &[(&str, &str)]) -> OverTime {
    OverTime::new(&flow(messages), &settings(flags)).unwrap()
}

fn even() -> Vec<Vec<u64>> {
    vec![vec![100; 25]; 4]
}

#[test]
fn a_qp_that_stands_still_is_found_with_its_time_and_even_ones_and_all_are_told_apart() {
    let found = over_time(even(), &[]);
    assert!(!found.is_uneven());
    assert!((found.jain - 1.0).abs() < 1e-9, "{}", found.jain);
    assert!((found.qps[3].cells[24] - 1.0).abs() < 1e-9);
    let mut messages = even();
    messages[2][10..13].fill(0);
    let one_stalled = over_time(messages, &[]);
    assert!(one_stalled.is_uneven());
    let worst = one_stalled.worst_first()[0];
    let stall = worst.stall.unwrap();
    assert_eq!((worst.index, stall.is_alone), (2, true));
    assert!((stall.from_seconds - 0.4).abs() < 1e-9 && (stall.seconds() - 0.12).abs() < 1e-9);
    assert!(one_stalled.qps[1].stall.is_none());
    let mut together = even();
    together.iter_mut().for_each(|qp| qp[5] = 0);
    let all_stalled = over_time(together, &[]);
    assert!(all_stalled.is_uneven());
    let of_all = |longest: Option<Stall>| longest.is_some_and(|time| !time.is_alone);
    assert!(all_stalled.qps.iter().all(|qp| of_all(qp.stall)));
    assert!((all_stalled.jain - 24.0 / 25.0).abs() < 1e-9, "{}", all_stalled.jain);
}

#[test]
fn a_qp_that_gets_half_is_uneven_unless_it_was_asked_for() {
    let mut messages = even();
    messages[0].fill(50);
    let found = over_time(messages.clone(), &[]);
    assert!(found.is_uneven());
    assert_eq!(found.worst_first()[0].index, 0);
    assert!((found.qps[0].share - 50.0 / 87.5).abs() < 1e-9);
    let weights = [("spread", "round-robin"), ("qp-weights", "1:1,3:6")];
    let as_weighted = over_time(messages, &weights);
    assert!(!as_weighted.is_uneven(), "{as_weighted:?}");
    assert!((as_weighted.qps[0].share - 1.0).abs() < 1e-9);
}

#[test]
fn chance_and_groups_of_completions_are_not_uneven() {
    // Few messages in each interval, by chance.
    let mut rng = fastrand::Rng::with_seed(7);
    let mut poisson = |mean: f64| {
        let (mut count, mut product) = (0, rng.f64());
        while product > (-mean).exp() {
            product *= rng.f64();
            count += 1;
        }
        count
    };
    for mean in [0.5, 4.0, 60.0] {
        let messages: Vec<Vec<u64>> =
            (0..64).map(|_| (0..128).map(|_| poisson(mean)).collect()).collect();
        assert!(!over_time(messages, &[("qps", "64")]).is_uneven(), "{mean}");
    }
    // One completion for 64 messages.
    let messages: Vec<Vec<u64>> =
        (0..4).map(|qp: usize| (0..25).map(|at| 64 * ((at + qp) % 2) as u64).collect()).collect();
    assert!(over_time(messages.clone(), &[]).is_uneven());
    assert!(!over_time(messages, &[("signal-every", "64")]).is_uneven());
}

#[test]
fn a_qp_that_has_sent_all_its_messages_does_not_stand_still() {
    let mut messages = even();
    messages[0][20..].fill(0);
    assert!(over_time(messages.clone(), &[]).is_uneven());
    let counted = |counts| {
        let settings = Settings::from([("qps", "4"), ("iters", "2000"), ("signal-every", "1")]);
        OverTime::new(&flow(counts), &settings).unwrap()
    };
    let found = counted(messages.clone());
    assert!(!found.is_uneven(), "{found:?}");
    assert_eq!(found.qps[0].cells.len(), 19);
    messages[0][5..8].fill(0);
    assert!(counted(messages).qps[0].stall.is_some());
}

#[test]
fn what_tells_nothing_is_left_out() {
    let one_qp = vec![vec![5; 25]];
    let few_intervals = vec![vec![5; 7]; 2];
    let nothing_moved = vec![vec![0; 25]; 2];
    let short_row = vec![vec![5; 25], vec![5; 24]];
    for messages in [one_qp, few_intervals, nothing_moved, short_row] {
        assert!(OverTime::new(&flow(messages), &settings(&[])).is_none());
    }
    assert!(OverTime::new(&FlowResult::default(), &settings(&[])).is_none());
}

proptest! {
    #[test]
    fn whatever_a_file_has_the_figures_are_numbers(
        messages in prop::collection::vec(prop::collection::vec(0u64..1 << 60, 12), 0..5),
        seconds in prop::collection::vec(1e-5f64..1e8, 12),
        hostile in prop::option::of((0usize..12, prop::num::f64::ANY)),
    ) {
        let moves = messages.len() > 1 && messages.iter().flatten().any(|count| *count > 0);
        let mut flow = flow(messages);
        if let Some(timeline) = &mut flow.qp_timeline {
            let mut end = 0.0;
            let ends = seconds.iter().map(|seconds| { end += seconds; end });
            timeline.at_seconds = ends.collect();
            if let Some((at, value)) = hostile {
                timeline.at_seconds[at] = value;
            }
        }
        let found = OverTime::new(&flow, &settings(&[]));
        if hostile.is_none() {
            prop_assert_eq!(found.is_some(), moves);
        }
        if let Some(found) = found {
            let cells = found.qps.iter().flat_map(|qp| &qp.cells);
            prop_assert!(cells.chain([&found.jain]).all(|it| it.is_finite()), "{:?}", found);
        }
    }
}
