//! All kinds of figures, in the page's order, and what none of them shows.

use std::collections::BTreeMap;

use super::figures::nodes::{self, Nodes, Racks};
use super::figures::{comparison, heat_map, qp_time, shares, timeline, trend};
use super::section::Section;
use super::sides::Sides;
use super::specs::{
    bandwidth_by_size, latency, latency_by_load, latency_by_throughput, rate_by_qps, set_up,
    workers,
};
use super::sums::is_of_pattern;
use crate::judge::compare::Comparison;
use crate::observe::format::{plural, some_of};
use crate::observe::standing::{self, LeftOut};
use crate::results::load::Loaded;
use crate::results::model::{CaseResult, subject};
use settings::Pattern;

/// Ids of all sections, in the page's order.
pub const IDS: [&str; 11] = [
    "comparison",
    "nodes",
    "load",
    "throughput-and-latency",
    "queue-pairs",
    "latency",
    "over-time",
    "message-size",
    "workers",
    "set-up",
    "trend",
];

/// Names that a sentence has at most.
const NAMED: usize = 5;

/// Figures that a page has at most.
pub const MOST_FIGURES: usize = 20;

/// Every section, in the order of [`IDS`]; those without a figure say what they need. `sums` are both sides with the flows
/// of each case of a pattern as one (`sums`), since a line for each flow of a pattern would be thousands.
pub fn sections(
    results: &[Loaded],
    sums: Sides<'_>,
    comparison: Option<&Comparison>,
    racks: &Racks,
) -> Vec<Section> {
    vec![
        Section {
            id: "comparison",
            heading: "Comparison",
            intro: "Ratio of the medians of each case with its 95 % interval, the worst first. Grey: too small to matter."
                .to_owned(),
            figures: comparison::figures(sums.new, comparison),
            needs: "a base to compare with (--base), or cases run --against perftest",
            ..Section::default()
        },
        nodes_section(results, sums.new, racks),
        Section {
            id: "load",
            heading: "Latency against load",
            intro: "How long messages take at a given load: each has a planned time, from which its latency counts. \
                    A closed loop sends a slow system fewer messages, so it cannot show this."
                .to_owned(),
            figures: latency_by_load::SPEC.figures(sums),
            needs: "a case with planned times (--rate), or a search for a load (--slo, --knee)",
            ..Section::default()
        },
        Section {
            id: "throughput-and-latency",
            heading: "Throughput and latency",
            intro: "Gain of throughput and cost in latency of more messages in flight, in closed loops."
                .to_owned(),
            figures: [latency_by_throughput::BY_DEPTH, latency_by_throughput::BY_QPS]
                .iter()
                .flat_map(|spec| spec.figures(sums))
                .collect(),
            needs: "two cases that differ in send depth or QPs only",
            ..Section::default()
        },
        queue_pairs_section(sums),
        Section {
            id: "latency",
            heading: "Latency",
            intro: "Right: the slowest 1 in 100, 1,000, 10,000 messages."
                .to_owned(),
            figures: latency::SPEC.figures(sums),
            needs: "a run that counts with latencies (not --no-latency)",
            ..Section::default()
        },
        Section {
            id: "over-time",
            heading: "Throughput over time",
            intro: "The least steady runs over time, with their slowest interval and their longest stall, and each \
                    QP of the least even runs."
                .to_owned(),
            figures: [timeline::figures(sums), qp_time::figures(sums)].concat(),
            needs: "a run whose throughput was sampled",
            ..Section::default()
        },
        Section {
            id: "message-size",
            heading: "Bandwidth and message size",
            intro: "Small messages are limited by the cost of a message, and rise along a straight line; large ones \
                    are limited by the link."
                .to_owned(),
            figures: bandwidth_by_size::SPEC.figures(sums),
            needs: "two cases that differ in message size only",
            ..Section::default()
        },
        Section {
            id: "workers",
            heading: "Workers",
            intro: "Effect of more threads.".to_owned(),
            figures: workers::SPEC.figures(sums),
            needs: "two cases that differ in workers only",
            ..Section::default()
        },
        Section {
            id: "set-up",
            heading: "Set-up",
            intro: "How fast QPs are created, connected and destroyed, while others carry traffic or none do."
                .to_owned(),
            figures: set_up::figures(sums),
            needs: "two cases of --op connect that differ in QPs only",
            ..Section::default()
        },
        Section {
            id: "trend",
            heading: "Trend",
            intro: "The same cases in one result file after the other.".to_owned(),
            figures: trend::figures(sums),
            needs: "two result files with the same case",
            ..Section::default()
        },
    ]
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
            "The page has no room for these, since it has {MOST_FIGURES} figures at most: {}. Give files of fewer kinds of cases \
             to see them.",
            gone.join("; ")
        )
    })
}

fn queue_pairs_section(sums: Sides<'_>) -> Section {
    let shares = shares::shares(sums.new);
    let mut figures = rate_by_qps::SPEC.figures(sums);
    figures.extend(heat_map::figures(sums.new));
    figures.extend(shares.figures);
    Section {
        id: "queue-pairs",
        heading: "Queue pairs",
        intro: "Effect of more QPs, for each way of sharing completion queues, and how evenly QPs are served (Jain’s \
                index: 1 is even)."
            .to_owned(),
        sentences: shares.sentences,
        figures,
        needs: "two cases that differ in QPs only, or QPs that are served unevenly",
        ..Section::default()
    }
}

fn nodes_section(results: &[Loaded], sums: &[Loaded], racks: &Racks) -> Section {
    let Nodes {
        sentences,
        figures,
        matrices,
    } = nodes::figures(results, sums, racks);
    let mut intro = "Each row of a map is a node that posts, each column one at the other end; its colour is how far a cell \
                     is from the median of all. Strips have the medians of each node."
        .to_owned();
    let (all, drawn) = matrices;
    if all > drawn {
        intro.push_str(&format!(
            " The figure has {drawn} of {all} matrices: give files with fewer cases to see the others."
        ));
    }
    Section {
        id: "nodes",
        heading: "Nodes",
        sentences,
        intro,
        figures,
        needs: "a case of a pattern over nodes (--pattern)",
        ..Section::default()
    }
}

/// What of the results is in no figure, and why.
pub fn left_out(results: &[Loaded], comparison: Option<&Comparison>) -> Vec<String> {
    let mut left_out = not_counted(results);
    left_out.extend(flows_of_patterns(results));
    left_out.extend(qp_time::left_out(results));
    if let Some(comparison) = comparison {
        left_out.extend(not_compared(comparison));
    }
    left_out
}

/// Cases of a comparison that have no ratio, or no verdict.
fn not_compared(comparison: &Comparison) -> Vec<String> {
    let mut reasons: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for case in &comparison.cases {
        let missing = case.missing.iter().map(|missing| {
            let name = missing.metric.short_name();
            let name = subject(&case.config, name, &missing.flow);
            (
                "Not compared with the base",
                format!("{name}: {}", missing.reason),
            )
        });
        let no_verdict = case.no_verdict.iter();
        let no_verdict = no_verdict.map(|reason| ("Unclear", reason.clone()));
        let not_comparable = (!case.not_comparable.is_empty()).then(|| {
            (
                "Not comparable with the base",
                case.not_comparable.join("; "),
            )
        });
        for reason in missing.chain(no_verdict).chain(not_comparable) {
            reasons.entry(reason).or_default().push(&case.id);
        }
    }
    let mut told: Vec<String> = reasons
        .into_iter()
        .map(|((what, reason), cases)| format!("{what}: {} ({reason}).", some_of(&cases, NAMED)))
        .collect();
    for (cases, whose) in [
        (&comparison.only_in_base, "the base"),
        (&comparison.only_in_new, "the results, not in the base"),
    ] {
        if !cases.is_empty() {
            let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
            told.push(format!("Only in {whose}: {}.", some_of(&cases, NAMED)));
        }
    }
    told
}

/// What other figures than those of nodes leave out.
fn flows_of_patterns(results: &[Loaded]) -> Vec<String> {
    let cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    let (pairs, others): (Vec<&CaseResult>, Vec<_>) = (cases.filter(|case| is_of_pattern(case)))
        .partition(|case| case.config.pattern == Some(Pattern::Pairs));
    let flows =
        |cases: &[&CaseResult]| -> usize { cases.iter().map(|case| case.config.flows.len()).sum() };
    let mut told = Vec::new();
    if !pairs.is_empty() {
        told.push(format!(
            "The {} flows of {} rounds of pairs are under “Nodes” only, and a round in the table of all cases.",
            flows(&pairs),
            pairs.len()
        ));
    }
    if !others.is_empty() {
        told.push(format!(
            "The {} flows of {} {} of patterns are drawn one by one under “Nodes” only; other figures and the table of all \
             cases have the total of a case’s flows; shares, heat map and throughput over time leave these cases out.",
            flows(&others),
            others.len(),
            plural(others.len(), "case")
        ));
    }
    told
}

fn not_counted(results: &[Loaded]) -> Vec<String> {
    let cases = || results.iter().flat_map(|loaded| &loaded.result.cases);
    let runs = cases().flat_map(|case| &case.runs);
    let left_out = LeftOut::of(runs.map(standing::of_run));
    let runs = (left_out.count() > 0).then(|| {
        format!(
            "{} of {} runs do not count and are in no median: {}.",
            left_out.count(),
            left_out.all,
            left_out.reasons().join(", ")
        )
    });
    let without = |case: &&CaseResult| !case.runs.iter().any(standing::run_counts);
    let cases = match cases().filter(without).count() {
        0 => None,
        1 => Some("1 case has no run that counts; its figures are missing, not zero.".to_owned()),
        more => Some(format!(
            "{more} cases have no run that counts; their figures are missing, not zero."
        )),
    };
    runs.into_iter().chain(cases).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::compare::CaseComparison;
    use crate::results::model::{FlowResult, LoadVerdict, Run};
    use crate::results::sample::{self, case, has, starts};
    use crate::show::plot::figure::Figure;

    #[test]
    fn what_failed_is_told() {
        let run = |complete| Run {
            complete,
            ..Run::default()
        };
        let cases = vec![case(vec![run(true), run(false)]), case(vec![run(false)])];
        let mut loaded = sample::file(cases);
        let told = left_out(std::slice::from_ref(&loaded), None).join("\n");
        starts(
            &told,
            "2 of 3 runs do not count and are in no median: 2 failed.",
        );
        has(&told, ["\n1 case has no run that counts"]);
        loaded.result.cases = vec![case(vec![run(true)])];
        assert!(left_out(std::slice::from_ref(&loaded), None).is_empty());
        loaded.result.cases[0].runs[0].flows = vec![FlowResult {
            load: sample::load_of(LoadVerdict::NotKept),
            ..FlowResult::default()
        }];
        let told = left_out(&[loaded], None).join("\n");
        starts(
            &told,
            "1 of 1 runs do not count and are in no median: 1 schedule not kept.",
        );
    }

    #[test]
    fn a_section_whose_figures_had_no_room_is_marked() {
        let section = |figures: usize| Section {
            figures: vec![Figure::default(); figures],
            ..Section::default()
        };
        let mut sections = [section(MOST_FIGURES), section(1), section(0)];
        assert!(cap(&mut sections).is_some());
        let capped = sections.each_ref().map(|section| section.is_capped);
        assert_eq!(capped, [false, true, false]);
    }

    #[test]
    fn cases_without_a_ratio_are_told_with_their_reason() {
        let case = |id: usize| CaseComparison {
            id: format!("case-{id}"),
            not_comparable: vec!["MTU 1024 and 4096".to_owned()],
            ..CaseComparison::default()
        };
        let comparison = Comparison {
            cases: (1..=7).map(case).collect(),
            only_in_base: vec!["old".to_owned()],
            ..Comparison::default()
        };
        let told = left_out(&[], Some(&comparison));
        assert_eq!(told.len(), 2, "{told:?}");
        has(&told[0], ["case-5 and 2 more (MTU 1024 and 4096)"]);
        assert_eq!(told[1], "Only in the base: old.");
    }
}
