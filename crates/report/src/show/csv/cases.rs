//! The file of cases: one row for each case, run and flow, with its settings and the figures of all QPs together.
//! It must not know single QPs.

use std::io::{self, Write};

use serde_json::{Map, Value, json, to_value};

use super::rows::{self, Place, Row, places};
use crate::observe::Metric;
use crate::observe::standing;
use crate::results::model::{NodeResult, ResultFile, WorkerResult};

/// Fields of a run that are true of all its flows.
const OF_ALL_FLOWS: [&str; 4] = ["started_at", "complete", "interrupted", "failure"];

/// What a row has of the times of a step of set-up.
const OF_A_STEP: [&str; 4] = ["min", "mean", "p99", "max"];

/// What a row has of a device: that by which its figures can be judged.
const OF_A_DEVICE: [&str; 3] = ["library", "software", "faults"];

/// CPU times of a node besides its workers'.
type CpuTime = fn(&NodeResult) -> Option<f64>;
const CPU_TIMES: [(&str, CpuTime); 2] = [
    ("engine_cpu_seconds", |node| node.engine_cpu_seconds),
    ("machine_cpu_seconds", |node| node.machine_cpu_seconds),
];

/// Writes header and rows to a stream.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let rows: Vec<Row> = places(result)
        .map(|place| row(result, &place))
        .collect::<serde_json::Result<_>>()?;
    rows::write(out, |take| rows.iter().cloned().try_for_each(take))
}

fn row(result: &ResultFile, place: &Place<'_>) -> serde_json::Result<Row> {
    let (flow, run) = (&place.flow, place.run);
    let mut row = Row::default();
    row.add("id", &to_value(&flow.case.id)?);
    row.add("", &to_value(&flow.settings)?);
    row.add(
        "path_mtu",
        &to_value(flow.config.and_then(|it| it.path_mtu))?,
    );
    row.add("run", &to_value(run.run)?);
    place.add_flow(&mut row);
    let of_run = object(to_value(run)?);
    for name in OF_ALL_FLOWS {
        row.add(name, &of_run[name]);
    }
    let standing = match place.result {
        Some(moved) => standing::of_flow(run, moved),
        None => standing::of_run(run),
    };
    row.add("standing", &standing.words().into());
    for (name, value) in object(to_value(place.result)?) {
        if !["name", "from", "to"].contains(&&*name) {
            row.add(&name, &with_kinds_of_doubts(value));
        }
    }
    for metric in Metric::ALL {
        let is_elsewhere = metric.is_of_setup() && !flow.is_first();
        let value = metric.of(run, place.result).filter(|_| !is_elsewhere);
        // A field of the flow may have its name, and then its value too.
        if !row.has(metric.name()) {
            row.add(metric.name(), &to_value(value)?);
        }
    }
    let node = run.node(flow.from());
    row.add("workers", &workers(node));
    for (name, of) in CPU_TIMES {
        row.add(name, &to_value(node.and_then(of))?);
    }
    // `connect` is a setting too, and one that is null would be a second column of its name.
    if let (true, Some(connect)) = (flow.is_first(), &run.connect) {
        row.add("connect", &to_value(connect)?);
        for step in &connect.steps {
            let mut times = object(to_value(&step.time_ns)?);
            times.retain(|name, _| OF_A_STEP.contains(&&**name));
            row.add(&format!("connect_{}_ns", step.step), &times.into());
        }
    }
    let config = to_value(flow.config)?;
    for (end, device) in ["from_device", "to_device"]
        .into_iter()
        .zip(flow.devices(result))
    {
        row.add(end, &config[end]);
        let device = to_value(device)?;
        for name in OF_A_DEVICE {
            row.add(&format!("{end}_{name}"), &device[name]);
        }
    }
    Ok(row)
}

/// A window with the kinds of its doubts, as a text; anything else as it is.
fn with_kinds_of_doubts(mut value: Value) -> Value {
    if let Some(doubts) = value.get_mut("doubts") {
        let kinds = doubts.as_array().into_iter().flatten();
        let kinds: Vec<&str> = kinds.filter_map(|doubt| doubt["kind"].as_str()).collect();
        *doubts = kinds.join("; ").into();
    }
    value
}

/// Sums of the workers of the node that posts the flow; they serve all of its flows.
fn workers(node: Option<&NodeResult>) -> Value {
    let workers = node.map_or(&[][..], |node| &node.workers);
    let sum = |count: fn(&WorkerResult) -> u64| {
        (!workers.is_empty()).then(|| workers.iter().map(count).sum::<u64>())
    };
    json!({
        "away_seconds": workers.iter().map(|it| it.away_seconds).sum::<Option<f64>>()
            .filter(|_| !workers.is_empty()),
        "cpu_seconds": node.and_then(NodeResult::cpu_seconds),
        "polls": sum(|worker| worker.polls),
        "empty_polls": sum(|worker| worker.empty_polls),
        "blocked": sum(|worker| worker.blocked),
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
