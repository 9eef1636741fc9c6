//! Every figure of results of every kind: well-formed, with all text in the frame and apart, and nothing made up.

mod launches;
mod loads;
mod maps;
mod meshes;
mod qps;

use proptest::prelude::*;
use results::{
    load::{Found, Loaded},
    model::*,
    sample::{self, has, limits, node, window},
};
use settings::{Rate, Settings};

use super::*;
use crate::judge::compare::{Aspect, Options, compare};
use crate::observe::Metric;
use crate::show::plot::{
    self,
    draw::tests::faults,
    figure::{Cell, Figure, Table},
    figures::nodes::Racks,
    rows::Sides,
    specs,
};

/// Every figure of these results, compared with a base if there is one.
fn all_figures(base: &[Loaded], new: &[Loaded]) -> Vec<Figure> {
    let options = Options { across: Aspect::ALL.to_vec(), ..Options::default() };
    let [found_base, found_new] =
        [base, new].map(|side| Found { results: side.to_vec(), refused: Vec::new() });
    let compared = (!base.is_empty())
        .then(|| compare(("old".as_ref(), &found_base), ("new".as_ref(), &found_new), &options));
    let sections = plot::sections(new, Sides { new, base }, compared.as_ref(), &Racks::default());
    sections.into_iter().flat_map(|section| section.figures).collect()
}

fn paths<'a>(results: impl Into<Sides<'a>>) -> Vec<Figure> {
    let (sides, specs) = (results.into(), &specs::LATENCY_BY_THROUGHPUT);
    specs.iter().flat_map(|spec| spec.figures(sides)).collect()
}

#[derive(Clone, Debug)]
struct Made {
    gbit_per_s: Option<f64>,
    complete: bool,
    limit: Option<f64>,
    latencies: Vec<u64>,
    histogram: bool,
    timeline: Vec<u64>,
    /// Whether it moved what was asked for, 10^6 messages a second in full, or less; its rate follows.
    verdict: Option<LoadVerdict>,
}

fn run(number: u32, config: &CaseConfig, made: &Made) -> Run {
    let load = made.verdict.map(|verdict| load(config, verdict));
    let achieved = load.as_ref().map(|load| load.achieved_per_second);
    let rate = achieved.map(|it| it * 512.0 / 1e9).or(made.gbit_per_s);
    let mmsg = achieved.map(|it| it / 1e6).or(rate.map(|rate| rate / 3.0));
    let load = load.filter(|_| !config.is_closed_loop());
    let times = &made.timeline;
    let is_timed = !times.is_empty();
    let at = (1..=times.len()).map(|index| index as f64 * 0.01);
    let timeline = Timeline {
        interval_seconds: 0.01,
        at_seconds: at.collect(),
        messages: times.clone(),
        longest_stall_seconds: None,
    };
    Run {
        run: number,
        complete: made.complete,
        ..sample::run(
            config
                .flows
                .iter()
                .map(|config| FlowResult {
                    timeline: is_timed.then(|| timeline.clone()),
                    qp_timeline: sample::qp_timeline(0.01, qps_of(times)).filter(|_| is_timed),
                    window: window(1.0),
                    totals: Totals {
                        messages: made.latencies.len() as u64,
                        gbit_per_s: rate,
                        mmsg_per_s: mmsg,
                        ..Totals::default()
                    },
                    latency_ns: sample::latency(&made.latencies, 2, made.histogram),
                    lateness_ns: load
                        .as_ref()
                        .and_then(|_| sample::latency(&made.latencies, 2, true)),
                    load: load.clone(),
                    bandwidth_gbit_per_s: rate
                        .and_then(|rate| Bandwidth::of_intervals(0.01, times.iter().map(|_| rate))),
                    limits: made.limit.and_then(|link| limits(link, 0.9, None)),
                    ..FlowResult::new(config)
                })
                .collect(),
        )
    }
}

fn load(config: &CaseConfig, verdict: LoadVerdict) -> Load {
    let offered = match config.rate {
        Rate::Share(parts) => f64::from(parts) * 100.0,
        rate => rate.messages_per_second(64.0).unwrap_or(1e6),
    };
    let is_short = verdict == LoadVerdict::Overloaded;
    Load {
        asked_per_second: offered,
        offered_per_second: offered,
        achieved_per_second: if is_short { offered * 0.9 } else { offered },
        verdict,
        ..Load::default()
    }
}

/// More QPs than a map has rows, of which one has nothing and some have more than others.
fn qps_of(messages: &[u64]) -> Vec<Vec<u64>> {
    (0..70).map(|qp| messages.iter().map(|&count| count * (qp % 5)).collect()).collect()
}

/// A case of these settings, named by them: `op=write qps=2`.
fn case(flags: &str, made: &[Made]) -> CaseResult {
    let settings = flags.split(' ').filter_map(|flag| flag.split_once('='));
    let usual = [("qps", "1"), ("size", "64"), ("workers", "1")];
    let settings: Settings = usual.into_iter().chain(settings).collect();
    let config = CaseConfig::from(settings);
    let runs = (1..).zip(made).map(|(number, made)| run(number, &config, made));
    CaseResult { id: flags.to_owned(), runs: runs.collect(), config, ..CaseResult::default() }
}

fn at(flags: &str, gbit_per_s: f64) -> CaseResult {
    case(flags, &[plain(gbit_per_s)])
}

fn with_perftest(mut case: CaseResult) -> CaseResult {
    let figures: Vec<f64> =
        case.runs.iter().filter_map(|run| run.flows[0].totals.gbit_per_s).collect();
    let metric = MetricComparison::unjudged(Metric::GbitPerS, 0.03, figures.clone(), figures);
    case.comparison = Some(CaseComparison {
        sides: ["perftest", "rocebench"].map(str::to_owned),
        config: case.config.clone(),
        base_command: vec!["ib_send_bw".to_owned()],
        metrics: vec![metric],
        ..CaseComparison::default()
    });
    case
}

/// A file from a day of its own.
fn file(index: usize, host: &str, git: &str, cases: Vec<CaseResult>) -> Loaded {
    Loaded {
        path: format!("{host}-{index}.json").into(),
        result: ResultFile {
            started_at: format!("2026-11-{:02}T0{}:00:00Z", 1 + index % 28, index % 10),
            tool: Tool { git: Some(git.to_owned()), ..Tool::default() },
            nodes: vec![node(CLIENT, host, Vec::new())],
            ..sample::cases(cases)
        },
    }
}

fn one_file(cases: Vec<CaseResult>) -> [Loaded; 1] {
    [file(0, "host", "a", cases)]
}

fn cells(figure: &Figure, table: usize, column: usize) -> Vec<Cell> {
    figure.tables[table].rows.iter().map(|row| row[column].clone()).collect()
}

fn texts(figure: &Figure, table: usize, column: usize) -> Vec<String> {
    cells(figure, table, column)
        .into_iter()
        .map(|cell| match cell {
            Cell::Text(text) => text,
            Cell::Number(number, digits) => format!("{number:.digits$}"),
            Cell::Missing => "–".to_owned(),
        })
        .collect()
}

fn plain(gbit_per_s: f64) -> Made {
    Made {
        gbit_per_s: Some(gbit_per_s),
        complete: true,
        limit: None,
        latencies: [1000, 2000, 3000].repeat(10),
        histogram: true,
        timeline: vec![5, 5, 0, 5],
        verdict: None,
    }
}

fn made() -> impl Strategy<Value = Made> {
    let rate = prop_oneof![
        4 => (0.0..400.0f64).prop_map(Some),
        1 => Just(Some(0.0)),
        1 => Just(None),
        1 => (-12..12i32).prop_map(|exponent| Some(10f64.powi(exponent))),
    ];
    let times = proptest::collection::vec(prop_oneof![Just(7u64), 1..90_000_000_000u64], 0..40);
    let counts = |most: usize| {
        proptest::collection::vec(prop_oneof![3 => 0..100_000u64, 1 => Just(0)], 0..most)
    };
    let counts_over_time = prop_oneof![4 => counts(60), 1 => counts(700)];
    let limits = proptest::option::of(1.0..800.0f64);
    let is_complete = proptest::bool::weighted(0.85);
    let verdict = proptest::option::of((0..3usize).prop_map(|index| LoadVerdict::ALL[index]));
    let figures = (rate, limits, times, counts_over_time);
    (figures, is_complete, any::<bool>(), verdict).prop_map(
        |((gbit_per_s, limit, latencies, timeline), complete, histogram, verdict)| Made {
            gbit_per_s,
            complete,
            limit,
            latencies,
            histogram,
            timeline,
            verdict,
        },
    )
}

fn a_case() -> impl Strategy<Value = CaseResult> {
    let flags = (0..3usize, 0..2usize, 0..30u32).prop_map(|(op, cq, bits)| {
        let (op, cq) = (["send", "write", "read"][op], ["shared", "per-qp"][cq]);
        format!("op={op} cq={cq} size={} signal-every=1", 1u32 << bits)
    });
    let qps = prop_oneof![1..4u32, 1..20u32];
    let workers = prop_oneof![3 => Just(1), 1 => 1..9u32];
    let rate = prop_oneof![
        4 => Just(Rate::Closed),
        2 => (1..=Rate::WHOLE).prop_map(Rate::Share),
        1 => (1..2_000_000_000u64).prop_map(Rate::Messages),
        1 => (1..100_000_000_000u64).prop_map(Rate::Bits),
    ];
    let bound = || proptest::option::of(prop_oneof![Just(0.0), 1.0..1e9f64]);
    let searched = proptest::option::of((bound(), bound(), 0..5usize));
    let made = proptest::collection::vec(made(), 0..5);
    (flags, qps, workers, rate, searched, made).prop_map(
        |(flags, qps, workers, rate, searched, made)| {
            let flags = format!("{flags} qps={qps} workers={workers} rate={rate}");
            let mut case = with_perftest(case(&flags, &made));
            case.searches = searched
                .map(|(lower_per_second, upper_per_second, end)| LoadSearch {
                    lower_per_second,
                    upper_per_second,
                    end: SearchEnd::ALL[end],
                    ..loads::search()
                })
                .into_iter()
                .collect();
            case
        },
    )
}

/// What keeps a figure from being seen: text that overlaps or leaves the frame, and what is not whole.
fn unfit(figure: &Figure) -> Vec<String> {
    let pictures = [&figure.svg, &figure.narrow_svg];
    let mut found = pictures.map(|svg| faults(svg)).concat();
    let is_whole = |table: &Table| {
        let mut rows = table.rows.iter();
        rows.all(|row| row.len() == table.columns.len())
    };
    let is_told = !figure.description.is_empty() && !figure.tables[0].rows.is_empty();
    if !is_told || !figure.tables.iter().all(is_whole) {
        found.push(format!("not whole: {:?}", figure.tables));
    }
    found
}

/// Those figures, found to be fit to be seen.
fn fit(figures: Vec<Figure>) -> Vec<Figure> {
    let unfit: Vec<String> = figures.iter().flat_map(unfit).collect();
    assert_eq!(unfit, [""; 0]);
    figures
}

/// Every figure has its own name and is fit to be seen.
fn check(figures: Vec<Figure>) -> Result<(), TestCaseError> {
    let mut ids = std::collections::BTreeSet::new();
    for figure in figures {
        prop_assert!(ids.insert(figure.id.clone()), "{} comes twice", figure.id);
        prop_assert_eq!(unfit(&figure), Vec::<String>::new(), "{}", figure.id);
    }
    Ok(())
}

fn only(figures: Vec<Figure>) -> Figure {
    let [figure] = figures.try_into().unwrap();
    figure
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn every_figure_of_any_results_is_fit_to_be_seen(
        cases in proptest::collection::vec(a_case(), 0..25),
        files in proptest::collection::vec(("[ -~µ\u{1}]{0,120}", "[0-9a-f]{0,40}"), 1..6),
        of_base in 0..4usize,
    ) {
        let of = |(index, (host, git)): (usize, &(String, String))| {
            file(index, host, git, cases.iter().skip(index).cloned().collect())
        };
        let results: Vec<Loaded> = files.iter().enumerate().map(of).collect();
        let (base, new) = results.split_at(of_base.min(results.len() - 1));
        check(all_figures(base, new))?;
    }
}

#[test]
fn nothing_makes_no_figure() {
    let empty = one_file(Vec::new());
    let one = one_file(vec![with_perftest(case("", &[]))]);
    for results in [&[][..], &empty, &one] {
        assert!(all_figures(&[], results).is_empty());
    }
}

#[test]
fn a_run_that_is_not_complete_is_no_figure() {
    let broken = Made { complete: false, ..plain(77.0) };
    let results = one_file(vec![
        case("size=64", &[plain(1.0), broken.clone()]),
        case("size=1024", &[broken]),
        at("size=4096", 3.0),
    ]);
    let figure = only(specs::BANDWIDTH_BY_SIZE.figures(&results));
    let numbers = [Cell::Number(1.0, 3), Cell::Missing, Cell::Number(3.0, 3)];
    assert_eq!(cells(&figure, 0, 3), numbers);
    has(&figure.subtitle, [", left out: 2 failed"]);
    assert!(!figure.svg.contains(">protocol limit<"));
    // What went wrong has no figure, also none that does not count.
    assert!(!figure.svg.contains("does not count"));
    let timeline = only(timeline::figures(&results));
    assert_eq!(timeline.tables[0].rows.len(), 2);
}

/// A doubtful run has its ring, and is in no line, median or row.
#[test]
fn what_does_not_count_is_hollow() {
    let mut mixed = case("size=64", &[1.0, 1.0, 9.0].map(plain));
    let mut doubtful = at("size=1024", 5.0);
    for run in [&mut mixed.runs[2], &mut doubtful.runs[0]] {
        let doubt = sample::doubt(DoubtKind::EdgeMissed);
        run.flows[0].window.doubts.push(doubt);
    }
    let results = one_file(vec![mixed, doubtful.clone(), at("size=4096", 2.0)]);
    let figure = only(specs::BANDWIDTH_BY_SIZE.figures(&results));
    let numbers = [Cell::Number(1.0, 3), Cell::Missing, Cell::Number(2.0, 3)];
    assert_eq!(cells(&figure, 0, 3), numbers);
    assert_eq!(texts(&figure, 0, 2), ["2 of 3", "0 of 1", "1"]);
    let rings = [": 5.00, does not count", ": 9.00, does not count"];
    has(&figure.svg, rings);
    has(&figure.svg, ["data-points=\"64 1,4096 2\""]);
    assert_eq!(unfit(&figure), [""; 0]);
    // Without a run that counts there are rings only.
    let mut larger = doubtful.clone();
    larger.config.settings.size_bytes = 4096;
    let rings_only = only(specs::BANDWIDTH_BY_SIZE.figures(&one_file(vec![doubtful, larger])));
    assert_eq!(rings_only.svg.matches(", does not count").count(), 2);
    has(&rings_only.svg, ["data-points=\"\"", ">a run that does not count<"]);
}

#[test]
fn what_follows_from_the_size_does_not_part_a_line() {
    let flags =
        ["size=64 signal-every=100", "size=1024 signal-every=100", "size=65536 signal-every=1"];
    let cases = flags.map(|flags| at(flags, 1.0));
    let figures = specs::BANDWIDTH_BY_SIZE.figures(&one_file(cases.to_vec()));
    assert_eq!(figures[0].tables[0].rows.len(), 3);
    has(&figures[0].subtitle, ["signalled 1 in 1 or signalled 1 in 100"]);
}

#[test]
fn how_workers_wait_and_how_queue_pairs_meet_part_lines() {
    for (flags, names) in [("poll=event", [">busy<", ">event<"]), ("connect=cm", [">tcp<", ">cm<"])]
    {
        let results = one_file(
            ["qps=1", "qps=2"]
                .map(|qps| [at(qps, 1.0), at(&format!("{qps} {flags}"), 1.0)])
                .concat(),
        );
        has(&only(specs::RATE_BY_QPS.figures(&results)).svg, names);
    }
}

#[test]
fn too_many_lines_become_several_charts_that_say_what_they_have() {
    let mut cases = Vec::new();
    for (factor, op) in (1..).zip(["send", "write", "read"]) {
        for (qps, size) in [1, 2, 4, 8].into_iter().flat_map(|qps| [(qps, 64), (qps, 4096)]) {
            let flags = format!("op={op} qps={qps} size={size}");
            cases.push(at(&flags, f64::from(qps * factor)));
        }
    }
    let figure = only(specs::BANDWIDTH_BY_SIZE.figures(&one_file(cases)));
    for heading in ["send", "write", "read"] {
        let heading = format!("font-weight=\"bold\">{heading}<");
        assert_eq!(figure.svg.matches(&heading).count(), 1, "{heading}");
    }
    // One legend for all, and the same look for the same number of QPs.
    assert_eq!(figure.svg.matches("class=\"rb-key\"").count(), 4);
}

/// A file of two sizes at this rate.
fn sizes(index: usize, git: &str, rate: f64) -> Loaded {
    let cases = ["size=64", "size=1024"].map(|size| at(size, rate));
    file(index, "host", git, cases.to_vec())
}

#[test]
fn launches_of_a_case_are_one_point_with_their_spread() {
    let results: Vec<Loaded> = [3.0, 5.0, 10.0]
        .into_iter()
        .enumerate()
        .map(|(index, rate)| sizes(index, "a", rate))
        .collect();
    let figure = &specs::BANDWIDTH_BY_SIZE.figures(&results)[0];
    assert_eq!(figure.tables[0].rows.len(), 2);
    let spread = [5.0, 3.0, 10.0].map(|value| Cell::Number(value, 3));
    assert_eq!(figure.tables[0].rows[0][3..6], spread);
    has(&figure.subtitle, ["3 launches of 1 run a case"]);
}

#[test]
fn the_base_is_drawn_beside_the_new_results() {
    let (old, newer) = ([sizes(0, "a", 1.0)], [sizes(1, "b", 2.0)]);
    let lines = |new, base| {
        let figures = specs::BANDWIDTH_BY_SIZE.figures(Sides { new, base });
        texts(&figures[0], 0, 0)
    };
    assert_eq!(lines(&newer, &old), ["base", "base", "new", "new"]);
    // A file that is on both sides is of the base.
    assert_eq!(lines(&old, &old).len(), 2);
}
