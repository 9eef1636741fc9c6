//! The file of cases: one row for each case, flow and run, with its settings and the figures of all QPs together.

use std::io::{self, Write};

use serde_json::{Value, json, to_value};

use super::rows::{self, Row, places};
use crate::observe::{Metric, Observation};
use results::model::{CaseFlow, NodeResult, ResultFile, WorkerResult};
use results::rates;

/// Writes header and rows to a stream.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let rows: Vec<Row> = places(result)
        .map(|(flow, observation)| row(result, &flow, &observation))
        .collect::<serde_json::Result<_>>()?;
    rows::write(out, |take| rows.iter().cloned().try_for_each(take))
}

fn row(
    result: &ResultFile,
    flow: &CaseFlow<'_>,
    observation: &Observation<'_>,
) -> serde_json::Result<Row> {
    let run = observation.run;
    let mut row = Row::default();
    row.add("id", &flow.case.id)?;
    row.add("", &flow.settings)?;
    row.add("path_mtu", flow.config.and_then(|it| it.path_mtu))?;
    row.add("run", run.run)?;
    row.add_flow(flow)?;
    row.add("started_at", &run.started_at)?;
    row.add("complete", run.complete)?;
    row.add("interrupted", run.interrupted)?;
    row.add("failure", &run.failure)?;
    row.add("standing", observation.standing.words())?;
    if let Value::Object(mut fields) = to_value(observation.moved)? {
        fields.retain(|name, _| !["name", "from", "to"].contains(&&**name));
        row.add("", fields)?;
    }
    for metric in Metric::ALL {
        let is_elsewhere = metric.is_of_setup() && !flow.is_first();
        let value = metric.of(run, observation.moved);
        // A field of the flow may have its name, and then its value too.
        if !row.has(metric.name()) {
            row.add(metric.name(), value.filter(|_| !is_elsewhere))?;
        }
    }
    let node = run.node(flow.from());
    row.add("workers", workers(node))?;
    let cores = node.and_then(|node| node.engine_cores.as_ref());
    row.add("engine_cores", cores)?;
    let [engine, machine] = [
        node.and_then(|node| node.engine_cpu_seconds),
        node.and_then(|node| node.machine_cpu_seconds),
    ];
    row.add("engine_cpu_seconds", engine)?;
    row.add("machine_cpu_seconds", machine)?;
    // `connect` is a setting too, and one that is null would be a second column of its name.
    if let (true, Some(connect)) = (flow.is_first(), &run.connect) {
        row.add("connect", connect)?;
        for step in &connect.steps {
            let time = &step.time_ns;
            let times =
                json!({ "min": time.min, "mean": time.mean, "p99": time.p99, "max": time.max });
            row.add(&format!("connect_{}_ns", step.step), times)?;
        }
    }
    let names = flow.config.map(|it| [&it.from_device, &it.to_device]);
    for ((index, end), device) in
        ["from_device", "to_device"].into_iter().enumerate().zip(flow.devices(result))
    {
        row.add(end, names.map(|names| names[index]))?;
        // That by which its figures can be judged.
        row.add(&format!("{end}_library"), device.map(|it| &it.library))?;
        row.add(&format!("{end}_software"), device.map(|it| it.software))?;
        row.add(&format!("{end}_faults"), device.map(|it| &it.faults))?;
    }
    Ok(row)
}

/// Sums of the workers of the node that posts the flow; they serve all of its flows.
fn workers(node: Option<&NodeResult>) -> Value {
    let workers = node.map_or(&[][..], |node| &node.workers);
    json!({
        "away_seconds": workers.iter().map(|it| it.away_seconds).sum::<Option<f64>>()
            .filter(|_| !workers.is_empty()),
        "cpu_seconds": node.and_then(NodeResult::cpu_seconds),
        "polls": sum(workers, |worker| worker.polls),
        "empty_polls": sum(workers, |worker| worker.empty_polls),
        "blocked": sum(workers, |worker| worker.blocked),
    })
}

/// `None` without workers.
fn sum(workers: &[WorkerResult], count: fn(&WorkerResult) -> u64) -> Option<u64> {
    (!workers.is_empty()).then(|| rates::sum(workers.iter().map(count)))
}
