//! The key figures of each operation: the best case by each figure, and the highest loads that open loops kept.

use super::cases::column;
use crate::judge::mesh::Matrix;
use crate::observe::format::human_size;
use crate::observe::standing::counted_flows;
use crate::observe::{Metric, Observed};
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, CaseResult, FlowResult, LoadVerdict, subject};
use crate::show::plot::figure::{Cell, Table};
use settings::{Settings, Workload};

/// Figures of closed loops, and whether the largest is the best one.
const OF_CLOSED_LOOPS: [(&str, Metric, bool); 5] = [
    ("highest Gb/s", Metric::GbitPerS, true),
    ("highest Mmsg/s", Metric::MmsgPerS, true),
    ("lowest p50 (µs)", Metric::P50Ns, false),
    ("lowest p99 (µs)", Metric::P99Ns, false),
    ("lowest Jain’s index", Metric::Fairness, false),
];

/// The best case of each operation, by each figure. An open loop moves what it is offered: of those it is the
/// highest load that was kept, and of searches what they found.
pub fn key_figures(results: &[Loaded]) -> Table {
    let all = || {
        let cases = results.iter().flat_map(|loaded| &loaded.result.cases);
        let cases = cases.filter(|it| !it.config.is_set_up() && it.config.pattern.is_none());
        cases.flat_map(CaseResult::flows)
    };
    let mut rows = Vec::new();
    for op in Workload::ALL {
        let flows: Vec<CaseFlow<'_>> = all().filter(|flow| flow.settings.op == op).collect();
        let (closed, open): (Vec<_>, Vec<_>) = flows
            .iter()
            .partition(|flow| flow.settings.is_closed_loop());
        if !closed.is_empty() {
            let of = |&(name, metric, highest): &(&str, Metric, bool)| {
                let (_, digits, factor) = metric.column();
                let figures = closed.iter().filter_map(|flow| {
                    let value = Observed::of((*flow).clone()).median(metric)?;
                    Some((value / factor, *flow))
                });
                row(op, name, best(figures, highest), digits)
            };
            rows.extend(OF_CLOSED_LOOPS.iter().map(of));
        }
        if !open.is_empty() {
            let figures = open.iter().filter_map(|flow| Some((kept(flow)?, *flow)));
            let name = "highest load kept (Mmsg/s)";
            rows.push(row(op, name, best(figures, true), MMSG_DIGITS));
        }
        rows.extend(searched(op, &closed));
    }
    rows.extend(results.iter().flat_map(of_nodes));
    Table {
        caption:
            "Key figures of each operation, medians over runs that count, and the case they are of"
                .to_owned(),
        columns: vec![
            column("op", false),
            column("figure", false),
            column("value", true),
            column("case", false),
        ],
        rows,
    }
}

const MMSG_DIGITS: usize = 4;

/// Patterns whose key figures are told.
const MOST_PATTERNS: usize = 6;

/// The median flow and the worst one of each pattern.
fn of_nodes(loaded: &Loaded) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for matrix in Matrix::all(&loaded.result).into_iter().take(MOST_PATTERNS) {
        let quantity = match matrix.settings.is_closed_loop() {
            true => Metric::GbitPerS,
            false => Metric::P99Ns,
        };
        let is_rate = quantity.higher_is_better();
        let (unit, divisor, digits) = if is_rate {
            ("Gb/s", 1.0, 3)
        } else {
            ("p99 (µs)", 1e3, 2)
        };
        let figures = matrix.cells.iter();
        let figures = figures.filter_map(|cell| Some((cell.figures.of(quantity)?, cell)));
        let worst = figures.reduce(|worst, next| {
            if (next.0 < worst.0) == is_rate {
                next
            } else {
                worst
            }
        });
        let (Some((value, cell)), Some(median)) = (worst, matrix.median(quantity)) else {
            continue;
        };
        let pattern = format!("{} of {} nodes", matrix.pattern.word(), matrix.nodes.len());
        let path = format!("{} to {}", matrix.name(cell.from), matrix.name(cell.to));
        let title = format!("{}, {pattern}", matrix.title());
        for (name, value, of) in [
            ("worst flow", value, format!("{title}: {path}")),
            ("median flow", median, title),
        ] {
            rows.push(vec![
                Cell::Text(matrix.settings.op.to_string()),
                Cell::Text(format!("{name}, {unit}")),
                Cell::Number(value / divisor, digits),
                Cell::Text(of),
            ]);
        }
    }
    rows
}

/// What an open loop achieved, in 10^6 messages a second; `None` where it did not achieve what it was offered.
fn kept(flow: &CaseFlow<'_>) -> Option<f64> {
    let is_kept = |moved: &FlowResult| {
        let load = moved.load.as_ref();
        load.is_some_and(|load| load.verdict == LoadVerdict::Kept)
    };
    let all_kept = counted_flows(flow).all(is_kept);
    Observed::of(flow.clone())
        .median(Metric::MmsgPerS)
        .filter(|_| all_kept)
}

/// The highest load that each search found to keep its limits.
fn searched(op: Workload, closed: &[&CaseFlow<'_>]) -> Vec<Vec<Cell>> {
    let searches = || {
        let first = closed.iter().filter(|flow| flow.is_first());
        first.flat_map(|flow| flow.case.searches.iter().map(move |search| (*flow, search)))
    };
    let mut asked: Vec<&str> = Vec::new();
    for (_, search) in searches() {
        if !asked.contains(&search.asked.as_str()) {
            asked.push(&search.asked);
        }
    }
    let of = |asked: &str| {
        let same = searches().filter(|(_, search)| search.asked == asked);
        let found = same.filter_map(|(flow, search)| Some((search.lower_per_second? / 1e6, flow)));
        let name = format!("highest load for {asked} (Mmsg/s)");
        row(op, &name, best(found, true), MMSG_DIGITS)
    };
    asked.into_iter().map(of).collect()
}

type Best<'f, 'a> = Option<(f64, &'f CaseFlow<'a>)>;

fn best<'f, 'a: 'f>(
    figures: impl Iterator<Item = (f64, &'f CaseFlow<'a>)>,
    highest: bool,
) -> Best<'f, 'a> {
    figures.reduce(|best, next| {
        let better = match highest {
            true => next.0 > best.0,
            false => next.0 < best.0,
        };
        if better { next } else { best }
    })
}

fn row(op: Workload, name: &str, best: Best<'_, '_>, digits: usize) -> Vec<Cell> {
    let case = |flow: &CaseFlow<'_>| {
        let short = in_short(&flow.settings);
        Cell::Text(subject(&flow.case.config, &short, flow.name()))
    };
    vec![
        Cell::Text(op.name().to_owned()),
        Cell::Text(name.to_owned()),
        best.map_or(Cell::Missing, |(value, _)| Cell::Number(value, digits)),
        best.map_or(Cell::Missing, |(_, flow)| case(flow)),
    ]
}

/// `4 QPs, 64 KiB, shared CQ`.
fn in_short(config: &Settings) -> String {
    let mut text = format!(
        "{} QP{}, {}, {} CQ",
        config.qps,
        if config.qps == 1 { "" } else { "s" },
        human_size(config.size_bytes.into()),
        config.cq
    );
    if !config.rate.is_closed() {
        text.push_str(&format!(", load {}", config.rate));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::cases::tests::case;
    use super::*;
    use crate::results::model::LoadSearch;
    use crate::results::sample::{file, load_of};

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    fn row(op: &str, of: &str, figure: Cell, with: &str) -> [Cell; 4] {
        [text(op), text(of), figure, text(with)]
    }

    #[test]
    fn key_figures_are_the_best_case_of_each_operation() {
        let table = key_figures(&[file(vec![
            case("write", 1, 9.0, true),
            case("send", 1, 1.0, true),
            case("send", 4, 2.0, true),
            case("send", 8, 99.0, false),
        ])]);
        assert_eq!(table.rows.len(), 10);
        let with = "4 QPs, 64 KiB, shared CQ";
        let best = row("send", "highest Gb/s", Cell::Number(2.0, 3), with);
        assert_eq!(table.rows[0], best);
        assert_eq!(table.rows[2][2..], [Cell::Missing, Cell::Missing]);
        assert_eq!(table.rows[5][0], text("write"));
    }

    #[test]
    fn of_open_loops_it_is_the_highest_load_that_was_kept() {
        let open = |rate: &str, mmsg_per_s: f64, verdict| {
            let mut case = case("send", 1, 99.0, true);
            let flow = &mut case.runs[0].flows[0];
            flow.totals.mmsg_per_s = Some(mmsg_per_s);
            flow.load = load_of(verdict);
            case.config.settings.rate = rate.parse().unwrap();
            case
        };
        let mut all = vec![
            open("1M", 1.0, LoadVerdict::Kept),
            open("2M", 2.0, LoadVerdict::Kept),
            open("3M", 2.5, LoadVerdict::Overloaded),
            open("4M", 4.0, LoadVerdict::NotKept),
        ];
        let highest = "highest load kept (Mmsg/s)";
        let with = "1 QP, 64 KiB, shared CQ, load 2M";
        let wanted = row("send", highest, Cell::Number(2.0, 4), with);
        let table = key_figures(&[file(all.clone())]);
        assert_eq!(table.rows, std::slice::from_ref(&wanted));
        let mut closed = case("send", 1, 1.0, true);
        let search = |lower_per_second| LoadSearch {
            asked: "p99<20us".to_owned(),
            lower_per_second,
            ..LoadSearch::default()
        };
        closed.searches = [None, Some(1.5e6), Some(1.25e6)].map(search).to_vec();
        all.push(closed);
        let rows = key_figures(&[file(all)]).rows;
        assert_eq!(rows.len(), 7);
        assert_eq!(rows[0][2], Cell::Number(1.0, 3));
        assert_eq!(rows[5], wanted);
        assert_eq!(rows[6][1], text("highest load for p99<20us (Mmsg/s)"));
        assert_eq!(rows[6][2], Cell::Number(1.5, 4));
    }
}
