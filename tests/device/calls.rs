//! Extended calls and working sets as far as Soft-RoCE and its library have them, and one sentence for what they lack.

use testing::check;
use testing::server::Server;

const SHORT: &str = "-q 3 -n 21 --verify --warmup 0 -t 8 -r 64";

fn words(text: &str) -> Vec<&str> {
    text.split(' ').chain(SHORT.split(' ')).collect()
}

#[test]
fn operations_posted_and_polled_by_extended_calls() {
    let server = Server::start();
    for (text, cases) in [
        (
            "--op send,write,read,write-imm,fetch-add,compare-swap --post legacy,extended --poll-api legacy,extended -s 64",
            24,
        ),
        (
            "--service uc,ud --op send --post extended --poll-api extended -s 2K",
            2,
        ),
        (
            "--op send --recv-queue shared --post extended --poll-api extended -s 3000",
            1,
        ),
        ("--op write --inline 64 --post extended -s 64", 1),
    ] {
        let ended = server.sweep(&words(text)).exits(0);
        assert_eq!(check::complete(&ended).cases.len(), cases, "{text}");
    }
    server.end();
}

#[test]
fn a_working_set_in_either_order() {
    let server = Server::start();
    let text = "--op send,write,read --memory 1M --touch-order sequential,random -s 4K";
    let ended = server.sweep(&words(text)).exits(0);
    assert_eq!(check::complete(&ended).cases.len(), 6);
    server.end();
}

#[test]
fn what_the_device_lacks_is_refused_before_the_run() {
    let server = Server::start();
    for (text, lacks, instead) in [
        (
            "--post extended --sges 2",
            "no extended posting of several elements",
            "--post legacy",
        ),
        (
            "--timestamps device --poll-api extended",
            "no time stamps",
            "--timestamps cpu",
        ),
        (
            "--domains thread",
            "no single-threaded CQs",
            "--domains usual",
        ),
        (
            "--rate 10Mb --pace device",
            "no rate limit",
            "--pace worker",
        ),
    ] {
        let ended = server.sweep(&words(text)).exits(2);
        ended.says(&[lacks, instead, "hint:"]);
    }
    server.end();
}
