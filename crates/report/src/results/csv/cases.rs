//! The file of cases: one row for each case, run and direction, with its settings and the figures of all QPs together.
//! It must not know single QPs.

use std::io::{self, Write};

use serde_json::{Map, Value, json, to_value};

use super::rows::{self, Place, Row, places};
use crate::results::model::{Direction, ResultFile, WorkerResult};

/// Fields of a run that are true of both its directions; the others are of the end that ran the sweep.
const OF_BOTH_DIRECTIONS: [&str; 5] = ["run", "started_at", "complete", "interrupted", "failure"];

/// Fields of a run that its row has not: the other direction has its own, and counters have the driver's names.
const LEFT_OUT: [&str; 3] = ["reverse", "device_counters", "peer_device_counters"];

/// What a row has of the times of a step of set-up.
const OF_A_STEP: [&str; 4] = ["min", "mean", "p99", "max"];

/// What a row has of a device: that by which its figures can be judged.
const OF_A_DEVICE: [&str; 3] = ["library", "software", "faults"];

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
    let mut row = Row::default();
    row.add("id", &to_value(&place.case.id)?);
    row.add("", &to_value(&place.case.config)?);
    for (name, value) in fields(place)? {
        row.add(&name, &value);
        if name == "run" {
            row.add("direction", &place.name.into());
        }
    }
    let peer = result.peer.as_ref();
    for (end, host) in [("host", Some(&result.host)), ("peer", peer)] {
        let device = to_value(host.and_then(|host| host.device.as_ref()))?;
        for name in OF_A_DEVICE {
            row.add(&format!("{end}_device_{name}"), &device[name]);
        }
    }
    Ok(row)
}

/// What the JSON says of a run in one direction, with sums of its workers in place of them.
fn fields(place: &Place<'_>) -> serde_json::Result<Map<String, Value>> {
    let mut fields = object(to_value(place.run)?);
    if place.name == "reverse" {
        fields.retain(|name, _| OF_BOTH_DIRECTIONS.contains(&&**name));
        fields.extend(object(to_value(place.direction)?));
    }
    // `connect` is a setting too, and one that is null would be a second column of its name.
    fields.retain(|name, value| {
        !LEFT_OUT.contains(&&**name) && (name != "connect" || !value.is_null())
    });
    fields.insert("workers".to_owned(), workers(place.direction));
    if let Some(doubts) = fields["window"].get_mut("doubts") {
        let kinds = doubts.as_array().into_iter().flatten();
        let kinds: Vec<&str> = kinds.filter_map(|doubt| doubt["kind"].as_str()).collect();
        *doubts = kinds.join("; ").into();
    }
    if let Some(connect) = fields.get_mut("connect").and_then(Value::as_object_mut) {
        for step in place.run.connect.iter().flat_map(|connect| &connect.steps) {
            let mut times = object(to_value(&step.time_ns)?);
            times.retain(|name, _| OF_A_STEP.contains(&&**name));
            connect.insert(format!("{}_ns", step.step), times.into());
        }
    }
    Ok(fields)
}

fn workers(direction: &Direction) -> Value {
    let workers = &direction.workers;
    let sum = |count: fn(&WorkerResult) -> u64| {
        (!workers.is_empty()).then(|| workers.iter().map(count).sum::<u64>())
    };
    json!({
        "cpu_seconds": direction.cpu_seconds(),
        "polls": sum(|worker| worker.polls),
        "empty_polls": sum(|worker| worker.empty_polls),
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
