//! Extended posting and polling, thread domains and the device's stamps: all arrives whole whichever calls are used, and
//! what does not fit is refused.

use settings::Timestamps;

use crate::whole;
use testing::program::call;

const EXTENDED: &str = "--post extended --poll-api extended";

/// Of services that do not send again what is lost.
#[track_caller]
fn whole_of_any_service(words: &str, cases: usize) {
    call(&format!("-d soft0 --warmup 0 --verify --quiet {words}")).is_whole(cases);
}

#[test]
fn every_operation_of_every_service_goes_by_extended_calls() {
    for (service, ops, cases) in [
        ("rc --timeout 18", "send,write,read,send-imm,write-imm,fetch-add,compare-swap", 14),
        ("uc", "send,write,send-imm,write-imm", 8),
        ("ud", "send,send-imm", 4),
    ] {
        let how = "-q 1,5 -s 600 -n 60 -t 16 -l 4 -Q 4 -b";
        let words = format!("{EXTENDED} --service {service} --op {ops} {how}");
        whole_of_any_service(&words, cases);
    }
}

#[test]
fn inline_data_lists_of_elements_and_srqs_go_by_extended_calls() {
    for (words, cases) in [
        (
            "--op send,send-imm,write-imm --recv-queue shared,per-qp --cq shared,per-worker,per-qp --poll busy,event \
             --workers 2 -q 6 -s 100 -I 128 -n 40 -t 8 -r 24",
            36,
        ),
        ("--op send,write,read --sges 3 -q 3 -s 100,1000 -I 128 -n 40 -t 8", 6),
        ("--op write --spread round-robin -q 4 -s 64 -n 40 -t 8", 1),
    ] {
        whole(&format!("{EXTENDED} {words}"), cases);
    }
    let fan_out = "--service ud --ud-fan-out --op send -q 4 -s 64 -n 40 -t 8";
    whole_of_any_service(&format!("{EXTENDED} {fan_out}"), 1);
}

#[test]
fn each_call_is_chosen_alone_and_workers_have_domains() {
    let each = "--post legacy,extended --poll-api legacy,extended --domains usual,thread --cq per-worker,per-qp";
    let words =
        format!("--op send,read {each} --poll busy,event --workers 2 -q 4 -s 300 -n 30 -t 8");
    whole(&words, 64);
    whole("--op send --domains thread --recv-queue shared -q 3 -s 300 -n 30 -t 8 -b", 1);
}

/// Each message is signalled, so that each completion has a stamp, a latency and a time until it was noticed.
#[test]
fn stamps_of_the_device_part_latency_from_notice() {
    let how = "-q 2 -s 64 -Q 1 -n 100 -t 8 --workers 2 --cq per-worker -b";
    let words = format!("{EXTENDED} --timestamps cpu,device --op send,read {how}");
    let ended = whole(&words, 4);
    for case in ended.result().cases {
        let is_stamped = case.config.timestamps == Timestamps::Device;
        for flow in &case.runs[0].flows {
            let latency = flow.latency_ns.as_ref().unwrap();
            let stamps = flow.notice_ns.as_ref();
            let counts = (latency.count, stamps.map(|it| it.count));
            assert_eq!(counts, (200, is_stamped.then_some(200)), "{}", case.id);
            // Both are parts of the run, and neither is negative or of another clock.
            let window = flow.window.seconds * 1e9;
            let longest = latency.max.max(stamps.map_or(0, |it| it.max)) as f64;
            assert!(longest < window, "{longest} of {window}");
        }
    }
}

#[test]
fn an_open_loop_is_stamped() {
    let ended = call(&format!(
        "-d soft0 --timeout 18 --warmup 0 --quiet {EXTENDED} --timestamps device --op write --rate 2000 -q 2 -s 64 -D 300ms"
    )).passes();
    let flow = ended.runs().remove(0).flows.remove(0);
    let load = flow.load.unwrap();
    let sent = load.offered - load.never_sent;
    let counts = [flow.notice_ns, flow.service_ns].map(|it| it.unwrap().count);
    assert_eq!(counts, [sent; 2]);
}
