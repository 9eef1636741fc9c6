//! What a device cannot do comes back as a sentence with the limit and the flag that mends it, before
//! anything is made.

use rocebench::node::fabric::{Fabric, Side};
use rocebench::node::memory_needs::{DeviceKind, MemoryNeeds, MemoryOffer};
use rocebench::plan::{Case, CqMode, Op};
use rocebench::protocol::failure::RunFailure;

use crate::loopback_node::{Device, case, port};

fn refused(case: &Case) -> RunFailure {
    Fabric::create(&port(), case, Side::Server, None, || Ok(()))
        .err()
        .unwrap()
}

#[test]
fn each_limit_is_named_with_its_flag() {
    let _device = Device::get();
    let limits = port().limits;
    let usual = Case {
        cq: CqMode::PerQp,
        ..case(Op::Send)
    };
    let many = |limit: u64| u32::try_from(limit).unwrap() + 1;
    for (what, limit, flag, case) in [
        (
            "QPs",
            limits.max_qp,
            "--qps",
            Case {
                qps: many(limits.max_qp),
                ..usual.clone()
            },
        ),
        (
            "send WRs on one QP",
            limits.max_qp_wr,
            "--tx-depth",
            Case {
                bidirectional: true,
                tx_depth: many(limits.max_qp_wr),
                ..usual.clone()
            },
        ),
        (
            "receive WRs on one QP",
            limits.max_qp_wr,
            "--rx-depth",
            Case {
                rx_depth: many(limits.max_qp_wr),
                ..usual.clone()
            },
        ),
        (
            "entries in one CQ",
            limits.max_cqe,
            "--qps",
            Case {
                cq_depth: Some(many(limits.max_cqe)),
                ..usual
            },
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
    let large = Case {
        qps: 4096,
        size_bytes: 1 << 30,
        ..case(Op::Write)
    };
    let offer = MemoryOffer {
        device: DeviceKind::System,
        bytes: Some(1 << 40),
        by: "this machine".into(),
    };
    let needs = MemoryNeeds::of(&large, Side::Client, offer.device);
    let failure = offer.check("the case test", &needs).unwrap_err();
    assert_eq!(
        failure.message,
        "the case test takes 4096 GiB (buffers 4096 GiB) of memory, and this machine leaves 1024 GiB"
    );
    assert!(failure.bad_input);
}
