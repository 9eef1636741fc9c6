//! Cells against the JSON that they are made from.

use std::collections::{BTreeMap, HashMap};
use std::io;

use serde_json::{Value, to_value};

use super::{cases, qps};
use crate::results::model::{CaseResult, Doubt, DoubtKind, ResultFile, Run};
use crate::results::sample;

/// A file as it is read: its columns, and its rows by them.
struct Sheet {
    columns: Vec<String>,
    rows: Vec<HashMap<String, String>>,
}

fn sheet(
    result: &ResultFile,
    write: impl Fn(&ResultFile, &mut Vec<u8>) -> io::Result<()>,
) -> Sheet {
    let mut out = Vec::new();
    write(result, &mut out).unwrap();
    let mut reader = ::csv::Reader::from_reader(out.as_slice());
    let columns = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    let rows = reader.deserialize().map(Result::unwrap).collect();
    Sheet { columns, rows }
}

fn cases_of(result: &ResultFile) -> Sheet {
    sheet(result, |result, out| cases(result, out))
}

fn qps_of(result: &ResultFile) -> Sheet {
    sheet(result, |result, out| qps(result, out))
}

/// The sample, and a case of set-up after it.
fn with_set_up() -> ResultFile {
    let mut result = sample::result();
    let (config, run) = sample::connect();
    result.cases.push(CaseResult {
        id: "connect-shared-q16-64KiB".to_owned(),
        config,
        runs: vec![run],
        perftest: None,
    });
    result
}

/// Compares the cell of each plain value below a JSON value. A column may be left out where there is no value.
fn assert_same(row: &HashMap<String, String>, column: &str, value: &Value) {
    let cell = row.get(column).map_or("", String::as_str);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if !name.starts_with("histogram") && name != "doubts" {
                    assert_same(row, &format!("{column}_{name}"), value);
                }
            }
        }
        Value::Null => assert_eq!(cell, "", "{column}: what was not measured is empty"),
        Value::Array(_) => assert!(!row.contains_key(column), "{column}"),
        Value::String(text) => assert_eq!(cell, text, "{column}"),
        other => assert_eq!(cell, other.to_string(), "{column}"),
    }
}

#[test]
fn cells_are_the_jsons_values() {
    let result = with_set_up();
    let json = to_value(&result).unwrap();
    let rows = cases_of(&result).rows;
    let places: Vec<_> = rows
        .iter()
        .map(|row| format!("{} {} {}", row["op"], row["run"], row["direction"]))
        .collect();
    let expected = [
        "send 1 forward",
        "write 1 forward",
        "write 1 reverse",
        "connect 1 forward",
    ];
    assert_eq!(places, expected);
    for (row, case) in [(0, 0), (1, 1), (2, 1), (3, 2)] {
        let (row, case) = (&rows[row], &json["cases"][case]);
        assert_same(row, "id", &case["id"]);
        for (name, value) in case["config"].as_object().unwrap() {
            assert_same(row, name, value);
        }
        let run = &case["runs"][0];
        for name in ["run", "started_at", "complete", "interrupted", "failure"] {
            assert_same(row, name, &run[name]);
        }
        let is_forward = row["direction"] == "forward";
        let own = if is_forward { run } else { &run["reverse"] };
        for name in [
            "window",
            "totals",
            "latency_ns",
            "bandwidth_gbit_per_s",
            "fairness",
            "limits",
        ] {
            assert_same(row, name, &own[name]);
        }
        let none = Value::Null;
        for name in ["receiver", "timeline"] {
            assert_same(row, name, if is_forward { &run[name] } else { &none });
        }
        for name in ["cpu_seconds", "polls", "empty_polls"] {
            assert_same(row, &format!("workers_{name}"), &own["workers"][0][name]);
        }
        for name in ["library", "software", "faults"] {
            let device = &json["host"]["device"];
            assert_same(row, &format!("host_device_{name}"), &device[name]);
        }
        assert!(!row.contains_key("peer_device_library"), "no peer");
    }
    assert_eq!(rows[1]["failure_message"], "stopped by Ctrl-C, \"early\"");
}

#[test]
fn set_up_has_columns_where_a_run_measured_it() {
    let result = with_set_up();
    let json = to_value(&result).unwrap();
    let sheet = cases_of(&result);
    let connect = json["cases"][2]["runs"][0]["connect"].as_object().unwrap();
    for (name, value) in connect {
        assert_same(&sheet.rows[3], &format!("connect_{name}"), value);
    }
    let steps = connect["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 6);
    for step in steps {
        for part in ["min", "mean", "p99", "max"] {
            let column = format!("connect_{}_ns_{part}", step["step"].as_str().unwrap());
            assert_same(&sheet.rows[3], &column, &step["time_ns"][part]);
            assert_eq!(sheet.rows[0][&column], "", "not a transfer's");
        }
    }
    let has_set_up = |sheet: &Sheet| sheet.columns.iter().any(|it| it.starts_with("connect_"));
    assert!(has_set_up(&sheet));
    assert!(!has_set_up(&cases_of(&sample::result())));
    assert!(!has_set_up(&qps_of(&result)));
}

#[test]
fn a_queue_pair_has_its_row() {
    let result = with_set_up();
    let json = to_value(&result).unwrap();
    let rows = qps_of(&result).rows;
    let mut next = rows.iter();
    for case in json["cases"].as_array().unwrap() {
        let run = &case["runs"][0];
        for (direction, own) in [("forward", run), ("reverse", &run["reverse"])] {
            for qp in own["qps"].as_array().into_iter().flatten() {
                let row = next.next().unwrap();
                assert_same(row, "id", &case["id"]);
                for name in ["op", "qps", "size"] {
                    assert_same(row, name, &case["config"][name]);
                }
                assert_same(row, "run", &run["run"]);
                assert_eq!(row["direction"], direction);
                for (name, value) in qp.as_object().unwrap() {
                    assert_same(row, name, value);
                }
            }
        }
    }
    assert!(next.next().is_none());
    assert_eq!(rows.len(), 8);
}

#[test]
fn the_sums_of_both_files_are_the_same() {
    let result = with_set_up();
    let sums = |sheet: &Sheet, [messages, bytes]: [&str; 2]| {
        let mut sums = BTreeMap::<_, [u64; 2]>::new();
        for row in &sheet.rows {
            let key = ["id", "run", "direction"].map(|name| row[name].clone());
            let sum = sums.entry(key).or_default();
            sum[0] += row[messages].parse::<u64>().unwrap();
            sum[1] += row[bytes].parse::<u64>().unwrap();
        }
        sums
    };
    let of_cases = sums(&cases_of(&result), ["totals_messages", "totals_bytes"]);
    assert_eq!(of_cases.len(), 4);
    assert_eq!(of_cases, sums(&qps_of(&result), ["messages", "bytes"]));
}

#[test]
fn no_column_is_empty() {
    for result in [sample::result(), with_set_up()] {
        for sheet in [cases_of(&result), qps_of(&result)] {
            assert!(sheet.columns.len() > 10);
            for column in &sheet.columns {
                let has_value = sheet.rows.iter().any(|row| !row[column].is_empty());
                assert!(has_value, "{column}");
                let same = sheet.columns.iter().filter(|it| *it == column);
                assert_eq!(same.count(), 1, "{column}");
            }
        }
    }
}

#[test]
fn columns_stand_in_the_order_of_the_json() {
    let result = with_set_up();
    insta::assert_snapshot!(cases_of(&result).columns.join("\n"));
    assert_eq!(
        qps_of(&result).columns.join(","),
        "id,op,qps,size,run,direction,index,qpn,messages,bytes,gbit_per_s,latency_ns_count,latency_ns_min,\
         latency_ns_mean,latency_ns_stddev,latency_ns_p50,latency_ns_p90,latency_ns_p99,latency_ns_p99_9,\
         latency_ns_max,latency_ns_overflows"
    );
}

#[test]
fn doubts_are_named_in_the_row_of_their_direction() {
    let mut result = sample::result();
    let reverse = result.cases[1].runs[0].reverse.as_mut().unwrap();
    reverse.window.doubts = [DoubtKind::EdgeMissed, DoubtKind::Drift]
        .map(|kind| Doubt {
            kind,
            message: String::new(),
        })
        .to_vec();
    let rows = cases_of(&result).rows;
    assert_eq!(rows[1]["window_doubts"], "");
    assert_eq!(rows[2]["window_doubts"], "edge_missed; drift");
}

#[test]
fn a_run_that_failed_before_it_had_queue_pairs_has_its_row() {
    let mut result = sample::result();
    result.cases.truncate(1);
    result.cases[0].runs = vec![Run::default()];
    assert_eq!(cases_of(&result).rows.len(), 1);
    assert_eq!(qps_of(&result).rows.len(), 0);
}
