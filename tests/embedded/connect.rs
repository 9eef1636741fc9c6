//! `--op connect`: every connection is counted at every step, and traffic goes on meanwhile. Its deaths are in `death`.

use std::collections::HashMap;

use serde_json::Value;

use testing::program::Ended;
use testing::server::{Server, call};

const STEPS: [&str; 6] = ["create", "init", "exchange", "rtr", "rts", "destroy"];

/// The counts of a whole run add up at both ends.
fn check(case: &Value, rounds: Option<u64>) {
    let (config, run) = (&case["config"], &case["runs"][0]);
    let connect = &run["connect"];
    assert_eq!(run["complete"], true, "{case}");
    let qps = config["qps"].as_u64().unwrap();
    let done = connect["rounds"].as_u64().unwrap();
    assert!(done > 0 && rounds.is_none_or(|rounds| rounds == done));
    let connections = connect["connections"].as_u64().unwrap();
    assert_eq!(connections, done * qps);
    assert_eq!(connect["setup_ns"]["count"], done);
    let seconds = connect["seconds"].as_f64().unwrap();
    let rate = connect["connections_per_second"].as_f64().unwrap();
    assert!((rate * seconds / connections as f64 - 1.0).abs() < 1e-9);
    for end in ["steps", "peer_steps"] {
        let steps = connect[end].as_array().unwrap();
        let names = steps.iter();
        let names: Vec<_> = names.map(|it| it["step"].as_str().unwrap()).collect();
        assert_eq!(names, STEPS, "{end}");
        for step in steps {
            let (per, time) = (&step["per"], &step["time_ns"]);
            let once = if per == "round" { done } else { connections };
            assert_eq!(time["count"], once, "{end} {step}");
            let [min, p50, max] = ["min", "p50", "max"].map(|it| time[it].as_u64().unwrap());
            assert!(0 < min && min <= p50 && p50 <= max, "{end} {step}");
            let p99 = time["p99"].as_u64();
            assert_eq!(p99.is_some(), once >= 100, "{end} {step}");
            assert!(
                p99.is_none_or(|p99| p50 <= p99 && p99 <= max),
                "{end} {step}"
            );
        }
    }
    // All steps of a round are within its time, and all rounds within the window.
    let sum_ns = |name: &str| {
        let steps = connect["steps"].as_array().unwrap();
        let step = steps.iter().find(|it| it["step"] == name).unwrap();
        step["time_ns"]["mean"].as_f64().unwrap() * step["time_ns"]["count"].as_f64().unwrap()
    };
    let all_s = STEPS.map(sum_ns).iter().sum::<f64>() * 1e-9;
    assert!(all_s <= seconds * 1.01, "{all_s} of {seconds} s");
    let traffic = config["traffic_qps"].as_u64().unwrap();
    let flows = run["flows"].as_array().unwrap();
    assert_eq!(flows.len(), usize::from(traffic > 0));
    for flow in flows {
        assert_eq!(flow["qps"].as_array().unwrap().len() as u64, traffic);
        assert!(flow["totals"]["messages"].is_u64(), "{flow}");
        assert!(flow["totals"]["gbit_per_s"].is_f64(), "{flow}");
    }
    let wants_alone = traffic > 0 && config["warmup"] != "0s";
    let alone = &connect["traffic_alone_gbit_per_s"];
    assert_eq!(alone.as_f64().is_some_and(|it| it > 0.0), wants_alone);
}

fn check_all(ended: &Ended, cases: usize, rounds: Option<u64>) {
    assert_eq!(ended.cases().len(), cases);
    for case in ended.cases() {
        check(case, rounds);
    }
}

#[test]
fn every_connection_is_counted_at_every_step_beside_traffic_and_alone() {
    let ended = call(
        "-d soft0 --op connect -q 1,16 --traffic-qps 0,2 -s 4K -n 5 --warmup 20ms --timeout 18 --quiet",
    ).passes();
    check_all(&ended, 4, Some(5));
    let ids = ended.cases().iter();
    let ids: Vec<_> = ids.map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "connect-q1-T0",
            "connect-shared-q1-4KiB-T2",
            "connect-q16-T0",
            "connect-shared-q16-4KiB-T2",
        ]
    );
    ended.shows(&["qps traffic connections/s rounds"]);
    let steps = ended.stdout.matches("    create    a QP").count();
    assert_eq!(steps, 4, "{}", ended.stdout);
}

#[test]
fn thousands_of_queue_pairs_in_two_processes() {
    let server = Server::embedded("-d soft0");
    let ended = server
        .call("--op connect -q 2048 -s 4K -n 2 --warmup 0 --timeout 18 --quiet")
        .passes();
    check_all(&ended, 1, Some(2));
    server.is_idle();
    assert!(!server.end().contains("ended early"));
}

#[test]
fn its_results_are_compared_drawn_and_in_the_csv() {
    let ended = call(
        "-d soft0 --op write,connect -q 1,4 -s 4K -n 100 --runs 2 --warmup 20ms --timeout 18 --quiet --csv -",
    ).passes();
    assert_eq!(ended.cases().len(), 4);
    let rounds = Some(100);
    let cases = &ended.cases()[2..];
    cases.iter().for_each(|case| check(case, rounds));
    let mut csv = csv::Reader::from_reader(ended.stdout.as_bytes());
    let rows: Vec<HashMap<String, String>> = csv.deserialize().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 8);
    for row in rows {
        for column in ["connect_rts_ns_p99", "connect_connections_per_second"] {
            assert_eq!(!row[column].is_empty(), row["op"] == "connect", "{column}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.json");
    std::fs::write(&file, ended.file(".json")).unwrap();
    let path = file.to_str().unwrap();
    let compared = call(&format!("compare {path} {path} --json -")).run();
    let comparison: Value = serde_json::from_str(&compared.stdout).unwrap();
    let connect = &comparison["cases"][3];
    assert_eq!(connect["id"], "connect-shared-q4-4KiB");
    let metrics = connect["metrics"].as_array().unwrap();
    for (name, better) in [("connections_per_s", true), ("setup_p99_ns", false)] {
        let metric = metrics.iter().find(|it| it["metric"] == name).unwrap();
        assert_eq!(metric["ratio"], 1.0);
        assert_eq!(metric["higher_is_better"], better);
    }
    let writes = comparison["cases"][0]["metrics"].as_array().unwrap();
    assert!(writes.iter().all(|it| it["metric"] != "setup_p99_ns"));
    let plots = folder.path().join("plots");
    call(&format!("plot {path} -o {}", plots.display())).passes();
    let page = std::fs::read_to_string(plots.join("index.html")).unwrap();
    for words in ["connect-shared-q4-4KiB", "connections/s", "Steps of set-up"] {
        assert!(page.contains(words), "no {words:?}");
    }
    assert!(plots.join("set-up-by-qps.svg").exists());
}

#[test]
fn more_queue_pairs_than_the_device_has_are_refused() {
    call("-d soft0 --op connect -q 65000 --traffic-qps 1000 --quiet")
        .is_refused(&["can do at most", "lower --qps or --traffic-qps"]);
}
