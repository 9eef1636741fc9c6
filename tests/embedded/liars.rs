//! Nodes whose reports cannot be right: a man in the middle changes the report of a sound server. The run fails with the
//! node's name and what contradicts what, and the server serves the next client.

use std::collections::BTreeMap;

use results::sample::{rows, with};
use serde_json::Value;
use testing::program::{Server, call};
use testing::sessions::{Deed, Proxy, Sender, Step};

/// What a server sends to a client of 2 QPs with messages of 64 bytes, 100 on each: flags, what is changed in its report,
/// words of the failure. With `-b` it sends too.
const LIES: &str = "
-b | ends/0/sent/totals/messages=2000 | messages: 2000, and its QPs have 200
-b | ends/0/sent/totals/bytes=128000 | bytes: 128000, and its QPs have 12800
-b | ends/0/sent/totals/gbit_per_s=1e6 | its throughput (Gb/s): 1000000, and its other figures give
-b | ends/0/sent/totals/mmsg_per_s=null | its rate (Mmsg/s): none, and its other figures give
-b | ends/0/sent/window/seconds=1e-9 | its throughput (Gb/s):
-b | ends/0/sent/qps/1/messages=1000 | QP 1 completed 1000 messages of 100 posted
-b | ends/0/sent/qps/1/bytes=64000 | it moved 64000 bytes in 100 messages of 64B
-b | ends/0/sent/qps/1/gbit_per_s=1e6 | the throughput of QP 1 (Gb/s): 1000000, and
-b | ends/0/sent/qps/1/index=0 | the index of a QP: 0, and its place is 1
-b | ends/0/sent/qps/0/messages=99; ends/0/sent/qps/0/bytes=6336; ends/0/sent/totals/messages=199; ends/0/sent/totals/bytes=12736 | messages: 199, and -n makes 200
-b | ends/0/sent/qps/0/messages=99; ends/0/sent/qps/0/bytes=6336; ends/0/sent/qps/1/messages=101; ends/0/sent/qps/1/bytes=6464; ends/0/posted_in_all=[100,101] | messages of QP 0: 99, and -n is 100
-b | ends/0/sent/latency_ns/p50=5 | p50 of latency is 5, and its histogram has
-b | ends/0/sent/latency_ns/p50=null | p50 of latency is none, and its histogram has
-b | ends/0/sent/latency_ns/count=20 | samples of latency: 20, and its histogram has 200
-b | ends/0/sent/latency_ns/mean=1.5 | the mean of latency (ns): 1.5, and
-b | +ends/0/sent/latency_ns/overflows=201 | overflows of latency: 1, and
-b | ends/0/sent/latency_ns/histogram=x | latency: the histogram is not base64
-b | ends/0/sent/qps/0/latency_ns/max=1 | max of a time of QP 0: 1, and its histogram has
-b | ends/0/sent/qps/0/latency_ns=null | latencies: 200, and its QPs have 100
-b | ends/0/sent/fairness/jain=0.5 | Jain's index: 0.5, and its other figures give 1
-b | ends/0/sent/fairness=null | Jain's index: none, and its other figures give 1
-b | ends/0/sent/timeline/at_seconds=[] | its time line has 0 times in disorder or not for its
-b | ends/0/sent/timeline/at_seconds=[9.0]; ends/0/sent/timeline/messages=[200] | its time line ends at 9 s of
-b | ends/0/sent/timeline/at_seconds=[0.0]; ends/0/sent/timeline/messages=[7] | messages of its time line: 7, and there are 200
-b | ends/0/sent/bandwidth_gbit_per_s/max=1e6 | a figure of its bandwidth: 1000000, and
-b | ends/0/sent/bandwidth_gbit_per_s/count=9 | intervals of its bandwidth: 9, and its time line has
-b | ends/0/sent/load=null; ends/0/sent/limits={\"link_gbit_per_s\":0.0,\"protocol_efficiency\":0.9,\"share_of_limit\":null} | its link has 0 Gb/s
-b | ends/0/sent=null | it tells of sending where it does not, or does not where it does
-b | ends/0/qps=4294967295 | QPs: 4294967295, and the case has 2
-b | ends/0/qps=1 | QPs: 1, and the case has 2
-b | ends/0/posted_in_all=[100] | QPs with posted messages: 1, and the case has 2
-b | ends/0/posted_in_all=[100,101] | QP 1 sent 101 messages and its peer received 100
-b | ends/0/mtu_bytes=512 | the path MTU: 4096, and the other end has 512
-b | workers=[] | messages of its workers: 0, and its flows have 200
-b | workers/0/messages=2000 | messages of its workers: 2000, and its flows have 200
-b | workers/0/polls=0; workers/0/empty_polls=1 | a worker's polls are 0, of which 1 empty
-b --mtu 1024 | ends/0/mtu_bytes=512 | the path MTU: 512, and --mtu is 1024
-b --no-latency | ends/0/sent/latency_ns={\"count\":0,\"min\":0,\"mean\":0,\"stddev\":0,\"max\":0,\"overflows\":0} | latency: the result has no histogram
-b --op compare-swap -s 8 | ends/0/sent/swaps_made=7777 | exchanges: 7777, and its QPs have
-b -n - -D 500ms | ends/0/sent/window/seconds=0.01; ends/0/doubts=[] | its window has 0.01 s instead of 0.5 s, and it says nothing of it
-b -n - -D 500ms --rate 200 --op write | ends/0/sent/load/offered=1000 | 1000 messages were offered, and --rate makes about 100
-b -n - -D 500ms --rate 200 --op write | ends/0/sent/load/never_sent=1000 | it has 1000 messages never sent of
-b -n - -D 500ms --rate 200 --op write | ends/0/sent/load/asked_per_second=2000.0 | its load (messages/s): 2000, and
-b -n - -D 500ms --rate 200 --op write | ends/0/sent/load/achieved_per_second=5.0 | messages/s achieved: 5, and
-b -n - -D 500ms --rate 200 --op write | ends/0/sent/load=null | it tells of no load, and the case has one
- | ends=[] | it tells of flows that are not its own
- | ends=twice | it tells of flows that are not its own
- | ends/0/flow=1 | it tells of flows that are not its own
- | ends/0/side=initiator | it tells of flows that are not its own
- | ends/0/received_in_all=[] | QPs with received messages: 0, and the case has 2
- | ends/0/received_in_all=[200] | QPs with received messages: 1, and the case has 2
- | ends/0/received_in_all=[100,100,0] | QPs with received messages: 3, and the case has 2
- | ends/0/received_in_all=[100,101] | QP 1 sent 100 messages and its peer received 101
- | ends/0/received=null | it tells of receives where it has none, or does not where it has
- | ends/0/received/messages=2000 | it received 2000 messages in the window and 200 in all
- | ends/0/received/messages=100; ends/0/received/bytes=6400 | received messages: 100, and -n makes 200
- | ends/0/received/bytes=128000 | it received 128000 bytes in 200 messages of 64B
- | ends/0/received/window_seconds=0.0 | the window of what it received has no length
- | ends/0/receive_queues/receives=7 | receives: 7, and the case has
- | ends/0/receive_queues/queues=7 | receive queues: 7, and the case has 2
- | workers/0/messages=2000 | messages of its workers: 2000, and its flows have 200
- | devices=[] | its device is none, and was soft0
- | devices/0/name=mlx5_0 | its device is mlx5_0, and was soft0
--ping-pong | ends/0/posted_in_all=[100,101] | QP 1 sent 101 messages and its peer received 100
--service uc | ends/0/received_in_all=[500,100] | QP 0 sent 100 messages and the peer received 500
--service ud | ends/0/received_in_all=[500,100] | QP 0 sent 100 messages and the peer received 500
--op connect -n 3 | set_up/steps/0/time_ns/count=77 | samples of
";

/// The words of a client with these flags, instead of the usual ones of the same names; `-n -` leaves that one out.
fn words(flags: &str) -> String {
    let is_given = |name: &str| flags.split(' ').any(|flag| flag == name);
    let usual = [("--op", "send"), ("-s", "64"), ("-n", "100")];
    let rest = usual.into_iter().filter(|(name, _)| !is_given(name));
    let more: String = rest.map(|(name, value)| format!(" {name} {value}")).collect();
    let own = if flags == "-" { "" } else { flags };
    own.replace("-n -", "") + &more
}

/// What makes a lie of a report.
fn lie(change: &'static str) -> Deed {
    Box::new(move |report: &mut Value| {
        if change == "ends=twice" {
            let end = report["ends"][0].clone();
            report["ends"].as_array_mut().unwrap().push(end);
        } else {
            *report = with(report, change);
        }
    })
}

#[test]
fn a_report_that_cannot_be_right_fails_the_run_with_what_contradicts_what() {
    let server = Server::embedded("-d soft0");
    let mut lies: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for [flags, change, reason] in rows(LIES) {
        lies.entry(flags).or_default().push((change, reason));
    }
    let mut wrong = Vec::new();
    for (flags, of_runs) in lies {
        let step = Step::first(Sender::Server, "report");
        let deeds = of_runs.iter().map(|(change, _)| lie(change)).collect();
        let proxy = Proxy::lying("127.0.0.1", server.name.parse().unwrap(), step, deeds);
        let (runs, more) = (of_runs.len(), words(flags));
        let line = format!("{} -d soft0 -q 2 --warmup 0 --runs {runs} {more}", proxy.address);
        let measured = call(&line).fails(&[of_runs[0].1]).runs();
        assert_eq!(measured.len(), runs, "{flags}");
        for (run, (change, reason)) in measured.iter().zip(of_runs) {
            let said = run.failure.as_ref().map_or("", |failure| &failure.message);
            if run.complete || !said.contains(reason) {
                wrong.push(format!("{flags}, {change}: {reason}\n{said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.is_idle();
}

/// A run in doubt is measured again where there are several, up to twice as many in all.
#[test]
fn runs_in_doubt_are_measured_again() {
    const DOUBT: &str = r#"ends/0/doubts=[{"kind":"worker_away","message":""}]"#;
    let server = Server::embedded("-d soft0");
    for (doubtful, runs) in [(1, 3), (4, 4)] {
        let deeds = (0..doubtful).map(|_| lie(DOUBT)).collect();
        let step = Step::first(Sender::Server, "report");
        let proxy = Proxy::lying("127.0.0.1", server.name.parse().unwrap(), step, deeds);
        let line = format!("{} -d soft0 --warmup 0 --runs 2 -n 20 -s 64", proxy.address);
        assert_eq!(call(&line).passes().runs().len(), runs);
    }
    server.is_idle();
}
