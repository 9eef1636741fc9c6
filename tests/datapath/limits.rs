//! What a device cannot do comes back as a sentence with the limit and the flag that mends it, before
//! anything is made.

use node::memory_needs::MemoryNeeds;
use node::threads::NodeThreads;
use node::verbs_objects::VerbsObjects;
use plan::Side;
use protocol::failure::RunFailure;
use protocol::node_report::{DeviceKind, MemoryOffer};
use settings::{CallStyle, CqMode, Domains, Op, Settings, Timestamps};

use crate::loopback_node::{Device, case_of, port, small};

/// Sets what the device cannot do, perhaps this much of it.
type Change = fn(&mut Settings, u32);

fn refused(settings: Settings) -> RunFailure {
    let case = case_of(settings);
    let mut threads = NodeThreads::new(1, case.poll);
    VerbsObjects::create(&port(), &case, Side::Target, None, &mut threads, || Ok(())).err().unwrap()
}

#[test]
fn each_limit_is_named_with_its_flag() {
    let _device = Device::get();
    let limits = port().adapter.limits.clone();
    let rows: [(&str, u64, &str, Change); 4] = [
        ("QPs", limits.max_qp, "--qps", |it, most| it.qps = most),
        ("send WRs on one QP", limits.max_qp_wr, "--tx-depth", |it, most| {
            (it.bidirectional, it.tx_depth) = (true, most);
        }),
        ("receive WRs on one QP", limits.max_qp_wr, "--rx-depth", |it, most| it.rx_depth = most),
        ("entries in one CQ", limits.max_cqe, "--qps", |it, most| {
            it.cq_depth = Some(most);
        }),
    ];
    for (what, limit, flag, change) in rows {
        let mut settings = Settings { cq: CqMode::PerQp, ..small(Op::Send) };
        change(&mut settings, u32::try_from(limit).unwrap() + 1);
        let failure = refused(settings);
        let start = format!("loop0 can do at most {limit} {what}, but the case needs ");
        assert!(failure.message.starts_with(&start), "{failure}");
        assert!(failure.bad_input, "{failure}");
        assert!(failure.hint.unwrap().starts_with(&format!("lower {flag}")));
    }
}

#[test]
fn buffers_beyond_the_memory_are_refused() {
    let large = case_of(Settings { qps: 4096, size_bytes: 1 << 30, ..small(Op::Write) });
    let offer =
        MemoryOffer { device: DeviceKind::System, bytes: Some(1 << 40), by: "this machine".into() };
    let needs = MemoryNeeds::new(&large, 0, offer.device);
    let failure = needs.check(&offer, "the case test").unwrap_err();
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
    let rows: [(Change, &str, &str); 4] = [
        (|it, _| it.post = CallStyle::Extended, "extended posting (ibv_wr_start)", "--post legacy"),
        (
            |it, _| it.poll_api = CallStyle::Extended,
            "extended polling (ibv_start_poll)",
            "--poll-api legacy",
        ),
        (
            |it, _| it.domains = Domains::Thread,
            "single-threaded CQs and thread domains",
            "--domains usual",
        ),
        (
            |it, _| it.timestamps = Timestamps::Device,
            "time stamps of completions with a clock that can be read",
            "--timestamps cpu",
        ),
    ];
    for (change, lacks, instead) in rows {
        let mut settings = small(Op::Write);
        change(&mut settings, 0);
        let failure = refused(settings);
        assert!(failure.bad_input, "{lacks}");
        assert_eq!(failure.message, format!("loop0 has no {lacks}"));
        assert_eq!(failure.hint, Some(format!("use {instead}")));
    }
}
