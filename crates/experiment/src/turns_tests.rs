//! Experiments with a made-up bench in virtual time: what a figure is in a round follows from a rule.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Why a round ended an experiment.
#[derive(Debug, PartialEq)]
struct Broken;

/// What a side comes to in a round; first, whether it is the first of the round.
type Rule = fn(side: usize, round: u32, first: bool) -> Result<Measured, Broken>;

/// A bench of which each run takes a second.
struct Virtual {
    rule: Rule,
    leader: fn(u32) -> Option<usize>,
    /// Least rounds that count.
    least: u32,
    spent: Duration,
    /// The sides of each round, in order.
    order: Vec<Vec<usize>>,
    /// What each side but the base came to, when it was published last.
    published: Vec<Option<CaseComparison>>,
    /// Each verdict that was published, in order.
    verdicts: Vec<Verdict>,
}

impl Bench for Virtual {
    type Error = Broken;

    fn measure(&mut self, side: usize, round: u32) -> Result<Measured, Broken> {
        self.spent += SECOND;
        self.order.resize(round as usize, Vec::new());
        let sides = &mut self.order[round as usize - 1];
        sides.push(side);
        (self.rule)(side, round, sides.len() == 1)
    }

    fn words(&self, _: &Broken) -> String {
        "interrupted".to_owned()
    }

    fn publish(&mut self, side: usize, comparison: &CaseComparison) {
        self.published.resize(self.published.len().max(side), None);
        self.published[side - 1] = Some(comparison.clone());
        self.verdicts.push(comparison.verdict());
    }

    fn leader(&self, round: u32) -> Option<usize> {
        (self.leader)(round)
    }

    fn spent(&self) -> Duration {
        self.spent
    }
}

impl Virtual {
    fn new(rule: Rule) -> Virtual {
        Virtual {
            rule,
            leader: |_| None,
            least: 8,
            spent: Duration::ZERO,
            order: Vec::new(),
            published: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// Measures the base and others by their names, at most 24 rounds of throughput and p99.
    fn compare(mut self, others: &[&str], budget: Option<Duration>) -> Virtual {
        assert_eq!(self.run(others, budget), Ok(()));
        self
    }

    fn run(&mut self, others: &[&str], budget: Option<Duration>) -> Result<(), Broken> {
        let others = others.iter().map(|name| CaseComparison {
            sides: ["base".to_owned(), (*name).to_owned()],
            ..CaseComparison::default()
        });
        let questions = [Metric::GbitPerS, Metric::P99Ns].map(Question::new).to_vec();
        InTurns::new(others, questions, self.least, Stop { most: 24, budget }).run(self)
    }

    fn of(&self, side: usize) -> &CaseComparison {
        self.published[side - 1].as_ref().unwrap()
    }
}

/// Throughput with a little luck, without latencies.
fn at(gbit_per_s: f64, round: u32) -> Result<Measured, Broken> {
    let luck = 1.0 + 0.001 * f64::from(round * 5 % 8);
    Ok(Measured { figures: vec![Some(gbit_per_s * luck), None], ..Measured::default() })
}

fn doubtful(why: &str) -> Result<Measured, Broken> {
    Ok(Measured { doubt: Some(why.to_owned()), ..Measured::default() })
}

/// A case, and the case with one setting changed, as a search for a cause does: no process, no network, no clock.
#[test]
fn a_case_beside_itself_with_one_setting_changed() {
    // Twice the depth brings a fifth, another MTU nothing, and less signalling costs.
    let bench = Virtual::new(|side, round, _| at([10.0, 12.0, 10.0, 8.0][side], round));
    let bench = bench.compare(&["tx-depth 256", "mtu 1024", "signal-every 1"], None);
    let expected = [Verdict::Faster, Verdict::Equal, Verdict::Slower];
    for ((side, verdict), ratio) in (1..).zip(expected).zip([1.2, 1.0, 0.8]) {
        let comparison = bench.of(side);
        assert_eq!((comparison.verdict(), comparison.rounds.len()), (verdict, 8));
        let [throughput] = &comparison.metrics[..] else {
            panic!("{comparison:?}");
        };
        assert!((throughput.ratio.unwrap() - ratio).abs() < 1e-9);
        assert!(throughput.low <= throughput.ratio && throughput.ratio <= throughput.high);
        assert_eq!((throughput.base.len(), throughput.note.as_deref()), (8, None));
    }
    // The base stands at either end of each round.
    assert!(bench.order.iter().all(|order| *order == [0, 1, 2, 3] || *order == [3, 2, 1, 0]));
    assert_eq!(bench.spent, SECOND * 4 * 8);
}

#[test]
fn a_side_that_is_clear_is_not_measured_any_more() {
    let bench = Virtual::new(|side, round, _| match side {
        2 => at([6.0, 8.0, 13.0][round as usize % 3], round),
        side => at([10.0, 5.0][side], round),
    });
    let bench = bench.compare(&["clear", "scattered"], None);
    assert_eq!(bench.of(1).rounds.len(), 8);
    let scattered = bench.of(2);
    assert_eq!((scattered.verdict(), scattered.rounds.len()), (Verdict::Unclear, 24));
    let note = scattered.metrics[0].note.as_deref();
    assert_eq!(note, Some("24 rounds did not settle it"));
    assert!(bench.order[8..].iter().all(|order| order.len() == 2 && !order.contains(&1)));
}

#[test]
fn the_budget_ends_it_and_nothing_is_said_of_few_rounds() {
    let clear: Rule = |side, round, _| at([10.0, 5.0][side], round);
    // Seven rounds of two seconds.
    let bench = Virtual::new(clear).compare(&["new"], Some(SECOND * 15));
    let comparison = bench.of(1);
    assert_eq!((comparison.rounds.len(), comparison.verdict()), (7, Verdict::Unclear));
    let figures = &comparison.metrics[0];
    let note = (figures.note.as_deref(), figures.settled_with);
    assert_eq!(note, (Some("needs at least 8 rounds"), Some(8)));
    // The last round is a look whenever it comes.
    let mut late = Virtual::new(clear);
    late.least = 12;
    let late = late.compare(&["new"], Some(SECOND * 21));
    assert_eq!((late.of(1).rounds.len(), late.of(1).verdict()), (10, Verdict::Slower));
}

#[test]
fn of_latency_more_is_slower_and_either_figure_makes_a_case_slower() {
    // Throughput and p99 of the base, and of sides by name.
    let bench = Virtual::new(|side, _, _| {
        let figures = [[10.0, 10.0], [10.0, 40.0], [5.0, 10.0], [12.5, 10.0], [10.0, 5.0]][side];
        Ok(Measured { figures: figures.map(Some).to_vec(), ..Measured::default() })
    });
    let bench = bench.compare(&["late", "half", "more", "prompt"], None);
    let (faster, slower) = (Verdict::Faster, Verdict::Slower);
    for (side, (verdict, harms)) in (1..).zip([
        (slower, ["1.00 [1.00, 1.00]", "4.00 [4.00, 4.00]"]),
        (slower, ["2.00 [2.00, 2.00]", "1.00 [1.00, 1.00]"]),
        (faster, ["0.80 [0.80, 0.80]", "1.00 [1.00, 1.00]"]),
        (faster, ["1.00 [1.00, 1.00]", "0.50 [0.50, 0.50]"]),
    ]) {
        let comparison = bench.of(side);
        assert_eq!(comparison.verdict(), verdict, "{side}");
        let found = comparison.metrics.iter().filter_map(MetricComparison::harm_text);
        assert!(found.eq(harms), "{comparison:?}");
    }
}

#[test]
fn rounds_that_do_not_count_are_told_and_three_in_a_row_end_it() {
    let bench = Virtual::new(|side, round, _| match (side, round) {
        (1, 2) => Ok(Measured { output: Some("boom".to_owned()), ..Measured::failed("it hung") }),
        (0, 4) => doubtful("edge missed"),
        _ => at(10.0, round),
    });
    let bench = bench.compare(&["new"], None);
    let comparison = bench.of(1);
    assert_eq!((comparison.verdict(), comparison.base_count), (Verdict::Equal, 8));
    let notes = ["1 of 10 rounds failed: it hung", "1 of 10 rounds do not count: edge missed"];
    assert_eq!(comparison.notes, notes);
    assert_eq!(comparison.rounds[1].output.as_deref(), Some("boom"));
    // The figures of the other side are kept.
    assert_eq!(comparison.rounds[3].new.len(), 2);

    let fails: Rule =
        |side, round, _| if side == 1 { Ok(Measured::failed("no")) } else { at(1.0, round) };
    let failing = Virtual::new(fails).compare(&["new"], None);
    assert_eq!((failing.order.len(), failing.of(1).verdict()), (3, Verdict::Unclear));
    assert_eq!(failing.of(1).metrics[0].ratio, None);
}

#[test]
fn half_of_the_rounds_that_count_begin_with_either_also_where_some_failed() {
    let mut bench = Virtual::new(|_, round, _| match round {
        2 | 5 | 6 => doubtful("edge missed"),
        _ => at([6.0, 8.0, 13.0][round as usize % 3], round),
    });
    bench.leader = |round| (round == 1).then_some(1);
    let bench = bench.compare(&["new"], None);
    assert_eq!(bench.order[0], [1, 0]);
    let counted = bench.of(1).rounds.iter().filter(|round| round.counts());
    let first: Vec<&str> = counted.map(|round| &*round.first).collect();
    for pair in first.chunks_exact(2) {
        assert_ne!(pair[0], pair[1], "{first:?}");
    }
}

#[test]
fn going_first_decides_nothing() {
    let bench = Virtual::new(|_, round, first| at(if first { 11.0 } else { 10.0 }, round));
    let bench = bench.compare(&["new"], None);
    assert_eq!((bench.of(1).verdict(), bench.of(1).rounds.len()), (Verdict::Equal, 8));
}

#[test]
fn between_looks_nothing_is_said() {
    // It is clear from the ninth round on, but the next look comes later.
    let bench = Virtual::new(|side, round, _| match (side, round) {
        (1, ..=8) => at([6.0, 8.0, 13.0][round as usize % 3], round),
        _ => at([10.0, 5.0][side], round),
    });
    let bench = bench.compare(&["new"], None);
    let last = bench.verdicts.len();
    assert!([16, 24].contains(&last), "{last}");
    assert_eq!(bench.verdicts[last - 1], Verdict::Slower);
    assert!(bench.verdicts[..last - 1].iter().all(|verdict| *verdict == Verdict::Unclear));
}

#[test]
fn what_was_measured_is_kept_when_a_round_ends_it() {
    let mut bench = Virtual::new(|side, round, _| match (side, round) {
        (1, 1) => at(10.0, round),
        _ => Err(Broken),
    });
    assert_eq!(bench.run(&["new"], None), Err(Broken));
    let [round] = &bench.of(1).rounds[..] else {
        panic!("{:?}", bench.of(1));
    };
    assert_eq!((round.failure.as_deref(), round.new.len()), (Some("interrupted"), 2));
}
