//! Rails that are down are left out, on the machine `mixed`: of its five adapters two can be used.

use node::resources::NodeOptions;
use plan::{Devices, RailsAsked};
use testing::null_library::persona;

use super::networks::{Notes, Serving, options, port_request, sweep_over};

/// The flows of a sweep between two such machines.
fn flows(devices: &str, all_up: bool) -> (Result<Vec<String>, String>, Notes) {
    let (machine, locks) = (persona("mixed"), tempfile::tempdir().unwrap());
    let of = || NodeOptions {
        rails: Some(devices.parse::<Devices>().unwrap()),
        ..options(&machine, port_request(None, None), locks.path())
    };
    let serving = Serving::start(of());
    let rails = RailsAsked { all_up, ..RailsAsked::default() };
    let (result, notes) = sweep_over(serving.target(), of(), rails);
    (
        result.map(|result| {
            let run = &result.cases[0].runs[0];
            assert!(run.complete, "{:?}", run.failure);
            run.flows.iter().map(|flow| flow.name.clone()).collect()
        }),
        notes,
    )
}

#[test]
fn all_are_those_that_can_be_used_and_the_others_are_noted() {
    let both = ["forward@mlx5_1", "forward@mlx5_3"].map(str::to_owned);
    let (names, notes) = flows("all", false);
    assert_eq!(names.unwrap(), both);
    for node in ["", "at the server: "] {
        notes.has_part(&format!("rails left out: {node}"));
    }
    let down = "mlx5_4 port 1 is INIT: no subnet manager, such as opensm, has set it up";
    for why in ["mlx5_0", "mlx5_2 has only a link-local address", down] {
        notes.has_part(why);
    }
    let (taken, reasons) = flows("mlx5_[0-1],mlx5_[3-4]", false);
    assert_eq!(taken.unwrap(), both);
    reasons.has_part(down);
}

#[test]
fn a_rail_that_is_down_refuses_the_run_where_all_are_to_be_up() {
    let (refused, _) = flows("mlx5_1,mlx5_4", true);
    let refused = refused.unwrap_err();
    let reason = "--rails-up all: mlx5_4 port 1 is INIT";
    assert!(refused.starts_with(reason), "{refused}");
    assert!(flows("mlx5_1,mlx5_3", true).0.is_ok());
}
