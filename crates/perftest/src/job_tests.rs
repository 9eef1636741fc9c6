use results::sample::has;
use serde_json::{Value, json};
use settings::Service;

use super::*;

fn case() -> Case {
    Case::new("send-shared-q1-64KiB".into(), Settings::from([]))
}

fn job(change: impl Fn(&mut Case)) -> Job {
    let mut case = case();
    change(&mut case);
    Job {
        program: Program::for_case(&case),
        messages: match case.stop() {
            Stop::MessagesPerQp(messages) => Some(messages),
            Stop::DurationNs(_) => None,
        },
        case,
        mtu_bytes: 4096,
        outstanding_reads: 16,
        limit_ms: 20_000,
    }
}

fn line(change: impl Fn(&mut Case)) -> String {
    let place = Place { device: "mlx5_0".into(), ib_port: 1, gid_index: Some(3), pkey_index: 0 };
    arguments(&job(change), &place).join(" ")
}

#[test]
fn every_setting_is_given_and_none_is_left_to_a_default() {
    let usual = "-i 1 -x 3 -s 65536 -m 4096 -u 14 -I 0 -r 512 -q 1 -t 128 -Q 1 -D 7 -f 1 --report_gbits \
                 -d mlx5_0 -F";
    assert_eq!(line(|_| ()), usual);
    let other = line(|case| {
        (case.op, case.qps, case.size_bytes, case.inline_bytes) = (Op::Write.into(), 16, 64, 128);
        (case.post_list, case.signal_every, case.bidirectional) = (32, 16, true);
        (case.service_level, case.traffic_class) = (3, 104);
        case.ordering = Ordering::Strict;
        case.set_stop(Stop::MessagesPerQp(640));
        case.warmup = Warmup::FixedNs(0);
    });
    let expected = "-i 1 -x 3 -s 64 -m 4096 -u 14 -S 3 -I 128 -q 16 -t 128 -Q 16 -l 32 -n 640 --tclass=104 \
                    --disable_pcie_relaxed --report_gbits -b -N -d mlx5_0 -F";
    assert_eq!(other, expected);
}

#[test]
fn each_operation_has_the_options_that_its_program_takes() {
    assert!(line(|case| case.poll = PollMode::Event).ends_with(" -e -d mlx5_0 -F"));
    let write = line(|case| (case.poll, case.op) = (PollMode::Event, Op::Write.into()));
    assert!(!write.contains(" -e "), "{write}");
    let read = line(|case| case.op = Op::Read.into());
    has(&read, [" -o 16 "]);
    assert!(!read.contains("-I") && !read.contains("-r "), "{read}");
    let atomic = Settings::from([("op", "compare-swap"), ("tx-depth", "16")]);
    let atomic = line(|case| *case = Case::new("".into(), atomic.clone()));
    for absent in ["-s ", "-I "] {
        assert!(!atomic.contains(absent), "{atomic}");
    }
    has(atomic, ["-o 16", "-A CMP_AND_SWAP"]);
    for (service, words) in [(Service::Uc, " -c UC "), (Service::Ud, " -c UD ")] {
        let line = line(|case| (case.service, case.size_bytes) = (service, 1024));
        has(line, [words]);
    }
    let latency = line(|case| (case.op, case.ping_pong) = (Op::Write.into(), true));
    for absent in ["-q", "-t", "-Q", "-l", "-r ", "--report_gbits"] {
        assert!(!latency.contains(absent), "{absent} in {latency}");
    }
}

#[test]
fn windows_are_whole_seconds_and_warm_up_as_the_case_does() {
    for (window_ms, warmup, expected_words) in [
        (300, Warmup::FixedNs(0), "-D 1 -f 0"),
        (1_000, Warmup::FixedNs(1), "-D 3 -f 1"),
        (2_500, Warmup::AutoCapNs(1), "-D 5 -f 1"),
    ] {
        let line = line(|case| {
            case.set_stop(Stop::DurationNs(window_ms * 1_000_000));
            case.warmup = warmup;
        });
        has(line, [expected_words]);
    }
    let mut case = case();
    assert_eq!(measuring(&case), Some(Duration::from_secs(7)));
    case.set_stop(Stop::MessagesPerQp(9));
    assert_eq!(measuring(&case), None);
}

#[test]
fn a_job_of_ours_is_done() {
    assert_eq!(job(|_| ()).check(), Ok(()));
    assert_eq!(job(|case| case.tx_depth = 1).check(), Ok(()));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let refused = |change: fn(&mut Job), words| {
        let mut job = job(|_| ());
        change(&mut job);
        has(job.check().unwrap_err().reason, [words]);
    };
    refused(|job| job.case.qps = 0, "--qps");
    refused(|job| job.case.verify = true, "--verify");
    refused(|job| job.case.op = Op::Read.into(), "ib_send_bw");
    refused(|job| job.program = Program::IbReadLat, "ib_read_lat");
    refused(|job| job.mtu_bytes = 9000, "9000");
    refused(|job| job.outstanding_reads = 0, "READ");
    refused(|job| job.messages = Some(0), "0 messages");
    refused(|job| job.messages = Some(u64::MAX), "messages");
    refused(|job| job.limit_ms = 0, "limit");
    refused(|job| job.limit_ms = u64::MAX, "limit");
}

#[test]
fn text_is_never_taken_for_a_program_or_a_number() {
    let sound = serde_json::to_value(job(|_| ())).unwrap();
    assert!(serde_json::from_value::<Job>(sound.clone()).is_ok());
    let damages: [fn(&mut Value); 6] = [
        |job| job["program"] = json!("/bin/sh"),
        |job| job["program"] = json!("ib_send_bw; reboot"),
        |job| job["program"] = json!("../ib_send_bw"),
        |job| job["case"]["size_bytes"] = json!("64 --out_json_file=/etc/passwd"),
        |job| job["mtu_bytes"] = json!("-R"),
        |job| job["messages"] = json!("5 --run_infinitely"),
    ];
    for damage in damages {
        let mut damaged = sound.clone();
        damage(&mut damaged);
        let read = serde_json::from_value::<Job>(damaged.clone());
        assert!(read.is_err(), "{damaged}");
    }
}

fn refused(change: impl Fn(&mut Case), words: &str) {
    let mut case = case();
    change(&mut case);
    has(fits(&case).unwrap_err().to_string(), [words]);
}

#[test]
fn what_perftest_cannot_do_is_refused_with_the_reason() {
    assert_eq!(fits(&case()), Ok(()));
    refused(|case| case.verify = true, "--verify");
    refused(|case| case.op = Op::SendImm.into(), "measures send-imm");
    refused(
        |case: &mut Case| {
            (case.op, case.atomic_target) = (Op::FetchAdd.into(), AtomicTarget::Shared);
        },
        "8 bytes for each QP",
    );
    refused(|case| case.size_mix = "64:1,1K:1".parse().ok(), "one size");
    refused(|case| case.spread = Spread::Hash, "its own next");
    refused(|case| (case.ping_pong, case.qps) = (true, 2), "one QP");
    refused(|case| case.flows[0].to = 2, "one kind of traffic");
    refused(|case| case.flows.push(case.flows[0].clone()), "one kind");
    refused(|case| case.connect = ConnectMode::Cm, "rdma_cm (-R)");
    refused(|case: &mut Case| (case.post_list, case.signal_every) = (4, 8), "multiple");
    for (flag, value) in [
        ("recv-queue", "shared"),
        ("sges", "2"),
        ("offset", "8B"),
        ("post", "extended"),
        ("memory", "2GiB"),
    ] {
        let row = Settings::row(flag).unwrap();
        let why = format!("it does not support --{flag} {value}");
        refused(|case| row.read(case, value).unwrap(), &why);
    }
    refused(|case| case.tx_depth = 20_000, "-t 20000");
    refused(|case| case.size_bytes = 1 << 24, "-s 16777216 is beyond");
    refused(|case| case.set_stop(Stop::MessagesPerQp(4)), "takes 5 to");
    refused(
        |case: &mut Case| {
            (case.post_list, case.signal_every) = (4, 2);
            case.set_stop(Stop::MessagesPerQp(6));
        },
        "messages (6)",
    );
}

#[test]
fn what_perftest_does_otherwise_is_noted() {
    assert_eq!(note(&case()), None);
    let noted = |change: fn(&mut Case)| {
        let mut case = case();
        change(&mut case);
        note(&case).unwrap_or_default()
    };
    assert!(noted(|case| case.workers = 2).contains("2 workers"));
    assert_eq!(noted(|case| case.cq = CqMode::PerWorker), "");
    let per_qp = noted(|case| (case.cq, case.qps) = (CqMode::PerQp, 4));
    assert_eq!(per_qp, "perftest has one CQ for all QPs");
    let slept = noted(|case| (case.poll, case.op) = (PollMode::Event, Op::Write.into()));
    let polls = "perftest polls, rocebench's workers have --poll event";
    assert_eq!(slept, polls);
    let both = noted(|case| (case.poll, case.op) = (PollMode::Event, Op::Send.into()));
    assert_eq!(both, "");
    assert!(noted(|case| case.retry_cnt = 3).contains("retries"));
    assert!(noted(|case| case.service = Service::Uc).contains("over UC both count"));
    for op in [Op::Send, Op::Read] {
        let lat = |case: &mut Case| (case.ping_pong, case.tx_depth, case.op) = (true, 1, op.into());
        let mut case = case();
        lat(&mut case);
        assert_eq!(note(&case), None);
    }
}
