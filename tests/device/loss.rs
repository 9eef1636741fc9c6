//! Lost packets: the transport repeats them, and every byte still arrives once.

use results::model::PathEventKind;

use testing::network::Loss;
use testing::program::Server;

use crate::session::whole;

/// The loss is in the result, as what the kernel's counters tell of it.
#[test]
fn one_percent_of_loss_corrupts_nothing() {
    let server = Server::start();
    let loss = Loss::of_both("1%");
    let line = "--op send,write,read -q 2 -s 16K -t 4 -r 8 -n 150 --verify --warmup 0 --timeout 17";
    let result = whole(&server, line, 3);
    drop(loss);
    let lost = result
        .cases
        .iter()
        .flat_map(|case| &case.runs)
        .flat_map(|run| &run.path_events)
        .filter(|event| event.kind != PathEventKind::ReceiverNotReady);
    assert!(lost.count() > 0, "nothing was lost, so nothing was tested");
}

/// Messages of which a packet is lost are counted, and what arrives is right. Over UC only sends: after a lost packet of a
/// WRITE the driver takes no more WRITEs (docs/dev/lab.md).
#[test]
fn unreliable_services_count_what_is_lost() {
    let server = Server::start();
    for (what, cases) in [
        ("--service uc --op send,send-imm -s 16K -m 1024 -n 40", 2),
        ("--service ud --op send -s 2K -n 300", 1),
    ] {
        let loss = Loss::of_both("5%");
        let line = format!("{what} -q 2 -t 8 -r 64 --verify --warmup 0");
        let result = whole(&server, &line, cases);
        drop(loss);
        for case in result.cases {
            let delivery = case.runs[0].flows[0].delivery.as_ref();
            let lost = delivery.map(|it| it.lost);
            assert!(lost > Some(0), "{}: {delivery:?}", case.id);
        }
    }
    server.end();
}
