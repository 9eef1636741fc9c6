//! Extended calls as far as Soft-RoCE and its library have them, and one sentence for what they lack.

use testing::program::Server;

use crate::session::whole;

#[test]
fn operations_posted_and_polled_by_extended_calls() {
    let server = Server::start();
    for (line, cases) in [
        (
            "--op send,write,read,write-imm,fetch-add,compare-swap --post extended --poll-api extended -s 64",
            6,
        ),
        ("--service uc,ud --op send --post extended --poll-api extended -s 2K", 2),
        ("--op send --recv-queue shared --poll-api extended -s 3000", 1),
        ("--op write --inline 64 --post extended -s 64", 1),
    ] {
        let line = format!("{line} -q 3 -n 21 --verify --warmup 0 -t 8 -r 64");
        whole(&server, &line, cases);
    }
    server.end();
}

#[test]
fn what_the_device_lacks_is_refused_before_the_run() {
    let server = Server::start();
    for (line, lacks, instead) in [
        (
            "--post extended --sges 2",
            "no correct extended posting of several elements",
            "--post legacy",
        ),
        ("--timestamps device --poll-api extended", "no time stamps", "--timestamps cpu"),
        ("--domains thread", "no single-threaded CQs", "--domains usual"),
        ("--rate 10Mb --pace device", "no rate limit", "--pace worker"),
    ] {
        let call = server.call(&format!("{line} -s 64 -n 21 --warmup 0"));
        call.is_refused(&[lacks, instead, "hint:"]);
    }
    server.end();
}
