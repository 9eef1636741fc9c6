//! Lost packets: the transport repeats them, and every byte still arrives once.

use report::results::model::PathEventKind;

use crate::lab::check;
use crate::lab::netem::Loss;
use crate::lab::server::Server;

#[test]
fn one_percent_of_loss_corrupts_nothing() {
    let server = Server::start();
    let loss = [Loss::of_all("v0", "1%"), Loss::of_all("v1", "1%")];
    let ended = server.sweep(&[
        "--op",
        "send,write,read",
        "-q",
        "2",
        "-s",
        "64,16K",
        "-t",
        "8",
        "-r",
        "16",
        "-n",
        "150",
        "--verify",
        "--warmup",
        "0",
        "--timeout",
        "12",
    ]);
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
