//! The page's first sentence answers the question of its kind of page, in the words of what the judges found.

use std::cmp::Ordering;

use results::model::Comparison;

use crate::judge::{
    finding::Finding,
    searches::{LATENCY_KEPT, LOWER},
    stages::acceptance,
};
use crate::observe::standing::{self, LeftOut};
use crate::show::{
    compare,
    page::{Page, summary, tables},
};

/// The sentence of each kind of page; `None` of a page that is of another kind. The first one counts.
const KINDS: [fn(&Page<'_>) -> Option<String>; 10] = [
    accepted,
    nothing_counts,
    explained,
    compared,
    over_time,
    in_turns,
    of_nodes,
    of_loads,
    of_sweep,
    of_the_fastest,
];

/// The first sentence; empty of a page without results.
pub(super) fn answer(page: &Page<'_>) -> String {
    KINDS.iter().find_map(|sentence| sentence(page)).unwrap_or_default()
}

/// What the stages of an acceptance say.
fn accepted(page: &Page<'_>) -> Option<String> {
    page.results.iter().find_map(|loaded| acceptance(&loaded.result.stages))
}

fn nothing_counts(page: &Page<'_>) -> Option<String> {
    let cases = page.results.iter().flat_map(|loaded| &loaded.result.cases);
    let left_out = LeftOut::new(cases.flat_map(|case| &case.runs).map(standing::of_run));
    let none_counts = left_out.runs > 0 && left_out.count() == left_out.runs;
    none_counts.then(|| format!("No run counts. {}", tables::left_out_sentence(&left_out)))
}

/// What limits the first case of which that was to be found.
fn explained(page: &Page<'_>) -> Option<String> {
    let mut cases = page.results.iter().flat_map(|loaded| &loaded.result.cases);
    cases.find_map(|case| case.diagnosis.as_ref()).map(|diagnosis| diagnosis.answer.clone())
}

fn compared(page: &Page<'_>) -> Option<String> {
    page.comparison.map(compare::answer)
}

/// Days or revisions: the trend leads the page.
fn over_time(page: &Page<'_>) -> Option<String> {
    let trend = page.sections.first().filter(|section| section.id == "trend")?;
    trend.sentences.first().filter(|_| !trend.figures.is_empty()).cloned()
}

/// Cases beside perftest or beside attackers.
fn in_turns(page: &Page<'_>) -> Option<String> {
    let compared = page.results.iter().filter_map(|loaded| Comparison::in_turns(&loaded.result));
    let together = compared.reduce(|mut one, other| {
        one.cases.extend(other.cases);
        one
    });
    Some(compare::answer(&together?))
}

fn of_nodes(page: &Page<'_>) -> Option<String> {
    page.sections.iter().find(|section| section.id == "nodes")?.sentences.first().cloned()
}

/// The highest load of a search, else of open loops.
fn of_loads(page: &Page<'_>) -> Option<String> {
    let rank = |finding: &Finding| (finding.id != LATENCY_KEPT, finding.data[LOWER].as_f64());
    let loads = page.findings.iter().filter(|finding| finding.data.contains_key(LOWER));
    let highest = loads
        .max_by(|one, other| rank(one).partial_cmp(&rank(other)).unwrap_or(Ordering::Equal))?;
    Some(highest.text.clone())
}

/// Where more of a setting gains nothing, else which case is best. Of a ping-pong latency is the question.
fn of_sweep(page: &Page<'_>) -> Option<String> {
    let mut cases = page.results.iter().flat_map(|loaded| &loaded.result.cases);
    let is_ping_pong = cases.all(|case| case.config.ping_pong);
    let of_curve = if is_ping_pong { "latency_curve" } else { "scaling_" };
    let curve = page.findings.iter().find(|finding| finding.id.starts_with(of_curve));
    let of_best = ["best", "no_clear_winner"];
    let mut best = page.findings.iter().filter(|finding| of_best.contains(&finding.id));
    let best_of_kind = if is_ping_pong { best.next_back() } else { best.next() };
    curve.or(best_of_kind).map(|finding| finding.text.clone())
}

fn of_the_fastest(page: &Page<'_>) -> Option<String> {
    summary::fastest(page.sums).map(|tile| tile.sentence())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use results::{
        load::{Found, Loaded},
        model::ResultFile,
        sample::{
            self,
            mesh::{Mesh, Slow},
            sweep::Synthetic,
        },
    };

    use super::*;
    use crate::judge::{
        compare::{Options, compare},
        findings::findings,
        searches::searches,
    };
    use crate::show::plot::{self, figures::nodes::Racks, rows};

    /// A sweep that was not run beside another program.
    fn sweep(sweep: &Synthetic) -> ResultFile {
        let mut result = sweep.result();
        result.cases.iter_mut().for_each(|case| case.comparison = None);
        result
    }

    fn small() -> Synthetic {
        let (ops, cqs, qps) = (vec!["write"], vec!["shared"], vec![1]);
        Synthetic { ops, cqs, qps, sizes: vec![65536], workers: vec![1], ..Synthetic::default() }
    }

    /// Files that were begun so many minutes after midnight of a day of November, with names of their own.
    fn dated(results: impl IntoIterator<Item = (u32, u32, ResultFile)>) -> Vec<Loaded> {
        let files = results.into_iter().map(|(day, minute, result)| {
            let (hours, minutes) = (minute / 60, minute % 60);
            let started_at = format!("2026-11-{day:02}T{hours:02}:{minutes:02}:00Z");
            let path = format!("{day}-{minute}.json").into();
            Loaded { path, result: ResultFile { started_at, ..result } }
        });
        files.collect()
    }

    fn nights(last: u32, slow: impl Fn(u32) -> bool) -> Vec<Loaded> {
        dated((1..=last).map(|night| {
            let mesh = Mesh { seed: u64::from(night), ..Mesh::new(8).runs(1).noise(0.03) };
            let mesh = if slow(night) { mesh.with(Slow::Sends(6, 0.7)) } else { mesh };
            (night, 120, mesh.pairs())
        }))
    }

    /// A launch of one case, or of one for each number of QPs, whose throughput is so many times the usual.
    fn launch(number: u32, git: &'static str, factor: f64, qps: &[u32]) -> ResultFile {
        let (seed, qps) = (u64::from(number), qps.to_vec());
        sweep(&Synthetic { seed, git, factor, runs: 1, qps, ..small() })
    }

    /// A sweep over sizes up from this one, where latency is the question.
    fn ping_pong(least: u32) -> ResultFile {
        let sizes = vec![least, 4 * least, 64 * least];
        let mut result = sweep(&Synthetic { sizes, ..small() });
        result.cases.iter_mut().for_each(|case| case.config.ping_pong = true);
        result
    }

    fn in_turns(factor: f64) -> [Vec<Loaded>; 2] {
        [("3f2a1c000", 1.0, 0), ("77ab01234", factor, 5)].map(|(git, factor, minute)| {
            dated((0..8).map(|round| {
                (20, 10 * round + minute, launch(round + 50 * minute, git, factor, &[1, 4]))
            }))
        })
    }

    /// The title, the answer and the tiles of each kind of page, as text.
    #[test]
    fn each_kind_of_page_answers_its_question() {
        let commits = |last: u32| {
            let mut files = dated((0..last).map(|number| {
                (20, number, launch(number, "", if number < 20 { 1.0 } else { 0.9 }, &[1]))
            }));
            for (number, file) in (1..).zip(&mut files) {
                file.result.tool.git = Some(format!("c0ffee{number:02}"));
            }
            files
        };
        let one = |result: ResultFile| vec![sample::loaded(result)];
        let sizes = vec![64, 1024, 4096, 65536, 262_144];
        let loads = Synthetic { rates: vec!["200k", "4M", "9M"], sizes: vec![64], ..small() };
        let mut open = sweep(&loads);
        open.cases.retain(|case| !case.config.rate.is_closed());
        let mut search = sample::open_loop();
        search.cases.truncate(1);
        let mut failed = small().result();
        failed.cases[0].runs.iter_mut().for_each(|run| run.complete = false);
        let mut explained = sweep(&small());
        explained.cases[0].diagnosis = Some(sample::diagnosis());
        let [base, slower] = in_turns(0.9);
        let [_, same] = in_turns(1.0);
        let few = base[..1].to_vec();
        let pages: Vec<(&str, Vec<Loaded>, &[Loaded])> = vec![
            ("compare: slower", slower.clone(), &base),
            ("compare: equal", same, &base),
            ("compare: a launch a side", slower[..1].to_vec(), &few),
            ("nights of nodes", nights(30, |night| night > 23), &[]),
            ("six nights of nodes", nights(6, |night| night > 3), &[]),
            ("six nights without a change", nights(6, |_| false), &[]),
            ("commits", commits(30), &[]),
            ("few commits", commits(6), &[]),
            ("beside attackers", one(sample::cases(sample::beside())), &[]),
            ("slow node", one(Mesh::new(8).with(Slow::Sends(6, 0.7)).pairs()), &[]),
            ("ring", one(Mesh::new(8).ring()), &[]),
            ("incast", one(Mesh::new(9).incast(&[1, 2, 4, 8])), &[]),
            ("search", one(search), &[]),
            ("loads", one(open), &[]),
            (
                "sweep over QPs",
                one(sweep(&Synthetic {
                    workers: vec![8],
                    sizes: vec![64],
                    qps: vec![1, 2, 4, 8, 16],
                    ..small()
                })),
                &[],
            ),
            ("sweep over sizes", one(sweep(&Synthetic { sizes, ..small() })), &[]),
            ("ping-pong over sizes", one(ping_pong(64)), &[]),
            ("ping-pong over large sizes", one(ping_pong(65536)), &[]),
            ("one case", one(sweep(&small())), &[]),
            (
                "set-up",
                one(Synthetic { ops: Vec::new(), set_up: vec![1, 16], ..small() }.result()),
                &[],
            ),
            ("nothing counts", one(failed), &[]),
            ("what limits a case", one(explained), &[]),
        ];
        let mut text = String::new();
        for (kind, results, old_results) in pages {
            let (sums, old_sums) = (rows::of_patterns(&results), rows::of_patterns(old_results));
            let [own, old] = [&results[..], old_results]
                .map(|side| Found { results: side.to_vec(), refused: Vec::new() });
            let comparison = (!old_results.is_empty()).then(|| {
                compare(("old".as_ref(), &old), ("new".as_ref(), &own), &Options::default())
            });
            let sides = rows::Sides { new: &sums, base: &old_sums };
            let sections = plot::sections(&results, sides, comparison.as_ref(), &Racks::default());
            let files: Vec<&ResultFile> = results.iter().map(|loaded| &loaded.result).collect();
            let mut found: Vec<Finding> =
                files.iter().flat_map(|file| searches(&file.cases)).collect();
            found.extend(findings(&files));
            let page = Page {
                results: &results,
                sums: &sums,
                comparison: comparison.as_ref(),
                sections: &sections,
                findings: &found,
                ..Page::default()
            };
            let answer = answer(&page);
            let tiles = summary::tiles(&page, &answer).into_string();
            let words: Vec<&str> =
                tiles.split(['<', '>']).step_by(2).filter(|word| !word.trim().is_empty()).collect();
            let (title, words) = (summary::title(&sums), words.join(" | "));
            writeln!(text, "# {kind}: {title}\n{answer} [{words}]").unwrap();
        }
        insta::assert_snapshot!(text);
    }
}
