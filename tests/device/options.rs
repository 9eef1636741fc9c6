//! Each option does what it says, alone and with others.

use settings::Spread;

use testing::check;
use testing::program::words;
use testing::server::Server;
use testing::short::{result, run};

#[test]
fn path_mtus() {
    let server = Server::start();
    let result = result(&server, &words("-m 256,512,1024,2048,4096 -s 8K --verify"));
    let mtus: Vec<_> = result
        .cases
        .iter()
        .map(|case| case.config.flows[0].path_mtu)
        .collect();
    assert_eq!(
        mtus,
        [Some(256), Some(512), Some(1024), Some(2048), Some(4096)]
    );
    let efficiency = |case: usize| {
        let limits = &result.cases[case].runs[0].flows[0].limits;
        limits.as_ref().unwrap().protocol_efficiency
    };
    assert!(
        efficiency(0) < efficiency(4),
        "headers weigh more in small packets"
    );
}

#[test]
fn batches_and_moderation() {
    let server = Server::start();
    let lists = words("-t 32 -r 64 --op send,write,read --verify");
    for (signal_every, post_lists) in [("1", "1,8"), ("8", "1,32"), ("7", "3")] {
        let more = [&lists[..], &["-Q", signal_every, "-l", post_lists]].concat();
        let result = result(&server, &more);
        assert_eq!(result.cases.len(), 3 * post_lists.split(',').count());
        for case in &result.cases {
            assert_eq!(case.config.signal_every.to_string(), signal_every);
        }
    }
}

#[test]
fn inline_messages() {
    let server = Server::start();
    let more = words("-I 64 --op send,write -s 1,64 --verify -t 16");
    for case in result(&server, &more).cases {
        assert_eq!(case.config.inline_bytes, 64);
    }
}

#[test]
fn depths_of_one() {
    let server = Server::start();
    let more = words("-t 1 -r 1 -q 1,3 --op send,write,read --verify");
    assert_eq!(result(&server, &more).cases.len(), 6);
}

#[test]
fn workers_and_cores() {
    let server = Server::start();
    let run = run(&server, &["-q", "4", "--workers", "2", "--cores", "1,0"]);
    let cores: Vec<_> = run.nodes[0]
        .workers
        .iter()
        .map(|worker| worker.core)
        .collect();
    assert_eq!(cores, [Some(1), Some(0)]);
    server
        .sweep(&["--cores", "77", "-n", "1"])
        .exits(2)
        .says(&["77", "--cores"]);
}

#[test]
fn a_cq_just_deep_enough() {
    let server = Server::start();
    // 8 completions of sends can be outstanding, and 8 receives at the other end.
    let more = words("--cq-depth 8 -t 8 -Q 1 -r 8 --op send,write,read --verify");
    assert_eq!(result(&server, &more).cases[0].config.cq_depth, Some(8));
}

#[test]
fn device_port_and_gid() {
    let server = Server::start();
    let result = result(&server, &["-i", "1", "-x", "1"]);
    let gid = result.nodes[0].devices[0].gid.clone().unwrap();
    assert!(
        gid.ends_with("192.0.2.1") || gid.ends_with("c000:0201"),
        "{gid}"
    );
    let peer = &result.nodes[1].devices[0];
    assert_eq!(peer.name, "rxe1");
}

#[test]
fn ipv6_end_to_end() {
    let server = Server::on("2001:db8::2", "rxe1", &[]);
    let result = result(&server, &["--verify", "--op", "send,write,read"]);
    let gid = result.nodes[0].devices[0].gid.clone().unwrap();
    assert!(
        gid.starts_with("2001:"),
        "the GID has the family of the control connection: {gid}"
    );
}

#[test]
fn transport_settings() {
    let server = Server::start();
    let settings = words(
        "--timeout 16 --retry-cnt 3 --rnr-retry 6 --min-rnr-timer 1 --service-level 3 --traffic-class 106 \
         --max-rd-atomic 1 --op read,send",
    );
    let config = result(&server, &settings).cases.remove(0).config;
    assert_eq!(
        (
            config.timeout,
            config.retry_cnt,
            config.rnr_retry,
            config.min_rnr_timer
        ),
        (16, 3, 6, 1)
    );
    assert_eq!(
        (
            config.service_level,
            config.traffic_class,
            config.max_rd_atomic
        ),
        (3, 106, Some(1))
    );
}

#[test]
fn sizes_by_weight() {
    let server = Server::start();
    let all =
        words("--op send,write,read --size-mix 64:9,64K:1 -q 5 -t 8 -n 80 --warmup 0 --verify");
    let result = check::complete(&server.sweep(&all).exits(0));
    assert_eq!(result.cases.len(), 3);
    for case in &result.cases {
        // Five rings of 8 WRs are dealt four rounds of ten, and each WR is posted ten times.
        let bytes = case.runs[0].flows[0].totals.bytes;
        assert_eq!(bytes, 40 * (9 * 64 + 65_536), "{}", case.id);
    }
}

#[test]
fn spreading_over_qps() {
    let server = Server::start();
    let spread = "--spread round-robin,least-loaded,hash -q 6 -t 4 -Q 1 --outstanding 5";
    let all = format!("--op send,write {spread} --verify");
    let result = result(&server, &words(&all));
    assert_eq!(result.cases.len(), 6);
    for case in &result.cases {
        let run = &case.runs[0];
        let (forward, workers) = (&run.flows[0], &run.nodes[0].workers);
        match case.config.spread {
            Spread::RoundRobin => assert!(forward.qps.iter().all(|qp| qp.messages == 40)),
            Spread::LeastLoaded => {
                assert!(workers.iter().all(|worker| worker.blocked == 0));
            }
            _ => assert!(forward.qps.iter().any(|qp| qp.messages != 40)),
        }
    }
    let weighted = run(
        &server,
        &words("--spread round-robin --qp-weights 1:80,4:20 -q 5 -Q 1"),
    );
    let messages: Vec<u64> = weighted.flows[0].qps.iter().map(|qp| qp.messages).collect();
    assert_eq!(messages, [160, 10, 10, 10, 10]);
}
