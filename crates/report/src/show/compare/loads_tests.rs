//! Open loops and searches of two sides: what is judged, what is not, and that every document says so.

use std::sync::LazyLock;

use super::sample::{noise, text};
use super::*;
use crate::judge::compare::model::{CaseComparison, Comparison, Verdict};
use crate::observe::metric::Metric;
use results::load::Found;
use results::model::{CaseResult, Latency, LoadSearch, ResultFile, SearchEnd};
use results::sample::{self, has, starts};

static SAMPLE: LazyLock<ResultFile> = LazyLock::new(sample::open_loop);

/// How a launch of a side differs from the sample.
type Change = fn(&mut [CaseResult]);

/// Ten launches a side in turns, of which `change` changes the new side's.
fn compared(change: Change) -> (Comparison, [Found; 2]) {
    let side = |name: &str, second: u32, change: Change| {
        super::sample::side(name, second, 10, |launch| {
            let mut result = SAMPLE.clone();
            let noise = noise(launch, second);
            for case in &mut result.cases {
                scale(&mut case.runs[0].flows[0].latency_ns, noise);
                case.searches.iter_mut().for_each(|search| bounds(search, noise));
            }
            change(&mut result.cases);
            result
        })
    };
    let sides = [side("base", 0, same), side("new", 30, change)];
    (super::sample::compared(&sides[0], &sides[1]), sides)
}

fn same(_: &mut [CaseResult]) {}

fn bounds(search: &mut LoadSearch, factor: f64) {
    for bound in [&mut search.lower_per_second, &mut search.upper_per_second] {
        *bound = bound.map(|bound| bound * factor);
    }
}

fn scale(times: &mut Option<Latency>, factor: f64) {
    let Some(times) = times else { return };
    let scaled = |ns: u64| (ns as f64 * factor).round() as u64;
    (times.min, times.max) = (scaled(times.min), scaled(times.max));
    *times = std::mem::take(times).with_percentiles(|_, ns| ns.map(scaled));
    times.mean *= factor;
}

fn verdict(case: &CaseComparison, metric: Metric) -> Option<Verdict> {
    let found = case.metrics.iter().find(|it| it.metric == metric);
    found.map(|it| it.verdict)
}

#[test]
fn a_load_that_is_kept_is_judged_by_its_latency() {
    let (comparison, sides) = compared(|cases| {
        scale(&mut cases[1].runs[0].flows[0].latency_ns, 1.3);
    });
    let [closed, kept, overloaded] = [0, 1, 3].map(|case| &comparison.cases[case]);
    let (equal, worse) = (Some(Verdict::Equal), Some(Verdict::Regressed));
    for metric in [Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns] {
        let verdicts = [closed, kept].map(|case| verdict(case, metric));
        assert_eq!(verdicts, [equal, worse], "{metric:?}");
    }
    for metric in [Metric::GbitPerS, Metric::MmsgPerS, Metric::Fairness] {
        // An overloaded flow moves what the system can.
        let verdicts = [closed, kept, overloaded].map(|case| verdict(case, metric));
        assert_eq!(verdicts, [equal, None, equal], "{metric:?}");
    }
    assert_eq!(verdict(kept, Metric::CpuSecondsPerGb), equal);
    let table = text(|out| table::write(&comparison, out));
    has(table, ["an open loop that keeps up has the offered throughput"]);
    let otava = text(|out| programs::otava(&comparison, sides.each_ref(), out));
    let header = otava.lines().next().unwrap();
    has(header, ["write-shared-q2-64B-Q1-R50%.latency_p99_ns"]);
    assert!(!header.contains("-R50%.gbit_per_s"), "{header}");
}

/// What documents with words say, each with the words of the others.
fn documents(comparison: &Comparison) -> [String; 4] {
    let all = [
        text(|out| table::write(comparison, out)),
        text(|out| markdown::write(comparison, out)),
        text(|out| junit::write(comparison, out)),
        text(|out| programs::json(comparison, out)),
    ];
    all.map(|text| {
        let text = text.replace("&quot;", "\"").replace("\\\"", "\"");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

/// The schedule of R80% was not kept in any launch: there is nothing to judge, and each document that has words says why.
#[test]
fn a_schedule_that_was_not_kept_is_not_judged() {
    let (comparison, sides) = compared(same);
    let why =
        "the base side has no run that counts: 10 of 10 base runs are marked \"schedule not kept\"";
    starts(&comparison.cases[2].not_comparable[0], why);
    let remedy = "Use more --workers on cores of their own (--cores)";
    for document in documents(&comparison) {
        has(document, [why, remedy]);
    }
    for document in [
        text(|out| programs::bmf(&comparison, out)),
        text(|out| programs::action(&comparison, false, out)),
        text(|out| programs::otava(&comparison, sides.each_ref(), out)),
    ] {
        has(&document, ["R50%"]);
        assert!(!document.contains("R80%"), "{document}");
    }
}

#[test]
fn runs_that_did_not_keep_their_schedule_are_left_out_and_counted() {
    let (comparison, _) = compared(|cases| {
        let doubts = cases[2].runs[0].flows[0].window.doubts.clone();
        let mut late = cases[1].runs[0].clone();
        late.run = 2;
        late.flows[0].window.doubts = doubts;
        cases[1].runs.push(late);
    });
    let case = &comparison.cases[1];
    assert_eq!(verdict(case, Metric::P99Ns), Some(Verdict::Equal));
    let note = "10 of 20 new runs are marked \"schedule not kept\"";
    has(case.notes.join("; "), [note]);
    for document in documents(&comparison) {
        has(document, [note]);
    }
    let action = text(|out| programs::action(&comparison, false, out));
    has(action.replace("\\\"", "\""), [note]);
}

#[test]
fn a_share_and_another_seed_are_the_same_case_and_another_rate_is_not() {
    let (comparison, _) = compared(|cases| {
        cases[1].config.settings.seed = 7;
        cases[3].config.settings.rate = "90%".parse().unwrap();
        for case in &mut cases[1..] {
            let load = case.runs[0].flows[0].load.as_mut().unwrap();
            load.asked_per_second *= 1.1;
            load.maximum_per_second = load.maximum_per_second.map(|maximum| maximum * 1.1);
        }
    });
    let told = "load 50% of each side's own closed loop: 600.0 k/s in the base, 660.0 k/s in the new results";
    assert_eq!(comparison.cases[1].notes, [told]);
    assert_eq!(comparison.cases[1].verdict(), Verdict::Equal);
    has(text(|out| markdown::write(&comparison, out)), [told]);
    let told = "rate: 95% in the base, 90% in the new results [settings]";
    assert_eq!(comparison.cases[3].not_comparable, [told]);
}

#[test]
fn searches_are_compared_by_the_load_that_keeps_the_limit() {
    let found = |change: Change| {
        let (comparison, _) = compared(change);
        let case = comparison.cases[0].clone();
        let mut figures = case.metrics.iter();
        let figures = figures.find(|it| it.metric == Metric::HighestLoad);
        (comparison, figures.cloned(), case)
    };
    let (comparison, figures, case) = found(|cases| bounds(&mut cases[0].searches[0], 0.8));
    let figures = figures.unwrap();
    let found_of = (figures.verdict, &*figures.flow);
    assert_eq!(found_of, (Verdict::Regressed, "p99<20us"));
    let told =
        "p99<20us: 735.3 k/s to 747.3 k/s in the base, 588.2 k/s to 597.9 k/s in the new results";
    assert_eq!(case.notes, [told]);
    let table = text(|out| table::write(&comparison, out));
    let row = table.lines().find(|line| line.starts_with("! load"));
    has(row.unwrap(), ["735.3 k/s", "588.2 k/s"]);
    let junit = text(|out| junit::write(&comparison, out));
    has(&junit, ["name=\"p99&lt;20us/highest_load_per_s\""]);

    // Bounds that overlap, wide as they are, are no difference.
    let (_, figures, _) = found(|cases| {
        let search = &mut cases[0].searches[0];
        search.upper_per_second = search.lower_per_second.map(|lower| lower * 1.01);
        search.lower_per_second = search.lower_per_second.map(|lower| lower * 0.85);
    });
    let figures = figures.unwrap();
    assert_ne!(figures.verdict, Verdict::Regressed);
    assert!(figures.margin > 0.15, "{}", figures.margin);

    // A limit that nothing keeps any more is below what broke it.
    let (_, figures, _) = found(|cases| {
        let search = &mut cases[0].searches[0];
        (search.end, search.lower_per_second) = (SearchEnd::NoneKeeps, None);
        search.upper_per_second = Some(6_000.0);
    });
    assert_eq!(figures.unwrap().verdict, Verdict::Regressed);

    let (_, figures, case) = found(|cases| cases[0].searches[0].end = SearchEnd::ScheduleNotKept);
    assert_eq!(figures, None);
    let told = "load of p99<20us: not comparable: the search found no load in 0 of 10 base launches and 10 of 10 new launches";
    assert_eq!(words::missing(&case.missing[0]), told);
    let (_, _, case) = found(|cases| cases[0].searches[0].upper_per_second = Some(1.0));
    starts(&case.missing[0].reason, "a search has a lower bound of");
}
