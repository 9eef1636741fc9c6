//! Results as pictures, SVG figures from result files only: all kinds of figures, in the page's order, and what none
//! of them shows.

pub mod draw;
pub(crate) mod figure;
pub mod figures;
pub(crate) mod marks;
pub mod rows;
pub(crate) mod spec;
pub(crate) mod specs;

use std::collections::BTreeMap;

use results::{
    load::Loaded,
    model::{Comparison, subject},
};

use crate::observe::{
    format::some_of,
    standing::{self, LeftOut},
};
use crate::show::plot::{
    figure::{Drawn, Section},
    figures::{
        comparison,
        nodes::{self, Racks},
        queue_pairs, timeline, trend, why,
    },
    rows::{Sides, is_of_pattern, of_patterns},
};

const NAMED: usize = 5;

/// Figures that a page has at most.
pub const MOST_FIGURES: usize = 20;

/// What figures are drawn from.
struct Input<'a> {
    results: &'a [Loaded],
    sums: Sides<'a>,
    comparison: Option<&'a Comparison>,
    racks: &'a Racks,
}

/// Figures under one heading: what they show, what results need to have for one, and how they are drawn.
struct Kind {
    id: &'static str,
    heading: &'static str,
    needs: &'static str,
    intro: &'static str,
    draw: fn(&Input<'_>) -> Drawn,
}

/// Every kind of figure, in the page's order.
const KINDS: [Kind; 12] = [
    Kind {
        id: "why",
        heading: "What limits it",
        needs: "a case that `rocebench why` explained, or a sweep run with --why",
        intro: "Each row is the case with one thing changed: its speed over that of the case as it was, with its 95 % \
                interval. A change right of 1 helps.",
        draw: |from| why::drawn(from.results),
    },
    Kind {
        id: "comparison",
        heading: "Comparison",
        needs: "a base to compare with (--base), cases run --against perftest, or one run --beside attackers",
        intro: "Ratio of the medians of each case with its 95 % interval, the worst first. Grey: too small to matter.",
        draw: |from| comparison::figures(from.sums.new, from.comparison).into(),
    },
    Kind {
        id: "nodes",
        heading: "Nodes",
        needs: "a case of a pattern over nodes (--pattern)",
        intro: "Maps: a row is a node that posts, a column the other end; the colour shows how far a cell is from the \
                median of all. Strips: each node’s medians.",
        draw: |from| nodes::drawn(from.results, from.sums.new, from.racks),
    },
    Kind {
        id: "load",
        heading: "Latency against load",
        needs: "a case with planned times (--rate), or a search for a load (--slo, --knee, --loss-search)",
        intro: "Latency at a given load, counted from each message's planned time. A closed loop sends a slow system \
                fewer messages, so it cannot show this.",
        draw: |from| specs::LATENCY_BY_LOAD.figures(from.sums).into(),
    },
    Kind {
        id: "throughput-and-latency",
        heading: "Throughput and latency",
        needs: "two cases that differ in send depth or QPs only",
        intro: "How throughput and latency grow with more messages in flight, in closed loops.",
        draw: |from| {
            specs::LATENCY_BY_THROUGHPUT.map(|spec| spec.figures(from.sums)).concat().into()
        },
    },
    Kind {
        id: "queue-pairs",
        heading: "Queue pairs",
        needs: "two cases that differ in QPs only, or QPs that are served unevenly",
        intro: "Effect of more QPs, for each way of sharing completion queues, and how evenly QPs are served (Jain’s \
                index: 1 is even).",
        draw: |from| {
            let Drawn { figures, sentences } = queue_pairs::shares(from.sums.new);
            let lines = [specs::RATE_BY_QPS, specs::MAP_OF_QPS].map(|spec| spec.figures(from.sums));
            Drawn { figures: [lines.concat(), figures].concat(), sentences }
        },
    },
    Kind {
        id: "latency",
        heading: "Latency",
        needs: "a run that counts and has latencies (no --no-latency)",
        intro: "Right: the slowest 1 in 100, 1,000, 10,000 messages.",
        draw: |from| {
            [specs::LATENCY, specs::STEPS].map(|spec| spec.figures(from.sums)).concat().into()
        },
    },
    Kind {
        id: "over-time",
        heading: "Throughput over time",
        needs: "a run whose throughput was sampled",
        intro: "The least steady runs, with their slowest interval and longest stall; and each QP of the least even \
                runs.",
        draw: |from| {
            [
                timeline::flows_figures(from.results),
                timeline::figures(from.sums),
                queue_pairs::over_time_figures(from.sums),
            ]
            .concat()
            .into()
        },
    },
    Kind {
        id: "message-size",
        heading: "Bandwidth and message size",
        needs: "two cases that differ in message size only",
        intro: "The cost of a message limits small messages, which rise along a straight line; the link limits large \
                ones.",
        draw: |from| specs::BANDWIDTH_BY_SIZE.figures(from.sums).into(),
    },
    Kind {
        id: "workers",
        heading: "Workers",
        needs: "two cases that differ in workers only",
        intro: "Effect of more threads.",
        draw: |from| specs::RATE_BY_WORKERS.figures(from.sums).into(),
    },
    Kind {
        id: "set-up",
        heading: "Set-up",
        needs: "two cases of --op connect that differ in QPs only",
        intro: "How fast QPs are created, connected and destroyed, with and without traffic on other QPs.",
        draw: |from| specs::set_up_figures(from.sums).into(),
    },
    Kind {
        id: "trend",
        heading: "Trend",
        needs: "two result files with the same case, or the same pattern over nodes",
        intro: "The same cases, from one result file to the next. A step is one of the whole series, so that a single file far \
                off is none.",
        draw: |from| trend::drawn(from.results, from.sums),
    },
];

/// Every section, in the page's order, which the trend leads where results are of several days or revisions; those without a
/// figure say what they need. `sums` are both sides with the flows
/// of each case of a pattern as one (`sums`), since a line for each flow of a pattern would be thousands.
pub fn sections(
    results: &[Loaded],
    sums: Sides<'_>,
    comparison: Option<&Comparison>,
    racks: &Racks,
) -> Vec<Section> {
    let input = Input { results, sums, comparison, racks };
    let mut sections: Vec<Section> = KINDS
        .iter()
        .map(|&Kind { id, heading, needs, intro, draw }| {
            let Drawn { figures, sentences } = draw(&input);
            Section { id, heading, intro, sentences, figures, is_capped: false, needs }
        })
        .collect();
    if comparison.is_none() && trend::is_series(results) {
        sections.sort_by_key(|section| section.id != "trend" || section.figures.is_empty());
    }
    sections
}

/// What steps results show over days or revisions, in sentences.
pub fn steps(results: &[Loaded]) -> Vec<String> {
    trend::drawn(results, &*of_patterns(results)).sentences
}

/// Ids of all sections, in the page's order.
pub fn section_ids() -> [&'static str; KINDS.len()] {
    KINDS.map(|kind| kind.id)
}

/// Takes the last figures where there are more than [`MOST_FIGURES`]; returns what is said of them.
pub fn cap(sections: &mut [Section]) -> Option<String> {
    let mut room = MOST_FIGURES;
    let mut gone = Vec::new();
    for section in sections {
        let kept = section.figures.len().min(room);
        room -= kept;
        section.is_capped = section.figures.len() > kept;
        gone.extend(section.figures.drain(kept..).map(|figure| figure.title));
    }
    (!gone.is_empty()).then(|| {
        format!(
            "Give files with fewer kinds of cases to see these too: {}. The page has at most {MOST_FIGURES} figures.",
            gone.join("; ")
        )
    })
}

/// What of the results is in no figure, and why.
pub fn left_out(results: &[Loaded], comparison: Option<&Comparison>) -> Vec<String> {
    let mut left_out: Vec<String> = not_counted(results).into_iter().collect();
    left_out.extend(flows_of_patterns(results));
    left_out.extend(queue_pairs::left_out(results));
    left_out.extend(comparison.into_iter().flat_map(not_compared));
    left_out
}

/// Cases of a comparison that have no ratio, or no verdict.
fn not_compared(comparison: &Comparison) -> Vec<String> {
    let mut reasons: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for case in &comparison.cases {
        let missing = case.missing.iter().map(|missing| {
            let name = subject(&case.config, missing.metric.short_name(), &missing.flow);
            ("Not compared with the base", format!("{name}: {}", missing.reason))
        });
        let unclear = case.no_verdict.iter().map(|reason| ("Unclear", reason.clone()));
        let not_comparable = (!case.not_comparable.is_empty())
            .then(|| ("Not comparable with the base", case.not_comparable.join("; ")));
        for key in missing.chain(unclear).chain(not_comparable) {
            reasons.entry(key).or_default().push(&case.id);
        }
    }
    let of_cases = reasons
        .into_iter()
        .map(|((what, why), cases)| format!("{what}: {} ({why}).", some_of(&cases, NAMED)));
    let alone = [
        (&comparison.only_in_base, "the base"),
        (&comparison.only_in_new, "the results, not in the base"),
    ];
    let of_one_side = alone
        .into_iter()
        .filter(|(cases, _)| !cases.is_empty())
        .map(|(cases, side)| format!("Only in {side}: {}.", some_of(cases, NAMED)));
    of_cases.chain(of_one_side).collect()
}

/// What other figures than those of nodes leave out.
fn flows_of_patterns(results: &[Loaded]) -> Option<String> {
    let mut cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    cases.any(is_of_pattern).then(|| {
        "Only “Nodes” shows the flows of a pattern (--pattern) one by one. The table of all cases and figures with lines have \
         a case’s total; no figure has rounds of pairs. Shares, heat map and throughput over time leave patterns out."
            .to_owned()
    })
}

fn not_counted(results: &[Loaded]) -> Option<String> {
    let cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    let left_out = LeftOut::new(cases.flat_map(|case| &case.runs).map(standing::of_run));
    let (count, runs) = (left_out.count(), left_out.runs);
    let reasons = left_out.reasons().join(", ");
    (count > 0)
        .then(|| format!("{count} of {runs} runs do not count and are in no median: {reasons}."))
}

#[cfg(test)]
mod tests {
    use results::{
        model::{FlowResult, LoadVerdict, Run},
        sample::{self, case, has},
    };

    use super::*;
    use crate::show::plot::figure::Figure;
    use results::model::CaseComparison;

    #[test]
    fn what_failed_is_told() {
        let run = |complete| Run { complete, ..Run::default() };
        let cases = vec![case(vec![run(true), run(false)]), case(vec![run(false)])];
        let mut loaded = sample::file(cases);
        let failed = left_out(std::slice::from_ref(&loaded), None);
        assert_eq!(failed, ["2 of 3 runs do not count and are in no median: 2 failed."]);
        loaded.result.cases = vec![case(vec![run(true)])];
        assert!(left_out(std::slice::from_ref(&loaded), None).is_empty());
        loaded.result.cases[0].runs[0].flows = vec![FlowResult {
            load: sample::load_of(LoadVerdict::NotKept),
            ..FlowResult::default()
        }];
        let late = left_out(&[loaded], None);
        let expected = "1 of 1 runs do not count and are in no median: 1 schedule not kept.";
        assert_eq!(late, [expected]);
    }

    #[test]
    fn a_section_whose_figures_had_no_room_is_marked() {
        let section = |figures: usize| Section {
            figures: vec![Figure::default(); figures],
            ..Section::default()
        };
        let mut sections = [section(MOST_FIGURES), section(1), section(0)];
        assert!(cap(&mut sections).is_some());
        let capped = sections.each_ref().map(|it| it.is_capped);
        assert_eq!(capped, [false, true, false]);
    }

    #[test]
    fn cases_without_a_ratio_are_told_with_their_reason() {
        let comparison = Comparison {
            cases: (1..=7)
                .map(|id| CaseComparison {
                    id: format!("case-{id}"),
                    not_comparable: vec!["MTU 1024 and 4096".to_owned()],
                    ..CaseComparison::default()
                })
                .collect(),
            only_in_base: vec!["old".to_owned()],
            ..Comparison::default()
        };
        let sentences = left_out(&[], Some(&comparison));
        assert_eq!(sentences.len(), 2, "{sentences:?}");
        has(&sentences[0], ["case-5 and 2 more (MTU 1024 and 4096)"]);
        assert_eq!(sentences[1], "Only in the base: old.");
    }
}
