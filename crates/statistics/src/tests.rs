//! Tests of questions that are tested together, and of their answers.

use fastrand::Rng;
use proptest::collection;
use proptest::prelude::*;

use super::deals::{Chance, Series, Unit};
use super::judgement::{
    Answer, Figures, Judgement, Question, Unsettled, can_tell, fewest_a_side, verdicts,
};
use super::ratio::Verdict;

/// Figures of one question on both sides, and their runs.
struct Made {
    units: [Vec<Unit>; 2],
    logs: [Vec<f64>; 2],
}

/// Normal figures of so many launches a side, numbered from `first`; the new side's are `shift` higher.
fn made(rng: &mut Rng, first: usize, launches: usize, shift: f64) -> Made {
    let units = || (first..first + launches).map(|launch| Unit { launch, run: None }).collect();
    let mut side = |mean: f64| {
        (0..launches).map(|_| mean + (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0).collect()
    };
    Made { units: [units(), units()], logs: [side(0.0), side(shift)] }
}

/// What chance makes of all, and the statistic of each.
fn chance(questions: &[Made]) -> (Chance, Vec<f64>) {
    let series: Vec<Series> = questions
        .iter()
        .map(|made| {
            let units = made.units.each_ref().map(Vec::as_slice);
            Series::new(units, made.logs.each_ref().map(Vec::as_slice), 0.1)
        })
        .collect();
    let statistics = series.iter().map(|one| one.statistic().0).collect();
    (Chance::new(&series.iter().collect::<Vec<_>>()), statistics)
}

fn p(questions: &[Made]) -> Vec<f64> {
    let (chance, statistics) = chance(questions);
    statistics.into_iter().map(|statistic| chance.p(statistic)).collect()
}

#[test]
fn a_clear_question_stays_clear_among_two_hundred() {
    let mut rng = Rng::with_seed(1);
    let mut questions = vec![made(&mut rng, 0, 5, 20.0)];
    questions.extend((0..200).map(|_| made(&mut rng, 0, 5, 0.0)));
    let found = p(&questions);
    assert!((found[0] - 2.0 / 252.0).abs() < 1e-9, "{}", found[0]);
    assert!(found[1..].iter().all(|p| *p > 0.02));
}

#[test]
fn what_all_of_them_show_is_found_in_all_of_them() {
    let mut rng = Rng::with_seed(2);
    let questions: Vec<Made> = (0..126).map(|n| made(&mut rng, 0, 5, 8.0 + f64::from(n))).collect();
    let found = p(&questions);
    assert!(found.iter().all(|p| *p < 0.05), "{found:?}");
}

#[test]
fn the_same_question_twice_is_one() {
    let mut rng = Rng::with_seed(3);
    let one = made(&mut rng, 0, 6, 1.2);
    let twenty: Vec<Made> =
        (0..20).map(|_| Made { units: one.units.clone(), logs: one.logs.clone() }).collect();
    let alone = p(&twenty[..1])[0];
    assert!(p(&twenty).iter().all(|p| (p - alone).abs() < 1e-12));
}

#[test]
fn without_a_change_the_least_p_is_small_as_seldom_as_it_says() {
    let mut rng = Rng::with_seed(4);
    for launches in [5, 8] {
        let comparisons = 400;
        let few = (0..comparisons)
            .filter(|_| {
                let mut questions: Vec<Made> =
                    (0..6).map(|_| made(&mut rng, 0, launches, 0.0)).collect();
                // One that two launches lack, and some that were measured in others.
                for side in 0..2 {
                    questions[0].units[side].remove(1);
                    questions[0].logs[side].remove(1);
                }
                questions.extend((0..2).map(|_| made(&mut rng, 100, launches, 0.0)));
                p(&questions).into_iter().fold(1.0, f64::min) <= 0.05
            })
            .count();
        assert!(few <= 34, "{launches}: {few} of {comparisons}");
    }
}

#[test]
fn what_chance_reaches_grows_with_the_questions() {
    let mut rng = Rng::with_seed(5);
    let questions: Vec<Made> = (0..50).map(|_| made(&mut rng, 0, 8, 0.0)).collect();
    let reached = |count: usize| chance(&questions[..count]).0.reached(0.05);
    assert!(reached(1) < reached(50));
}

/// At the only analysis.
fn judge(questions: &[Question<'_>]) -> Judgement {
    super::judge(questions, 1.0)
}

const BASE: [f64; 10] = [20.0, 20.1, 19.9, 20.2, 19.8, 20.05, 19.95, 20.15, 19.85, 20.02];

const UNITS: [Unit; 12] = {
    let mut units = [Unit { launch: 0, run: None }; 12];
    let mut launch = 0;
    while launch < units.len() {
        units[launch].launch = launch;
        launch += 1;
    }
    units
};

fn question<'a>(case: usize, base: &'a [f64], new: &'a [f64]) -> Question<'a> {
    let figures = |values: &'a [f64]| Figures { units: &UNITS[..values.len()], values };
    Question {
        case,
        metric: 0,
        base: figures(base),
        new: figures(new),
        margin: 0.03,
        higher_is_better: true,
    }
}

/// The same figures in another order, so many times as large.
fn scaled(by: f64) -> [f64; 10] {
    std::array::from_fn(|n| BASE[n * 7 % 10] * by)
}

/// So many cases with so many runs a side; the new side's are `by` times as large.
fn judged(cases: usize, runs: usize, by: f64, then: impl Fn(&mut Vec<Question<'_>>)) -> Judgement {
    let new = scaled(by);
    let mut questions =
        (0..cases).map(|case| question(case, &BASE[..runs], &new[..runs])).collect();
    then(&mut questions);
    judge(&questions)
}

fn one(base: &[f64], new: &[f64]) -> Answer {
    judge(&[question(0, base, new)]).by_case[0]
}

fn words(judgement: &Judgement) -> Vec<Verdict> {
    judgement.by_case.iter().map(|answer| answer.verdict).collect()
}

#[test]
fn the_four_words() {
    let (same, less, more) = (scaled(1.001), scaled(0.9), scaled(1.1));
    let wild = std::array::from_fn::<f64, 10, _>(|n| {
        BASE[n] * [0.8, 1.0, 1.2, 1.1, 0.85, 1.05, 0.9, 1.15, 1.0, 0.95][n]
    });
    let questions: Vec<Question> =
        (0..).zip([&same, &less, &more, &wild]).map(|(n, new)| question(n, &BASE, new)).collect();
    let judgement = judge(&questions);
    let expected = [Verdict::Equal, Verdict::Worse, Verdict::Better, Verdict::Unclear];
    assert_eq!(words(&judgement), expected);
    assert_eq!(verdicts(&questions, 1.0).by_case, expected);
    let mut less_is_better = question(0, &BASE, &less);
    less_is_better.higher_is_better = false;
    assert_eq!(judge(&[less_is_better]).by_case[0].verdict, Verdict::Better);
    assert!(matches!(
        judgement.by_case[3].unsettled,
        Some(Unsettled::Noise { about: Some(about) }) if about > 10
    ));
}

#[test]
fn too_few_say_how_many_are_needed() {
    for runs in [2, 3] {
        let less = scaled(0.5);
        let answer = one(&BASE[..runs], &less[..runs]);
        assert_eq!(answer.verdict, Verdict::Unclear);
        let few = Some(Unsettled::TooFew { needed: 4 });
        assert_eq!(answer.unsettled, few, "{runs}");
        assert!(answer.estimate.is_some());
    }
    assert_eq!(one(&[], &BASE).estimate, None);
}

#[test]
fn however_many_cases_are_slower_and_however_much_they_are_found() {
    for slower in [0.95, 0.9, 0.5, 0.1] {
        let judgement = judged(18, 5, slower, |_| ());
        assert_eq!(words(&judgement), [Verdict::Worse; 18], "{slower}");
        assert_eq!(judgement.over_all.len(), 1, "one metric is pooled");
        let (pooled, answer) = &judgement.over_all[0];
        assert_eq!((pooled.cases, answer.verdict), (18, Verdict::Worse));
        let ratio = answer.estimate.unwrap().ratio;
        assert!((ratio / slower - 1.0).abs() < 0.02, "{ratio}");
    }
}

#[test]
fn what_single_cases_hide_is_found_over_all() {
    // Each case scatters by 5 % in its own way, and all are 4 % slower.
    let mut rng = Rng::with_seed(1);
    let mut side = |by: f64| -> Vec<Vec<f64>> {
        (0..30).map(|_| (0..8).map(|_| by * (0.95 + 0.1 * rng.f64())).collect()).collect()
    };
    let (base, new) = (side(20.0), side(19.2));
    let questions: Vec<_> = (0..30).map(|case| question(case, &base[case], &new[case])).collect();
    let judgement = judge(&questions);
    assert_eq!(judgement.over_all[0].1.verdict, Verdict::Worse);
    let mut words = words(&judgement);
    words.retain(|word| *word == Verdict::Unclear);
    assert!(words.len() > 15, "{words:?}");
}

#[test]
fn a_case_that_a_launch_lacks_counts_in_the_others() {
    let judgement = judged(4, 6, 0.9, |questions| {
        questions[2].base = Figures { units: &UNITS[1..6], values: &BASE[1..6] };
    });
    assert_eq!(words(&judgement), [Verdict::Worse; 4]);
    let (pooled, answer) = &judgement.over_all[0];
    let found = (pooled.cases, pooled.base.len(), answer.verdict);
    assert_eq!(found, (4, 6, Verdict::Worse));
}

#[test]
fn cases_of_other_launches_are_judged_too_but_not_pooled_with_these() {
    let judgement = judged(3, 6, 0.9, |questions| {
        questions[2].base.units = &UNITS[6..12];
        questions[2].new.units = &UNITS[6..12];
    });
    assert_eq!(words(&judgement), [Verdict::Worse; 3]);
    assert_eq!(judgement.over_all[0].0.cases, 2);
}

#[test]
fn the_reach_tells_what_can_be_settled_before_anything_is_found() {
    let quiet = judged(20, 5, 1.0, |_| ());
    let (by_case, over_all) = (quiet.reach_by_case, quiet.reach_over_all);
    assert_eq!((by_case.questions, by_case.settled), (20, 20));
    assert_eq!((over_all.questions, over_all.settled), (1, 1));
    let few = judged(20, 3, 0.5, |_| ());
    let (few_by_case, few_over_all) = (few.reach_by_case, few.reach_over_all);
    assert_eq!((few_over_all.settled, few_over_all.needed), (0, Some(4)));
    assert_eq!((few_by_case.settled, few_by_case.needed), (0, Some(4)));
    // Every case scatters by 10 %.
    let mut rng = Rng::with_seed(2);
    let mut case = || -> Vec<f64> { (0..5).map(|_| 18.0 + 4.0 * rng.f64()).collect() };
    let sides: Vec<_> = (0..20).map(|_| (case(), case())).collect();
    let noisy = (0..).zip(&sides).map(|(n, (base, new))| question(n, base, new));
    let noisy = judge(&noisy.collect::<Vec<_>>()).reach_by_case;
    assert!(noisy.settled < 20 && noisy.needed > Some(5), "{noisy:?}");
}

#[test]
fn runs_that_all_tie_are_equal() {
    assert_eq!(one(&[1.0; 5], &[1.0; 5]).verdict, Verdict::Equal);
}

#[test]
fn one_outlier_neither_widens_the_interval_much_nor_hides_a_change() {
    for runs in [5, 10] {
        let (same, less) = (scaled(1.001), scaled(0.9));
        for outlier in [0.3, 3.0] {
            let mut new = same[..runs].to_vec();
            new[1] *= outlier;
            let estimate = one(&BASE[..runs], &new).estimate.unwrap();
            assert!(estimate.low > 0.96 && estimate.high < 1.04, "{estimate:?}");
            let mut slower = less[..runs].to_vec();
            slower[1] *= outlier;
            let verdict = one(&BASE[..runs], &slower).verdict;
            assert_eq!(verdict, Verdict::Worse, "{runs}, {outlier}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn answers_are_sound_and_turn_round_with_the_sides(
        base in collection::vec(0.1f64..1000.0, 1..12),
        new in collection::vec(0.1f64..1000.0, 1..12),
    ) {
        let there = one(&base, &new);
        let found = there.estimate.unwrap();
        prop_assert!(found.low <= found.ratio && found.ratio <= found.high);
        prop_assert!(there.p_corrected.is_none_or(|p| (0.0..=1.0).contains(&p)));
        prop_assert_eq!(there.verdict == Verdict::Unclear, there.unsettled.is_some());
        match there.verdict {
            Verdict::Equal => prop_assert!(found.low >= 0.97 && found.high <= 1.03),
            Verdict::Worse => prop_assert!(found.high < 1.0),
            Verdict::Better => prop_assert!(found.low > 1.0),
            Verdict::Unclear => {}
        }
        let mut opposite = question(0, &base, &new);
        opposite.higher_is_better = false;
        let turned = match there.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            same => same,
        };
        prop_assert_eq!(judge(&[opposite]).by_case[0].verdict, turned);
    }
}

/// The new side has half as much, and neither side scatters.
#[test]
fn a_number_can_tell_if_the_clearest_change_is_found_with_it() {
    for (base, new, part) in
        [(3, 3, 1.0), (4, 4, 1.0), (5, 3, 1.0), (9, 1, 1.0), (4, 4, 0.5), (5, 5, 0.25)]
    {
        let (old, half) = (vec![10.0; base], vec![5.0; new]);
        let found = verdicts(&[question(0, &old, &half)], part).by_case;
        let is_found = found == [Verdict::Worse];
        assert_eq!(is_found, can_tell(base, new, part), "{base}, {new}, {part}");
    }
    assert_eq!([1.0, 0.5, 0.25].map(fewest_a_side), [4, 5, 5]);
}
