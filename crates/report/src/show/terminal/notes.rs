//! What stands below a run's row and below the table: steps of set-ups, what searches found, and notes on all
//! figures.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use results::{
    model::{
        CaseConfig, Connect, ConnectStep, Device, Latency, Load, LoadSearch, ResultFile, SearchEnd,
        TrialOutcome, saturating_sum,
    },
    text::seconds_text,
};

use crate::observe::{
    Observed,
    format::{NOT_MEASURED, counted, exact, plural, rate_text, time_text},
};

/// Most runs with a line of their own.
const MOST: usize = 8;

/// Notes on all figures, below the table: which messages were timed, send queues that were full, devices that do not
/// show lost packets or are software.
pub(super) fn notes(result: &ResultFile) -> Vec<String> {
    let mut lines = full_queues(result);
    lines.extend(exchanges(result));
    lines.extend(moderation(result));
    lines.extend(half_trips(result));
    lines.extend(loss_unknown(result));
    lines.extend(software(result));
    lines
}

/// Messages that met a full send queue, and those that were never sent. The system causes this wait: latency includes it.
fn full_queues(result: &ResultFile) -> Vec<String> {
    let mut lines = Vec::new();
    for observed in Observed::of_file(result) {
        for observation in &observed.runs {
            let load = observation.moved.and_then(|moved| moved.load.as_ref());
            let Some(text) = load.and_then(full_queue) else {
                continue;
            };
            let number = match observed.runs.len() {
                1 => String::new(),
                _ => format!(", run {}", observation.run.run),
            };
            lines.push(format!("  {}{number}: {text}", observed.flow.subject()));
        }
    }
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    if !lines.is_empty() {
        let head = "send queues were full; latency includes the wait for them:";
        lines.insert(0, head.to_owned());
    }
    if more > 0 {
        lines.push(format!("  and in {more} more {}", plural(more, "run")));
    }
    lines
}

/// `40.0 % of messages waited, 1.900 s summed over QPs; 5000 of 2280000 were never sent`; `None` if neither happened.
fn full_queue(load: &Load) -> Option<String> {
    let (full, offered, never) = (load.queue_full_messages, load.offered, load.never_sent);
    let share = full as f64 / offered.max(1) as f64 * 100.0;
    let seconds = exact(load.queue_full_seconds);
    let waited = format!("{share:.1} % of messages waited, {seconds} s summed over QPs");
    let lost = format!("{never} of {offered} were never sent");
    [(full > 0, waited), (never > 0, lost)]
        .into_iter()
        .filter_map(|(is_so, text)| is_so.then_some(text))
        .reduce(|one, other| format!("{one}; {other}"))
}

/// For each case with exchanges: the share that succeeded, over all its runs and flows.
fn exchanges(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    result.cases.iter().filter_map(|case| {
        let flows = case.runs.iter().flat_map(|run| &run.flows);
        let made =
            saturating_sum(flows.clone().map(|flow| flow.swaps_made).collect::<Option<Vec<_>>>()?);
        let messages = saturating_sum(flows.map(|flow| flow.totals.messages));
        (messages > 0).then(|| {
            let share = made as f64 / messages as f64 * 100.0;
            format!("{}: {share:.1} % of the exchanges succeeded", case.id)
        })
    })
}

/// Which messages were timed, unless all were, and in how many of the cases with latencies.
fn moderation(result: &ResultFile) -> Option<String> {
    let (mut every, mut with_latency, mut count) = (BTreeSet::new(), 0, 0);
    for case in &result.cases {
        let timed: Vec<u32> = Observed::of_case(case)
            .enumerate()
            .filter(|(_, observed)| {
                observed.runs.iter().any(|it| it.moved.is_some_and(|it| it.latency_ns.is_some()))
            })
            .map(|(at, _)| case.config.flow(at).signal_every)
            .collect();
        with_latency += usize::from(!timed.is_empty());
        count += usize::from(timed.iter().any(|it| *it > 1));
        every.extend(timed.into_iter().filter(|it| *it > 1));
    }
    let of_cases = of_cases(count, with_latency);
    let numbers: Vec<String> = every.iter().map(u32::to_string).collect();
    (count > 0).then(|| {
        format!(
            "latency is measured on the last of every {} messages, which waits longest{of_cases}; -Q 1 measures it on all",
            numbers.join(" or ")
        )
    })
}

/// ` (2 of 3 cases)`; empty for all cases.
fn of_cases(count: usize, of: usize) -> String {
    if count == of { String::new() } else { format!(" ({count} of {of} cases)") }
}

/// Whether latencies are those of ping-pongs.
fn half_trips(result: &ResultFile) -> Option<String> {
    let count = result
        .cases
        .iter()
        .filter(|case| {
            let mut flows = 0..case.config.flows.len();
            flows.any(|at| case.config.flow(at).is_answered())
        })
        .count();
    let of_cases = of_cases(count, result.cases.len());
    (count > 0).then(|| format!("latency is half of a ping-pong's round trip{of_cases}"))
}

/// Devices whose counters do not show lost packets, and why.
fn loss_unknown(result: &ResultFile) -> impl Iterator<Item = String> {
    let runs = result.cases.iter().flat_map(|case| &case.runs);
    let mut nodes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for unknown in runs.flat_map(|run| &run.loss_unknown) {
        nodes.entry(unknown.words()).or_default().insert(&unknown.node);
    }
    nodes.into_iter().map(|(words, nodes)| {
        let nodes = match nodes.len() {
            ..=MOST => Vec::from_iter(nodes).join(", "),
            count => format!("{count} nodes"),
        };
        format!("loss unknown at {nodes}: {words}")
    })
}

/// Software devices, whose figures are not a network adapter's: a sentence for each, once for nodes on one machine.
fn software(result: &ResultFile) -> Vec<String> {
    let (mut told, mut lines) = (BTreeSet::new(), Vec::new());
    for (number, node) in result.nodes.iter().enumerate() {
        let whose = match (number, result.nodes.len()) {
            (0, _) => String::new(),
            (_, 2) => "at the other end ".to_owned(),
            _ => format!("at {} ", node.name),
        };
        for device in node.devices.iter().filter(|device| device.software) {
            let text = of_software(device);
            if told.insert((&node.host.hostname, text.clone())) {
                lines.push(whose.clone() + &text);
            }
        }
    }
    lines
}

fn of_software(device: &Device) -> String {
    let name = &device.name;
    let kind = match device.library.as_str() {
        "embedded" => "the embedded software device",
        _ => "a software device",
    };
    let faults = match &device.faults {
        Some(faults) => format!(", with faults on purpose ({faults})"),
        None => String::new(),
    };
    format!("{name} is {kind}{faults}: no figure here is a network adapter's")
}

/// What a search for a load found, in three lines for a person.
pub(super) fn search_lines(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    result.cases.iter().flat_map(|case| -> Vec<String> {
        case.searches
            .iter()
            .flat_map(|search| {
                [
                    format!("{}: {}", case.id, request(search)),
                    format!("  {}", found(search)),
                    format!("  {}", trials(search)),
                ]
            })
            .collect()
    })
}

/// `p99<20us`, or `knee 3: p99 < 12.30 µs (p99 is 4.100 µs at 10 % load)`.
fn request(search: &LoadSearch) -> String {
    let Some(reference) = search.reference_p99_ns else {
        return search.asked.clone();
    };
    let limits = search
        .limits
        .iter()
        .map(|it| format!("p{} < {}", it.percentile, in_micros(it.below_ns)))
        .collect::<Vec<_>>()
        .join(", ");
    let (request, reference) = (&search.asked, in_micros(reference));
    format!("{request}: {limits} (p99 is {reference} at 10 % load)")
}

fn in_micros(ns: u64) -> String {
    format!("{} µs", exact(ns as f64 / 1e3))
}

fn found(search: &LoadSearch) -> String {
    let (lower, upper) = (search.lower_per_second, search.upper_per_second);
    match (search.end, lower, upper) {
        (SearchEnd::Found, Some(lower), Some(upper)) => {
            let (share, [low, high]) = (share(search, lower), [lower, upper].map(rate_text));
            format!("highest load that keeps it: {low} (between {low} and {high}, {share})")
        }
        (SearchEnd::AllKeep, ..) => {
            let maximum = rate_text(search.maximum_per_second);
            format!("every load keeps it, up to the closed loop's maximum of {maximum}")
        }
        (SearchEnd::NoneKeeps, _, upper) => {
            let breaks = upper.map_or_else(String::new, |upper| format!(": {} breaks it, {}", rate_text(upper), share(search, upper)));
            format!("no load keeps it{breaks}; raise the limit, or make the system faster")
        }
        (SearchEnd::TooFewMessages, ..) => {
            let note = search.note.as_deref();
            format!("not known: {}", note.unwrap_or("trials have too few messages"))
        }
        (SearchEnd::ScheduleNotKept, Some(lower), _) => format!(
            "{} keeps it, {}; above, rocebench did not keep its schedule, so the limit may be higher: use more --workers \
             on cores of their own (--cores)",
            rate_text(lower),
            share(search, lower)
        ),
        (SearchEnd::ScheduleNotKept, None, _) => {
            "not known: rocebench did not keep its schedule at any load; use more --workers on cores of their own \
             (--cores)"
                .to_owned()
        }
        (SearchEnd::Stopped, ..) => so_far("stopped", lower, upper),
        (SearchEnd::TrialsSpent | SearchEnd::Found, ..) => {
            so_far("trials scatter too much to go on", lower, upper)
        }
    }
}

/// `61 % of the closed loop's maximum`.
fn share(search: &LoadSearch, rate: f64) -> String {
    let percent = rate / search.maximum_per_second * 100.0;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$} % of the closed loop's maximum")
}

/// What is known of bounds that were not closed.
fn so_far(why: &str, lower: Option<f64>, upper: Option<f64>) -> String {
    let keeps = lower.map(|rate| format!("{} keeps it", rate_text(rate)));
    let breaks = upper.map(|rate| format!("{} breaks it", rate_text(rate)));
    let known: Vec<String> = keeps.into_iter().chain(breaks).collect();
    if known.is_empty() {
        format!("{why} before a bound was known")
    } else {
        format!("{why}; so far {}", known.join(", "))
    }
}

/// `23 trials of 1 s: 11 kept it, 12 broke it`.
fn trials(search: &LoadSearch) -> String {
    let outcomes = [
        (TrialOutcome::Kept, "kept it"),
        (TrialOutcome::Broke, "broke it"),
        (TrialOutcome::NotKept, "did not keep the schedule"),
        (TrialOutcome::Failed, "failed"),
    ];
    let counts = outcomes.into_iter().filter_map(|(outcome, words)| {
        let count = search.trials.iter().filter(|trial| trial.outcome == outcome).count();
        (count > 0).then(|| format!("{count} {words}"))
    });
    let (count, seconds) = (search.trials.len(), seconds_text(search.trial_seconds));
    let text = format!("{} of {seconds}", counted(count, "trial"));
    match counts.collect::<Vec<_>>().join(", ") {
        counts if counts.is_empty() => text,
        counts => format!("{text}: {counts}"),
    }
}

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
