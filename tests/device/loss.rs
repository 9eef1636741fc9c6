//! Lost packets: the transport repeats them, and every byte still arrives once.

use report::results::model::PathEventKind;

use testing::check;
use testing::netem::Loss;
use testing::program::words;
use testing::server::Server;

#[test]
fn one_percent_of_loss_corrupts_nothing() {
    let server = Server::start();
    let loss = [Loss::of_all("v0", "1%"), Loss::of_all("v1", "1%")];
    let ended = server.sweep(&words(
        "--op send,write,read -q 2 -s 64,16K -t 8 -r 16 -n 150 --verify --warmup 0 --timeout 12",
    ));
    drop(loss);
    let result = check::complete(&ended.exits(0));
    assert_eq!(result.cases.len(), 6);
    let lost = result
        .cases
        .iter()
        .flat_map(|case| &case.runs)
        .flat_map(|run| &run.path_events)
        .filter(|event| event.kind != PathEventKind::ReceiverNotReady)
        .count();
    assert!(lost > 0, "nothing was lost, so nothing was tested");
}

/// Messages of which a packet is lost are counted, and what arrives is right. Over UC only sends: after a lost packet of a
/// WRITE the driver takes no more WRITEs (docs/lab.md).
#[test]
fn unreliable_services_count_what_is_lost() {
    let server = Server::start();
    for what in [
        "--service uc --op send,send-imm -s 16K -m 1024 -n 40",
        "--service ud --op send -s 2K -n 300",
    ] {
        let loss = [Loss::of_all("v0", "5%"), Loss::of_all("v1", "5%")];
        let all = format!("{what} -q 2 -t 8 -r 64 --verify --warmup 0");
        let ended = server.sweep(&words(&all));
        drop(loss);
        for case in check::complete(&ended.exits(0)).cases {
            let delivery = case.runs[0].flows[0].delivery.as_ref();
            let lost = delivery.map(|it| it.lost);
            assert!(lost > Some(0), "{}: {delivery:?}", case.id);
        }
    }
    server.end();
}
