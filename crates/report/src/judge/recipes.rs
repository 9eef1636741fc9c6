//! What a recipe's results say together, in one sentence for a person who has not seen such results before.

use std::cmp::Ordering;

use settings::{Settings, Split};

use super::finding::percent;
use super::findings::of_run;
use crate::observe::format::{counted, human_size};
use crate::observe::{Metric, standing::run_counts};
use results::model::{CaseFlow, CaseResult, ResultFile, Run};
use statistics::median;

/// Begins the names of flows that carry blocks of a KV cache.
const BLOCK: &str = "block";

/// The name of the flow beside blocks.
const BACKGROUND: &str = "background";

/// Throughput falls, or latency grows, by more than this before it is worth a word.
const NOTABLE: f64 = 0.1;

/// The answer of a recipe, from the results of its stages.
pub fn answer(recipe: &str, files: &[&ResultFile]) -> String {
    let cases: Vec<&CaseResult> = files.iter().flat_map(|file| &file.cases).collect();
    let found = match recipe {
        "first-day" => first_day(&cases),
        "kv-cache" => kv_cache(files),
        "experts" => experts(&cases),
        "incast" => incast(&cases),
        "qp-scaling" => qp_scaling(&cases),
        "storage" => neighbours(&cases, "small reads", "large writes"),
        _ => neighbours(&cases, "small writes", "a neighbour"),
    };
    let Some(text) = found else {
        return "not known, since too little could be measured; the tables and errors above say why."
            .to_owned();
    };
    let doubtful = cases.iter().filter(|case| !case.runs.iter().any(run_counts)).count();
    if doubtful == 0 || cases.iter().any(|case| case.comparison.is_some()) {
        return text;
    }
    let of = counted(cases.len(), "case");
    format!("{text} Take it with care: {doubtful} of {of} have no run that counts.")
}

/// The median of a figure over the runs of a case that count, or where none does over all whole ones.
fn typical_of(case: &CaseResult, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    let median_over = |is_taken: fn(&Run) -> bool| {
        let runs = case.runs.iter().filter(|run| is_taken(run));
        median(&runs.filter_map(&figure).collect::<Vec<f64>>())
    };
    median_over(run_counts).or_else(|| median_over(|run| run.complete))
}

fn typical(case: &CaseResult, metric: Metric) -> Option<f64> {
    typical_of(case, |run| of_run(run, metric))
}

/// The same of one flow.
fn typical_of_flow(flow: &CaseFlow<'_>, metric: Metric) -> Option<f64> {
    typical_of(flow.case, |run| metric.of(run, Some(flow.result(run)?)))
}

/// The case with the highest figure, and the figure.
fn highest<'a>(
    cases: impl Iterator<Item = &'a CaseResult>,
    metric: Metric,
) -> Option<(&'a CaseResult, f64)> {
    cases
        .filter_map(|case| Some((case, typical(case, metric)?)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
}

fn settings(case: &CaseResult) -> &Settings {
    &case.config.settings
}

fn qps(settings: &Settings) -> String {
    counted(settings.qps as usize, "QP")
}

fn first_day(cases: &[&CaseResult]) -> Option<String> {
    let moving = (cases.iter().copied())
        .filter(|case| settings(case).rate.is_closed() && !settings(case).ping_pong);
    let fastest = (cases.iter())
        .filter(|case| settings(case).ping_pong)
        .filter_map(|case| Some((case, typical(case, Metric::P50Ns)?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other));
    let most = highest(moving, Metric::GbitPerS).map(|(case, gbit_per_s)| {
        let (own, rate) = (settings(case), Metric::GbitPerS.text(gbit_per_s));
        let (op, bytes) = (own.op, human_size(own.size_bytes.into()));
        format!("the path moves up to {rate} ({op} of {bytes} over {})", qps(own))
    });
    let least = fastest.map(|(case, p50_ns)| {
        let bytes = human_size(settings(case).size_bytes.into());
        format!("a message of {bytes} takes {} at least", Metric::P50Ns.text(p50_ns))
    });
    let figures: Vec<String> = most.into_iter().chain(least).collect();
    let diagnosed = cases.iter().find_map(|case| Some((case, case.diagnosis.as_ref()?)));
    let slowest = diagnosed.map(|(case, diagnosis)| {
        let reason = diagnosis.answer.trim_end_matches('.');
        format!("The slowest case is {}. {reason}", case.id)
    });
    let moved = Some(figures.join(", and ")).filter(|text| !text.is_empty());
    let sentences: Vec<String> = moved.into_iter().chain(slowest).collect();
    (!sentences.is_empty()).then(|| sentences.join(". ") + ".")
}

/// How long a block took, by background, in one stage and at one size.
struct Block<'a> {
    file: &'a ResultFile,
    size_bytes: u64,
    share: f64,
    p50_ns: f64,
}

fn blocks(file: &ResultFile) -> impl Iterator<Item = Block<'_>> {
    file.cases.iter().filter_map(move |case| {
        let flows: Vec<CaseFlow<'_>> = case.flows().collect();
        let background = flows.iter().find(|flow| flow.name() == BACKGROUND)?;
        let share = background.settings.rate.share()?;
        let slowest = (flows.iter())
            .filter(|flow| flow.name().starts_with(BLOCK))
            .filter_map(|flow| Some((flow, typical_of_flow(flow, Metric::P50Ns)?)))
            .max_by(|(_, one), (_, other)| one.total_cmp(other));
        let (flow, p50_ns) = slowest?;
        Some(Block { file, size_bytes: flow.settings.size_bytes.into(), share, p50_ns })
    })
}

fn kv_cache(files: &[&ResultFile]) -> Option<String> {
    let by_share: Vec<Block<'_>> = files.iter().flat_map(|file| blocks(file)).collect();
    let pairs = by_share.iter().filter_map(|calm| {
        let busiest = (by_share.iter())
            .filter(|busy| std::ptr::eq(busy.file, calm.file) && busy.size_bytes == calm.size_bytes)
            .filter(|busy| busy.share > calm.share)
            .max_by(|one, other| one.share.total_cmp(&other.share))?;
        Some((calm, busiest, busiest.p50_ns / calm.p50_ns))
    });
    let (calm, busy, times) = pairs.max_by(|(.., one), (.., other)| one.total_cmp(other))?;
    let block = human_size(busy.size_bytes);
    let [at_rest, loaded] = [calm, busy].map(|it| Metric::P50Ns.text(it.p50_ns));
    let [low, high] = [calm, busy].map(|it| percent(it.share));
    let nodes = busy.file.nodes.len();
    Some(if times <= 1.0 + NOTABLE {
        format!(
            "a busy network hardly delays blocks: one of {block} takes {loaded} beside {high} background."
        )
    } else {
        format!(
            "a busy network makes a block of {block} up to {times:.1} times as slow: {loaded} beside {high} background, {at_rest} \
             beside {low} ({nodes} nodes)."
        )
    })
}

/// How much longer an iteration takes where nodes get different parts.
fn experts(cases: &[&CaseResult]) -> Option<String> {
    let medians = cases.iter().filter_map(|case| {
        let p50_ns = typical_of(case, |run| {
            Some(run.lock_step.as_ref()?.iteration_ns.as_ref()?.p50? as f64)
        });
        Some((settings(case).split, p50_ns?))
    });
    let by_split: Vec<(Split, f64)> = medians.collect();
    let (_, even) = by_split.iter().find(|(split, _)| *split == Split::Equal)?;
    let (split, uneven) = by_split.iter().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let [even_text, uneven_text] = [even, uneven].map(|ns| Metric::P50Ns.text(*ns));
    Some(if *uneven <= even * (1.0 + NOTABLE) {
        format!(
            "uneven experts cost nothing here: an exchange takes {even_text}, or {uneven_text} at worst."
        )
    } else {
        let times = uneven / even;
        format!(
            "uneven experts cost most with the split {split}: an exchange takes {uneven_text}, {times:.1} times as long as \
             with equal parts ({even_text})."
        )
    })
}

fn incast(cases: &[&CaseResult]) -> Option<String> {
    let worst = cases.iter().filter_map(|alone| {
        let own = settings(alone);
        let crowd = (cases.iter())
            .filter(|case| settings(case).size_bytes == own.size_bytes)
            .max_by_key(|case| case.config.flows.len())?;
        let senders = crowd.config.flows.len();
        let one = typical(alone, Metric::GbitPerS).filter(|_| alone.config.flows.len() == 1)?;
        let share = typical(crowd, Metric::GbitPerS)? / one;
        (senders > 1).then_some((share, senders, own.size_bytes))
    });
    let (share, senders, size_bytes) =
        worst.min_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    let (part, bytes) = (percent(share), human_size(size_bytes.into()));
    Some(if share < 1.0 - NOTABLE {
        format!(
            "{senders} senders of {bytes} messages together move only {part} of what one moves alone: the receiver or the switch \
             before it is overrun."
        )
    } else {
        format!(
            "no collapse: {senders} senders of {bytes} messages together move {part} of what one moves alone."
        )
    })
}

fn qp_scaling(cases: &[&CaseResult]) -> Option<String> {
    let (best, peak) = highest(cases.iter().copied(), Metric::MmsgPerS)?;
    let most = cases.iter().max_by_key(|case| settings(case).qps)?;
    let (rate, last) = (Metric::MmsgPerS.text(peak), typical(most, Metric::MmsgPerS));
    let (few, many) = (qps(settings(best)), qps(settings(most)));
    Some(match last {
        None => format!("{few} move most, {rate}; {many} could not be measured."),
        Some(last) if last < peak * (1.0 - NOTABLE) => format!(
            "{few} move most, {rate}; with {many} it is {} less, so share QPs before you have so many.",
            percent(1.0 - last / peak)
        ),
        Some(_) => format!("more QPs cost nothing here: {many} move as much as the best, {rate}."),
    })
}

/// What a victim suffers most, and from whom.
fn neighbours(cases: &[&CaseResult], victim: &str, neighbour: &str) -> Option<String> {
    let compared = cases.iter().filter_map(|case| case.comparison.as_ref());
    let harms = compared.flat_map(|comparison| {
        comparison.metrics.iter().filter_map(move |figures| {
            let (times, interval) = figures.harm()?;
            Some((comparison, figures, times, interval))
        })
    });
    let (comparison, figures, times, interval) =
        harms.max_by(|(_, _, one, _), (_, _, other, _)| {
            one.partial_cmp(other).unwrap_or(Ordering::Equal)
        })?;
    let name = comparison.id.rsplit_once('+').map_or("", |(_, name)| name);
    let neighbour =
        if neighbour.starts_with("a ") { format!("`{name}`") } else { neighbour.to_owned() };
    let noun = figures.metric.noun();
    let doubt = match interval {
        Some((low, _)) if low > 1.0 => "",
        _ => ", which may be chance",
    };
    Some(if times <= 1.0 + NOTABLE {
        format!(
            "neighbours do not harm {victim}: at worst, beside {neighbour}, {noun} is {times:.2} times worse."
        )
    } else {
        format!(
            "{victim} suffer most beside {neighbour}: {noun} is {times:.1} times worse than alone{doubt}."
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use results::model::{CaseConfig, FlowConfig, FlowResult, Latency, LockStep, Totals};
    use results::sample::{self, cases, mesh::Mesh};
    use serde_json::json;

    use super::*;

    /// Cases by their QPs: `1:0.5 4:2`, in millions of messages a second.
    fn by_qps(points: &str) -> ResultFile {
        let points = points.split(' ').filter_map(|point| point.split_once(':'));
        let made = points.map(|(qps, rate)| {
            let (rate, settings) = (rate.parse().ok(), [("op", "write"), ("qps", qps)]);
            let totals =
                Totals { mmsg_per_s: rate, gbit_per_s: rate, messages: 1, ..Totals::default() };
            let flow = FlowResult { name: "forward".to_owned(), totals, ..FlowResult::default() };
            let settings: Settings = settings.into_iter().collect();
            let config = CaseConfig::from(settings);
            CaseResult {
                id: format!("q{qps}"),
                config,
                ..sample::case(vec![sample::run(vec![flow])])
            }
        });
        cases(made.collect())
    }

    /// How long blocks of 1 MiB take, in ns, by the share of the background.
    fn blocks(points: &[(&str, u64)]) -> ResultFile {
        let config_of = |name: &str, own: &[(&str, serde_json::Value)]| FlowConfig {
            name: name.to_owned(),
            settings: own.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
            ..FlowConfig::default()
        };
        let made = points.iter().map(|(share, p50_ns)| {
            let settings: Settings =
                [("op", "write"), ("size", "1M"), ("rate", *share)].into_iter().collect();
            let flows = vec![
                config_of("block", &[("rate", json!("closed"))]),
                config_of("background", &[("size_bytes", json!(65_536))]),
            ];
            let results = flows.iter().map(|flow| FlowResult {
                latency_ns: Some(Latency { p50: Some(*p50_ns), ..Latency::default() }),
                ..FlowResult::new(flow)
            });
            let run = sample::run(results.collect());
            let config = CaseConfig { flows: flows.clone(), ..CaseConfig::from(settings) };
            CaseResult { id: format!("rate{share}"), config, ..sample::case(vec![run]) }
        });
        cases(made.collect())
    }

    /// How long an exchange takes, in ns, by the split of its buffers; a second run of each was stopped.
    fn exchanges(points: &[(&str, u64)]) -> ResultFile {
        let made = points.iter().map(|(split, p50_ns)| {
            let words = [("pattern", "all-to-all"), ("lock-step", "true"), ("split", *split)];
            let settings: Settings = words.into_iter().collect();
            let [run, stopped] = [*p50_ns, 1].map(|p50_ns| {
                let iteration_ns = Some(Latency { p50: Some(p50_ns), ..Latency::default() });
                let lock_step = Some(LockStep { iteration_ns, ..LockStep::default() });
                Run { lock_step, ..sample::run(Vec::new()) }
            });
            let runs = vec![run, Run { interrupted: true, ..stopped }];
            let config = CaseConfig::from(settings);
            CaseResult { id: (*split).to_owned(), config, ..sample::case(runs) }
        });
        cases(made.collect())
    }

    #[test]
    fn each_recipe_has_an_answer() {
        let mut slow = Mesh::new(6).incast(&[5]);
        slow.cases.extend(Mesh::new(6).incast(&[1]).cases);
        for flow in slow.cases[0].runs.iter_mut().flat_map(|run| &mut run.flows) {
            flow.totals.gbit_per_s = flow.totals.gbit_per_s.map(|rate| rate / 2.0);
        }
        let beside = cases(sample::beside());
        let mut text = String::new();
        for (recipe, files) in [
            ("first-day", vec![by_qps("1:0.5 4:2 16:1.9")]),
            ("first-day", vec![]),
            (
                "kv-cache",
                vec![blocks(&[("25%", 1_000_000), ("50%", 1_500_000), ("90%", 3_100_000)])],
            ),
            ("kv-cache", vec![blocks(&[("25%", 1_000_000), ("90%", 1_010_000)])]),
            ("experts", vec![exchanges(&[("equal", 4_000_000), ("zipf", 9_000_000)])]),
            ("incast", vec![Mesh::new(6).incast(&[1, 5])]),
            ("incast", vec![slow]),
            ("qp-scaling", vec![by_qps("1:0.5 64:2 16384:0.7")]),
            ("qp-scaling", vec![by_qps("1:0.5 64:2 16384:1.99")]),
            ("storage", vec![beside.clone()]),
            ("interference", vec![beside]),
        ] {
            let files: Vec<&ResultFile> = files.iter().collect();
            let _ = writeln!(text, "{recipe}: {}", answer(recipe, &files));
        }
        insta::assert_snapshot!(text);
    }
}
