//! A result as three CSV files: cases, QPs and histograms, so that none has totals and parts in one column. Cells
//! are the JSON's values under its names, those of nested objects joined with `_`.

use std::io::{self, Write};

use hdrhistogram::Histogram;
use results::model::{
    CaseFlow, FlowResult, Latency, NodeResult, ResultFile, Run, WorkerResult, saturating_sum,
};
use serde::Serialize;
use serde_json::{Value, json, to_value};

use crate::observe::{Metric, Observation, Observed};

/// Writes the file of cases: one row for each case, flow and run, with its settings and the figures of all QPs together.
///
/// # Errors
/// The stream's.
pub fn cases(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let rows: Vec<Row> = places(result)
        .map(|(flow, observation)| case_row(result, &flow, &observation))
        .collect::<serde_json::Result<_>>()?;
    write(out, |take| rows.iter().cloned().try_for_each(take))
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

/// The sum of a count over all workers; `None` without workers.
fn sum(workers: &[WorkerResult], count: fn(&WorkerResult) -> u64) -> Option<u64> {
    (!workers.is_empty()).then(|| saturating_sum(workers.iter().map(count)))
}

/// Writes the file of QPs: one row for each QP of a case, flow and run.
///
/// # Errors
/// The stream's.
pub fn qps(result: &ResultFile, out: impl Write) -> io::Result<()> {
    write(out, |take| {
        for (flow, observation) in places(result) {
            let key = Row::key(&flow, observation.run)?;
            for qp in observation.moved.iter().flat_map(|moved| &moved.qps) {
                let mut row = key.clone();
                row.add("", qp)?;
                take(row)?;
            }
        }
        Ok(())
    })
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
                writer.write_record(key.cells().chain([&*kind, &*low, &*high, &*count]))?;
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

/// Columns and their cells, made of what serde makes of the model: a column for each field, in the order of the fields. The cell
/// of what was not measured is empty.
#[derive(Clone, Debug, Default)]
struct Row(Vec<(String, String)>);

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
        self.0.push((column.to_owned(), cell));
    }

    fn has(&self, column: &str) -> bool {
        self.0.iter().any(|(name, _)| name == column)
    }

    fn cells(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, cell)| &**cell)
    }

    fn cell(&self, column: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == column);
        found.map_or("", |(_, cell)| cell)
    }
}

type Take<'a> = &'a mut dyn FnMut(Row) -> io::Result<()>;

/// Writes the rows that `give` gives, below a header of the columns in which one of them has a value. It is asked twice:
/// the columns are known when all rows have been seen, and the rows of many QPs are too many to be kept.
fn write(out: impl Write, give: impl Fn(Take<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut columns = Columns::default();
    give(&mut |row| {
        columns.add(row);
        Ok(())
    })?;
    let names = columns.with_values();
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(&names)?;
    give(&mut |row| Ok(writer.write_record(names.iter().map(|column| row.cell(column)))?))?;
    writer.flush()
}

/// The columns of all rows so far, and whether one has a value there.
#[derive(Default)]
struct Columns(Vec<(String, bool)>);

impl Columns {
    /// A column that is new comes after the one that it follows in its row.
    fn add(&mut self, row: Row) {
        let mut next = 0;
        for (column, cell) in row.0 {
            let is_next = self.0.get(next).is_some_and(|(name, _)| *name == column);
            let known = if is_next {
                Some(next)
            } else {
                self.0.iter().position(|(name, _)| *name == column)
            };
            let at = known.unwrap_or_else(|| {
                self.0.insert(next, (column, false));
                next
            });
            self.0[at].1 |= !cell.is_empty();
            next = at + 1;
        }
    }

    /// The key's at least, where there is no row.
    fn with_values(self) -> Vec<String> {
        if self.0.is_empty() {
            return KEY.map(str::to_owned).to_vec();
        }
        self.0.into_iter().filter(|(_, has_value)| *has_value).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
