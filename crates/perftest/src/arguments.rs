//! perftest's arguments for a run. Both ends make them from the same job, so that they cannot differ.

use std::time::Duration;

use plan::Case;
use settings::{Access, Ordering, Stop, Warmup};

use super::check::Job;
use super::fits::sleeps;
use super::program::Program;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Verbs name of its device.
    pub device: String,
    pub ib_port: u8,
    /// Index of the GID; `None` on InfiniBand without a GRH.
    pub gid_index: Option<u8>,
    pub pkey_index: u16,
}

/// Seconds of perftest's warm-up before its window, and of the same after it (`-f`).
const MARGIN_SECONDS: u64 = 1;

/// The arguments of either end, but the TCP port and, at the client, the address at which they meet.
pub fn arguments(job: &Job, place: &Place) -> Vec<String> {
    let case = &job.case;
    let mut arguments = Vec::new();
    let mut set = |flag: &str, value: u64| arguments.extend([flag.to_owned(), value.to_string()]);
    set("-i", place.ib_port.into());
    if let Some(index) = place.gid_index {
        set("-x", index.into());
    }
    if !case.op.profile().is_atomic() {
        set("-s", case.size_bytes.into());
    }
    set("-m", job.mtu_bytes.into());
    set("-u", case.timeout.into());
    if case.service_level != 0 {
        set("-S", case.service_level.into());
    }
    if case.op.profile().fetches {
        set("-o", job.outstanding_reads.into());
    } else {
        // perftest's own default differs from device to device.
        let inline = case.size_bytes <= case.inline_bytes;
        set("-I", if inline { case.inline_bytes.into() } else { 0 });
    }
    if case.op.profile().receives {
        set("-r", case.rx_depth.into());
    }
    if !job.program.is_latency() {
        set("-q", case.qps.into());
        set("-t", case.tx_depth.into());
        // Its default depends on the size.
        set("-Q", case.signal_every.into());
        if case.post_list > 1 {
            set("-l", case.post_list.into());
        }
    }
    match job.messages {
        Some(messages) => set("-n", messages),
        None => {
            let (window, margin) = seconds(case);
            set("-D", window + 2 * margin);
            // By default a quarter of -D, rounded down, is cut off at either end.
            set("-f", margin);
        }
    }
    if case.traffic_class != 0 {
        arguments.push(format!("--tclass={}", case.traffic_class));
    }
    if place.pkey_index != 0 {
        arguments.push(format!("--pkey_index={}", place.pkey_index));
    }
    if !job.program.is_latency() {
        if case.ordering == Ordering::Strict {
            arguments.push("--disable_pcie_relaxed".into());
        }
        arguments.push("--report_gbits".into());
        if case.bidirectional {
            arguments.push("-b".into());
        }
        if job.messages.is_some() {
            // Without the peak, for which it would read the clock at every message.
            arguments.push("-N".into());
        }
    }
    if sleeps(case) {
        arguments.push("-e".into());
    }
    if !case.service.is_reliable() {
        arguments.extend(["-c".to_owned(), case.service.name().to_uppercase()]);
    }
    let atomic = match case.op.profile().access {
        Access::Add => Some("FETCH_AND_ADD"),
        Access::Swap => Some("CMP_AND_SWAP"),
        Access::None | Access::Write | Access::Read => None,
    };
    if let Some(atomic) = atomic {
        arguments.extend(["-A".to_owned(), atomic.to_owned()]);
    }
    arguments.extend(["-d".into(), place.device.clone(), "-F".into()]);
    arguments
}

/// perftest's window and its margin on either side of it, in whole seconds. Without a warm-up in the case
/// there is none in perftest.
fn seconds(case: &Case) -> (u64, u64) {
    let window = match case.stop() {
        Stop::DurationNs(ns) => Duration::from_nanos(ns).as_secs_f64().ceil() as u64,
        Stop::MessagesPerQp(_) => 1,
    };
    let margin = match case.warmup {
        Warmup::FixedNs(0) => 0,
        Warmup::FixedNs(_) | Warmup::AutoCapNs(_) => MARGIN_SECONDS,
    };
    (window.max(1), margin)
}

/// How long perftest sends in a run of a case; `None` where it counts messages.
pub fn measuring(case: &Case) -> Option<Duration> {
    if Program::for_case(case).is_latency() || matches!(case.stop(), Stop::MessagesPerQp(_)) {
        return None;
    }
    let (window, margin) = seconds(case);
    Some(Duration::from_secs(window + 2 * margin))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use results::sample::has;
    use settings::{Op, PollMode, Service, Settings, Warmup};

    pub(in super::super) fn case() -> Case {
        Case::new("send-shared-q1-64KiB".into(), Settings::from([]))
    }

    pub(in super::super) fn job(change: impl Fn(&mut Case)) -> Job {
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
        let place =
            Place { device: "mlx5_0".into(), ib_port: 1, gid_index: Some(3), pkey_index: 0 };
        arguments(&job(change), &place).join(" ")
    }

    #[test]
    fn every_setting_is_given_and_none_is_left_to_a_default() {
        let usual = "-i 1 -x 3 -s 65536 -m 4096 -u 14 -I 0 -r 512 -q 1 -t 128 -Q 1 -D 7 -f 1 --report_gbits \
                     -d mlx5_0 -F";
        assert_eq!(line(|_| ()), usual);
        let other = line(|case| {
            (case.op, case.qps, case.size_bytes, case.inline_bytes) =
                (Op::Write.into(), 16, 64, 128);
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
}
