//! Which files are launches of one case, and which cases of them are drawn.

use super::*;
use crate::show::plot::figures::tests::loads::{closed, kept};

/// A file of two sizes, with other settings.
fn with(index: usize, flags: &str) -> Loaded {
    let cases = [64, 1024].map(|size| CaseResult {
        id: size.to_string(),
        ..at(&format!("size={size} {flags}"), 1.0)
    });
    file(index, "host", "a", cases.to_vec())
}

#[test]
fn files_may_differ_in_their_number_of_runs() {
    let files = [with(0, "runs=3"), with(1, "runs=5")];
    let figure = &specs::BANDWIDTH_BY_SIZE.figures(&files)[0];
    assert_eq!(texts(figure, 0, 2), ["2", "2"]);
    has(&figure.subtitle, ["2 launches"]);
}

#[test]
fn files_that_differ_in_what_they_measure_have_lines_of_their_own() {
    let files = [with(0, "warmup=auto:5s"), with(1, "warmup=2s")];
    let lines = texts(&specs::BANDWIDTH_BY_SIZE.figures(&files)[0], 0, 0);
    assert_eq!(lines[1..3], ["usual warmup", "warmup 2s"]);
    let durations = [with(0, "duration=5s"), with(1, "duration=9s")];
    let figure = &specs::LATENCY.figures(&durations)[0];
    assert_eq!(figure.tables[0].rows.len(), 4, "{:?}", texts(figure, 0, 0));
}

#[test]
fn a_case_at_the_place_of_another_one_is_told() {
    let mut file = sizes(0, "a", 1.0);
    let again = CaseResult { id: "again".to_owned(), ..file.result.cases[0].clone() };
    file.result.cases.push(again);
    let figure = &specs::BANDWIDTH_BY_SIZE.figures(&[file])[0];
    assert!(figure.svg.contains("1 repeated case is hidden"));
}

#[test]
fn an_old_base_stays_and_so_does_what_only_an_old_revision_has() {
    let mut new: Vec<Loaded> =
        (1..).zip(["a", "b", "c", "d", "e"]).map(|(index, git)| sizes(index, git, 1.0)).collect();
    new[0]
        .result
        .cases
        .extend([64, 1024].map(|size| at(&format!("op=write size={size}"), f64::from(size))));
    let base = &[sizes(0, "old", 2.0)];
    let figure = &specs::BANDWIDTH_BY_SIZE.figures(Sides { new: &new, base })[0];
    let lines = texts(figure, 0, 0).join("; ");
    for (words, is_drawn) in [
        ("send: rev old, base", true),
        ("send: rev e, new", true),
        ("send: rev c, new", true),
        ("send: rev b, new", false),
        ("write: rev a, new", true),
    ] {
        assert_eq!(lines.contains(words), is_drawn, "{words}: {lines}");
    }
    has(&figure.svg, ["2 older ones"]);
}

/// A case all of whose messages took as long.
fn took(flags: &str, runs: usize, rate: f64, ns: u64) -> CaseResult {
    let made = Made { latencies: vec![ns; 1000], ..plain(rate) };
    case(flags, &vec![made; runs])
}

#[test]
fn a_path_of_which_only_the_latency_grows_is_drawn() {
    let cases = vec![
        took("tx-depth=1", 1, 1.0, 1000),
        took("tx-depth=2", 1, 2.0, 1000),
        took("tx-depth=1 size=4096", 1, 5.0, 1000),
        took("tx-depth=2 size=4096", 1, 5.0, 2000),
    ];
    let figure = &paths(&one_file(cases))[0];
    assert_eq!(figure.tables[0].rows.len(), 4, "{:?}", texts(figure, 0, 0));
}

#[test]
fn the_base_is_thin_where_dashes_tell_percentiles() {
    let of = |index, git: &str, p50| {
        let cases = vec![closed(), kept("10%", p50), kept("50%", p50 * 2)];
        file(index, "host", git, cases)
    };
    let depth = |index, git: &str| {
        let cases = ["qps=1", "qps=2"].map(|qps| at(qps, 1.0));
        file(index, "host", git, cases.to_vec())
    };
    let (base, new) = (&[of(0, "a", 2_000)], &[of(1, "b", 3_000)]);
    let load = &specs::LATENCY_BY_LOAD.figures(Sides { new, base })[0];
    let depths = Sides { new: &[depth(1, "b")], base: &[depth(0, "a")] };
    let path = &paths(depths)[0];
    for figure in [load, path] {
        let dashes =
            ["1", "2"].map(|width| format!("stroke-width=\"{width}\" stroke-dasharray=\"2 3\""));
        has(&figure.svg, dashes.each_ref().map(|it| &**it));
    }
    // A ring is an overloaded load, and no load of these is.
    has(&load.svg, ["base"]);
    let ring = "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z\" fill=\"#ffffff\"";
    assert!(!load.svg.contains(ring));
}

#[test]
fn flows_of_several_files_and_devices_are_named_with_them() {
    let of = |index, device: &str, bytes: u64| {
        let mut case = at("qps=2", 1.0);
        case.config.flows[0].from_device = Some(device.to_owned());
        case.runs[0].flows[0].qps = vec![sample::qp(0, 1), sample::qp(1, bytes)];
        file(index, "host", "a", vec![case])
    };
    let results = [of(0, "mlx5_0", 3), of(1, "mlx5_0", 5), of(2, "mlx5_1", 9)];
    // Files with the same cases are launches of them.
    let figure = &queue_pairs::shares(&results).figures[0];
    assert_eq!(texts(figure, 0, 0), ["qps=2, mlx5_1", "qps=2, mlx5_0"]);
    has(&figure.subtitle, ["1 to 2 launches"]);
    let timeline = &timeline::figures(&results)[0];
    assert_eq!(texts(timeline, 0, 0), ["qps=2, mlx5_0", "qps=2, mlx5_0", "qps=2, mlx5_1"]);
    assert_eq!(texts(timeline, 0, 1), ["1 of host-0", "1 of host-1", "1"]);
}

/// Two sizes at the speed of one set of files, a third at that of another: no line goes from one to the other.
#[test]
fn a_line_is_of_one_set_of_files() {
    let of = |index, sizes: [u32; 2], rate| {
        let cases = sizes.map(|size| at(&format!("size={size}"), rate));
        file(index, "host", "a", cases.to_vec())
    };
    let (slow, fast) = (of(0, [64, 4096], 1.0), of(1, [512, 1024], 9.0));
    let figure = &specs::BANDWIDTH_BY_SIZE.figures(&[slow.clone(), fast.clone()])[0];
    let lines = texts(figure, 0, 0);
    assert_eq!(lines, ["host-0", "host-0", "host-1", "host-1"]);
    for (name, points) in [("host-0", "64 1,4096 1"), ("host-1", "512 9,1024 9")] {
        let line = format!("data-series=\"{name}\" data-points=\"{points}\"");
        has(&figure.svg, [&line]);
    }
    // A single case of another set is no peak of a line.
    let mut peak = fast;
    peak.result.cases.truncate(1);
    let without_peak = &specs::BANDWIDTH_BY_SIZE.figures(&[slow, peak])[0];
    has(&without_peak.svg, ["data-points=\"64 1,4096 1\""]);
}

/// A trend over files of three runs at about these rates: its figure, what is said of each file, and the sentences.
fn trend_of(files: &[(&str, &str, f64)]) -> Option<(Figure, Vec<String>, Vec<String>)> {
    let files: Vec<Loaded> = files
        .iter()
        .enumerate()
        .map(|(index, (git, flags, rate))| {
            let runs = [1.0, 1.001, 0.999].map(|part| plain(rate * part));
            file(index, "host", git, vec![case(flags, &runs)])
        })
        .collect();
    let mut drawn = trend::drawn(&files, &files);
    let figure = drawn.figures.pop()?;
    let steps = texts(&figure, 0, 7);
    Some((figure, steps, drawn.sentences))
}

/// Revisions of four weeks, of which the last eight are slower by a tenth.
#[test]
fn a_slower_revision_is_marked_in_the_trend_and_said() {
    let revisions: Vec<String> = (1..=28).map(|number| format!("commit{number}")).collect();
    let scatter = |index: usize| 1.0 + 0.01 * ((index * 7) % 5) as f64;
    let files = revisions.iter().enumerate().map(|(index, git)| {
        let rate = if index < 20 { 10.0 } else { 9.0 };
        (git.as_str(), "", rate * scatter(index))
    });
    let (figure, steps, sentences) = trend_of(&files.collect::<Vec<_>>()).unwrap();
    assert_eq!((&*figure.id, &*steps[0]), ("trend-of-metrics", "–"));
    let marked: Vec<usize> = (0..28).filter(|index| steps[*index] != "–").collect();
    assert_eq!(marked, [20]);
    has(&steps[20], ["bandwidth −", "worse"]);
    has(&sentences[0], ["throughput is ", "lower since revision commit21", "95 % interval −"]);
}

/// Deep queues in one file and a single message in flight in the other are no step.
#[test]
fn a_trend_is_of_equal_settings() {
    let (deep, one) = (("a", "tx-depth=128", 6.0), ("a", "tx-depth=1", 1.0));
    assert!(trend_of(&[deep, one]).is_none());
    let (figure, steps, _) = trend_of(&[deep, one, deep]).unwrap();
    assert_eq!(steps.len(), 2);
    has(&figure.svg, ["1 case is not drawn: only one file"]);
    // A change at once is too few to be told from chance.
    let slower = ("b", "tx-depth=128", 1.0);
    let (_, steps_of_few, of_few) = trend_of(&[deep, deep, slower]).unwrap();
    assert_eq!(steps_of_few, ["–"; 3]);
    has(&of_few[0], ["Too few files for a step: 3 of"]);
}

#[test]
fn a_step_of_latency_is_in_the_trend_though_bandwidth_is_steady() {
    let files: Vec<Loaded> = (0..20)
        .map(|index| {
            let (rate, ns) = if index < 10 { (5.0, 1000) } else { (10.0, 2000) };
            let cases = [took("size=64", 3, 1.0, ns), took("size=4096", 3, rate, 1000)];
            file(index, "host", "a", cases.to_vec())
        })
        .collect();
    let figure = &trend::drawn(&files, &files).figures[0];
    let captions: Vec<&str> = figure.tables.iter().map(|it| it.caption.as_str()).collect();
    has(captions.join("; "), ["p99 latency: 64"]);
}
