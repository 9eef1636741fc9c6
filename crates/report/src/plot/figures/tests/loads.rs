//! Figures of open loops.

use ::settings::Rate;

use super::searches::search;
use super::*;

/// A case at a rate whose latencies are so long; its load is 10^6 messages a second in full.
fn open(rate: &str, verdict: LoadVerdict, latencies: &[u64]) -> CaseResult {
    let mut config = config(0, 0, 1, 64, 1);
    config.settings.rate = rate.parse().unwrap();
    config.settings.signal_every = 1;
    let asked = match config.rate {
        Rate::Share(parts) => f64::from(parts) * 100.0,
        rate => rate.messages_per_second(64.0).unwrap_or(1e6),
    };
    let achieved = match verdict {
        LoadVerdict::Overloaded => asked * 0.9,
        _ => asked,
    };
    let made = Made {
        latencies: latencies.to_vec(),
        ..plain(achieved * 512.0 / 1e9)
    };
    let mut case = case(config, &[made]);
    case.id = format!("{}-R{rate}", case.id);
    case.perftest = None;
    let flow = &mut case.runs[0].flows[0];
    flow.totals.mmsg_per_s = Some(achieved / 1e6);
    let is_open = rate != "closed";
    flow.load = is_open.then(|| Load {
        asked_per_second: asked,
        offered_per_second: asked,
        achieved_per_second: achieved,
        verdict,
        ..Load::default()
    });
    flow.lateness_ns = flow.latency_ns.clone().filter(|_| is_open);
    case
}

pub(super) fn kept(rate: &str, p50: u64) -> CaseResult {
    let latencies: Vec<u64> = (0..1000).map(|index| p50 + p50 * index / 500).collect();
    open(rate, LoadVerdict::Kept, &latencies)
}

pub(super) fn closed() -> CaseResult {
    kept("closed", 100_000)
}

pub(super) fn drawn(cases: Vec<CaseResult>) -> Vec<Figure> {
    let figures = latency_by_load::figures(&[file(0, "host", "a", cases)]);
    for figure in &figures {
        assert_eq!(faults(&figure.svg), Vec::<String>::new());
    }
    figures
}

pub(super) fn texts(figure: &Figure, table: usize, column: usize) -> Vec<String> {
    let rows = figure.tables[table].rows.iter();
    let told = rows.map(|row| match &row[column] {
        Cell::Text(text) => text.clone(),
        Cell::Number(number, digits) => format!("{number:.digits$}"),
        Cell::Missing => "–".to_owned(),
    });
    told.collect()
}

/// All words of a picture.
fn words(figure: &Figure) -> String {
    let document = roxmltree::Document::parse(&figure.svg).unwrap();
    let texts = document
        .descendants()
        .filter(|it| it.tag_name().name() == "text");
    let texts: Vec<&str> = texts.filter_map(|text| text.text()).collect();
    texts.join(" ")
}

/// Where the markers of a class and shape are, in pixels from the left and from the top.
fn markers(figure: &Figure, hint: &str) -> Vec<(f64, f64)> {
    let document = roxmltree::Document::parse(&figure.svg).unwrap();
    let hinted = document.descendants().filter(|node| {
        let title = node
            .children()
            .find(|child| child.tag_name().name() == "title");
        node.tag_name().name() == "path"
            && title
                .and_then(|title| title.text())
                .is_some_and(|text| text.contains(hint))
    });
    let place = |node: roxmltree::Node<'_, '_>| {
        let path = node.attribute("d").unwrap();
        let (x, rest) = path[1..].split_once(' ').unwrap();
        let y = rest.split(['a', 'l', 'h', 'm', 'v', 'M']).next().unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    hinted.map(place).collect()
}

#[test]
fn loads_lie_in_their_order_with_what_the_closed_loop_says() {
    let mut sampled = kept("95%", 30_000);
    let load = sampled.runs[0].flows[0].load.as_mut();
    load.unwrap().recorded_one_in = 4;
    let cases = vec![closed(), sampled, kept("10%", 2_000), kept("50%", 4_000)];
    let figures = drawn(cases);
    let [figure] = figures.as_slice() else {
        panic!("{figures:?}");
    };
    assert_eq!(figure.id, "latency-by-load");
    assert_eq!(texts(figure, 0, 1), ["10%", "50%", "95%", "closed loop"]);
    assert_eq!(
        texts(figure, 0, 4),
        ["100000", "500000", "950000", "1000000"]
    );
    assert_eq!(texts(figure, 0, 6), ["4.00", "8.00", "60.16", "200.70"]);
    assert_eq!(texts(figure, 0, 10), ["kept", "kept", "kept", "–"]);
    let places: Vec<(f64, f64)> = ["10%", "50%", "95%"]
        .into_iter()
        .flat_map(|rate| markers(figure, &format!(", {rate} (")))
        .collect();
    assert_eq!(places.len(), 3, "{places:?}");
    for pair in places.windows(2) {
        assert!(pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1, "{places:?}");
    }
    let of_closed = markers(figure, "closed loop at");
    assert_eq!(of_closed.len(), 3, "{of_closed:?}");
    assert!(of_closed.iter().all(|place| place.0 > places[2].0));
    assert!(words(figure).contains("one message in 4"));
    assert!(figure.svg.contains(">closed loop<"));
    assert!(!figure.svg.contains(">overloaded<"));
}

#[test]
fn the_closed_loop_is_that_of_the_same_settings() {
    let mut other = closed();
    other.config.settings.signal_every = 64;
    let figures = drawn(vec![other, kept("10%", 2_000), kept("50%", 4_000)]);
    assert_eq!(texts(&figures[0], 0, 1), ["10%", "50%"]);
    assert!(!figures[0].svg.contains("closed loop"));
}

#[test]
fn what_is_no_result_of_its_load_is_marked_and_told() {
    let mut half = kept("50%", 4_000);
    let mut late = open("50%", LoadVerdict::NotKept, &[900_000; 1000]).runs;
    half.runs.append(&mut late);
    let cases = vec![
        kept("10%", 2_000),
        half,
        open("80%", LoadVerdict::NotKept, &[50_000; 1000]),
        open("100%", LoadVerdict::Overloaded, &[900_000_000; 1000]),
    ];
    let figure = &drawn(cases.clone())[0];
    assert_eq!(
        texts(figure, 0, 10),
        [
            "kept",
            "kept (1 of 2 not kept)",
            "schedule not kept",
            "overloaded"
        ]
    );
    // The run that kept its schedule alone is the figure.
    assert_eq!(texts(figure, 0, 6)[1], "8.00");
    assert_eq!(markers(figure, ", 80% (").len(), 3, "p50, p99 and p99.9");
    for words in [">schedule not kept: no result<", ">overloaded<"] {
        assert!(figure.svg.contains(words), "{words}");
    }
    assert!(words(figure).contains("use more workers"));
    assert!(figure.subtitle.contains("2 did not keep the schedule"));
    // What was overloaded for a second leaves the others their height, and is marked at the end of the axis.
    let (kept, above) = (
        markers(figure, ", 10% (")[0],
        markers(figure, ", 100% (")[0],
    );
    assert!(above.1 < kept.1 - 100.0, "{kept:?}, {above:?}");
    assert!(!figure.svg.contains("1\u{a0}s<"));
    // Other figures do not have it at all.
    let results = [file(0, "host", "a", cases)];
    let latency = latency::figures(&results);
    assert!(
        !latency[0].svg.contains(">load 80%<"),
        "{}",
        latency[0].title
    );
    assert!(latency[0].svg.contains(">load 50%<"));
    assert_eq!(timeline::figures(&results)[0].tables[0].rows.len(), 3);
}

#[test]
fn open_loops_are_in_no_figure_of_throughput() {
    let at = |qps, size, rate: &str| {
        let mut case = kept(rate, 2_000);
        (case.config.settings.qps, case.config.settings.size_bytes) = (qps, size);
        case
    };
    let mut cases = Vec::new();
    for (qps, size) in [(1, 64), (2, 64), (1, 128)] {
        cases.extend([at(qps, size, "10%"), at(qps, size, "50%")]);
    }
    let one_file = |cases: &[CaseResult]| [file(0, "host", "a", cases.to_vec())];
    let of_throughput: [(&str, Maker); 5] = [
        ("bandwidth by size", |it| bandwidth_by_size::figures(it)),
        ("rate by QPs", |it| rate_by_qps::figures(it)),
        ("workers", |it| workers::figures(it)),
        ("heat map", heat_map::figures),
        ("throughput and latency", |it| {
            latency_by_throughput::figures(it)
        }),
    ];
    for (name, figures) in of_throughput {
        assert!(figures(&one_file(&cases)).is_empty(), "{name}");
    }
    // Beside closed loops they change nothing.
    let closed = [
        at(1, 64, "closed"),
        at(2, 64, "closed"),
        at(1, 128, "closed"),
    ];
    cases.extend(closed.clone());
    for (name, figures) in of_throughput {
        assert_eq!(
            figures(&one_file(&cases)),
            figures(&one_file(&closed)),
            "{name}"
        );
    }
    let both = [
        file(0, "host", "a", cases.clone()),
        file(1, "host", "b", cases),
    ];
    // Nothing stepped, so bandwidth alone is drawn.
    let trend = &trend::figures(&both)[0];
    assert!(!trend.svg.contains("load 10%"), "{}", trend.description);
}

#[test]
fn a_path_has_its_numbers_in_their_order() {
    let at = |depth: u32, mmsg_per_s: f64, p50| {
        let mut case = closed();
        case.config.settings.tx_depth = depth;
        case.runs = kept("closed", p50).runs;
        case.runs[0].flows[0].totals.mmsg_per_s = Some(mmsg_per_s);
        case
    };
    let cases = vec![
        at(64, 1.9, 30_000),
        at(1, 0.3, 3_000),
        at(16, 1.9, 8_000),
        at(4, 1.1, 3_500),
    ];
    let figures = latency_by_throughput::figures(&[file(0, "host", "a", cases)]);
    let [figure] = figures.as_slice() else {
        panic!("{figures:?}");
    };
    assert_eq!(figure.id, "latency-by-throughput-tx-depth");
    assert_eq!(faults(&figure.svg), Vec::<String>::new());
    assert_eq!(texts(figure, 0, 1), ["1", "4", "16", "64"]);
    for label in [">-t 1<", ">-t 4<", ">-t 16<", ">-t 64<"] {
        assert!(figure.svg.contains(label), "{label}");
    }
}

fn an_open_case() -> impl Strategy<Value = CaseResult> {
    let rate = prop_oneof![
        (1..=Rate::WHOLE).prop_map(Rate::Share),
        (1..2_000_000_000u64).prop_map(Rate::Messages),
        (1..100_000_000_000u64).prop_map(Rate::Bits),
        Just(Rate::Closed),
    ];
    let verdict = (0..3usize).prop_map(|index| LoadVerdict::ALL[index]);
    let latencies = proptest::collection::vec(prop_oneof![Just(7u64), 1..90_000_000_000u64], 0..30);
    let bound = || proptest::option::of(prop_oneof![Just(0.0), 1.0..1e9f64]);
    let searched = proptest::option::of((bound(), bound(), 0..5usize));
    let settings = (0..2u8, 1..4u32, 0..20u32);
    (settings, rate, verdict, latencies, searched).prop_map(
        |((cq, qps, bits), rate, verdict, latencies, searched)| {
            let mut case = open(&rate.to_string(), verdict, &latencies);
            let wanted = config(0, cq, qps, 1 << bits, 1).settings;
            case.config.settings = Settings {
                rate,
                signal_every: 1,
                ..wanted
            };
            case.searches = searched
                .map(|(lower_per_second, upper_per_second, end)| LoadSearch {
                    lower_per_second,
                    upper_per_second,
                    end: SearchEnd::ALL[end],
                    ..search()
                })
                .into_iter()
                .collect();
            case
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_figure_of_any_loads_is_fit_to_be_seen(cases in proptest::collection::vec(an_open_case(), 1..25)) {
        let half = cases.len() / 2;
        let files = [file(0, "host", "a", cases[..half].to_vec()), file(1, "host", "b", cases[half..].to_vec())];
        for (prefix, figures) in KINDS {
            for figure in figures(&files) {
                prop_assert!(figure.id.starts_with(prefix), "{}", figure.id);
                prop_assert_eq!(faults(&figure.svg), Vec::<String>::new(), "{}", figure.id);
                prop_assert!(!figure.description.is_empty() && !figure.tables[0].rows.is_empty());
                for table in &figure.tables {
                    prop_assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
                }
            }
        }
    }
}
