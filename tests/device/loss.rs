//! Lost packets: the transport repeats them, and every byte still arrives once.

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
        "--cq",
        "shared,per-qp",
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
    assert_eq!(result.cases.len(), 12);
    let repeated: u64 = result
        .cases
        .iter()
        .flat_map(|case| &case.runs)
        .filter_map(|run| run.device_counters.as_ref())
        .flat_map(|counters| counters.iter())
        .filter(|(name, _)| name.contains("retry") || name.contains("seq") || name.contains("ack"))
        .map(|(_, count)| count)
        .sum();
    assert!(repeated > 0, "nothing was lost, so nothing was tested");
}
