//! A result with something in every kind of field, for the tests of this module.

use hdrhistogram::Histogram;
use settings::Settings;

use super::model::*;

/// Two cases: a one-directional SEND and an interrupted bidirectional WRITE.
pub(super) fn result() -> ResultFile {
    ResultFile {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "rocebench".to_owned(),
            version: "0.1.0".to_owned(),
            git: Some("0123456789ab".to_owned()),
        },
        started_at: "2026-11-20T12:00:00Z".to_owned(),
        command_line: vec!["rocebench".to_owned(), "--qps".to_owned(), "2".to_owned()],
        host: Host {
            hostname: "left".to_owned(),
            kernel: "6.1.0".to_owned(),
            cores: 8,
            device: Some(Device {
                name: "mlx5_0".to_owned(),
                library: "libibverbs".to_owned(),
                faults: Some("seed=7,drop=0.05".to_owned()),
                port: 1,
                link_gbit_per_s: Some(100.0),
                ..Device::default()
            }),
            ..Host::default()
        },
        peer: None,
        cases: vec![
            CaseResult {
                id: "send-shared-q2-64KiB".to_owned(),
                config: config(&[("op", "send")]),
                runs: vec![send_run()],
                perftest: Some(perftest()),
            },
            CaseResult {
                id: "write-shared-q2-64KiB".to_owned(),
                config: config(&[
                    ("op", "write"),
                    ("bidirectional", "true"),
                    ("verify", "true"),
                    ("poll", "event"),
                    ("connect", "cm"),
                ]),
                runs: vec![write_run()],
                perftest: None,
            },
        ],
    }
}

fn config(flags: &[(&str, &str)]) -> CaseConfig {
    let mut settings = Settings::from([("qps", "2"), ("signal-every", "4"), ("duration", "2")]);
    for (flag, text) in flags {
        Settings::row(flag)
            .unwrap()
            .read(&mut settings, text)
            .unwrap();
    }
    CaseConfig {
        path_mtu: Some(4096),
        device: Some("mlx5_0".to_owned()),
        ..settings.into()
    }
}

fn direction(messages: [u64; 2]) -> Direction {
    let latency = |factor: u64| {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).ok()?;
        (1..=1000u64).for_each(|i| histogram.saturating_record(i * factor));
        Latency::from_histogram(&histogram, 0)
    };
    let total: u64 = messages.iter().sum();
    let gbit_per_s = |messages: u64| Some((messages * 65536 * 8) as f64 / 2.0 / 1e9);
    let qp = |(index, messages): (u32, u64)| QpResult {
        index,
        qpn: 0x100 + index,
        messages,
        bytes: messages * 65536,
        gbit_per_s: gbit_per_s(messages),
        latency_ns: latency(10 + u64::from(index)),
    };
    Direction {
        window: Window::default(),
        totals: Totals {
            messages: total,
            bytes: total * 65536,
            gbit_per_s: gbit_per_s(total),
            mmsg_per_s: Some(total as f64 / 2.0 / 1e6),
            errors: 0,
        },
        latency_ns: latency(11),
        bandwidth_gbit_per_s: None,
        fairness: Some(Fairness {
            jain: 0.99,
            min_share: 0.9,
            max_share: 1.1,
        }),
        qps: (0..).zip(messages).map(qp).collect(),
        workers: vec![WorkerResult {
            window_seconds: Some(2.0),
            core: Some(3),
            core_shared_with: Some(0),
            messages: total,
            cpu_seconds: Some(1.75),
            polls: 900_000,
            empty_polls: 600_000,
        }],
        limits: Some(Limits {
            link_gbit_per_s: 100.0,
            protocol_efficiency: 0.98,
            share_of_limit: Some(0.951),
        }),
    }
}

fn perftest() -> PerftestComparison {
    PerftestComparison {
        program: "ib_send_bw".to_owned(),
        version: Some("6.06".to_owned()),
        arguments: vec!["-q".to_owned(), "2".to_owned()],
        metric: "gbit_per_s".to_owned(),
        margin: Some(0.03),
        pairs: vec![
            PerftestPair {
                first: "rocebench".to_owned(),
                run: 1,
                rocebench: Some(93.3),
                perftest: Some(91.0),
                ..PerftestPair::default()
            },
            PerftestPair {
                first: "perftest".to_owned(),
                run: 2,
                rocebench: Some(93.1),
                failure: Some("ib_send_bw did not end within 10 s".to_owned()),
                output: Some(" #bytes     #iterations".to_owned()),
                ..PerftestPair::default()
            },
        ],
        rocebench_median: Some(93.3),
        perftest_median: Some(91.0),
        ratio: Some(1.025),
        ratio_low: Some(1.01),
        ratio_high: Some(1.04),
        verdict: "unclear".to_owned(),
        note: Some("1 of 2 pairs counts".to_owned()),
    }
}

fn timeline() -> Timeline {
    Timeline {
        interval_seconds: 0.01,
        at_seconds: vec![0.0101, 0.0203, 0.0301],
        messages: vec![1780, 0, 1790],
        longest_stall_seconds: Some(0.0102),
    }
}

fn send_run() -> Run {
    let mut forward = direction([160_000, 196_000]);
    let rates = (1..=200).map(|index| 90.0 + f64::from(index) * 0.03);
    forward.bandwidth_gbit_per_s = Bandwidth::of_intervals(0.01, rates);
    forward.window = Window {
        seconds: 2.0,
        warmup_seconds: 0.3,
        warmup_steady: Some(true),
        doubts: Vec::new(),
    };
    Run {
        run: 1,
        started_at: "2026-11-20T12:00:01Z".to_owned(),
        complete: true,
        receiver: Some(Receiver {
            messages: forward.totals.messages,
            bytes: forward.totals.bytes,
            window_seconds: None,
            workers: forward.workers.clone(),
        }),
        device_counters: Some(
            [
                ("port_rcv_errors".to_owned(), None),
                ("port_xmit_data".to_owned(), Some(5_900_000_000)),
            ]
            .into(),
        ),
        peer_device_counters: Some([("out_of_buffer".to_owned(), Some(3))].into()),
        timeline: Some(timeline()),
        forward,
        ..Run::default()
    }
}

fn write_run() -> Run {
    let mut forward = direction([100, 50]);
    forward.latency_ns = None;
    forward.limits = None;
    forward.window.seconds = 2.0;
    Run {
        run: 1,
        started_at: "2026-11-20T12:00:05Z".to_owned(),
        interrupted: true,
        failure: Some(Failure {
            message: "stopped by Ctrl-C, \"early\"".to_owned(),
            hint: None,
        }),
        forward,
        reverse: Some(direction([90, 60])),
        path_events: vec![PathEvent {
            end: "server".to_owned(),
            kind: PathEventKind::ReceiverNotReady,
            count: 3,
            counters: vec!["out_of_buffer".to_owned()],
        }],
        ..Run::default()
    }
}

/// Settings and a run of `connect`.
pub(super) fn connect() -> (CaseConfig, Run) {
    let time = |count, mean: f64, p99| Latency {
        count,
        min: 1000,
        mean,
        p99: Some(p99),
        max: p99 + 1000,
        ..Latency::default()
    };
    let step = |step: &str, per: &str, time_ns| ConnectStep {
        step: step.to_owned(),
        per: per.to_owned(),
        time_ns,
    };
    let of_qp = |name, mean: u64, p99: u64| {
        step(
            name,
            "connection",
            time(6400, mean as f64 * 1e3, p99 * 1000),
        )
    };
    let config = config(&[("op", "connect"), ("qps", "16"), ("traffic-qps", "2")]);
    let run = Run {
        connect: Some(Connect {
            rounds: 400,
            connections: 6400,
            seconds: 2.0,
            connections_per_second: Some(3200.0),
            setup_ns: Some(time(400, 3.2e6, 4_100_000)),
            steps: vec![
                of_qp("create", 20, 30),
                of_qp("init", 2, 3),
                step("exchange", "round", time(400, 150e3, 200_000)),
                of_qp("rtr", 4, 5),
                of_qp("rts", 3, 4),
                of_qp("destroy", 25, 40),
            ],
            peer_steps: vec![of_qp("create", 21, 31)],
            traffic_alone_gbit_per_s: Some(9.5),
            stale_rejections: None,
        }),
        receiver: None,
        ..send_run()
    };
    (config, run)
}
