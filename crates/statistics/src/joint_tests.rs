//! Tests of questions that are tested together.

use fastrand::Rng;

use super::deals::DealsBySize;
use super::joint::{Series, Unit, critical, test};

/// Figures of one question on both sides, and their runs.
struct Made {
    units: [Vec<Unit>; 2],
    logs: [Vec<f64>; 2],
    block: usize,
}

/// Normal figures of so many launches a side; the new side's are `shift` higher.
fn made(rng: &mut Rng, launches: usize, shift: f64) -> Made {
    let units = || (0..launches).map(|launch| Unit { launch, run: None }).collect();
    let mut side = |shift: f64| {
        (0..launches).map(|_| shift + (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0).collect()
    };
    Made { units: [units(), units()], logs: [side(0.0), side(shift)], block: 0 }
}

fn series(all: &[Made]) -> Vec<Series<'_>> {
    all.iter()
        .map(|made| Series {
            units: made.units.each_ref().map(Vec::as_slice),
            logs: made.logs.each_ref().map(Vec::as_slice),
            margin: 0.1,
            downwards: false,
            block: made.block,
        })
        .collect()
}

fn p(all: &[Made]) -> Vec<f64> {
    let tested = test(&series(all), 3, &mut DealsBySize::default());
    tested.iter().map(|tested| tested.p).collect()
}

#[test]
fn a_clear_question_stays_clear_among_two_hundred() {
    let mut rng = Rng::with_seed(1);
    let mut all = vec![made(&mut rng, 5, 20.0)];
    all.extend((0..200).map(|_| made(&mut rng, 5, 0.0)));
    let found = p(&all);
    assert!((found[0] - 1.0 / 252.0).abs() < 1e-9, "{}", found[0]);
    assert!(found[1..].iter().all(|p| *p > 0.02));
}

#[test]
fn what_all_of_them_show_is_found_in_all_of_them() {
    let mut rng = Rng::with_seed(2);
    let all: Vec<Made> = (0..126).map(|n| made(&mut rng, 5, 8.0 + f64::from(n))).collect();
    let found = p(&all);
    assert!(found.iter().all(|p| *p < 0.03), "{found:?}");
}

#[test]
fn the_same_question_twice_is_one() {
    let mut rng = Rng::with_seed(3);
    let one = made(&mut rng, 6, 1.2);
    let twenty: Vec<Made> = (0..20)
        .map(|_| Made { units: one.units.clone(), logs: one.logs.clone(), block: 0 })
        .collect();
    let alone = p(&twenty[..1])[0];
    assert!(p(&twenty).iter().all(|p| (p - alone).abs() < 1e-12));
}

#[test]
fn without_a_change_the_least_p_is_small_as_seldom_as_it_says() {
    let mut rng = Rng::with_seed(4);
    for launches in [5, 8] {
        let sittings = 400;
        let few = (0..sittings)
            .filter(|_| {
                let mut all: Vec<Made> = (0..8).map(|_| made(&mut rng, launches, 0.0)).collect();
                // One that two launches lack, and some that were measured in others.
                for side in 0..2 {
                    all[0].units[side].remove(1);
                    all[0].logs[side].remove(1);
                }
                all[6].block = 1;
                all[7].block = 1;
                p(&all).into_iter().fold(1.0, f64::min) <= 0.05
            })
            .count();
        assert!(few <= 34, "{launches}: {few} of {sittings}");
    }
}

#[test]
fn what_chance_reaches_grows_with_the_questions() {
    let mut rng = Rng::with_seed(5);
    let all: Vec<Made> = (0..50).map(|_| made(&mut rng, 8, 0.0)).collect();
    let reached =
        |count: usize| critical(&series(&all[..count]), 3, 0.03, &mut DealsBySize::default());
    assert_eq!(reached(0), None);
    assert!(reached(1).unwrap() < reached(50).unwrap());
}
