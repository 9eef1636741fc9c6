//! What rounds come to, without running any.

use report::results::model::FlowResult;

use super::*;
use crate::protocol::message::tests::case;

fn rounds(attackers: &[&str]) -> Rounds {
    Rounds {
        attackers: attackers.iter().map(|name| (*name).to_owned()).collect(),
        least: 8,
        most: 24,
    }
}

fn attacked() -> Attacked {
    let case = case();
    Attacked::new(&rounds(&["a"]), "a", &case, &case)
}

fn figures(gbit_per_s: f64, p99_ns: Option<f64>) -> Counted {
    let attacker_gbit_per_s = 7.0;
    Ok(Figures {
        gbit_per_s,
        p99_ns,
        attacker_gbit_per_s,
    })
}

/// So many rounds in which the victim beside it has this part of its throughput and so many times its p99.
fn after(count: u32, part: impl Fn(u32) -> f64, p99: Option<f64>) -> Attacked {
    let mut attacked = attacked();
    for number in 1..=count {
        let first = order(std::slice::from_ref(&attacked), number)[0] == ALONE;
        let luck = 10.0 + 0.01 * f64::from(number * 7 % 10);
        // What is first is faster.
        let bias = |is_first| if is_first { 1.1 } else { 1.0 };
        let alone = figures(luck * bias(first), p99.map(|_| luck / bias(first)));
        let beside = figures(
            luck * part(number) * bias(!first),
            p99.map(|times| luck * times / bias(!first)),
        );
        attacked.add((number, first), &alone, &beside, false);
    }
    attacked
}

fn half(_: u32) -> f64 {
    0.5
}

fn scattered(number: u32) -> f64 {
    [0.6, 0.8, 1.3][number as usize % 3]
}

#[test]
fn harm_is_a_factor_above_one_of_either_figure() {
    for (part, p99, words) in [
        (0.5, None, ["harmed", "harmed", "unclear"]),
        (1.0, Some(1.0), ["not harmed", "not harmed", "not harmed"]),
        (1.2, Some(1.0), ["not harmed", "not harmed", "not harmed"]),
        (1.0, Some(3.0), ["harmed", "not harmed", "harmed"]),
    ] {
        let attacked = after(8, |_| part, p99);
        let told = &attacked.told;
        let found = [
            &told.verdict,
            &told.gbit_per_s.verdict,
            &told.p99_ns.verdict,
        ];
        assert_eq!(found, words, "{told:?}");
        assert!(attacked.is_over());
        let near = |found: Option<f64>, wanted: f64| (found.unwrap() / wanted - 1.0).abs() < 1e-6;
        let gbit = &told.gbit_per_s;
        assert!(near(gbit.factor, 1.0 / part), "{gbit:?}");
        assert!(gbit.factor_low <= gbit.factor && gbit.factor <= gbit.factor_high);
        assert!(
            p99.is_none_or(|times| near(told.p99_ns.factor, times)),
            "{told:?}"
        );
        assert_eq!((told.attacker_gbit_per_s, &told.note), (Some(7.0), &None));
        let first = told.rounds.iter().filter(|it| it.first == "alone").count();
        assert_eq!(first, 4);
    }
}

#[test]
fn between_looks_nothing_is_said_and_at_the_end_why() {
    for (count, part) in [(6, half as fn(u32) -> f64), (9, scattered), (14, scattered)] {
        let attacked = after(count, part, None);
        assert_eq!(attacked.told.verdict, UNCLEAR);
        assert!(!attacked.is_over());
    }
    let mut attacked = after(6, half, None);
    attacked.add((7, true), &figures(10.0, None), &figures(5.0, None), true);
    let note = "fewer than 8 rounds decide nothing";
    assert_eq!(attacked.told.note.as_deref(), Some(note));
}

#[test]
fn rounds_that_do_not_count_end_it_after_three_in_a_row() {
    let mut attacked = after(8, scattered, None);
    assert!(!attacked.is_over());
    let bad = Err("edge missed".to_owned());
    attacked.add((9, true), &bad, &figures(9.0, None), false);
    attacked.add((10, true), &figures(9.0, None), &bad, false);
    assert!(!attacked.is_over());
    attacked.add((11, true), &bad, &bad, false);
    assert!(attacked.is_over());
    let note = "3 of 11 rounds do not count: alone: edge missed; 8 rounds did not settle it";
    assert_eq!(attacked.told.note.as_deref(), Some(note));
}

#[test]
fn a_round_has_the_victim_at_either_end_and_those_that_are_open() {
    let all = [
        after(8, half, None),
        after(6, half, None),
        after(6, half, None),
    ];
    assert_eq!(order(&all, 9), [0, 2, 3]);
    assert_eq!(order(&all, 10), [3, 2, 0]);
    assert!(order(&all[..1], 9).is_empty());
    let new = [attacked(), attacked()];
    assert_eq!(order(&new, 1), [0, 1, 2]);
}

#[test]
fn figures_are_of_the_victims_flows_and_both_must_move() {
    let flow = |bytes_rate: f64| {
        let mut flow = FlowResult::default();
        (flow.totals.gbit_per_s, flow.totals.messages) = (Some(bytes_rate), 1);
        flow
    };
    let mut run = Run {
        complete: true,
        flows: vec![flow(2.0), flow(3.0), flow(4.0)],
        ..Run::default()
    };
    let counted = Figures::of(&run, 2).unwrap();
    let found = (
        counted.gbit_per_s,
        counted.p99_ns,
        counted.attacker_gbit_per_s,
    );
    assert_eq!(found, (5.0, None, 4.0));
    run.flows[2] = flow(0.0);
    let why = |run: &Run| Figures::of(run, 2).unwrap_err();
    assert_eq!(why(&run), "the attacker moved nothing");
    run.complete = false;
    assert_eq!(why(&run), "the run is not complete");
}
