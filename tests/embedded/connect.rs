//! `--op connect`: every connection is counted at every step, traffic goes on meanwhile, and what can go wrong is
//! said.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::interrupt::PROMPT;
use crate::program::{Ended, Program, Server, said, signal, with_others};

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
        let names: Vec<_> = steps
            .iter()
            .map(|it| it["step"].as_str().unwrap())
            .collect();
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
        assert!(flow["totals"]["messages"].as_u64() > Some(0), "{flow}");
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
    let _machine = with_others();
    let ended = Program::new(
        "-d soft0 --op connect -q 1,16 --traffic-qps 0,2 -s 4K -n 5 --warmup 0.1s --timeout 18 --quiet",
    )
    .run()
    .exits(0);
    check_all(&ended, 4, Some(5));
    let ids: Vec<_> = ended
        .cases()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
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
    let _machine = with_others();
    let server = Server::start("-d soft0");
    let ended = server
        .client("--op connect -q 4096 -s 4K -n 2 --warmup 0 --timeout 18 --quiet")
        .run()
        .exits(0);
    check_all(&ended, 1, Some(2));
    assert!(!server.end().contains("ended early"));
}

#[test]
fn its_results_are_compared_drawn_and_in_the_csv() {
    let _machine = with_others();
    let ended = Program::new(
        "-d soft0 --op write,connect -q 1,4 -s 4K -n 100 --runs 2 --warmup 0.1s --timeout 18 --quiet --csv -",
    )
    .run()
    .exits(0);
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
    std::fs::write(&file, ended.json.to_string()).unwrap();
    let path = file.to_str().unwrap();
    let compared = Program::new(&format!("compare {path} {path} --json -")).run();
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
    Program::new(&format!("plot {path} -o {}", plots.display()))
        .run()
        .exits(0);
    let page = std::fs::read_to_string(plots.join("index.html")).unwrap();
    for words in ["connect-shared-q4-4KiB", "connections/s", "Steps of set-up"] {
        assert!(page.contains(words), "no {words:?}");
    }
    assert!(plots.join("set-up-by-qps.svg").exists());
}

#[test]
fn more_queue_pairs_than_the_device_has_are_refused() {
    let _machine = with_others();
    Program::new("-d soft0 --op connect -q 65000 --traffic-qps 1000 --quiet")
        .run()
        .exits(2)
        .says(&["can do at most", "lower --qps or --traffic-qps"]);
}

fn long(server: &Server) -> Program {
    server.client("--op connect -q 300 -s 4K -D 60 --warmup 0 --timeout 18")
}

#[test]
fn a_servers_death_between_two_queue_pairs_is_noticed() {
    let _machine = with_others();
    let mut server = Server::start("-d soft0");
    let mut client = long(&server);
    let child = client.spawn();
    server.is_in_a_run(0);
    server.kill();
    let killed = Instant::now();
    let (code, said) = said(child);
    // Notice within 2 s, and a try to connect again.
    assert!(killed.elapsed() < Duration::from_secs(4));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("its process ended or died"), "{said}");
    let run = &client.json()["cases"][0]["runs"][0];
    assert_eq!(run["complete"], false);
    assert!(run["connect"]["connections"].as_u64().unwrap() > 0, "{run}");
    assert!(
        run["flows"][0]["totals"]["messages"].as_u64().unwrap() > 0,
        "{run}"
    );
}

#[test]
fn a_client_may_be_interrupted_or_die_between_two_queue_pairs() {
    let _machine = with_others();
    let server = Server::start("-d soft0");
    for (index, how, code) in [(0, Signal::SIGINT, Some(1)), (1, Signal::SIGKILL, None)] {
        let mut client = long(&server);
        let command = client.command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        server.is_in_a_run(2 * index);
        let asked = signal(&child, how);
        let status = child.wait().unwrap();
        assert!(asked.elapsed() < PROMPT, "{how}: {:?}", asked.elapsed());
        assert_eq!(status.code(), code);
        if code.is_some() {
            let run = &client.json()["cases"][0]["runs"][0];
            assert_eq!(run["interrupted"], true);
            assert!(run["connect"]["connections"].as_u64().unwrap() > 0, "{run}");
        }
        if code.is_none() {
            server.has_said("session ended early");
        }
        let next = server.client("--op connect -q 3 -s 4K -n 2 --warmup 0 --timeout 18 --quiet");
        check_all(&next.run().exits(0), 1, Some(2));
    }
}
