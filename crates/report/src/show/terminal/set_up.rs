//! What stands below the table of set-ups: their steps.

use std::collections::HashSet;

use results::model::{CaseConfig, Connect, ConnectStep, Latency};

use crate::observe::format::{NOT_MEASURED, counted, exact, time_text};

/// How far the table of steps stands to the right.
const INDENT: &str = "    ";

/// What a run of `connect` measured, in lines for a person below its row of the table: a table of the steps.
///
/// The lines: rates, where the row above has no column for them, then a line for each step.
pub(super) fn set_up_lines(
    config: &CaseConfig,
    connect: &Connect,
    has_columns: bool,
) -> Vec<String> {
    let mut lines = steps(connect);
    if !has_columns {
        lines.insert(0, rates(config, connect));
    }
    if let Some(times) = connect.stale_rejections.filter(|times| *times > 0) {
        lines.push(format!(
            "{INDENT}rejected as stale and repeated: {times}; the steps do not contain the wait"
        ));
    }
    lines
}

/// Each step of either end, in the order in which this end makes them; none where there are none.
fn steps(connect: &Connect) -> Vec<String> {
    let ends = [&connect.steps, &connect.peer_steps];
    let mut lines = Vec::new();
    let mut seen = HashSet::new();
    for step in ends.into_iter().flatten() {
        if !seen.insert(&step.step) {
            continue;
        }
        // Those of rdma_cm's calls contain the changes of state that it asks for.
        let is_of_cm = connect.stale_rejections.is_some();
        let of = match (&*step.per, &*step.step) {
            ("connection", "init" | "rtr" | "rts") if is_of_cm => "connect",
            ("connection", _) => "a QP",
            _ => "a round",
        };
        let [here, there] = ends.map(|end| times(end.iter().find(|it| it.step == step.step)));
        lines.push(row(&step.step, of, [&here[0], &here[1], &there[0], &there[1]]));
    }
    if !lines.is_empty() {
        let head = ["mean", "p99", "other end: mean", "p99"];
        lines.insert(0, row("step", "of", head));
    }
    lines
}

fn row(step: &str, per: &str, times: [&str; 4]) -> String {
    let [mean, p99, other_mean, other_p99] = times;
    format!("{INDENT}{step:<9} {per:<9} {mean:>8} {p99:>8} {other_mean:>15} {other_p99:>8}")
}

fn times(step: Option<&ConnectStep>) -> [String; 2] {
    let time = step.map(|step| &step.time_ns);
    [time.map(|it| it.mean), p99(time)].map(text_of)
}

fn p99(time: Option<&Latency>) -> Option<f64> {
    time?.p99.map(|ns| ns as f64)
}

fn text_of(ns: Option<f64>) -> String {
    ns.map_or_else(|| NOT_MEASURED.to_owned(), time_text)
}

fn rates(config: &CaseConfig, connect: &Connect) -> String {
    let mut line = match (connect.connections_per_second.map(exact), connect.rounds) {
        (None, _) => "  no round was finished".to_owned(),
        (Some(rate), rounds) => {
            let rounds = counted(rounds as usize, "round");
            format!("  {rate} connections/s: {rounds} of {}", config.qps)
        }
    };
    if let Some(setup) = &connect.setup_ns {
        let [mean, p99] = [Some(setup.mean), p99(Some(setup))].map(text_of);
        line += &format!(", set up in {mean} (p99 {p99})");
    }
    line += &match config.traffic_qps {
        0 => "; no traffic".to_owned(),
        qps => format!("; traffic on {}", counted(qps as usize, "QP")),
    };
    if let Some(alone) = connect.traffic_alone_gbit_per_s {
        line += &format!(", alone {} Gb/s", exact(alone));
    }
    line
}

#[cfg(test)]
mod tests {
    use results::sample;
    use settings::Settings;

    use super::*;

    #[test]
    fn steps_are_a_table_of_both_ends() {
        let (config, run) = sample::connect();
        let connect = run.connect.as_ref().unwrap();
        let lines = set_up_lines(&config, connect, false);
        let rates = "  3200.0 connections/s: 400 rounds of 16, set up in 3.20 ms (p99 4.10 ms); traffic on 2 QPs, alone 9.500 Gb/s";
        assert_eq!(lines[0], rates);
        insta::assert_snapshot!(set_up_lines(&config, connect, true).join("\n"), @r"
        step      of            mean      p99 other end: mean      p99
        create    a QP       20.0 µs  30.0 µs         21.0 µs  31.0 µs
        init      a QP       2.00 µs  3.00 µs               -        -
        exchange  a round     150 µs   200 µs               -        -
        rtr       a QP       4.00 µs  5.00 µs               -        -
        rts       a QP       3.00 µs  4.00 µs               -        -
        destroy   a QP       25.0 µs  40.0 µs               -        -
        ");
        assert_eq!(lines[1..], set_up_lines(&config, connect, true));
        let widest = lines[1..].iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{lines:?}");
    }

    #[test]
    fn what_rdma_cm_did_is_told_as_part_of_its_call() {
        let (config, mut run) = sample::connect();
        let connect = run.connect.as_mut().unwrap();
        let mut step = connect.steps.remove(2);
        step.per = "connection".to_owned();
        for name in ["connect", "route", "resolve"] {
            step.step = name.to_owned();
            connect.steps.insert(1, step.clone());
        }
        connect.stale_rejections = Some(12);
        insta::assert_snapshot!(set_up_lines(&config, connect, true).join("\n"), @r"
        step      of            mean      p99 other end: mean      p99
        create    a QP       20.0 µs  30.0 µs         21.0 µs  31.0 µs
        resolve   a QP        150 µs   200 µs               -        -
        route     a QP        150 µs   200 µs               -        -
        connect   a QP        150 µs   200 µs               -        -
        init      connect    2.00 µs  3.00 µs               -        -
        rtr       connect    4.00 µs  5.00 µs               -        -
        rts       connect    3.00 µs  4.00 µs               -        -
        destroy   a QP       25.0 µs  40.0 µs               -        -
        rejected as stale and repeated: 12; the steps do not contain the wait
        ");
    }

    #[test]
    fn percentiles_of_few_rounds_are_dashes() {
        let (config, mut run) = sample::connect();
        let connect = run.connect.as_mut().unwrap();
        connect.setup_ns.as_mut().unwrap().p99 = None;
        connect.steps.truncate(1);
        connect.steps[0].time_ns.p99 = None;
        connect.peer_steps.clear();
        let lines = set_up_lines(&config, connect, false);
        sample::has(&lines[0], ["in 3.20 ms (p99 -);"]);
        let cells = ["create", "a", "QP", "20.0", "µs", "-", "-", "-"];
        assert!(lines[2].split_whitespace().eq(cells));
    }

    #[test]
    fn a_run_without_a_whole_round_says_so() {
        let config = Settings::from([("op", "connect"), ("traffic-qps", "0")]).into();
        let lines = set_up_lines(&config, &Connect::default(), false);
        assert_eq!(lines, ["  no round was finished; no traffic"]);
    }
}
