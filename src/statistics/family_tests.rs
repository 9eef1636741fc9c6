//! Tests of the family of questions.

use super::family::*;
use super::verdict::Verdict;

const BASE: [f64; 10] = [
    20.0, 20.1, 19.9, 20.2, 19.8, 20.05, 19.95, 20.15, 19.85, 20.02,
];

fn question<'a>(group: usize, base: &'a [f64], new: &'a [f64]) -> Question<'a> {
    Question {
        group,
        base,
        new,
        margin: 0.03,
        higher_is_better: true,
    }
}

fn scaled(by: f64) -> [f64; 10] {
    BASE.map(|value| value * by)
}

#[test]
fn the_four_words() {
    let (same, less, more) = (scaled(1.001), scaled(0.9), scaled(1.1));
    let wild = std::array::from_fn::<f64, 10, _>(|n| {
        BASE[n] * [0.8, 1.0, 0.9, 1.1, 0.85, 1.05, 0.88, 0.95, 1.02, 0.92][n]
    });
    let questions = [
        question(0, &BASE, &same),
        question(1, &BASE, &less),
        question(2, &BASE, &more),
        question(3, &BASE, &wild),
    ];
    let answers = judge(&questions);
    let words: Vec<Verdict> = answers.iter().map(|answer| answer.verdict).collect();
    assert_eq!(
        words,
        [
            Verdict::Equal,
            Verdict::Worse,
            Verdict::Better,
            Verdict::Unclear
        ]
    );
    assert!(matches!(
        answers[3].unsettled,
        Some(Unsettled::Noise { about: Some(about) }) if about > 10
    ));
}

#[test]
fn less_is_better_turns_the_words_round() {
    let less = scaled(0.9);
    let mut asked = question(0, &BASE, &less);
    asked.higher_is_better = false;
    assert_eq!(judge(&[asked])[0].verdict, Verdict::Better);
}

#[test]
fn too_few_say_how_many_are_needed() {
    let answer = judge(&[question(0, &BASE[..2], &BASE[..2])])[0];
    assert_eq!(answer.verdict, Verdict::Unclear);
    assert_eq!(answer.unsettled, Some(Unsettled::TooFew { needed: 5 }));
    assert!(answer.estimate.is_some());
    assert_eq!(judge(&[question(0, &[], &BASE)])[0].estimate, None);
}

#[test]
fn many_questions_take_more_runs_than_one() {
    let less = scaled(0.8);
    let one = judge(&[question(0, &BASE[..5], &less[..5])]);
    assert_eq!(one[0].verdict, Verdict::Worse);
    let many: Vec<_> = (0..20)
        .map(|group| question(group, &BASE[..5], &less[..5]))
        .collect();
    let answer = judge(&many)[0];
    assert_eq!(answer.verdict, Verdict::Unclear);
    assert_eq!(
        answer.unsettled,
        Some(Unsettled::TooMany {
            questions: 20,
            needed: 6
        })
    );
}

#[test]
fn what_cannot_come_out_or_repeats_is_not_corrected_for() {
    let (less, same) = (scaled(0.8), scaled(1.0));
    let (base, rates) = (BASE.map(|value| value / 5.0), less.map(|value| value / 5.0));
    // Bandwidth and its rate in one case, and twenty quiet cases.
    let mut questions = vec![
        question(0, &BASE[..5], &less[..5]),
        question(0, &base[..5], &rates[..5]),
    ];
    questions.extend((1..21).map(|group| question(group, &BASE[..5], &same[..5])));
    let answers = judge(&questions);
    assert_eq!(answers[0].verdict, Verdict::Worse);
    assert_eq!(answers[1].verdict, Verdict::Worse);
    assert!((answers[0].p_corrected.unwrap() - 1.0 / 252.0).abs() < 1e-9);
    assert!(
        answers[2..]
            .iter()
            .all(|answer| answer.verdict == Verdict::Equal)
    );
}

#[test]
fn runs_that_all_tie_are_equal() {
    let answer = judge(&[question(0, &[1.0; 5], &[1.0; 5])])[0];
    assert_eq!(answer.verdict, Verdict::Equal);
}

proptest::proptest! {
    #[test]
    fn answers_are_sound_and_turn_round_with_the_sides(
        base in proptest::collection::vec(0.1f64..1000.0, 1..12),
        new in proptest::collection::vec(0.1f64..1000.0, 1..12),
    ) {
        let there = judge(&[question(0, &base, &new)])[0];
        let found = there.estimate.unwrap();
        proptest::prop_assert!(found.low <= found.ratio && found.ratio <= found.high);
        proptest::prop_assert!(there.p_corrected.is_none_or(|p| (0.0..=1.0).contains(&p)));
        proptest::prop_assert_eq!(there.verdict == Verdict::Unclear, there.unsettled.is_some());
        let mut opposite = question(0, &base, &new);
        opposite.higher_is_better = false;
        let turned = match there.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            same => same,
        };
        proptest::prop_assert_eq!(judge(&[opposite])[0].verdict, turned);
    }
}
