//! What every result must satisfy, whatever was measured: sums, orders, counts, schema, and that the CSV says
//! the same as the JSON.

use std::collections::HashMap;

use report::results::model::{CaseConfig, Direction, Latency, ResultFile, Run};
use serde_json::Value;

use super::program::Ended;

/// Checks all files of a sweep whose runs are all complete; returns the result.
#[track_caller]
pub fn complete(ended: &Ended) -> ResultFile {
    let json = ended.json();
    schema(&json);
    let result: ResultFile = serde_json::from_value(json).unwrap();
    for case in &result.cases {
        for run in &case.runs {
            let place = format!("{} run {}", case.id, run.run);
            assert!(run.complete, "{place}: {:?}", run.failure);
            check_run(&place, &case.config, run);
        }
    }
    csv_agrees(&ended.file(".csv"), &ended.file("-qps.csv"), &result);
    result
}

/// The committed schema holds.
#[track_caller]
pub fn schema(json: &Value) {
    let text = include_str!("../../docs/result.schema.json");
    let schema: Value = serde_json::from_str(text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(json)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

fn check_run(place: &str, config: &CaseConfig, run: &Run) {
    assert!(run.failure.is_none() && !run.interrupted, "{place}");
    assert!(run.forward.window.seconds > 0.0, "{place}");
    check_direction(place, config, &run.forward);
    assert_eq!(run.reverse.is_some(), config.bidirectional, "{place}");
    if let Some(reverse) = &run.reverse {
        check_direction(&format!("{place} reverse"), config, reverse);
    }
    let receives = config.op.profile().receives && !config.bidirectional;
    assert_eq!(run.receiver.is_some(), receives, "{place}");
    if let (Some(receiver), Some(messages)) = (&run.receiver, config.iterations_per_qp) {
        assert_eq!(
            receiver.messages,
            messages * u64::from(config.qps),
            "{place}"
        );
        assert_eq!(
            receiver.bytes,
            receiver.messages * u64::from(config.size_bytes),
            "{place}"
        );
    }
    if let Some(wanted) = config.duration_seconds.map(f64::from) {
        let off = (run.forward.window.seconds - wanted).abs();
        // A loaded host may not let a thread run for a while.
        assert!(
            off < 0.25 + wanted,
            "{place}: {} s",
            run.forward.window.seconds
        );
    }
}

fn check_direction(place: &str, config: &CaseConfig, direction: &Direction) {
    let totals = &direction.totals;
    assert_eq!(totals.errors, 0, "{place}");
    assert!(totals.messages > 0, "{place}");
    assert_eq!(direction.qps.len(), config.qps as usize, "{place}");
    let messages: u64 = direction.qps.iter().map(|qp| qp.messages).sum();
    let bytes: u64 = direction.qps.iter().map(|qp| qp.bytes).sum();
    assert_eq!(
        (messages, bytes),
        (totals.messages, totals.bytes),
        "{place}"
    );
    assert_eq!(bytes, messages * u64::from(config.size_bytes), "{place}");
    let of_workers: u64 = direction.workers.iter().map(|worker| worker.messages).sum();
    assert_eq!(of_workers, messages, "{place}: workers");
    if let Some(wanted) = config.iterations_per_qp {
        for qp in &direction.qps {
            assert_eq!(qp.messages, wanted, "{place}: QP {}", qp.index);
        }
    }
    let mut numbers: Vec<u32> = direction.qps.iter().map(|qp| qp.qpn).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), direction.qps.len(), "{place}: QP numbers");

    let jain = direction.fairness.as_ref().unwrap().jain;
    let least = 1.0 / f64::from(config.qps);
    assert!(
        (least - 1e-9..=1.0 + 1e-9).contains(&jain),
        "{place}: Jain {jain}"
    );
    for worker in &direction.workers {
        assert!(worker.polls >= worker.empty_polls, "{place}");
        assert!(worker.polls > 0, "{place}");
        assert!(worker.core.is_some(), "{place}: not pinned");
        assert!(worker.cpu_seconds.unwrap() >= 0.0, "{place}");
    }
    // The embedded device has no link whose speed would be a limit.
    let embedded = config.device.as_deref().unwrap().starts_with("soft");
    assert_eq!(direction.limits.is_none(), embedded, "{place}");
    if let Some(limits) = &direction.limits {
        assert!(
            limits.protocol_efficiency > 0.0 && limits.protocol_efficiency < 1.0,
            "{place}"
        );
    }

    // Each signalled WR is one sample; a batch that the window's edge cuts may give one more or none.
    let every = u64::from(config.signal_every);
    match &direction.latency_ns {
        None => {
            assert!(
                direction.qps.iter().all(|qp| qp.latency_ns.is_none()),
                "{place}"
            );
        }
        Some(all) => {
            check_latency(place, all);
            let of_qps = direction.qps.iter().filter_map(|qp| qp.latency_ns.as_ref());
            let count: u64 = of_qps.clone().map(|latency| latency.count).sum();
            assert_eq!(count, all.count, "{place}");
            of_qps.for_each(|latency| check_latency(place, latency));
            // And what was in flight at the end of the window is timed when it completes.
            let in_flight = u64::from(config.tx_depth).div_ceil(every);
            let spare = u64::from(config.qps) * (2 + in_flight);
            assert!(
                all.count <= messages.div_ceil(every) + spare,
                "{place}: {} samples of {messages} messages",
                all.count
            );
            if config.iterations_per_qp.is_some() && every == 1 {
                assert_eq!(all.count, messages, "{place}");
            }
        }
    }
}

fn check_latency(place: &str, latency: &Latency) {
    assert!(latency.count > 0, "{place}");
    let mut orders = vec![latency.min, latency.p50];
    orders.extend(
        [latency.p90, latency.p99, latency.p99_9, latency.p99_99]
            .iter()
            .flatten(),
    );
    orders.push(latency.max);
    assert!(orders.is_sorted(), "{place}: {orders:?}");
    let (min, max) = (latency.min as f64, latency.max as f64);
    assert!(
        (min * 0.98..=max * 1.02).contains(&latency.mean),
        "{place}: {latency:?}"
    );
    assert!(latency.histogram.is_some(), "{place}");
}

/// The cases' file has the JSON's totals, and the QPs' file adds up to them.
#[track_caller]
fn csv_agrees(cases: &str, qps: &str, result: &ResultFile) {
    let mut totals = Vec::new();
    let mut expected_qps = 0;
    for case in &result.cases {
        for run in &case.runs {
            let reverse = run.reverse.as_ref().map(|reverse| ("reverse", reverse));
            for (name, end) in [("forward", &run.forward)].into_iter().chain(reverse) {
                let place = format!("{} {} {name}", case.id, run.run);
                totals.push((place, end.totals.messages));
                expected_qps += end.qps.len();
            }
        }
    }
    assert_eq!(counts(cases, "totals_messages"), totals);
    let of_qps = counts(qps, "messages");
    assert_eq!(of_qps.len(), expected_qps);
    let mut sums: Vec<(String, u64)> = Vec::new();
    for (place, count) in of_qps {
        match sums.last_mut().filter(|(last, _)| *last == place) {
            Some((_, sum)) => *sum += count,
            None => sums.push((place, count)),
        }
    }
    assert_eq!(sums, totals);
}

/// Case, run and direction of each row, and its count in a column.
fn counts(text: &str, column: &str) -> Vec<(String, u64)> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize().map(|row| {
        let row: HashMap<String, String> = row.unwrap();
        let place = format!("{} {} {}", row["id"], row["run"], row["direction"]);
        (place, row[column].parse().unwrap())
    });
    rows.collect()
}
