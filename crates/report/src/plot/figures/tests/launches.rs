//! Which files are launches of one case, and which cases of them are drawn.

use super::*;
use crate::plot::figures::tests::loads::{closed, kept, texts};
use crate::results::sample::has;

/// A file of a case for each of two sizes.
fn sizes(index: usize, git: &str, rate: f64, set: impl Fn(&mut Settings)) -> Loaded {
    let of = |size| {
        let mut config = config(0, 0, 1, size, 1);
        set(&mut config.settings);
        let mut case = case(config, &[plain(rate)]);
        case.perftest = None;
        case
    };
    file(index, "host", git, [64, 1024].map(of).to_vec())
}

#[test]
fn files_may_differ_in_their_number_of_runs() {
    let with = |index, runs| sizes(index, "a", 1.0, |settings| settings.runs = runs);
    let figure = &bandwidth_by_size::figures(&[with(0, 3), with(1, 5)])[0];
    assert_eq!(texts(figure, 0, 2), ["2", "2"]);
    has(&figure.subtitle, ["2 launches"]);
}

#[test]
fn files_that_differ_in_what_they_measure_have_lines_of_their_own() {
    let of_warmup = |index, warmup: &str| {
        sizes(index, "a", 1.0, |settings| {
            settings.warmup = warmup.parse().unwrap();
        })
    };
    let files = [of_warmup(0, "auto:5s"), of_warmup(1, "2s")];
    let figure = &bandwidth_by_size::figures(&files)[0];
    let lines = texts(figure, 0, 0);
    assert_eq!(lines[1..3], ["usual warmup", "warmup 2s"]);
    let of_duration = |index, duration: &str| {
        sizes(index, "a", 1.0, |settings| {
            settings.duration_seconds = Some(duration.parse().unwrap());
        })
    };
    let files = [of_duration(0, "5s"), of_duration(1, "9s")];
    let figure = &latency::figures(&files)[0];
    assert_eq!(figure.tables[0].rows.len(), 4, "{:?}", texts(figure, 0, 0));
}

#[test]
fn a_case_at_the_place_of_another_one_is_told() {
    let mut file = sizes(0, "a", 1.0, |_| ());
    let mut again = file.result.cases[0].clone();
    again.id = "again".to_owned();
    file.result.cases.push(again);
    let figure = &bandwidth_by_size::figures(&[file])[0];
    assert!(figure.svg.contains("1 case is not drawn"));
}

#[test]
fn an_old_base_stays_and_so_does_what_only_an_old_revision_has() {
    let mut new: Vec<Loaded> = (1..6)
        .map(|index| sizes(index, ["", "a", "b", "c", "d", "e"][index], 1.0, |_| ()))
        .collect();
    let of_size = |size| {
        let mut case = case(config(1, 0, 1, size, 1), &[plain(f64::from(size))]);
        case.perftest = None;
        case
    };
    new[0].result.cases.extend([64, 1024].map(of_size));
    let base = [sizes(0, "old", 2.0, |_| ())];
    let sides = Sides {
        new: &new,
        base: &base,
    };
    let figure = &bandwidth_by_size::figures(sides)[0];
    let lines = texts(figure, 0, 0).join("; ");
    for (told, is_drawn) in [
        ("send, rev old, base", true),
        ("send, rev e, new", true),
        ("send, rev c, new", true),
        ("send, rev b, new", false),
        ("write, rev a, new", true),
    ] {
        assert_eq!(lines.contains(told), is_drawn, "{told}: {lines}");
    }
    assert!(figure.svg.contains("2 older ones are in the trend"));
}

#[test]
fn a_step_of_latency_is_in_the_trend_though_bandwidth_is_steady() {
    let of = |index: usize| {
        let with = |size, rate: f64, ns| {
            let made = Made {
                latencies: vec![ns; 1000],
                ..plain(rate)
            };
            case(
                config(0, 0, 1, size, 1),
                &[made.clone(), made.clone(), made],
            )
        };
        let (rate, ns) = if index < 2 { (5.0, 1000) } else { (10.0, 2000) };
        let cases = vec![with(64, 1.0, ns), with(4096, rate, 1000)];
        file(index, "host", "a", cases)
    };
    let results: Vec<Loaded> = (0..4).map(of).collect();
    let figure = &trend::figures(&results)[0];
    let captions: Vec<&str> = figure.tables.iter().map(|it| it.caption.as_str()).collect();
    assert!(
        captions.iter().any(|it| it.starts_with("p99 latency: 64")),
        "{captions:?}"
    );
}

#[test]
fn a_path_of_which_only_the_latency_grows_is_drawn() {
    let with = |size, depth: u32, rate, ns| {
        let mut config = config(0, 0, 1, size, 1);
        config.settings.tx_depth = depth;
        let made = Made {
            latencies: vec![ns; 1000],
            ..plain(rate)
        };
        let mut case = case(config, &[made]);
        case.id = format!("{}-t{depth}", case.id);
        case
    };
    let cases = vec![
        with(64, 1, 1.0, 1000),
        with(64, 2, 2.0, 1000),
        with(4096, 1, 5.0, 1000),
        with(4096, 2, 5.0, 2000),
    ];
    let figure = &latency_by_throughput::figures(&[file(0, "host", "a", cases)])[0];
    assert_eq!(figure.tables[0].rows.len(), 4, "{:?}", texts(figure, 0, 0));
}

#[test]
fn the_base_is_thin_where_dashes_tell_percentiles() {
    let of = |index, git: &str, p50| {
        let cases = vec![closed(), kept("10%", p50), kept("50%", p50 * 2)];
        file(index, "host", git, cases)
    };
    let (base, new) = ([of(0, "a", 2_000)], [of(1, "b", 3_000)]);
    let sides = Sides {
        new: &new,
        base: &base,
    };
    let depth = |index, git: &str| {
        let mut file = sizes(index, git, 1.0, |_| ());
        for (case, depth) in file.result.cases.iter_mut().zip([1, 2]) {
            case.config = config(0, 0, depth, 64, 1);
        }
        file
    };
    let (base_path, new_path) = ([depth(0, "a")], [depth(1, "b")]);
    let path = Sides {
        new: &new_path,
        base: &base_path,
    };
    let load = &latency_by_load::figures(sides)[0];
    for figure in [load, &latency_by_throughput::figures(path)[0]] {
        for width in ["1", "2"] {
            let dotted = format!("stroke-width=\"{width}\" stroke-dasharray=\"2 3\"");
            assert!(figure.svg.contains(&dotted), "{dotted} in {}", figure.svg);
        }
    }
    // A ring is an overloaded load, and no load of these is.
    let of_base = load.svg.split("base").count();
    assert!(of_base > 1);
    let rings = load
        .svg
        .matches("a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z\" fill=\"#ffffff\"");
    assert_eq!(rings.count(), 0);
}

#[test]
fn flows_of_several_files_and_devices_are_named_with_them() {
    let of = |index, device: &str, bytes: [u64; 2]| {
        let mut config = config(0, 0, 2, 64, 1);
        config.flows[0].from_device = Some(device.to_owned());
        let mut case = case(config, &[plain(1.0)]);
        let qp = |(index, bytes)| QpResult {
            index,
            bytes,
            ..QpResult::default()
        };
        case.runs[0].flows[0].qps = (0..).zip(bytes).map(qp).collect();
        file(index, "host", "a", vec![case])
    };
    let results = [
        of(0, "mlx5_0", [1, 3]),
        of(1, "mlx5_0", [1, 5]),
        of(2, "mlx5_1", [1, 9]),
    ];
    let figure = &shares::shares(&results).figures[0];
    has(&figure.subtitle, ["mlx5_0 of host, mlx5_1 of host"]);
    assert!(figure.svg.contains("the newest is drawn"));
    assert!(texts(figure, 0, 0)[0].ends_with("mlx5_1 of host"));
    let names = texts(&timeline::figures(&results)[0], 0, 0);
    assert!(
        names[0].contains("host-") && names[0].ends_with("rev a"),
        "{names:?}"
    );
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), 3);
}
