//! Searches in responses whose limit is known: an M/D/1 queue, simulated message by message, and stranger ones.
#![allow(clippy::print_stdout)]

use super::*;
use queueing::{Md1, Queue};

/// Messages a second that the simulated queue serves, and the search's maximum.
const CAPACITY: u64 = 1_000_000;

/// Searches by a response, which tells the excess at a load; `None` of one whose schedule is not kept.
fn search(lowest: u64, mut response: impl FnMut(u64, bool) -> Option<f64>) -> (SearchEnd, Bounds) {
    let mut bounds = Bounds::new(Rule::ByExcess, lowest, CAPACITY);
    loop {
        match bounds.next() {
            Next::Over(end) => return (end, bounds),
            Next::Try { load, is_short } => {
                assert!((lowest..=CAPACITY).contains(&load), "{load}");
                let excess = response(load, is_short);
                let outcome = match excess {
                    None => TrialOutcome::NotKept,
                    Some(excess) if excess <= 1.0 => TrialOutcome::Kept,
                    Some(_) => TrialOutcome::Broke,
                };
                bounds.add(load, is_short, outcome, excess.unwrap_or_default());
                let (low, high) = bounds.within();
                assert!(low <= high, "{low}..{high}");
            }
        }
    }
}

/// Of eight trials at a load four that kept it make a lower bound, and five that broke it an upper one.
#[test]
fn trials_that_are_counted_make_a_bound_when_no_further_one_could_change_it() {
    let bound = |kept: usize, broke: usize| {
        let logs = [vec![-1.0; kept], vec![1.0; broke]].concat();
        Evidence { rule: Rule::ByCount, logs, unkept: 0 }.bound()
    };
    for (kept, broke, expected) in [
        (3, 4, None),
        (4, 0, Some(Bound::Lower)),
        (4, 4, Some(Bound::Lower)),
        (0, 4, None),
        (3, 5, Some(Bound::Upper)),
    ] {
        assert_eq!(bound(kept, broke), expected, "{kept} {broke}");
    }
}

/// What many searches for a limit of an M/D/1 queue came to.
struct Tried {
    hold_the_truth: u32,
    trials: u32,
    most_trials: u32,
    width: f64,
}

/// `services` is how many messages the server could serve in a trial.
fn try_often(searches: u32, limit: f64, allowed: f64, services: u32) -> Tried {
    // A share of `allowed` takes more than `limit` services there.
    let truth = Md1::highest_load(1.0 - allowed, limit - 1.0) * CAPACITY as f64;
    let mut tried = Tried { hold_the_truth: 0, trials: 0, most_trials: 0, width: 0.0 };
    for seed in 0..searches {
        let mut rng = fastrand::Rng::with_seed(u64::from(seed) << 32 | u64::from(services));
        let (_, bounds) = search(CAPACITY / 100, |load, is_short| {
            let utilisation = load as f64 / CAPACITY as f64;
            let services = services / if is_short { 4 } else { 1 };
            let messages = (f64::from(services) * utilisation) as u32;
            let mut queue = Queue::new(1.0, 1.0 / utilisation, Some(rng.fork()));
            // It forgets how it began.
            queue.share_above(2_000, limit);
            let above = queue.share_above(messages, limit);
            Some(above.max(0.5 / f64::from(messages)) / allowed)
        });
        let (lower, upper) = bounds.found();
        let low = lower.unwrap_or(0) as f64;
        let high = upper.unwrap_or(CAPACITY) as f64;
        tried.hold_the_truth += u32::from((low..=high).contains(&truth));
        tried.trials += bounds.trials;
        tried.most_trials = tried.most_trials.max(bounds.trials);
        tried.width += (high - low) / truth / f64::from(searches);
    }
    tried
}

/// 19 of 20 searches at least hold the truth, with trials of 20,000 to 100,000 services, at 56 to 91 % load.
#[test]
fn the_bounds_hold_the_true_limit_of_a_queue() {
    for (limit, allowed, services, searches) in [
        (5.0, 0.01, 20_000, 200),
        (10.0, 0.01, 20_000, 200),
        (10.0, 0.001, 20_000, 200),
        (25.0, 0.01, 20_000, 200),
        (10.0, 0.01, 100_000, 200),
    ] {
        let tried = try_often(searches, limit, allowed, services);
        let trials = f64::from(tried.trials) / f64::from(searches);
        let (hold, most, width) = (tried.hold_the_truth, tried.most_trials, tried.width * 100.0);
        let summary = format!(
            "limit {limit} services, {allowed} allowed, {services} services a trial: {hold} of {searches} hold the truth, \
             {trials:.1} trials (at most {most}), {width:.1} % wide"
        );
        println!("{summary}");
        assert!(tried.hold_the_truth * 20 >= searches * 19, "{summary}");
        assert!(trials <= 40.0 && tried.width < 0.25, "{summary}");
    }
}

#[test]
fn a_sharp_limit_is_found_within_a_goal_width() {
    for limit in [12_345, 400_000, 777_777, 970_000, 985_000] {
        let excess = |load| if load <= limit { 0.05 } else { 50.0 };
        let (end, bounds) = search(10_000, |load, _| Some(excess(load)));
        let (Some(lower), Some(upper)) = bounds.found() else {
            panic!("no bounds of {limit}: {bounds:?}");
        };
        assert_eq!(end, SearchEnd::Found);
        assert!((lower..upper).contains(&limit), "{limit}: {bounds:?}");
        assert!(upper - lower <= goal_width(upper) + 1, "{lower} to {upper}");
        assert!(bounds.trials <= 20, "{}", bounds.trials);
    }
}

#[test]
fn where_none_or_all_keep_it_the_search_says_so() {
    // The last two have one load only.
    let (none_keeps, all_keep) = (SearchEnd::NoneKeeps, SearchEnd::AllKeep);
    for (lowest, excess, expected_end, lower, upper) in [
        (10_000, 3.0, none_keeps, None, Some(10_000)),
        (10_000, 0.1, all_keep, Some(CAPACITY), None),
        (CAPACITY, 0.1, all_keep, Some(CAPACITY), None),
        (CAPACITY, 10.0, none_keeps, None, Some(CAPACITY)),
    ] {
        let (end, bounds) = search(lowest, |_, _| Some(excess));
        assert_eq!((end, bounds.found()), (expected_end, (lower, upper)));
    }
}

#[test]
fn above_what_the_harness_can_the_limit_is_not_known() {
    let (end, bounds) = search(10_000, |load, _| (load < 600_000).then_some(0.1));
    assert_eq!(end, SearchEnd::ScheduleNotKept);
    let (lower, upper) = bounds.found();
    let reach = bounds.out_of_reach().unwrap();
    assert!(upper.is_none() && lower.is_some_and(|it| it < 600_000));
    assert!((600_000..610_000).contains(&reach), "{reach}");
    let (end_at_once, no_bounds) = search(10_000, |_, _| None);
    let nothing = (SearchEnd::ScheduleNotKept, (None, None));
    assert_eq!((end_at_once, no_bounds.found()), nothing);
    // The limit is below.
    let (end_below, bounds_below) = search(10_000, |load, _| {
        (load < 600_000).then_some(if load < 500_000 { 0.1 } else { 9.0 })
    });
    assert_eq!(end_below, SearchEnd::Found);
    assert!(bounds_below.found().1.is_some_and(|it| it < 510_000));
}

#[test]
fn a_schedule_that_is_not_kept_once_is_tried_again() {
    let mut missed = 0;
    let (end, bounds) = search(10_000, |load, _| {
        missed += 1;
        // Every seventh trial.
        (missed % 7 != 0).then_some(if load <= 700_000 { 0.1 } else { 9.0 })
    });
    assert_eq!(end, SearchEnd::Found, "{bounds:?}");
    let (lower, upper) = bounds.found();
    assert!(lower.unwrap() <= 700_000 && upper.unwrap() > 700_000);
}

/// Loads below keep and break it as they like: the search ends, and its bounds do not contradict each other.
#[test]
fn any_response_comes_to_an_end() {
    for seed in 0..2_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (scatter, waves) = (rng.f64() * 3.0, rng.f64() * 4.0);
        let missed = rng.f64() * 0.4;
        let lowest = rng.u64(1..=CAPACITY);
        let (_, bounds) = search(lowest, |load, _| {
            let at = load as f64 / CAPACITY as f64;
            let wave = (at * 20.0 * waves).sin() * waves;
            let noise = (rng.f64() - 0.5) * scatter;
            (rng.f64() > missed).then(|| ((at - 0.5) * 4.0 + wave + noise).exp())
        });
        if let (Some(lower), Some(upper)) = bounds.found() {
            assert!(lower < upper);
        }
    }
}

#[test]
fn where_a_lower_load_is_slower_the_limit_below_it_counts() {
    // Workers that sleep at low loads are slow there.
    let is_kept = |load| (200_000..=800_000).contains(&load);
    let excess = |load| if is_kept(load) { 0.1 } else { 9.0 };
    let (end, bounds) = search(10_000, |load, _| Some(excess(load)));
    let (lower, upper) = bounds.found();
    assert_eq!(end, SearchEnd::Found);
    assert!((792_000..=800_000).contains(&lower.unwrap()), "{lower:?}");
    assert!((800_001..=808_000).contains(&upper.unwrap()), "{upper:?}");
}

#[test]
fn the_estimate_shrinks_and_is_never_nothing() {
    let mut bounds = Bounds::new(Rule::ByExcess, 10_000, CAPACITY);
    let mut estimates = Vec::new();
    while let Next::Try { load, is_short } = bounds.next() {
        estimates.push(bounds.trials_left());
        let (outcome, excess) =
            if load <= 640_000 { (TrialOutcome::Kept, 0.1) } else { (TrialOutcome::Broke, 9.0) };
        bounds.add(load, is_short, outcome, excess);
    }
    assert!(estimates.iter().all(|left| *left > 0));
    let trials = u32::try_from(estimates.len()).unwrap();
    assert!(estimates[0].abs_diff(trials) <= trials / 2, "{estimates:?}");
    assert!(estimates[estimates.len() - 1] <= 4, "{estimates:?}");
}

fn evidence(excesses: &[f64]) -> Evidence {
    let mut trials = Evidence::default();
    excesses.iter().for_each(|excess| trials.add(*excess));
    trials
}

#[test]
fn four_clear_trials_are_a_bound() {
    assert_eq!(evidence(&[0.05; 3]).bound(), None);
    assert_eq!(evidence(&[0.05; 4]).bound(), Some(Bound::Lower));
    assert_eq!(evidence(&[0.0; 4]).bound(), Some(Bound::Lower));
    assert_eq!(evidence(&[20.0; 4]).bound(), Some(Bound::Upper));
    assert_eq!(evidence(&[0.8, 1.2, 0.9, 1.1]).bound(), None);
}

#[test]
fn rare_bursts_count_against_a_lower_bound_by_what_they_weigh() {
    // The mean is above 1, though 7 of 8 kept.
    let bursts = evidence(&[0.3, 0.2, 0.3, 0.2, 0.3, 0.2, 0.3, 30.0]);
    assert_eq!(bursts.bound(), None);
    assert!(bursts.is_worn_out());
    // Widely scattered, all kept.
    assert_eq!(evidence(&[0.9, 0.1, 0.9, 0.1, 0.9]).bound(), None);
}

#[test]
fn what_speaks_against_a_bound_ends_its_trials() {
    let broke = evidence(&[2.0, 0.5, 2.0]);
    assert!(broke.is_hopeless_as(Bound::Lower));
    assert!(!broke.is_hopeless_as(Bound::Upper));
    assert!(evidence(&[0.9, 0.9]).is_hopeless_as(Bound::Upper));
    assert!(evidence(&[0.01, 0.01, 1.1, 0.01]).mean() < 0.0);
    assert!(!evidence(&[1.01, 0.5, 0.5]).is_hopeless_as(Bound::Lower));
    assert!(!evidence(&[]).is_hopeless_as(Bound::Lower));
    let mut unkept = Evidence::default();
    unkept.add_unkept();
    assert!(!unkept.is_out_of_reach());
    unkept.add_unkept();
    assert!(unkept.is_hopeless_as(Bound::Upper) && unkept.trials() == 2);
    (0..3).for_each(|_| unkept.add(2.0));
    assert!(!unkept.is_out_of_reach(), "the machine was busy for a while");
}
