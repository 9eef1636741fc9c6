//! Whether perftest can run a case at all, and what must be known beside the figures when it runs it otherwise
//! than rocebench does.

use plan::{Case, Flow};
use settings::{AtomicTarget, ConnectMode, CqMode, Op, PollMode, ROWS, Settings, Spread, Stop};

use super::program::Program;

/// Least messages on a QP that perftest takes.
pub const MIN_MESSAGES: u64 = 5;

/// Most messages on a QP that both generations of perftest take.
const MAX_MESSAGES: u64 = 100_000_000;

/// perftest's largest queue depth, message and number of QPs.
const MAX_DEPTH: u32 = 15_000;
const MAX_SIZE_BYTES: u32 = 1 << 23;
const MAX_QPS: u32 = 16_384;

/// Most bytes inline that both generations take.
const MAX_INLINE_BYTES: u32 = 912;

/// Settings of receive queues and buffers that perftest has in other forms, or not at all.
const ONLY_HERE: [&str; 14] = [
    "recv-queue",
    "sges",
    "mr",
    "pages",
    "alignment",
    "offset",
    "post",
    "poll-api",
    "domains",
    "timestamps",
    "memory",
    "pace",
    // 6.29 has flow labels, 4.5 has not.
    "flow-label",
    "udp-sport",
];

/// perftest's retries and its RNR timer, which no option changes.
const RETRY_CNT: u8 = 7;
const RNR_RETRY: u8 = 7;
const MIN_RNR_TIMER: u8 = 12;

/// A case that perftest cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("perftest cannot run the case {case}: {reason}")]
pub struct Misfit {
    pub case: String,
    pub reason: String,
    pub hint: String,
}

/// Whether perftest can run a case.
pub fn fits(case: &Case) -> Result<(), Misfit> {
    if case.is_set_up() {
        return misfit(
            case,
            "none of its programs measures the set-up of QPs".into(),
            "take connect out of --op",
        );
    }
    if Program::measuring(case).is_none() {
        return misfit(
            case,
            format!("none of its programs measures {}", case.op),
            "compare --op send or write: immediate data is 4 bytes more in the last packet",
        );
    }
    if case.op.profile().is_atomic() && case.atomic_target != AtomicTarget::PerQp {
        return misfit(
            case,
            "its atomic operations act on 8 bytes for each QP".into(),
            "compare with --atomic-target per-qp",
        );
    }
    let usual = Settings::default();
    let mut own = ROWS.iter().filter(|row| ONLY_HERE.contains(&row.flag));
    if let Some(row) = own.find(|row| !row.is_equal(case, &usual)) {
        return misfit(
            case,
            format!("it does not support --{} {}", row.flag, row.text(case)),
            "compare with the default receive queues, SGEs, buffers and calls",
        );
    }
    let [Flow { from: 0, to: 1, from_device: None, to_device: None, .. }] = case.flows.as_slice()
    else {
        return misfit(case,
            "it moves one kind of traffic, from the client to the server, on the devices of --device".into(),
            "compare flow by flow, each with the options of the command line",
        );
    };
    if case.connect == ConnectMode::Cm {
        return misfit(case,
            "with rdma_cm (-R) it takes device, GID, MTU and timeouts from route and kernel, not from the case"
                .into(),
            "compare with --connect tcp: the way of connecting QPs does not change how data moves",
        );
    }
    if case.size_mix.is_some() {
        return misfit(
            case,
            "all its messages have one size".into(),
            "give --size instead of --size-mix in a comparison",
        );
    }
    if case.ping_pong && case.qps > 1 {
        return misfit(case, "its latency programs have one QP".into(), "compare with --qps 1");
    }
    if case.spread != Spread::Own {
        return misfit(
            case,
            "each of its QPs posts its own next message".into(),
            "compare with --spread own",
        );
    }
    if case.ud_fan_out {
        return misfit(
            case,
            "each of its UD QPs sends to one QP".into(),
            "compare without --ud-fan-out",
        );
    }
    if case.verify {
        return misfit(
            case,
            "it does not check payloads, so --verify would slow only rocebench".into(),
            "leave --verify out of a comparison",
        );
    }
    if case.post_list > 1 && !case.post_list.is_multiple_of(case.signal_every) {
        return misfit(
            case,
            format!(
                "its post list ({}) must be a multiple of its CQ moderation ({})",
                case.post_list, case.signal_every
            ),
            "give -Q a divisor of -l",
        );
    }
    for (flag, value, most) in [
        ("-t", case.tx_depth, MAX_DEPTH),
        ("-r", case.rx_depth, MAX_DEPTH),
        ("-s", case.size_bytes, MAX_SIZE_BYTES),
        ("-q", case.qps, MAX_QPS),
        ("-I", case.inline_bytes, MAX_INLINE_BYTES),
    ] {
        if value > most {
            return misfit(
                case,
                format!("{flag} {value} is beyond its limit of {most}"),
                "lower that option",
            );
        }
    }
    if let Stop::MessagesPerQp(messages) = case.stop() {
        if !(MIN_MESSAGES..=MAX_MESSAGES).contains(&messages) {
            return misfit(
                case,
                format!("it takes {MIN_MESSAGES} to {MAX_MESSAGES} messages a QP, not {messages}"),
                "choose another -n, or give -D",
            );
        }
        if !messages.is_multiple_of(case.post_list.into()) {
            return misfit(
                case,
                format!(
                    "its messages ({messages}) must be a multiple of its post list ({})",
                    case.post_list
                ),
                "choose -n a multiple of -l, or give -D",
            );
        }
    }
    Ok(())
}

fn misfit(case: &Case, reason: String, hint: &str) -> Result<(), Misfit> {
    Err(Misfit { case: case.id.clone(), reason, hint: hint.into() })
}

/// Whether perftest sleeps on completion events in this case, which it can for all but WRITE.
pub(super) fn sleeps(case: &Case) -> bool {
    case.poll == PollMode::Event && case.op != Op::Write.into()
}

/// What a reader must know of a comparison besides its figures; `None` when both do the same.
pub fn note(case: &Case) -> Option<String> {
    let mut notes = Vec::new();
    if case.workers > 1 {
        notes.push(format!(
            "rocebench has {} workers at each end, perftest one thread",
            case.workers
        ));
    }
    let several_cqs = match case.cq {
        CqMode::Shared => false,
        CqMode::PerWorker => case.workers > 1 && case.qps > 1,
        CqMode::PerQp => case.qps > 1,
    };
    if several_cqs {
        notes.push("perftest has one CQ for all QPs".into());
    }
    if case.poll != PollMode::Busy && !sleeps(case) {
        notes.push(format!("perftest polls, rocebench's workers have --poll {}", case.poll));
    }
    if (case.retry_cnt, case.rnr_retry, case.min_rnr_timer) != (RETRY_CNT, RNR_RETRY, MIN_RNR_TIMER)
    {
        notes.push(format!(
            "perftest has no options for retries: it takes {RETRY_CNT}, {RNR_RETRY} for RNR, RNR timer {MIN_RNR_TIMER}"
        ));
    }
    let program = Program::for_case(case);
    if program.ordering(case) != case.ordering {
        notes.push(format!(
            "{} always has {} PCIe ordering, rocebench {}",
            program,
            program.ordering(case),
            case.ordering
        ));
    }
    if !case.service.is_reliable() {
        notes.push(format!(
            "over {} both count sent messages; only rocebench's result has the received ones",
            case.service.name().to_uppercase()
        ));
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::arguments::tests::case;
    use super::*;
    use results::sample::has;
    use settings::Service;

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
            let lat =
                |case: &mut Case| (case.ping_pong, case.tx_depth, case.op) = (true, 1, op.into());
            let mut case = case();
            lat(&mut case);
            assert_eq!(note(&case), None);
        }
    }
}
