//! Flows over several devices of a node at once. `soft0` and the numbers after the machine's addresses are on loopback.

use results::model::Run;
use testing::program::{Ended, Server, call};

/// As whole runs of few messages are asked for.
const FEW: &str = "--timeout 18 --warmup 0 -n 40 -s 1000";

/// The names of the flows of the first run.
fn flows(ended: &Ended) -> Vec<String> {
    let run: Run = ended.runs().swap_remove(0);
    run.flows.into_iter().map(|flow| flow.name).collect()
}

#[test]
fn a_flow_goes_over_each_of_four_devices_and_below_them_is_what_they_move_together() {
    let ended = call(&format!("-d soft[0-3] {FEW} -b --workers 4 --verify -q 3")).is_whole(1);
    let rails = (0..4).map(|rail| ["forward", "reverse"].map(|name| format!("{name}@soft{rail}")));
    assert_eq!(flows(&ended), rails.flatten().collect::<Vec<_>>());
    let result = ended.result();
    let config = &result.cases[0].config.flows;
    let devices = config.iter().map(|it| [it.from_device.clone(), it.to_device.clone()]);
    for (device, flow) in devices.zip(config) {
        let rail = flow.name.split_once('@').map(|(_, rail)| rail.to_owned());
        assert_eq!(device, [rail.clone(), rail]);
    }
    assert_eq!(result.nodes[1].devices.len(), 4);
    // Each thread has a rail of its own.
    assert_eq!(result.cases[0].runs[0].nodes[0].workers.len(), 4);
    ended.shows(&["forward@soft3", "forward, 4 rails", "reverse, 4 rails"]);
}

#[test]
fn one_device_of_a_list_is_as_it_was() {
    let ended = call(&format!("-d soft[3-3] {FEW}")).is_whole(1);
    assert_eq!(flows(&ended), ["forward"]);
    assert_eq!(ended.result().nodes[0].devices[0].name, "soft3");
}

/// The other devices are as slow as they are told to be, however busy the machine is.
#[test]
fn the_slow_rail_is_named_and_fails_below() {
    let ended = call(
        "-d soft[0-3] --faults rate=16M;soft2:rate=2M --timeout 18 --poll event -s 512 -t 4 -D 4s --fail-below 60%",
    )
    .fails(&["forward@soft2"]);
    let findings = ended.json()["findings"].as_array().unwrap();
    let slow = findings
        .iter()
        .find(|it| it["id"] == "slow_rail")
        .unwrap_or_else(|| panic!("{findings:?}"));
    let ends = slow["subject"]["rails"].as_array().unwrap().iter();
    assert!(ends.clone().all(|end| end[1] == "soft2"), "{slow}");
    assert_eq!((ends.len(), &slow["data"]["rails"]), (2, &4.into()));
    ended.shows(&["Rail soft2 is slow", "forward, 4 rails"]);
}

#[test]
fn each_rail_goes_to_each_where_that_is_asked_for() {
    let words = format!("-d soft[0-1] --rails all {FEW} --workers 2");
    // Devices of one family of addresses reach each other.
    let ended = call(&words).env("SOFTROCE_ADDRESS", "127.77.2.1").is_whole(1);
    let names = ["soft0", "soft0>soft1", "soft1>soft0", "soft1"];
    assert_eq!(flows(&ended), names.map(|rail| format!("forward@{rail}")));
}

#[test]
fn servers_have_rails_of_their_own() {
    let server = Server::embedded("-d soft[0-1]");
    server.program.has_said("soft0, soft1");
    let ended = call(&format!("{} -d soft[0-1] {FEW}", server.name)).is_whole(1);
    assert_eq!(flows(&ended), ["forward@soft0", "forward@soft1"]);
    server.is_idle();
    call(&format!("{} -d soft0 {FEW}", server.name)).is_refused(&[
        "its own device of client to 2 rails (soft0, soft1) of server",
        "--rails all",
    ]);
    server.is_idle();
    call(&format!("{} -d soft0 --op connect -q 1 -n 1", server.name))
        .is_refused(&["--op connect cannot be used when a node has several rails"]);
}

#[test]
fn nodes_of_a_mesh_have_the_rails_that_are_listed_with_them() {
    let ended = call(&format!(
        "mesh --nodes local:3 -d soft[0-1] {FEW} --pattern ring --workers 2 --poll event"
    ))
    .is_whole(1);
    assert_eq!(flows(&ended).len(), 6);
    let servers = [(); 2].map(|()| Server::embedded("-d soft0"));
    let nodes = servers.each_ref().map(|it| format!("{}/soft[0-1]", it.name));
    let served = call(&format!("--nodes {} --pattern ring {FEW}", nodes.join(","))).is_whole(1);
    let over = flows(&served).into_iter().filter(|name| name.ends_with("@soft1"));
    assert_eq!(over.count(), 2);
}

#[test]
fn lists_that_are_none_say_why() {
    for (words, says) in [
        ("-d soft0,soft[0-1]", "soft0 is listed twice"),
        ("-d soft[0", "does not close"),
        ("-d soft0,mlx5_77", "there is no RDMA device \"mlx5_77\""),
        ("-d soft[0-1] --faults soft2:rate=1G", "--faults names soft2, which is not in --device"),
        ("--faults node7:rate=1G", "--faults names node7, which is no embedded device"),
        ("-d soft[0-1] --slo p99<1ms", "--slo and --knee cannot be used"),
        ("send x 127.0.0.1 -d soft[0-1]", "takes one device"),
    ] {
        call(&format!("{words} --timeout 18")).is_refused(&[says]);
    }
    call("-d soft0,mlx5_77 -n 1").is_refused(&["soft0 (embedded, loopback)"]);
}
