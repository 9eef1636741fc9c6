//! A result as CSV files: cases as in the table, cases with all that is known, QPs and histograms, so that none has totals
//! and parts in one column. Cells are the JSON's values under its names, those of nested objects joined with `_`.
//! Columns follow from the version and the settings, never from figures.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::LazyLock;

use hdrhistogram::Histogram;
use results::model::{
    CaseFlow, ConnectStep, FlowResult, Latency, NodeResult, ResultFile, Run, WorkerResult,
    saturating_sum,
};
use serde::Serialize;
use serde_json::{Value, json, to_value};
use settings::{Settings, telling_apart};

use super::terminal::{SCHEDULE, metrics};
use crate::observe::{Metric, Observation, Observed};

/// Writes the table as a file: one row for each case, flow and run, with the settings in which they differ and the table's
/// figures, those too that a narrow screen has no room for.
///
/// # Errors
/// The stream's.
pub fn cases(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let settings: Vec<Settings> = places(result).map(|(flow, _)| flow.settings).collect();
    let (metrics, has_schedule) = metrics(&settings);
    let differing = telling_apart(&settings);
    let mut columns = KEY.to_vec();
    columns.extend(differing.iter().map(|row| row.field).filter(|field| !KEY.contains(field)));
    columns.push("standing");
    columns.extend(metrics.iter().map(|metric| metric.name()));
    columns.extend(has_schedule.then_some(SCHEDULE));
    let mut rows = Rows::new(&columns, out)?;
    for (flow, observation) in places(result) {
        let mut row = Row::key(&flow, observation.run)?;
        row.add("", &flow.settings)?;
        row.add("standing", observation.standing.words())?;
        row.add_metrics(&metrics, &flow, &observation)?;
        let load = observation.moved.and_then(|moved| moved.load.as_ref());
        row.add(SCHEDULE, load.map(|load| load.verdict.name()))?;
        rows.write(&row)?;
    }
    rows.end()
}

/// Writes the file of cases with all their settings and figures: the same columns for every result of this version.
///
/// # Errors
/// The stream's.
pub fn cases_in_full(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let columns = columns_in_full();
    let mut rows = Rows::new(&columns, out)?;
    for (flow, observation) in places(result) {
        rows.write(&case_row(result, &flow, &observation)?)?;
    }
    rows.end()
}

const ENDS: [&str; 2] = ["from_device", "to_device"];
const OF_WORKERS: [&str; 5] = ["away_seconds", "cpu_seconds", "polls", "empty_polls", "blocked"];

fn columns_in_full() -> Vec<String> {
    let mut columns = vec!["id".to_owned()];
    if let Ok(Value::Object(settings)) = to_value(Settings::default()) {
        columns.extend(settings.into_iter().map(|(name, _)| name));
    }
    let of_run = "path_mtu wire run flow from to started_at complete interrupted";
    columns.extend(of_run.split(' ').map(str::to_owned));
    add_fields(&mut columns, "failure", "Failure");
    columns.push("standing".to_owned());
    add_fields(&mut columns, "", "FlowResult");
    columns.extend(Metric::ALL.iter().map(|metric| metric.name().to_owned()));
    columns.extend(OF_WORKERS.map(|name| format!("workers_{name}")));
    let of_node = "engine_cores engine_cpu_seconds machine_cpu_seconds";
    columns.extend(of_node.split(' ').map(str::to_owned));
    add_fields(&mut columns, "connect", "Connect");
    for step in ConnectStep::NAMES {
        let times = ["min", "mean", "p99", "max"].map(|time| format!("connect_{step}_ns_{time}"));
        columns.extend(times);
    }
    for end in ENDS {
        columns.push(end.to_owned());
        columns.extend(["library", "software", "faults"].map(|fact| format!("{end}_{fact}")));
    }
    // The flow's name is `flow`; its nodes, and a metric that the flow has itself, stand once.
    let mut seen = HashSet::from(["name".to_owned()]);
    columns.retain(|column| seen.insert(column.clone()));
    columns
}

/// Adds a column for each plain field that the model's type has, in its order, and for those of the objects in it.
fn add_fields(columns: &mut Vec<String>, prefix: &str, type_name: &str) {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| results::json::schema().to_value());
    let types = &SCHEMA["$defs"];
    for (name, field) in types[type_name]["properties"].as_object().into_iter().flatten() {
        let column = if prefix.is_empty() { name.clone() } else { format!("{prefix}_{name}") };
        let mut choices = field["anyOf"].as_array().into_iter().flatten().chain([field]);
        let referred = choices.find_map(type_named);
        let items = type_named(&field["items"]).map(|items| &types[items]["properties"]);
        match referred {
            _ if HISTOGRAMS.contains(&&**name) => {}
            Some(inner) if types[inner]["properties"].is_object() => {
                add_fields(columns, &column, inner);
            }
            // Of a list the kinds of its items are told, if they have kinds.
            _ if field["type"] == "array" && items.is_none_or(|it| it["kind"].is_null()) => {}
            _ => columns.push(column),
        }
    }
}

fn type_named(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn case_row(
    result: &ResultFile,
    flow: &CaseFlow<'_>,
    observation: &Observation<'_>,
) -> serde_json::Result<Row> {
    let run = observation.run;
    let mut row = Row::default();
    row.add("id", &flow.case.id)?;
    row.add("", &flow.settings)?;
    row.add("path_mtu", flow.config.and_then(|it| it.path_mtu))?;
    row.add("wire", flow.config.and_then(|it| it.wire))?;
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
    row.add_metrics(Metric::ALL, flow, observation)?;
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
    for ((index, end), device) in ENDS.into_iter().enumerate().zip(flow.devices(result)) {
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

/// The sum of a count over all workers; `None` without workers.
fn sum(workers: &[WorkerResult], count: fn(&WorkerResult) -> u64) -> Option<u64> {
    (!workers.is_empty()).then(|| saturating_sum(workers.iter().map(count)))
}

/// Writes the file of QPs: one row for each QP of a case, flow and run.
///
/// # Errors
/// The stream's.
pub fn qps(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let mut columns = KEY.map(str::to_owned).to_vec();
    add_fields(&mut columns, "", "QpResult");
    let mut rows = Rows::new(&columns, out)?;
    for (flow, observation) in places(result) {
        let key = Row::key(&flow, observation.run)?;
        for qp in observation.moved.iter().flat_map(|moved| &moved.qps) {
            let mut row = key.clone();
            row.add("", qp)?;
            rows.write(&row)?;
        }
    }
    rows.end()
}

const HISTOGRAM_COLUMNS: [&str; 4] = ["kind", "low", "high", "count"];

/// Writes the file of histograms: one row for each bucket of a distribution that has samples. Buckets are up to 1 % wide,
/// and those of each QP are left out: at the JSON's resolution a long sweep would make gigabytes.
///
/// # Errors
/// The stream's.
pub fn histograms(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(KEY.iter().chain(&HISTOGRAM_COLUMNS))?;
    for (flow, observation) in places(result) {
        let key = Row::key(&flow, observation.run)?;
        // Set-up is the run's: its rows are with those of its first flow.
        let run = Some(observation.run).filter(|_| flow.is_first());
        let of_flow = observation.moved.into_iter().flat_map(of_flow);
        let of_set_up = run.into_iter().flat_map(of_set_up);
        for (kind, histogram) in of_flow
            .chain(of_set_up)
            .filter_map(|(kind, histogram)| Some((kind, coarser(&histogram)?)))
        {
            for bucket in histogram.iter_recorded() {
                let value = bucket.value_iterated_to();
                let [low, high, count] = [
                    histogram.lowest_equivalent(value),
                    histogram.highest_equivalent(value),
                    bucket.count_at_value(),
                ]
                .map(|figure| figure.to_string());
                let of_bucket = [&*kind, &*low, &*high, &*count];
                writer.write_record(KEY.map(|column| key.cell(column)).iter().chain(&of_bucket))?;
            }
        }
    }
    writer.flush()
}

/// The same samples in buckets up to 1 % wide; `None` where memory for them cannot be had.
fn coarser(histogram: &Histogram<u64>) -> Option<Histogram<u64>> {
    let mut coarser = Histogram::new(2).ok()?;
    for bucket in histogram.iter_recorded() {
        let (value, count) = (bucket.value_iterated_to(), bucket.count_at_value());
        coarser.record_n(value, count).ok()?;
    }
    Some(coarser)
}

/// Kinds carry the unit of `low` and `high`. A distribution that the file does not have, or that is damaged, has no row.
fn of_flow(flow: &FlowResult) -> impl Iterator<Item = (String, Histogram<u64>)> {
    let bandwidth = flow.bandwidth_gbit_per_s.as_ref();
    let kinds = [
        ("latency_ns", times(&flow.latency_ns)),
        ("service_ns", times(&flow.service_ns)),
        ("lateness_ns", times(&flow.lateness_ns)),
        ("notice_ns", times(&flow.notice_ns)),
        ("bandwidth_kbit_per_s", bandwidth.and_then(|it| it.histogram_kbit_per_s().ok())),
    ];
    kinds.into_iter().filter_map(|(kind, histogram)| Some((kind.to_owned(), histogram?)))
}

fn times(latency: &Option<Latency>) -> Option<Histogram<u64>> {
    latency.as_ref()?.histogram().ok()
}

/// Times of set-up, at the end that ran the sweep.
fn of_set_up(run: &Run) -> impl Iterator<Item = (String, Histogram<u64>)> {
    run.connect.iter().flat_map(|connect| {
        let setup = connect.setup_ns.iter().map(|time| ("setup", time));
        let steps = connect.steps.iter().map(|step| (&*step.step, &step.time_ns));
        setup
            .chain(steps)
            .filter_map(|(step, time)| Some((format!("connect_{step}_ns"), time.histogram().ok()?)))
    })
}

/// Columns of every file: what a row is of, and what files are joined by.
const KEY: [&str; 8] = ["id", "op", "qps", "size_bytes", "run", "flow", "from", "to"];

/// Fields that are in no row: histograms have their own file.
const HISTOGRAMS: [&str; 2] = ["histogram", "histogram_kbit_per_s"];

/// Each flow of each case in each run; of a case without a flow, the run.
fn places(result: &ResultFile) -> impl Iterator<Item = (CaseFlow<'_>, Observation<'_>)> {
    Observed::of_file(result).flat_map(|Observed { flow, runs }| {
        runs.into_iter().map(move |observation| (flow.clone(), observation))
    })
}

/// Cells by their columns, made of what serde makes of the model: a column for each field. The cell of what was not measured
/// is empty.
#[derive(Clone, Debug, Default)]
struct Row(HashMap<String, String>);

impl Row {
    fn key(flow: &CaseFlow<'_>, run: &Run) -> serde_json::Result<Row> {
        let mut row = Row::default();
        let settings = to_value(&flow.settings)?;
        row.add("id", &flow.case.id)?;
        for name in ["op", "qps", "size_bytes"] {
            row.add(name, &settings[name])?;
        }
        row.add("run", run.run)?;
        row.add_flow(flow)?;
        Ok(row)
    }

    /// The cells of a flow's name and nodes; empty where there is no flow.
    fn add_flow(&mut self, flow: &CaseFlow<'_>) -> serde_json::Result<()> {
        self.add("flow", flow.config.map(|config| &config.name))?;
        self.add("from", flow.config.map(|config| &config.from))?;
        self.add("to", flow.config.map(|config| &config.to))
    }

    /// A flow's figures; those of the whole run with its first flow alone. What the flow has under the same name
    /// stays.
    fn add_metrics(
        &mut self,
        metrics: &[Metric],
        flow: &CaseFlow<'_>,
        observation: &Observation<'_>,
    ) -> serde_json::Result<()> {
        for metric in metrics {
            if self.0.contains_key(metric.name()) {
                continue;
            }
            let figure = metric.of(observation.run, observation.moved);
            self.add(metric.name(), figure.filter(|_| flow.has(*metric)))?;
        }
        Ok(())
    }

    /// Adds a value; an object's fields each, with the object's name before theirs. Of an array there is a cell for the kinds
    /// of what is in it.
    fn add(&mut self, column: &str, value: impl Serialize) -> serde_json::Result<()> {
        self.add_value(column, &to_value(value)?);
        Ok(())
    }

    fn add_value(&mut self, column: &str, value: &Value) {
        let cell = match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    match column {
                        _ if HISTOGRAMS.contains(&&**name) => {}
                        "" => self.add_value(name, field),
                        _ => self.add_value(&format!("{column}_{name}"), field),
                    }
                }
                return;
            }
            Value::Array(items) => {
                let kinds = items.iter().map(|item| item["kind"].as_str());
                match kinds.collect::<Option<Vec<_>>>() {
                    Some(kinds) if !kinds.is_empty() => kinds.join("; "),
                    _ => return,
                }
            }
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
        };
        self.0.insert(column.to_owned(), cell);
    }

    fn cell(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }
}

/// Writes a header of columns, then rows of cells by the column's name.
struct Rows<'a, W: Write, C> {
    columns: &'a [C],
    writer: ::csv::Writer<W>,
}

impl<'a, W: Write, C: AsRef<str>> Rows<'a, W, C> {
    fn new(columns: &'a [C], out: W) -> io::Result<Self> {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(columns.iter().map(AsRef::as_ref))?;
        Ok(Rows { columns, writer })
    }

    fn write(&mut self, row: &Row) -> io::Result<()> {
        let cells = self.columns.iter().map(|column| row.cell(column.as_ref()));
        Ok(self.writer.write_record(cells)?)
    }

    fn end(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
