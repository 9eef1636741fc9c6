//! What rounds come to, without running any.

use super::*;
use plan::Case;

/// What is left of the throughput in a round.
type Part = fn(u32) -> f64;

fn attacked() -> Attacked {
    let rounds = Rounds { attackers: Vec::new(), least: 8, most: 24 };
    Attacked::new(&rounds, "a", &Case::sample(), &Case::sample())
}

fn figures(gbit_per_s: f64, p99_ns: Option<f64>) -> Counted {
    Ok(Figures { gbit_per_s, p99_ns, attacker_gbit_per_s: 7.0 })
}

/// So many rounds in which the victim beside it has this part of its throughput and so many times its p99; what is first is
/// faster.
fn after(count: u32, part: Part, p99: Option<f64>) -> Attacked {
    let mut attacked = attacked();
    for number in 1..=count {
        let first = order(std::slice::from_ref(&attacked), number)[0] == ALONE;
        let luck = 10.0 + 0.01 * f64::from(number * 7 % 10);
        let (own, other) = if first { (1.1, 1.0) } else { (1.0, 1.1) };
        let alone = figures(luck * own, p99.map(|_| luck / own));
        let beside = figures(luck * part(number) * other, p99.map(|it| luck * it / other));
        attacked.add(first, &alone, &beside, false);
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
    let cases: [(Part, _, _, _); 4] = [
        (half, None, 2.0, "harmed harmed unclear"),
        (|_| 1.0, Some(1.0), 1.0, "not harmed not harmed not harmed"),
        (|_| 1.25, Some(1.0), 0.8, "not harmed not harmed not harmed"),
        (|_| 1.0, Some(3.0), 1.0, "harmed not harmed harmed"),
    ];
    for (part, p99, factor, words) in cases {
        let attacked = after(8, part, p99);
        let BesideAttacker { verdict, gbit_per_s: gbit, p99_ns, note, .. } = &attacked.report;
        let verdicts = [verdict, &gbit.verdict, &p99_ns.verdict].map(String::as_str);
        assert_eq!(verdicts.join(" "), words);
        assert!(attacked.is_over() && note.is_none());
        let near = |found: Option<f64>, wanted: f64| (found.unwrap() / wanted - 1.0).abs() < 1e-6;
        assert!(near(gbit.factor, factor), "{gbit:?}");
        assert!(gbit.factor_low <= gbit.factor && gbit.factor <= gbit.factor_high);
        assert!(p99.is_none_or(|it| near(p99_ns.factor, it) && p99_ns.alone < Some(11.0)));
        assert_eq!(attacked.report.attacker_gbit_per_s, Some(7.0));
        let first = attacked.throughput.iter().filter(|it| it.new_first);
        assert_eq!(first.count(), 4);
    }
}

#[test]
fn between_looks_nothing_is_said_and_at_the_end_why() {
    let cases: [(u32, Part); 3] = [(6, half), (9, scattered), (14, scattered)];
    for (count, part) in cases {
        let attacked = after(count, part, None);
        assert!(attacked.report.verdict == UNCLEAR && !attacked.is_over());
    }
    let mut attacked = after(6, half, None);
    attacked.add(true, &figures(10.0, None), &figures(5.0, None), true);
    let note = "a verdict needs at least 8 rounds";
    assert_eq!(attacked.report.note.as_deref(), Some(note));
}

#[test]
fn rounds_that_do_not_count_end_it_after_three_in_a_row() {
    let mut attacked = after(8, scattered, Some(1.0));
    let bad = Err("edge missed".to_owned());
    attacked.add(true, &figures(9.0, None), &bad, false);
    attacked.add(true, &bad, &bad, false);
    assert!(!attacked.is_over());
    attacked.add(true, &bad, &figures(9.0, None), false);
    assert!(attacked.is_over());
    let note = "3 of 11 rounds do not count: alone: edge missed; 8 rounds did not settle it";
    assert_eq!(attacked.report.note.as_deref(), Some(note));
}

#[test]
fn a_round_has_the_victim_at_either_end_and_those_that_are_open() {
    let attackers = [8, 6, 6].map(|count| after(count, half, None));
    assert_eq!(order(&attackers, 9), [0, 2, 3]);
    assert_eq!(order(&attackers, 10), [3, 2, 0]);
    assert!(order(&attackers[..1], 9).is_empty());
    assert_eq!(order(&[attacked(), attacked()], 1), [0, 1, 2]);
}

#[test]
fn figures_are_of_the_victims_flows_and_both_must_move() {
    let flow = |gbit_per_s| {
        let mut flow = FlowResult::default();
        flow.totals.gbit_per_s = Some(gbit_per_s);
        flow
    };
    let mut run =
        Run { complete: true, flows: [2.0, 3.0, 4.0].map(flow).to_vec(), ..Run::default() };
    let counted = Figures::from_run(&run, 2).unwrap();
    assert_eq!((counted.gbit_per_s, counted.attacker_gbit_per_s), (5.0, 4.0));
    run.flows[2] = flow(0.0);
    let why = |it: &Run| Figures::from_run(it, 2).unwrap_err();
    assert_eq!(why(&run), "the attacker moved nothing");
    run.complete = false;
    assert_eq!(why(&run), "the run is not complete");
}
