//! Cells against the JSON that they are made from.

use std::collections::HashMap;
use std::io;

use results::{
    model::{CaseConfig, CaseResult, DoubtKind, ResultFile, Run},
    sample,
};
use serde_json::{Value, to_value};

use super::*;
use crate::observe::Metric;

/// A file as it is read: its columns, and its rows by them.
struct Sheet {
    columns: Vec<String>,
    rows: Vec<HashMap<String, String>>,
}

type Write = fn(&ResultFile, &mut Vec<u8>) -> io::Result<()>;

fn sheet(result: &ResultFile, write: Write) -> Sheet {
    let text = sample::text(|out| write(result, out));
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let columns = reader.headers().unwrap().iter().map(str::to_owned);
    Sheet { columns: columns.collect(), rows: reader.deserialize().map(Result::unwrap).collect() }
}

fn cases_of(result: &ResultFile) -> Sheet {
    sheet(result, |result, out| cases_in_full(result, out))
}

fn table_of(result: &ResultFile) -> Sheet {
    sheet(result, |result, out| cases(result, out))
}

fn qps_of(result: &ResultFile) -> Sheet {
    sheet(result, |result, out| qps(result, out))
}

/// The sample, after it a case of set-up, then loads.
fn everything() -> ResultFile {
    let mut result = sample::result();
    let (config, run) = sample::connect();
    result.cases.push(CaseResult {
        id: "connect-shared-q16-64KiB".to_owned(),
        config,
        ..sample::case(vec![run])
    });
    result.cases.extend(sample::open_loop().cases);
    result
}

/// Takes the cell of each plain value below a JSON value out of the row; one without a value may have no column.
fn take_same(row: &mut HashMap<String, String>, column: &str, value: &Value) {
    if let Value::Object(fields) = value {
        for (name, field) in fields {
            if !name.starts_with("histogram") && name != "doubts" {
                let column = format!("{column}_{name}");
                take_same(row, column.trim_start_matches('_'), field);
            }
        }
        return;
    }
    let cell = row.remove(column).unwrap_or_default();
    match value {
        Value::Null | Value::Array(_) => assert_eq!(cell, "", "{column}"),
        Value::String(text) => assert_eq!(cell, *text, "{column}"),
        other => assert_eq!(cell, other.to_string(), "{column}"),
    }
}

/// The same of these fields, in columns that begin with `prefix`.
fn take_fields(row: &mut HashMap<String, String>, prefix: &str, of: &Value, names: &str) {
    for name in names.split(' ') {
        take_same(row, &format!("{prefix}{name}"), &of[name]);
    }
}

/// The same of all fields but one.
fn take_but(row: &mut HashMap<String, String>, but: &str, of: &Value) {
    let mut others = of.as_object().unwrap().clone();
    others.remove(but);
    take_same(row, "", &others.into());
}

/// Nothing is left that has no value in the JSON, but what is observed: the standing and the metrics.
fn assert_taken(row: &HashMap<String, String>) {
    let is_observed = |name: &str| name == "standing" || Metric::from_name(name).is_some();
    let left: Vec<_> =
        row.iter().filter(|(name, cell)| !cell.is_empty() && !is_observed(name)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The case of each row's flow, and its place within it.
fn places() -> impl Iterator<Item = (usize, usize)> {
    (0..7).flat_map(|case| [(case, 0), (case, 1)]).filter(|(case, flow)| *flow == 0 || *case == 1)
}

fn key(row: &HashMap<String, String>, columns: &str) -> String {
    let cells: Vec<&str> = columns.split(' ').map(|name| &*row[name]).collect();
    cells.join(" ")
}

#[test]
fn cells_are_the_jsons_values() {
    let result = everything();
    let json = to_value(&result).unwrap();
    let rows = cases_of(&result).rows;
    let keys: Vec<_> = rows.iter().map(|row| key(row, "op run flow from to")).collect();
    let expected = [
        "send 1 forward client server",
        "write 1 forward client server",
        "write 1 reverse server client",
        "connect 1 forward client server",
    ];
    assert_eq!(keys[..4], expected);
    assert_eq!(keys[4..], ["write 1 forward client server"; 4]);
    assert_eq!(rows[1]["failure_message"], "stopped by Ctrl-C, \"early\"");
    for (mut row, (case, index)) in rows.into_iter().zip(places()) {
        let (row, case) = (&mut row, &json["cases"][case]);
        let (run, config) = (&case["runs"][0], &case["config"]);
        let flow = &run["flows"][index];
        take_fields(row, "", case, "id");
        take_but(row, "flows", config);
        take_fields(row, "", &config["flows"][index], "path_mtu");
        take_fields(row, "", run, "run started_at complete interrupted failure");
        take_same(row, "flow", &flow["name"]);
        take_but(row, "name", flow);
        let node =
            run["nodes"].as_array().unwrap().iter().find(|node| node["name"] == flow["from"]);
        let worker = &node.unwrap()["workers"][0];
        let of_workers = "away_seconds cpu_seconds polls empty_polls blocked";
        take_fields(row, "workers_", worker, of_workers);
        take_fields(row, "", node.unwrap(), "engine_cores engine_cpu_seconds machine_cpu_seconds");
        // Only the client reports its device.
        let end = ["from", "to"].into_iter().find(|end| flow[end] == "client");
        let device = &json["nodes"][0]["devices"][0];
        let end = format!("{}_device", end.unwrap());
        take_same(row, &end, &device["name"]);
        take_fields(row, &format!("{end}_"), device, "library software faults");
        if index == 0 {
            take_set_up(row, &run["connect"]);
        }
        let doubts = row.remove("window_doubts").unwrap();
        let doubt = &flow["window"]["doubts"][0]["kind"];
        assert_eq!(doubts, doubt.as_str().unwrap_or_default());
        assert_taken(row);
    }
}

#[test]
fn a_row_has_the_settings_of_its_flow() {
    let result = sample::mixed();
    let [cases, qps] = [cases_of(&result), qps_of(&result)].map(|sheet| sheet.rows);
    let key = |row| key(row, "flow from op qps size_bytes");
    let keys: Vec<_> = cases.iter().map(key).collect();
    let expected =
        ["small client write 3 64", "large client read 2 1048576", "back server send 1 4096"];
    assert_eq!(keys, expected);
    let count = |flow: &String| qps.iter().filter(|row| key(row) == *flow).count();
    assert!(keys.iter().map(count).eq([3, 2, 1]));
    assert_eq!(cases[1]["signal_every"], "1", "as fitted to its size");
}

#[test]
fn set_up_alone_has_a_row_without_a_flow() {
    let (config, mut run) = sample::connect();
    (run.flows, run.nodes) = (Vec::new(), Vec::new());
    let mut result = sample::result();
    (result.cases[0].config, result.cases[0].runs) = (config, vec![run]);
    result.cases[0].config.flows.clear();
    let sheet = cases_of(&result);
    assert_eq!(sheet.rows[0]["flow"], "");
    assert_eq!(sheet.rows[0]["connect_rounds"], "400");
    assert_eq!(qps_of(&result).rows[0]["id"], result.cases[1].id);
}

fn take_set_up(row: &mut HashMap<String, String>, connect: &Value) {
    take_same(row, "connect", connect);
    for step in connect["steps"].as_array().into_iter().flatten() {
        let prefix = format!("connect_{}_ns_", step["step"].as_str().unwrap());
        assert_ne!(row[&format!("{prefix}p99")], "");
        take_fields(row, &prefix, &step["time_ns"], "min mean p99 max");
    }
}

#[test]
fn a_queue_pair_has_its_row() {
    let result = everything();
    let json = to_value(&result).unwrap();
    let mut rows = qps_of(&result).rows.into_iter();
    for (case, index) in places() {
        let case = &json["cases"][case];
        let run = &case["runs"][0];
        let flow = &run["flows"][index];
        for qp in flow["qps"].as_array().unwrap() {
            let mut row = rows.next().unwrap();
            take_fields(&mut row, "", case, "id");
            take_fields(&mut row, "", &case["config"], "op qps size_bytes");
            take_fields(&mut row, "", run, "run");
            take_same(&mut row, "flow", &flow["name"]);
            take_fields(&mut row, "", flow, "from to");
            take_same(&mut row, "", qp);
            assert_taken(&row);
        }
    }
    assert!(rows.next().is_none());
}

#[test]
fn columns_stand_in_the_order_of_the_json() {
    let result = everything();
    insta::assert_snapshot!(cases_of(&result).columns.join("\n"));
    let of_qp =
        "id,op,qps,size_bytes,run,flow,from,to,index,qpn,udp_source_port,messages,bytes,gbit_per_s";
    let of_time = "count,min,mean,stddev,p50,p90,p95,p99,p99_9,p99_99,max,overflows";
    let mut columns: Vec<String> = of_qp.split(',').map(str::to_owned).collect();
    for time in ["latency_ns", "service_ns", "lateness_ns"] {
        columns.extend(of_time.split(',').map(|part| format!("{time}_{part}")));
    }
    columns.extend(["swaps_made", "lost"].map(str::to_owned));
    assert_eq!(qps_of(&result).columns, columns);
}

#[test]
fn columns_do_not_depend_on_figures() {
    let measured = everything();
    let mut failed = measured.clone();
    for run in failed.cases.iter_mut().flat_map(|case| &mut case.runs) {
        *run = Run { run: run.run, ..Run::default() };
    }
    for sheet_of in [table_of, cases_of, qps_of] {
        assert_eq!(sheet_of(&measured).columns, sheet_of(&failed).columns);
    }
}

/// Whatever a row has a value for stands in a column.
#[test]
fn no_value_is_lost() {
    for result in [everything(), sample::mixed(), sample::open_loop()] {
        let columns = columns_in_full();
        for (flow, observation) in super::places(&result) {
            let row = case_row(&result, &flow, &observation).unwrap();
            let mut lost: Vec<&String> =
                row.0.keys().filter(|name| !columns.contains(name)).collect();
            lost.retain(|name| !row.cell(name).is_empty());
            assert!(lost.is_empty(), "{lost:?}");
        }
    }
}

#[test]
fn the_table_has_what_tells_rows_apart_and_its_figures() {
    let columns = |result: &ResultFile| table_of(result).columns.join(",");
    let key = "id,op,qps,size_bytes,run,flow,from,to";
    let figures = "gbit_per_s,mmsg_per_s,latency_p50_ns,latency_p99_ns,latency_p99_9_ns,latency_max_ns,\
                   cpu_seconds_per_gb,machine_cpu_seconds_per_gb,percent_of_limit";
    let mut result = sample::result();
    result.cases.truncate(1);
    assert_eq!(columns(&result), format!("{key},standing,{figures}"));
    let loads = sample::open_loop();
    let sheet = table_of(&loads);
    assert_eq!(sheet.columns[8..10], ["rate", "standing"]);
    assert_eq!(sheet.columns.last().unwrap(), SCHEDULE);
    assert!(sheet.rows.iter().any(|row| row[SCHEDULE] == "kept"));
}

#[test]
fn doubts_are_named_in_the_row_of_their_flow() {
    let mut result = sample::result();
    result.cases[1].runs[0].flows[1].window.doubts =
        [DoubtKind::EdgeMissed, DoubtKind::Drift].map(sample::doubt).to_vec();
    let rows = cases_of(&result).rows;
    assert_eq!(rows[1]["window_doubts"], "");
    assert_eq!(rows[2]["window_doubts"], "edge_missed; drift");
}

#[test]
fn a_run_that_failed_before_it_had_queue_pairs_has_its_row() {
    let mut result = sample::result();
    result.cases.truncate(1);
    result.cases[0].runs = vec![Run::default()];
    result.cases[0].config = CaseConfig::default();
    assert_eq!(cases_of(&result).rows.len(), 1);
    assert_eq!(qps_of(&result).rows.len(), 0);
}

fn rows(result: &ResultFile) -> Vec<Vec<String>> {
    let text = sample::text(|out| histograms(result, out));
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let header = "id,op,qps,size_bytes,run,flow,from,to,kind,low,high,count";
    assert!(reader.headers().unwrap().iter().eq(header.split(',')));
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn buckets_hold_all_samples_and_lie_beside_each_other() {
    let result = sample::result();
    let rows = rows(&result);
    let of = |flow: &str, kind: &str| {
        rows.iter()
            .filter(|row| row[5] == flow && row[8] == kind)
            .map(|row| [9, 10, 11].map(|column| row[column].parse::<u64>().unwrap()))
            .collect::<Vec<_>>()
    };
    let forward = &result.cases[0].runs[0].flows[0];
    let latency = forward.latency_ns.as_ref().unwrap();
    let bandwidth = forward.bandwidth_gbit_per_s.as_ref().unwrap();
    let fastest = (bandwidth.max * 1e6).round() as u64;
    for (kind, count, max) in [
        ("latency_ns", latency.count, latency.max),
        ("bandwidth_kbit_per_s", bandwidth.count, fastest),
    ] {
        let buckets = of("forward", kind);
        assert_eq!(buckets.iter().map(|bucket| bucket[2]).sum::<u64>(), count);
        let is_narrow =
            |[low, high, times]: &[u64; 3]| (*low..=low + low / 100).contains(high) && *times > 0;
        assert!(buckets.iter().all(is_narrow));
        assert!(buckets.windows(2).all(|pair| pair[0][1] < pair[1][0]));
        let [low, high, _] = *buckets.last().unwrap();
        assert!((low..=high).contains(&max), "{max}");
    }
    assert!(!of("reverse", "latency_ns").is_empty());
    assert!(of("reverse", "bandwidth_kbit_per_s").is_empty());
    let key = "send-shared-q2-64KiB send 2 65536 1 forward client server";
    assert_eq!(rows[0][..8].join(" "), key);
}

#[test]
fn an_open_loop_has_three_distributions() {
    let result = sample::open_loop();
    let rows = rows(&result);
    let samples = |id: &str, kind: &str| -> u64 {
        rows.iter()
            .filter(|row| row[0].ends_with(id) && row[8] == kind)
            .map(|row| row[11].parse::<u64>().unwrap())
            .sum()
    };
    let kinds = ["latency_ns", "service_ns", "lateness_ns"];
    let closed = kinds.map(|kind| samples("-Q1", kind));
    assert_eq!(closed, [2_400_000, 0, 0]);
    let open = kinds.map(|kind| samples("-R95%", kind));
    assert_eq!(open, [2_280_000, 2_275_000, 2_275_000]);
}

#[test]
fn set_up_has_the_steps_of_its_own_end() {
    let (config, mut run) = sample::connect();
    let latency = run.flows[0].latency_ns.clone().unwrap();
    let connect = run.connect.as_mut().unwrap();
    connect.setup_ns = Some(latency.clone());
    connect.steps[0].time_ns = latency;
    let mut result = sample::result();
    result.cases.truncate(1);
    (result.cases[0].config, result.cases[0].runs) = (config, vec![run]);
    let mut kinds: Vec<String> = rows(&result).into_iter().map(|row| row[8].clone()).collect();
    kinds.dedup();
    let of_traffic = ["latency_ns", "bandwidth_kbit_per_s"];
    let of_set_up = ["connect_setup_ns", "connect_create_ns"];
    assert_eq!(kinds, [of_traffic, of_set_up].concat());
}

#[test]
fn without_a_row_there_is_the_header() {
    let mut result = sample::result();
    result.cases.clear();
    assert!(table_of(&result).rows.is_empty());
    assert!(qps_of(&result).columns.starts_with(&KEY.map(str::to_owned)));
}
