//! Terminal, CSV, page, comparison and conditions say the same of every metric of any result: the number of the same row.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;
use results::{
    load::{Found, Loaded},
    model::{CaseResult, DoubtKind, FlowResult, Load, LockStep, Run, WorkerResult},
    sample::{self, doubt, fairness, limits, node},
    text::Screen,
};
use settings::Settings;
use statistics::median;

use crate::judge::{
    compare::{Options, compare},
    threshold::{Condition, Demands, failing, judge},
};
use crate::observe::Metric;
use crate::show::plot::figure::Cell;
use crate::show::{Table, csv, page::tables};

/// A run with all figures, and whether they count.
fn runs() -> impl Strategy<Value = (Run, bool)> {
    let rates = (0.001f64..400.0, 0.0001f64..200.0, 0.1f64..1.0, 0.01f64..1.0);
    let times = (100u64..1_000_000_000, 1u64..1000, 0.001f64..2.0);
    let state =
        prop_oneof![3 => Just(None), 1 => prop::sample::select(DoubtKind::ALL).prop_map(Some)];
    let ends = prop_oneof![8 => Just((true, false)), 1 => Just((false, true))];
    (rates, times, state, ends).prop_map(
        |((gbit, mmsg, jain, share), (p50, tail, cpu), kind, (complete, interrupted))| {
            let mut flow = FlowResult {
                name: "forward".to_owned(),
                from: "client".to_owned(),
                to: "server".to_owned(),
                fairness: fairness(jain, 0.5, 2.0),
                limits: limits(400.0, 0.95, Some(share)),
                latency_ns: sample::latency(&[p50; 10_000], 3, false),
                ..FlowResult::default()
            };
            (flow.totals.messages, flow.totals.bytes) = (1000, 1_000_000_000);
            (flow.totals.gbit_per_s, flow.totals.mmsg_per_s) = (Some(gbit), Some(mmsg));
            if let Some(latency) = &mut flow.latency_ns {
                latency.p99 = Some(p50 + tail);
                latency.p99_9 = Some(p50 + 2 * tail);
                latency.max = p50 + 3 * tail;
            }
            flow.lateness_ns = flow.latency_ns.clone();
            flow.load = Some(Load { offered_per_second: mmsg * 2e6, ..Load::default() });
            flow.window.doubts.extend(kind.map(doubt));
            let steps = LockStep {
                bus_gbit_per_s: Some(gbit),
                step_ns: flow.latency_ns.clone(),
                ..LockStep::default()
            };
            let mut run = sample::run(vec![flow]);
            run.lock_step = Some(steps);
            (run.complete, run.interrupted) = (complete, interrupted);
            run.nodes = vec![results::model::NodeResult {
                name: "client".to_owned(),
                workers: vec![WorkerResult { cpu_seconds: Some(cpu), ..WorkerResult::default() }],
                ..Default::default()
            }];
            let counts = complete && kind.is_none_or(|kind| kind == DoubtKind::Drift);
            (run, counts)
        },
    )
}

fn written(rows: &str) -> Vec<HashMap<String, String>> {
    let mut reader = ::csv::Reader::from_reader(rows.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_view_says_the_same_number(made in prop::collection::vec(runs(), 1..5)) {
        let mut case = sample::moved(Settings::from([("qps", "4"), ("op", "write")]), None);
        case.id = "case".to_owned();
        let numbered = (1..).zip(made.iter().cloned());
        case.runs = numbered.map(|(number, (run, _))| Run { run: number, ..run }).collect();
        let mut loaded: Loaded = sample::file(vec![case.clone()]);
        loaded.result.nodes = vec![node("client", "a", Vec::new()), node("server", "b", Vec::new())];
        let page = tables::of_results(std::slice::from_ref(&loaded)).table;
        let rows = written(&sample::text(|out| csv::cases_in_full(&loaded.result, out)));
        let lines = terminal(&case);
        let found = Found { results: vec![loaded.clone()], refused: Vec::new() };
        let path = Path::new("r.json");
        let comparison = compare((path, &found), (path, &found), &Options::default());
        for &metric in Metric::ALL {
            let value = |run: &Run| metric.of(run, run.flows.first());
            let counted = made.iter().filter(|(_, counts)| *counts);
            let counted: Vec<f64> = counted.filter_map(|(run, _)| value(run)).collect();
            let expected = median(&counted);
            let heading = metric.column().0;
            let column = page.columns.iter().position(|column| column.name == heading);
            let cell = column.map(|column| page.rows[0][column].clone());
            let on_page = match cell {
                Some(Cell::Number(figure, digits)) => {
                    prop_assert_eq!(digits, metric.column().1);
                    Some(figure)
                }
                _ => None,
            };
            let expected_on_page = expected.filter(|_| !metric.is_on_request());
            prop_assert_eq!(on_page, expected_on_page.map(|figure| metric.in_column(figure)), "{}", metric.name());
            let in_csv: Vec<f64> = rows
                .iter()
                .filter(|row| row["standing"] == "counts")
                .filter_map(|row| row.get(metric.name())?.parse().ok())
                .collect();
            prop_assert_eq!(median(&in_csv), expected, "{}", metric.name());
            let compared = comparison.cases[0].metrics.iter().find(|it| it.metric == metric);
            if let Some(compared) = compared {
                prop_assert_eq!(compared.base_median, expected, "{}", metric.name());
            }
            if let (Some(expected), false) = (expected.filter(|it| *it > 0.0), metric.is_of_run()) {
                let unit = if metric.unit() == "ns" { "ns" } else { "" };
                let fails = |relation: &str, limit: f64| {
                    let condition = format!("{}{relation}{limit:.9}{unit}", metric.short_name());
                    let demands = Demands { fail_if: vec![condition.parse::<Condition>().unwrap()], ..Demands::default() };
                    failing(&judge(&loaded.result, &demands)).is_some()
                };
                let limits = [("<", expected * 1.001), (">", expected * 0.999), ("<", expected * 0.999)];
                let have_failed = limits.map(|(relation, limit)| fails(relation, limit.max(1e-8)));
                prop_assert_eq!(have_failed, [true, true, false], "{}", metric.name());
            }
            for ((run, counts), line) in made.iter().zip(&lines) {
                prop_assert_eq!(line.contains('('), !counts);
                let is_shown = lines[lines.len() - 1].contains(&metric.heading());
                if let (true, Some(figure)) = (is_shown, value(run)) {
                    let text = metric.cell(figure);
                    let mut cells = line.split([' ', '(', ')']);
                    prop_assert!(cells.any(|it| it == text), "{} {text} in {line}", metric.name());
                }
            }
        }
    }
}

/// The lines of the table, a run each, and its headings as the last.
fn terminal(case: &CaseResult) -> Vec<String> {
    let settings = [case.config.shown(0)];
    let text = sample::text(|out| {
        let mut table = Table::new(out, Screen::ENDLESS, &settings);
        case.runs.iter().try_for_each(|run| table.run(&case.config, run))
    });
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let first = lines.iter().position(|line| line.contains("Gb/s")).unwrap();
    let head = lines.remove(first);
    lines.drain(..first);
    lines.push(head);
    lines
}
