//! What a run of `connect` measured, in lines for a person below its row of the table, whose figures are the
//! traffic's. It must not know the table.

use super::model::{CaseConfig, Connect, ConnectStep, Latency};
use super::number::{digits, figure};

/// Columns that a line has at most.
const WIDTH: usize = 118;

/// The lines: rates first, then each end's steps.
pub(super) fn lines(config: &CaseConfig, connect: &Connect) -> Vec<String> {
    let mut lines = vec![rates(config, connect)];
    let ends = [("", &connect.steps), ("other end: ", &connect.peer_steps)];
    for (whose, steps) in ends {
        if !steps.is_empty() {
            fold(format!("  {whose}"), steps, &mut lines);
        }
    }
    if lines.len() > 1 {
        let more = match connect.stale_rejections {
            None => "exchange of a round",
            Some(_) => "init, rtr and rts are part of connect",
        };
        lines.push(format!("  (steps in µs, mean/p99 of a QP; {more})"));
    }
    if let Some(times) = connect.stale_rejections.filter(|times| *times > 0) {
        lines.push(format!(
            "  (rejected as stale and asked for again: {times}; the steps do not contain the wait)"
        ));
    }
    lines
}

/// An end's steps, on a second line where they are many.
fn fold(mut line: String, steps: &[ConnectStep], lines: &mut Vec<String>) {
    for (index, one) in steps.iter().map(step).enumerate() {
        if index > 0 {
            line.push(',');
            if line.chars().count() + one.chars().count() >= WIDTH {
                lines.push(std::mem::replace(&mut line, "   ".to_owned()));
            }
            line.push(' ');
        }
        line.push_str(&one);
    }
    lines.push(line);
}

fn rates(config: &CaseConfig, connect: &Connect) -> String {
    let mut line = match connect.connections_per_second {
        Some(rate) => format!(
            "  {rate:.*} connections/s: {} round{} of {}",
            digits(rate),
            connect.rounds,
            if connect.rounds == 1 { "" } else { "s" },
            config.qps
        ),
        None => "  no round was finished".to_owned(),
    };
    if let Some(setup) = &connect.setup_ns {
        let ms = |ns: Option<f64>| figure(ns.map(|ns| ns / 1e6), digits);
        line += &format!(
            ", set up in {} ms (p99 {})",
            ms(Some(setup.mean)),
            ms(setup.p99.map(|ns| ns as f64))
        );
    }
    line += &match config.traffic_qps {
        0 => "; no traffic".to_owned(),
        1 => "; traffic on 1 QP".to_owned(),
        qps => format!("; traffic on {qps} QPs"),
    };
    if let Some(alone) = connect.traffic_alone_gbit_per_s {
        line += &format!(", alone {alone:.*} Gbit/s", digits(alone));
    }
    line
}

fn step(step: &ConnectStep) -> String {
    let Latency { mean, p99, .. } = &step.time_ns;
    let [mean, p99] =
        [Some(*mean), p99.map(|ns| ns as f64)].map(|ns| figure(ns.map(|ns| ns / 1e3), short));
    format!("{} {mean}/{p99}", step.step)
}

/// Digits after the point that leave three that count.
fn short(value: f64) -> usize {
    match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.1 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use settings::Settings;

    use super::super::sample;
    use super::*;

    #[test]
    fn rates_and_both_ends_steps_are_told_in_lines_that_fit() {
        let (config, run) = sample::connect();
        let lines = lines(&config, run.connect.as_ref().unwrap());
        assert_eq!(
            lines,
            [
                "  3200.0 connections/s: 400 rounds of 16, set up in 3.200 ms (p99 4.100); traffic on 2 QPs, alone 9.500 Gbit/s",
                "  create 20.0/30.0, init 2.00/3.00, exchange 150/200, rtr 4.00/5.00, rts 3.00/4.00, destroy 25.0/40.0",
                "  other end: create 21.0/31.0",
                "  (steps in µs, mean/p99 of a QP; exchange of a round)",
            ]
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 118));
    }

    #[test]
    fn what_rdma_cm_did_is_told_in_lines_that_fit() {
        let (config, mut run) = sample::connect();
        let connect = run.connect.as_mut().unwrap();
        let mut steps = connect.steps.clone();
        steps.remove(2);
        for name in ["resolve", "route", "connect"] {
            let mut step = steps[0].clone();
            step.step = name.to_owned();
            steps.insert(1, step);
        }
        (connect.steps, connect.stale_rejections) = (steps, Some(12));
        let lines = lines(&config, connect);
        assert_eq!(
            lines[1..],
            [
                "  create 20.0/30.0, connect 20.0/30.0, route 20.0/30.0, resolve 20.0/30.0, init 2.00/3.00, rtr 4.00/5.00,",
                "    rts 3.00/4.00, destroy 25.0/40.0",
                "  other end: create 21.0/31.0",
                "  (steps in µs, mean/p99 of a QP; init, rtr and rts are part of connect)",
                "  (rejected as stale and asked for again: 12; the steps do not contain the wait)",
            ]
        );
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn percentiles_of_few_rounds_are_dashes() {
        let (config, mut run) = sample::connect();
        let connect = run.connect.as_mut().unwrap();
        connect.setup_ns.as_mut().unwrap().p99 = None;
        connect.steps.truncate(1);
        connect.steps[0].time_ns.p99 = None;
        let lines = lines(&config, connect);
        assert!(lines[0].contains("in 3.200 ms (p99 -);"), "{}", lines[0]);
        assert_eq!(lines[1], "  create 20.0/-");
    }

    #[test]
    fn a_run_without_a_whole_round_says_so() {
        let lines = lines(
            &Settings::from([("op", "connect"), ("traffic-qps", "0")]).into(),
            &Connect::default(),
        );
        assert_eq!(lines, ["  no round was finished; no traffic"]);
    }
}
