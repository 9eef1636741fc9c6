//! Runs on adapters that are not whole ones: two functions of a cable, a bond with one QP, RC that becomes MRC on its way, and
//! Thunderbolt.

use node::resources::NodeOptions;
use plan::{Devices, Nodes, RailsAsked, Sweep};
use results::model::{Narrower, ResultFile, Run};
use rocebench::coordinator::interface::SweepOptions;
use settings::Given;
use testing::{null_library::persona, program::bare};

use super::networks::{Notes, Serving, options, port_request, run, swept};

/// A sweep with these settings between two machines with this persona, over these devices if there are several.
fn sweep(
    name: &str,
    devices: &str,
    settings: &[(&str, &str)],
) -> (Result<ResultFile, String>, Notes) {
    let (machine, locks) = (persona(name), tempfile::tempdir().unwrap());
    let request =
        port_request(Some(devices).filter(|it| !it.is_empty() && !it.contains(',')), None);
    let of = || NodeOptions {
        rails: devices.contains(',').then(|| devices.parse::<Devices>().unwrap()),
        ..options(&machine, request.clone(), locks.path())
    };
    let serving = Serving::start(of());
    let short = [("size", "4K"), ("iters", "8"), ("warmup", "0")];
    let given: Given = short.into_iter().chain(settings.iter().copied()).collect();
    run(&SweepOptions {
        sweep: Sweep::new(&given).unwrap(),
        rails: RailsAsked::default(),
        ..swept(serving.target(), of(), Nodes::TwoEnds, Vec::new())
    })
}

fn first_runs(result: &ResultFile) -> impl Iterator<Item = &Run> {
    result.cases.iter().map(|case| &case.runs[0])
}

#[test]
fn one_function_of_a_cable_has_its_pcie_lanes_and_both_are_rails() {
    let (result, notes) = sweep("gb10", "rocep1s0f0", &[("op", "write")]);
    notes.has_part(
        "rocep1s0f0: PCIe 32 GT/s x4 carries 113 of its link's 200 Gb/s: use both functions of its cable as rails, at both \
         ends: -d rocep1s0f0,roceP2p1s0f0",
    );
    let of_one = result.unwrap();
    let limits = first_runs(&of_one).next().unwrap().flows[0].limits.as_ref().unwrap();
    let Narrower { part, payload_gbit_per_s } = limits.narrower.as_ref().unwrap();
    assert_eq!((part.as_str(), payload_gbit_per_s.round()), ("PCIe 32 GT/s x4", 113.0));
    assert_eq!(limits.payload_gbit_per_s(), *payload_gbit_per_s);

    let (both, _) = sweep("gb10", "rocep1s0f0,roceP2p1s0f0", &[("op", "write")]);
    let of_both = both.unwrap();
    let run = first_runs(&of_both).next().unwrap();
    assert!(run.complete, "{:?}", run.failure);
    let names: Vec<&str> = run.flows.iter().map(|flow| &*flow.name).collect();
    assert_eq!(names, ["forward@rocep1s0f0", "forward@roceP2p1s0f0"]);
}

#[test]
fn one_qp_of_a_bond_has_one_member() {
    let (result, notes) = sweep("connectx7_bond", "", &[("op", "write"), ("qps", "1,2")]);
    notes.has_part("bond0 has 2 members of 100 Gb/s, and one QP uses one of them: use more QPs");
    let result = result.unwrap();
    let parts = first_runs(&result).map(|run| {
        let limits = run.flows[0].limits.as_ref().unwrap();
        limits.narrower.as_ref().map(|narrower| &*narrower.part)
    });
    assert_eq!(parts.collect::<Vec<_>>(), [Some("one member of bond0"), None]);
}

#[test]
fn mrc_moves_writes_and_refuses_the_rest_with_what_it_has() {
    let all = [("op", "write,write-imm,send,read")];
    let (result, _) = sweep("connectx8_mrc", "", &all);
    let result = result.unwrap();
    for (case, moves) in result.cases.iter().zip([true, true, false, false]) {
        let run = &case.runs[0];
        assert_eq!(run.complete, moves, "{} {:?}", case.id, run.failure);
        if !moves {
            let hint = run.failure.as_ref().unwrap().hint.as_deref().unwrap();
            assert!(hint.contains("MRC has write and write-imm alone"), "{hint}");
        }
    }
}

#[test]
fn thunderbolt_is_refused_once_and_runs_with_what_it_takes() {
    let (refused, _) = sweep("thunderbolt", "", &[]);
    let message = refused.unwrap_err();
    assert!(message.ends_with("rdma_en2 has no RC QPs"), "{message}");
    let fitting = [
        ("op", "send,write"),
        ("service", "uc"),
        ("tx-depth", "32"),
        ("rx-depth", "32"),
        ("bidirectional", "true"),
        ("verify", "true"),
    ];
    let (result, _) = sweep("thunderbolt", "", &fitting);
    let result = result.unwrap();
    for run in first_runs(&result) {
        assert!(run.complete, "{:?}", run.failure);
    }
    let device = &result.nodes[0].devices[0];
    let facts = (device.link_layer.as_deref(), device.gid_index, device.active_mtu_bytes);
    assert_eq!(facts, (Some("Thunderbolt"), Some(1), Some(1024)));
}

/// Names that the library lacks are those of the system's libibverbs, as with a library that makes MRC of RC.
#[test]
fn the_program_runs_through_a_library_that_is_preloaded_before_libibverbs() {
    let own = std::env::current_exe().unwrap();
    let library = own.with_file_name("libnull_verbs_preload.so");
    let preload = library.to_str().unwrap();
    let call = |op: &str| {
        bare(&format!("-d mlx5_0 --op {op} -s 4K -n 8 --warmup 0"))
            .env("LD_PRELOAD", preload)
            .env("NULL_VERBS_PERSONA", "connectx8_mrc")
    };
    call("write,write-imm").passes();
    call("send").fails(&["ibv_post_send failed", "MRC has write and write-imm alone"]);
}
