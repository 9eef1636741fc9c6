//! `mesh --quick`: pairs in short rounds, and what looks slow measured again.

use serde_json::Value;
use testing::server::{Server, call};

/// What a mesh of servers with these faults says, and the names of the servers.
fn said_of(faults: &[&str]) -> (Vec<Value>, Vec<String>) {
    let server = |faults: &&str| Server::embedded(&format!("-d soft0 --faults {faults}"));
    let servers: Vec<Server> = faults.iter().map(server).collect();
    let names: Vec<String> = servers.iter().map(|it| it.name.clone()).collect();
    let ended = call(&format!(
        "mesh --quick --nodes {} --timeout 18 --op write -s 512 -q 1 -t 4 --poll event -D 400ms --warmup 50ms",
        names.join(",")
    ))
    .passes();
    let rounds = 2 * (faults.len() - 1);
    assert!((rounds..=rounds + 16).contains(&ended.cases().len()));
    (ended.json()["findings"].as_array().unwrap().clone(), names)
}

/// Devices are as slow as they are told to be, however busy the machine is.
#[test]
fn the_slow_node_of_six_is_named() {
    let [fast, slow] = ["rate=8M", "rate=2M"];
    let (found, names) = said_of(&[fast, fast, slow, fast, fast, fast]);
    let is_it = |it: &Value| {
        (&it["finding"], &it["part"], &it["nodes"][0])
            == (&"slow".into(), &"sends".into(), &names[2].as_str().into())
    };
    assert!(found.iter().any(is_it), "{found:?}");
}

#[test]
fn rounds_over_two_rails_have_flows_over_both() {
    let words = "mesh --quick --nodes local:3 -d soft[0-1] --timeout 18 --op write -s 512 -q 1 -t 4 --workers 2 -n 99 --warmup 0";
    let ended = call(words).passes();
    let runs = ended.runs();
    assert!(runs.len() >= 6 && runs.iter().all(|run| run.flows.len() == 2));
}

#[test]
fn the_node_that_loses_packets_is_named_by_them() {
    let (found, names) = said_of(&["rate=8M", "rate=8M,drop=4%", "rate=8M", "rate=8M"]);
    let is_it = |it: &Value| {
        it["finding"] == "lossy"
            && it["nodes"]
                .as_array()
                .unwrap()
                .contains(&names[1].as_str().into())
    };
    assert!(found.iter().any(is_it), "{found:?}");
}
