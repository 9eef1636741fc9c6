//! The result as CSV: for each case, run and direction one row `all` and one row a QP. Columns carry the
//! JSON's names, those of nested objects joined with `_`. What was not measured is an empty cell.

use std::io::{self, Write};

mod cell;
mod columns;
mod set_up;

pub use columns::COLUMNS;

use cell::cell;

use super::model::{
    Bandwidth, CaseConfig, CaseResult, Device, Direction, Latency, QpResult, ResultFile, Run,
    Window, WorkerResult,
};

/// Writes header and rows to a stream, such as stdout.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, out: impl Write) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    let devices = device_cells(result);
    for case in &result.cases {
        let own = [
            case.config.poll.to_string(),
            case.config.connect.to_string(),
            cell(Some(case.config.traffic_qps)),
        ];
        let tail = devices.iter().chain(&own);
        let none = vec![String::new(); set_up::COLUMNS];
        for run in &case.runs {
            let reverse = run.reverse.as_ref().map(|reverse| ("reverse", reverse));
            for (name, direction) in [("forward", &run.forward)].into_iter().chain(reverse) {
                let head = head(case, run, name, &direction.window);
                let connect = run
                    .connect
                    .as_ref()
                    .map_or_else(|| none.clone(), set_up::cells);
                let all = all_cells(direction);
                let bandwidth = bandwidth_cells(direction.bandwidth_gbit_per_s.as_ref());
                let row = head.iter().chain(&all).chain(tail.clone());
                writer.write_record(row.chain(&connect).chain(&bandwidth))?;
                for qp in &direction.qps {
                    let one = qp_cells(qp);
                    let row = head.iter().chain(&one).chain(tail.clone());
                    writer.write_record(row.chain(&none).chain(&bandwidth_cells(None)))?;
                }
            }
        }
    }
    writer.flush()
}

/// What all rows of a case, run and direction have in common.
fn head(case: &CaseResult, run: &Run, direction: &str, window: &Window) -> Vec<String> {
    let doubts: Vec<&str> = window.doubts.iter().map(|it| it.kind.name()).collect();
    let mut cells = vec![case.id.clone()];
    cells.extend(config_cells(&case.config));
    cells.extend([
        run.run.to_string(),
        run.started_at.clone(),
        run.complete.to_string(),
        run.interrupted.to_string(),
        cell(run.failure.as_ref().map(|failure| &failure.message)),
        window.seconds.to_string(),
        window.warmup_seconds.to_string(),
        cell(window.warmup_steady),
        doubts.join("; "),
        direction.to_owned(),
    ]);
    cells
}

fn config_cells(config: &CaseConfig) -> Vec<String> {
    let mut cells: Vec<String> = settings::ROWS.iter().map(|row| row.text(config)).collect();
    cells.resize(28, String::new());
    cells
}

fn all_cells(direction: &Direction) -> Vec<String> {
    let totals = &direction.totals;
    let mut cells = vec![
        "all".to_owned(),
        String::new(),
        totals.messages.to_string(),
        totals.bytes.to_string(),
        cell(totals.gbit_per_s),
        cell(totals.mmsg_per_s),
        totals.errors.to_string(),
    ];
    cells.extend(latency_cells(direction.latency_ns.as_ref()));
    let fairness = direction.fairness.as_ref();
    let limits = direction.limits.as_ref();
    let workers = &direction.workers;
    let sum = |count: fn(&WorkerResult) -> u64| {
        cell((!workers.is_empty()).then(|| workers.iter().map(count).sum::<u64>()))
    };
    cells.extend([
        cell(fairness.map(|fairness| fairness.jain)),
        cell(fairness.map(|fairness| fairness.min_share)),
        cell(fairness.map(|fairness| fairness.max_share)),
        cell(direction.cpu_seconds()),
        sum(|worker| worker.polls),
        sum(|worker| worker.empty_polls),
        cell(limits.map(|limits| limits.link_gbit_per_s)),
        cell(limits.map(|limits| limits.protocol_efficiency)),
        cell(limits.and_then(|limits| limits.share_of_limit)),
    ]);
    cells
}

fn qp_cells(qp: &QpResult) -> Vec<String> {
    let mut cells = vec![
        qp.index.to_string(),
        qp.qpn.to_string(),
        qp.messages.to_string(),
        qp.bytes.to_string(),
        cell(qp.gbit_per_s),
        // A QP's message rate and errors are not in the file.
        String::new(),
        String::new(),
    ];
    cells.extend(latency_cells(qp.latency_ns.as_ref()));
    // Fairness, workers and limits are those of all QPs.
    cells.extend(std::iter::repeat_n(String::new(), 9));
    cells
}

fn device_cells(result: &ResultFile) -> [String; 4] {
    let own = result.host.device.as_ref();
    let peer = result.peer.as_ref().and_then(|peer| peer.device.as_ref());
    let library = |device: Option<&Device>| cell(device.map(|device| &device.library));
    let faults = |device: Option<&Device>| cell(device.and_then(|device| device.faults.as_ref()));
    [library(own), faults(own), library(peer), faults(peer)]
}

fn latency_cells(latency: Option<&Latency>) -> [String; 11] {
    let count = |value: fn(&Latency) -> u64| cell(latency.map(value));
    let tail = |value: fn(&Latency) -> Option<u64>| cell(latency.and_then(value));
    [
        count(|latency| latency.count),
        count(|latency| latency.min),
        cell(latency.map(|latency| latency.mean)),
        cell(latency.map(|latency| latency.stddev)),
        count(|latency| latency.p50),
        tail(|latency| latency.p90),
        tail(|latency| latency.p99),
        tail(|latency| latency.p99_9),
        tail(|latency| latency.p99_99),
        count(|latency| latency.max),
        count(|latency| latency.overflows),
    ]
}

fn bandwidth_cells(bandwidth: Option<&Bandwidth>) -> [String; 9] {
    let gbit = |value: fn(&Bandwidth) -> f64| cell(bandwidth.map(value));
    [
        gbit(|bandwidth| bandwidth.interval_seconds),
        cell(bandwidth.map(|bandwidth| bandwidth.count)),
        gbit(|bandwidth| bandwidth.min),
        cell(bandwidth.and_then(|bandwidth| bandwidth.p1)),
        gbit(|bandwidth| bandwidth.p50),
        cell(bandwidth.and_then(|bandwidth| bandwidth.p99)),
        gbit(|bandwidth| bandwidth.max),
        gbit(|bandwidth| bandwidth.mean),
        gbit(|bandwidth| bandwidth.stddev),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::Value;

    use super::super::model::{Doubt, DoubtKind};
    use super::super::sample;
    use super::*;

    fn rows() -> Vec<HashMap<String, String>> {
        let mut out = Vec::new();
        write_to(&sample::result(), &mut out).unwrap();
        let mut reader = ::csv::Reader::from_reader(out.as_slice());
        reader.deserialize().map(Result::unwrap).collect()
    }

    #[test]
    fn the_header_is_stable() {
        let mut out = Vec::new();
        write_to(&ResultFile::default(), &mut out).unwrap();
        let header = "id,op,qps,cq,size,tx_depth,rx_depth,signal_every,post_list,inline,workers,mtu,\
            bidirectional,device,peer_device,verify,duration_seconds,iterations_per_qp,warmup,\
            warmup_limit_seconds,cq_depth,timeout,retry_cnt,rnr_retry,min_rnr_timer,max_rd_atomic,\
            service_level,traffic_class,hop_limit,run,started_at,complete,interrupted,failure_message,\
            window_seconds,window_warmup_seconds,window_warmup_steady,window_doubts,direction,qp,qpn,messages,bytes,\
            gbit_per_s,mmsg_per_s,errors,latency_ns_count,latency_ns_min,latency_ns_mean,\
            latency_ns_stddev,latency_ns_p50,latency_ns_p90,latency_ns_p99,latency_ns_p99_9,\
            latency_ns_p99_99,latency_ns_max,latency_ns_overflows,fairness_jain,fairness_min_share,\
            fairness_max_share,workers_cpu_seconds,workers_polls,workers_empty_polls,\
            limits_link_gbit_per_s,limits_protocol_efficiency,limits_share_of_limit,\
            device_library,device_faults,peer_device_library,peer_device_faults,poll,connect,traffic_qps,connect_rounds,\
            connect_connections,connect_seconds,connect_connections_per_second,\
            connect_traffic_alone_gbit_per_s,connect_setup_ns_min,connect_setup_ns_mean,\
            connect_setup_ns_p99,connect_setup_ns_max,connect_create_ns_min,connect_create_ns_mean,\
            connect_create_ns_p99,connect_create_ns_max,connect_init_ns_min,connect_init_ns_mean,\
            connect_init_ns_p99,connect_init_ns_max,connect_exchange_ns_min,connect_exchange_ns_mean,\
            connect_exchange_ns_p99,connect_exchange_ns_max,connect_rtr_ns_min,connect_rtr_ns_mean,\
            connect_rtr_ns_p99,connect_rtr_ns_max,connect_rts_ns_min,connect_rts_ns_mean,connect_rts_ns_p99,\
            connect_rts_ns_max,connect_destroy_ns_min,connect_destroy_ns_mean,connect_destroy_ns_p99,\
            connect_destroy_ns_max,connect_resolve_ns_min,connect_resolve_ns_mean,connect_resolve_ns_p99,\
            connect_resolve_ns_max,connect_route_ns_min,connect_route_ns_mean,connect_route_ns_p99,\
            connect_route_ns_max,connect_connect_ns_min,connect_connect_ns_mean,connect_connect_ns_p99,\
            connect_connect_ns_max,connect_stale_rejections,bandwidth_gbit_per_s_interval_seconds,\
            bandwidth_gbit_per_s_count,bandwidth_gbit_per_s_min,bandwidth_gbit_per_s_p1,bandwidth_gbit_per_s_p50,\
            bandwidth_gbit_per_s_p99,bandwidth_gbit_per_s_max,bandwidth_gbit_per_s_mean,\
            bandwidth_gbit_per_s_stddev\n";
        assert_eq!(String::from_utf8(out).unwrap(), header);
    }

    #[test]
    fn each_direction_has_a_row_for_all_and_one_for_each_qp() {
        let places: Vec<_> = rows()
            .iter()
            .map(|row| format!("{} {} {}", row["op"], row["direction"], row["qp"]))
            .collect();
        let expected = [
            "send forward all",
            "send forward 0",
            "send forward 1",
            "write forward all",
            "write forward 0",
            "write forward 1",
            "write reverse all",
            "write reverse 0",
            "write reverse 1",
        ];
        assert_eq!(places, expected);
    }

    /// Compares a cell with the value of the JSON that its name leads to.
    pub(super) fn assert_same(row: &HashMap<String, String>, column: &str, value: &Value) {
        let text = match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            // One writes 2.0, the other 2.
            Value::Number(number) if number.is_f64() => {
                assert_eq!(row[column].parse().ok(), number.as_f64(), "{column}");
                return;
            }
            other => other.to_string(),
        };
        assert_eq!(row[column], text, "{column}");
    }

    #[test]
    fn cells_are_the_jsons_values() {
        let json = serde_json::to_value(sample::result()).unwrap();
        let rows = rows();
        for (row, case) in [(&rows[0], 0), (&rows[3], 1)] {
            let case = &json["cases"][case];
            let run = &case["runs"][0];
            for (name, value) in case["config"].as_object().unwrap() {
                assert_same(row, name, value);
            }
            for object in [
                "window",
                "latency_ns",
                "bandwidth_gbit_per_s",
                "fairness",
                "limits",
            ] {
                for (name, value) in run[object].as_object().into_iter().flatten() {
                    if !name.starts_with("histogram") && name != "doubts" {
                        assert_same(row, &format!("{object}_{name}"), value);
                    }
                }
            }
            for (name, value) in run["totals"].as_object().unwrap() {
                assert_same(row, name, value);
            }
            for name in ["run", "started_at", "complete", "interrupted"] {
                assert_same(row, name, &run[name]);
            }
            assert_same(
                row,
                "workers_cpu_seconds",
                &run["workers"][0]["cpu_seconds"],
            );
            assert_same(row, "workers_polls", &run["workers"][0]["polls"]);
            assert_same(
                row,
                "workers_empty_polls",
                &run["workers"][0]["empty_polls"],
            );
        }
        let qp = &json["cases"][1]["runs"][0]["reverse"]["qps"][1];
        for name in ["qpn", "messages", "bytes", "gbit_per_s"] {
            assert_same(&rows[8], name, &qp[name]);
        }
        assert_same(&rows[8], "latency_ns_p99", &qp["latency_ns"]["p99"]);
        let device = &json["host"]["device"];
        assert_same(&rows[8], "device_library", &device["library"]);
        assert_same(&rows[8], "device_faults", &device["faults"]);
        assert_eq!(rows[3]["failure_message"], "stopped by Ctrl-C, \"early\"");
        assert_eq!(
            rows[3]["latency_ns_p50"], "",
            "what was not measured is empty"
        );
    }

    #[test]
    fn doubts_are_named_in_the_rows_of_their_direction() {
        let mut result = sample::result();
        let run = &mut result.cases[1].runs[0];
        let reverse = run.reverse.as_mut().unwrap();
        reverse.window.doubts = [DoubtKind::EdgeMissed, DoubtKind::Drift]
            .map(|kind| Doubt {
                kind,
                message: String::new(),
            })
            .to_vec();
        let mut out = Vec::new();
        write_to(&result, &mut out).unwrap();
        let mut reader = ::csv::Reader::from_reader(out.as_slice());
        let rows: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
        assert_eq!(rows[3]["window_doubts"], "");
        assert_eq!(rows[6]["window_doubts"], "edge missed; drift");
    }

    #[test]
    fn a_run_that_failed_before_it_had_qps_has_its_row() {
        let mut result = sample::result();
        result.cases.truncate(1);
        result.cases[0].runs = vec![Run::default()];
        let mut out = Vec::new();
        write_to(&result, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 2);
    }
}
