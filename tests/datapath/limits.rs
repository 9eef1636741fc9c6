//! What a device cannot do comes back as a sentence with the limit and the flag that mends it, before
//! anything is made.

use rocebench::node::memory_needs::{DeviceKind, MemoryNeeds, MemoryOffer};
use rocebench::node::node_threads::NodeThreads;
use rocebench::node::verbs_objects::VerbsObjects;
use rocebench::plan::Case;
use rocebench::plan::Side;
use rocebench::protocol::failure::RunFailure;
use settings::{CallStyle, CqMode, Domains, Op, Settings, Timestamps};

use crate::loopback_node::{Device, case_of, port, small};

fn refused(case: &Case) -> RunFailure {
    let mut threads = NodeThreads::new(1, case.poll);
    VerbsObjects::create(&port(), case, Side::Target, None, &mut threads, || Ok(()))
        .err()
        .unwrap()
}

#[test]
fn each_limit_is_named_with_its_flag() {
    let _device = Device::get();
    let limits = port().limits;
    let usual = case_of(Settings {
        cq: CqMode::PerQp,
        ..small(Op::Send)
    });
    let many = |limit: u64| u32::try_from(limit).unwrap() + 1;
    for (what, limit, flag, case) in [
        (
            "QPs",
            limits.max_qp,
            "--qps",
            case_of(Settings {
                qps: many(limits.max_qp),
                ..usual.settings.clone()
            }),
        ),
        (
            "send WRs on one QP",
            limits.max_qp_wr,
            "--tx-depth",
            case_of(Settings {
                bidirectional: true,
                tx_depth: many(limits.max_qp_wr),
                ..usual.settings.clone()
            }),
        ),
        (
            "receive WRs on one QP",
            limits.max_qp_wr,
            "--rx-depth",
            case_of(Settings {
                rx_depth: many(limits.max_qp_wr),
                ..usual.settings.clone()
            }),
        ),
        (
            "entries in one CQ",
            limits.max_cqe,
            "--qps",
            case_of(Settings {
                cq_depth: Some(many(limits.max_cqe)),
                ..usual.settings
            }),
        ),
    ] {
        let failure = refused(&case);
        let start = format!("loop0 can do at most {limit} {what}, and the case needs ");
        assert!(failure.message.starts_with(&start), "{failure}");
        assert!(failure.bad_input, "{failure}");
        assert!(failure.hint.unwrap().starts_with(&format!("lower {flag}")));
    }
}

#[test]
fn buffers_beyond_the_memory_are_refused() {
    let large = case_of(Settings {
        qps: 4096,
        size_bytes: 1 << 30,
        ..small(Op::Write)
    });
    let offer = MemoryOffer {
        device: DeviceKind::System,
        bytes: Some(1 << 40),
        by: "this machine".into(),
    };
    let needs = MemoryNeeds::of(&large, 0, offer.device);
    let failure = offer.check("the case test", &needs).unwrap_err();
    assert_eq!(
        failure.message,
        "the case test takes 4096 GiB (buffers 4096 GiB) of memory, and this machine leaves 1024 GiB"
    );
    assert!(failure.bad_input);
}

/// The null library has none of them, and says so before anything is made.
#[test]
fn calls_that_the_device_lacks_are_named_with_what_it_has() {
    let _device = Device::get();
    let usual = small(Op::Write);
    for (settings, says, hint) in [
        (
            Settings {
                post: CallStyle::Extended,
                ..usual.clone()
            },
            "loop0 has no extended posting (ibv_wr_start)",
            "use --post legacy",
        ),
        (
            Settings {
                poll_api: CallStyle::Extended,
                ..usual.clone()
            },
            "loop0 has no extended polling (ibv_start_poll)",
            "use --poll-api legacy",
        ),
        (
            Settings {
                domains: Domains::Thread,
                ..usual.clone()
            },
            "loop0 has no single-threaded CQs and thread domains",
            "use --domains usual",
        ),
        (
            Settings {
                timestamps: Timestamps::Device,
                ..usual
            },
            "loop0 has no time stamps of completions with a clock that can be read",
            "use --timestamps cpu",
        ),
    ] {
        let failure = refused(&case_of(settings));
        assert!(failure.bad_input, "{says}");
        assert_eq!(failure.message, says);
        assert_eq!(failure.hint.as_deref(), Some(hint));
    }
}
