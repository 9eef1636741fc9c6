//! Figures of open loops. Figures of searches for a load.

use crate::show::plot::figures::tests::*;

/// A case of these settings whose latencies are so long.
fn open(flags: &str, verdict: LoadVerdict, latencies: &[u64]) -> CaseResult {
    let made = Made { latencies: latencies.to_vec(), verdict: Some(verdict), ..plain(0.0) };
    case(&format!("signal-every=1 {flags}"), &[made])
}

/// A case that kept its schedule, with the median of its latencies in nanoseconds.
fn kept_of(flags: &str, p50: u64) -> CaseResult {
    let latencies: Vec<u64> = (0..10_000).map(|index| p50 + p50 * index / 5_000).collect();
    open(flags, LoadVerdict::Kept, &latencies)
}

pub(super) fn kept(rate: &str, p50: u64) -> CaseResult {
    kept_of(&format!("rate={rate}"), p50)
}

pub(super) fn closed() -> CaseResult {
    kept("closed", 100_000)
}

pub(super) fn drawn(cases: Vec<CaseResult>) -> Vec<Figure> {
    fit(specs::LATENCY_BY_LOAD.figures(&one_file(cases)))
}

pub(super) const SVG: &str = "http://www.w3.org/2000/svg";

pub(super) fn parsed(figure: &Figure) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(&figure.svg).unwrap()
}

/// Where the markers with a hint are, in pixels from the left and from the top.
fn markers(figure: &Figure, hint: &str) -> Vec<(f64, f64)> {
    let document = parsed(figure);
    document
        .descendants()
        .filter(|it| it.has_tag_name((SVG, "title")))
        .filter(|it| it.text().is_some_and(|text| text.contains(hint)))
        .filter_map(|title| title.parent()?.attribute("d"))
        .map(|path| {
            let (x, rest) = path[1..].split_once(' ').unwrap();
            let y = rest.split(['a', 'l', 'h', 'm', 'v', 'M']).next().unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        })
        .collect()
}

#[test]
fn loads_lie_in_their_order_with_what_the_closed_loop_says() {
    let cases = vec![closed(), kept("95%", 30_000), kept("10%", 2_000), kept("50%", 4_000)];
    let figure = &only(drawn(cases));
    assert_eq!(figure.id, "latency-by-load");
    assert_eq!(texts(figure, 0, 1), ["10%", "50%", "95%"]);
    assert_eq!(texts(figure, 0, 3), ["0.1000", "0.5000", "0.9500"]);
    assert_eq!(texts(figure, 0, 4), ["4.00", "8.00", "60.16"]);
    let places = markers(figure, ", p99: ");
    assert_eq!(places.len(), 3, "{places:?}");
    for pair in places.windows(2) {
        assert!(pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1, "{places:?}");
    }
    let of_closed = markers(figure, ", closed loop: ");
    assert_eq!(of_closed.len(), 3, "{of_closed:?}");
    assert!(of_closed.iter().all(|place| place.0 > places[2].0));
    has(&figure.svg, [">closed loop<"]);
    assert!(!figure.svg.contains(">overloaded<"));
}

#[test]
fn a_percentile_has_a_line_or_the_legend_says_why_not() {
    let words = ">p99.9: too few messages in each run<";
    let few = |rate: &str| open(rate, LoadVerdict::Kept, &[2_000; 1_000]);
    has(&only(drawn(vec![few("rate=10%"), few("rate=50%")])).svg, [words]);
    // Of one load alone as well.
    let alone = only(drawn(vec![kept("10%", 2_000)]));
    assert!(!alone.svg.contains(words));
    let document = parsed(&alone);
    let series = document.descendants().filter(|it| it.has_attribute("data-points"));
    let has_path = series.map(|it| it.descendants().any(|it| it.has_tag_name((SVG, "path"))));
    assert_eq!(has_path.collect::<Vec<_>>(), [true; 3]);
}

#[test]
fn the_closed_loop_is_that_of_the_same_settings() {
    let other = kept_of("signal-every=64", 100_000);
    let figures = drawn(vec![other, kept("10%", 2_000), kept("50%", 4_000)]);
    assert_eq!(texts(&figures[0], 0, 1), ["10%", "50%"]);
    assert!(!figures[0].svg.contains(">closed loop"));
}

#[test]
fn what_is_no_result_of_its_load_is_marked_and_told() {
    let mut half = kept("50%", 4_000);
    let mut late = open("rate=50%", LoadVerdict::NotKept, &[900_000; 10_000]).runs;
    half.runs.append(&mut late);
    let cases = vec![
        kept("10%", 2_000),
        half,
        open("rate=80%", LoadVerdict::NotKept, &[50_000; 10_000]),
        open("rate=100%", LoadVerdict::Overloaded, &[900_000_000; 1000]),
    ];
    let figure = &drawn(cases.clone())[0];
    assert_eq!(texts(figure, 0, 2), ["1", "1 of 2", "0 of 1", "1"]);
    // The run that kept its schedule alone is the figure.
    assert_eq!(texts(figure, 0, 4)[1], "8.00");
    let rings = markers(figure, ", p99: 50 000, does not count");
    assert_eq!(
        rings.len() + markers(figure, "does not count").len(),
        6,
        "two runs, three percentiles"
    );
    has(&figure.svg, [">overloaded<"]);
    has(&figure.subtitle, [", left out: 2 schedule not kept"]);
    // What was overloaded for a second leaves the others their height, and is marked at the end of the axis.
    let of_p99 = markers(figure, ", p99: ");
    let above = of_p99.iter().map(|place| place.1).fold(f64::INFINITY, f64::min);
    assert!(above < of_p99[0].1 - 100.0, "{of_p99:?}");
    assert!(!figure.svg.contains("1\u{a0}s<"));
    // Others have rings of what does not count.
    let results = one_file(cases);
    let latency = &specs::LATENCY.figures(&results)[0].svg;
    has(latency, ["<title>load 80%: ", ", does not count<"]);
    let is_line = |line: &&str| line.contains("data-series=\"load 80%\" data-points=\"\"");
    assert_eq!(latency.lines().filter(is_line).count(), 1);
    assert_eq!(timeline::figures(&results)[0].tables[0].rows.len(), 3);
}

#[test]
fn open_loops_are_in_no_figure_of_throughput() {
    let with_rates = |rates: &[&str]| -> Vec<CaseResult> {
        ["qps=1 size=64", "qps=2 size=64", "qps=1 size=128"]
            .into_iter()
            .flat_map(|place| {
                rates.iter().map(move |rate| kept_of(&format!("{place} rate={rate}"), 2_000))
            })
            .collect()
    };
    let (cases, closed) = (with_rates(&["10%", "50%"]), with_rates(&["closed"]));
    let of_sizes = [specs::BANDWIDTH_BY_SIZE, specs::RATE_BY_QPS, specs::RATE_BY_WORKERS];
    let of_throughput = of_sizes.into_iter().chain([specs::MAP_OF_QPS]);
    // Beside closed loops they change nothing.
    let both = [&cases[..], &closed].concat();
    for spec in of_throughput.chain(specs::LATENCY_BY_THROUGHPUT) {
        let figures = |measured: &[CaseResult]| spec.figures(&one_file(measured.to_vec()));
        assert!(figures(&cases).is_empty(), "{}", spec.id);
        assert_eq!(figures(&both), figures(&closed), "{}", spec.id);
    }
    // Nothing stepped, so bandwidth alone is drawn.
    let files = [(0, "a"), (1, "b")].map(|(index, git)| file(index, "host", git, both.clone()));
    let trend = &trend::drawn(&files, &files).figures[0];
    assert!(!trend.svg.contains("load 10%"), "{}", trend.svg);
}

#[test]
fn a_path_has_its_numbers_in_their_order() {
    let depths = [(64, 1.9, 30_000), (1, 0.3, 3_000), (16, 1.9, 8_000), (4, 1.1, 3_500)];
    let cases = depths
        .map(|(depth, mmsg_per_s, p50)| {
            let mut case = kept_of(&format!("tx-depth={depth}"), p50);
            case.runs[0].flows[0].totals.mmsg_per_s = Some(mmsg_per_s);
            case
        })
        .to_vec();
    let figure = &only(paths(&one_file(cases)));
    assert_eq!(figure.id, "latency-by-throughput-tx-depth");
    assert_eq!(unfit(figure), [""; 0]);
    assert_eq!(texts(figure, 0, 1), ["1", "4", "16", "64"]);
    has(&figure.svg, [">-t 1<", ">-t 4<", ">-t 16<", ">-t 64<"]);
}

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
    let fields = "maximum_per_second=1e6; lower_per_second=600000.0; upper_per_second=620000.0";
    LoadSearch {
        trials: vec![
            steering,
            trial(500_000.0, TrialOutcome::Kept, 12_000),
            trial(900_000.0, TrialOutcome::NotKept, 90_000),
            trial(620_000.0, TrialOutcome::Broke, 22_000),
            trial(610_000.0, TrialOutcome::Kept, 18_000),
            trial(700_000.0, TrialOutcome::Failed, 1),
        ],
        ..sample::with(&sample::search(0), fields)
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
    let with_rates = &drawn(vec![case, kept("10%", 2_000)])[0];
    assert!(texts(with_rates, 0, 1).contains(&"10%".to_owned()));
    has(&with_rates.svg, [words]);
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
