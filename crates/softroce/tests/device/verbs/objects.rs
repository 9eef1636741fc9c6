//! Devices, ports, PDs, MRs, CQs and AHs: properties, refused requests, and objects in use.
//!
//! The states of QPs: refused transitions, and the results of `query_qp`. What each transition needs and refuses is
//! tested where it stands, in `crates/provider/src/qp.rs`.
//!
//! Calls on one QP from several threads at once.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::mem::offset_of;
use std::os::raw::c_void;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::{Arc, mpsc};
use std::thread;

use libc::{EINVAL, ETIMEDOUT};
use rdma_sys::ibv_qp_state::*;
use rdma_sys::*;
use softroce::verbs;

use crate::support::look::SOON;
use crate::support::raw::*;
use crate::verbs::drain;

#[test]
fn the_first_device_is_soft0_and_says_the_same_everywhere() {
    let mut count = 0;
    let end = one_end();
    // SAFETY: the list is freed last.
    unsafe {
        let list = verbs::get_device_list(&raw mut count);
        assert!(count >= 1);
        assert!((*list.add(count as usize)).is_null());
        assert_eq!(end.context.device, *list);
        assert_eq!(CStr::from_ptr(verbs::get_device_name(*list)), c"soft0");
        assert_eq!(verbs::get_device_index(*list), 0);
        let mut attr: ibv_device_attr = blank();
        ok(verbs::query_device(end.context.raw, &raw mut attr));
        assert_eq!(attr.node_guid, verbs::get_device_guid(*list));
        assert_eq!(attr.vendor_id, 0x00ff_ffff);
        assert_eq!(attr.atomic_cap, ibv_atomic_cap::IBV_ATOMIC_HCA);
        let version = CStr::from_ptr(attr.fw_ver.as_ptr());
        assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
        verbs::free_device_list(list);
        refused(verbs::open_device(null_mut()), libc::ENODEV);
    }
    let absent = verbs::open_with("soft", verbs::OpenOptions::default());
    assert_eq!(absent.unwrap_err().raw_os_error(), Some(libc::ENODEV));
}

#[test]
fn the_gid_is_the_ports_whoever_opens_it() {
    let (one, other) = two_ends();
    let gids = [&one, &other].map(|end| {
        let entry = end.gid_entry(1, 1).unwrap();
        assert_eq!(end.gid_entry(1, 2).err(), Some(libc::ENODATA));
        assert_eq!(end.gid_entry(2, 0).err(), Some(EINVAL));
        assert_eq!((entry.gid_type, entry.ndev_ifindex), (2, 1));
        let mut gid: ibv_gid = blank();
        // SAFETY: an open context; both members of the union are the same bytes.
        unsafe {
            ok(verbs::query_gid(end.context.raw, 1, 1, &raw mut gid));
            assert_eq!(entry.gid.raw, gid.raw);
            assert_eq!(gid.raw[..13], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127]);
            gid.raw
        }
    });
    assert_eq!(gids[0], gids[1]);
    let both = [open(""), open("")].map(|context| {
        let mut gid: ibv_gid = blank();
        // SAFETY: an open context; both members of the union are the same bytes.
        unsafe {
            ok(verbs::query_gid(context.raw, 1, 1, &raw mut gid));
            gid.raw
        }
    });
    let of_own = BTreeSet::from([gids[0], both[0], both[1]]);
    assert_eq!(of_own.len(), 3, "a Rust program has both ends: {of_own:?}");
}

#[test]
fn the_port_is_an_active_ethernet_port() {
    let end = one_end();
    let mut attr: ibv_port_attr = blank();
    let mut query = |port| {
        // SAFETY: an open context and a writable struct.
        let code = unsafe { verbs::query_port(end.context.raw, port, &raw mut attr) };
        let port_state = (attr.state, attr.max_mtu, attr.active_mtu, attr.link_layer);
        (code, port_state)
    };
    assert_eq!(query(0).0, EINVAL);
    assert_eq!(query(1), (0, (4, 5, 5, 2)));
    // SDR.
    assert_eq!((attr.active_width, attr.active_speed), (1, 1));
    let mut speed_100_mbps = u64::MAX;
    // SAFETY: an open context and a writable number.
    let mut query_speed =
        |port| unsafe { verbs::query_port_speed(end.context.raw, port, &raw mut speed_100_mbps) };
    assert_eq!([query_speed(0), query_speed(1)], [EINVAL, 0]);
    assert_eq!(speed_100_mbps, 25);

    // A program that knows only the old struct gets no byte more.
    assert_eq!(offset_of!(ibv_port_attr, port_cap_flags2), 48);
    attr.port_cap_flags2 = 0xaaaa;
    // SAFETY: an open context.
    ok(unsafe { verbs::query_port_compat(end.context.raw, 1, &raw mut attr) });
    assert_eq!(attr.port_cap_flags2, 0xaaaa);
}

#[test]
fn the_context_is_an_extended_one() {
    let end = one_end();
    let context = end.context.raw;
    assert_eq!(end.context.abi_compat.addr(), usize::MAX);
    let extended = extended(context);
    assert_eq!(extended.sz, size_of::<verbs_context>());
    let query = extended.query_device_ex.unwrap();
    let mut attr: ibv_device_attr_ex = blank();
    let whole = size_of::<ibv_device_attr_ex>();
    // SAFETY: an open context, and structs of these sizes.
    unsafe {
        ok(query(context, null(), &raw mut attr, whole));
        assert_eq!(attr.phys_port_cnt_ex, 1);
        assert!(attr.orig_attr.max_qp > 60000);
        let input = ibv_query_device_ex_input { comp_mask: 1 };
        let codes = [
            query(context, null(), &raw mut attr, 8),
            query(context, &raw const input, &raw mut attr, whole),
        ];
        assert_eq!(codes, [EINVAL; 2]);
        let mut init: ibv_xrcd_init_attr = blank();
        let xrcd = extended.open_xrcd.unwrap()(context, &raw mut init);
        refused(xrcd, libc::EOPNOTSUPP);
    }
}

#[test]
fn memory_is_checked_and_keeps_its_domain_busy() {
    let end = one_end();
    let (pd, start) = (end.pd.raw, end.buffer.as_ptr().cast_mut().cast());
    let read_only = verbs::get_device_name as *mut c_void;
    // SAFETY: live objects, and memory that is there or refused.
    unsafe {
        assert_eq!(verbs::dealloc_pd(pd), libc::EBUSY);
        for (address, length, access, expected) in [
            (start, BUFFER_BYTES, 2, EINVAL),
            (start, BUFFER_BYTES, 8, EINVAL),
            // Of no bytes: without a page, and in one that is not mapped.
            (without_provenance_mut(1 << 16), 0, 1, EINVAL),
            (without_provenance_mut(1), 0, 1, libc::EFAULT),
            (read_only.map_addr(|at| at | 1), 0, 1, libc::EFAULT),
            (start, usize::MAX, 1, EINVAL),
            (start, 64, 0x40, libc::EOPNOTSUPP),
            (null_mut(), 4096, 1, libc::EFAULT),
            // Writing would end the program.
            (read_only, 64, 1, libc::EFAULT),
        ] {
            eprintln!("{length} {access:#x}");
            refused(verbs::reg_mr(pd, address, length, access), expected);
        }
        let readable = Owned::new(verbs::reg_mr(pd, read_only, 64, 4), verbs::dereg_mr);
        assert_eq!(readable.length, 64);
        let odd = start.map_addr(|at| at | 1);
        let of_no_bytes = Owned::new(verbs::reg_mr(pd, odd, 0, 15), verbs::dereg_mr);
        assert_eq!((of_no_bytes.addr, of_no_bytes.length), (odd, 0));
        let optional = verbs::reg_mr_iova2(pd, start, 64, start.addr() as u64, 1 << 20);
        let optional = Owned::new(optional, verbs::dereg_mr);
        assert_eq!((optional.addr, optional.length), (start, 64));
    }
}

/// A memfd stands for a dmabuf that programs can map: what lies in it at the offset is what the region has, at its own
/// addresses; a pipe stands for one that they cannot.
#[test]
fn memory_of_a_descriptor_is_mapped_where_that_is_possible() {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    let (mut one, other) = two_ends();
    let memory = rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = std::fs::File::from(memory);
    file.set_len(8192).unwrap();
    let (iova, offset) = (0x7000_0000_u64, 4096 + 100);
    // SAFETY: a live domain.
    let register = |descriptor, start, length, access| unsafe {
        verbs::reg_dmabuf_mr(other.pd.raw, start, length, iova, descriptor, access)
    };
    let fd = file.as_raw_fd();
    for (descriptor, start, length, access, expected) in [
        (fd, 0, 0, 1, EINVAL),
        (fd, 4096, 4097, 1, EINVAL),
        (fd, u64::MAX, 1, 1, EINVAL),
        (fd, 0, 64, 2, EINVAL),
        (fd, 0, 64, 0x40, libc::EOPNOTSUPP),
        (-1, 0, 64, 1, libc::EBADF),
    ] {
        refused(register(descriptor, start, length, access), expected);
    }
    // A folder has a size and cannot be mapped, as memory of most GPUs.
    let folder = std::fs::File::open("/").unwrap();
    refused(register(folder.as_raw_fd(), 0, 1, 0), libc::EOPNOTSUPP);
    let region = Owned::new(register(fd, offset, 1000, 7), verbs::dereg_mr);
    assert_eq!((region.length, region.addr as u64), (1000, offset));
    one.buffer[..8].copy_from_slice(b"in there");
    let (qp, _peer) = pair(&one, &other, RC);
    let mut sge = one.sge(0, 8);
    let mut wr = send_wr(WRITE, &mut sge);
    wr.wr.rdma = rdma_t { remote_addr: iova + 5, rkey: region.rkey };
    assert_eq!(qp.post(&mut wr), 0);
    one.succeeds();
    let mut bytes = [0; 10];
    file.read_exact_at(&mut bytes, offset + 4).unwrap();
    assert_eq!(&bytes, b"\0in there\0");
}

#[test]
fn cqs_have_limits_and_are_busy_under_qps() {
    let end = one_end();
    let vectors = end.context.num_comp_vectors;
    // SAFETY: an open context.
    let create = |entries, vector| unsafe {
        verbs::create_cq(end.context.raw, entries, null_mut(), null_mut(), vector)
    };
    drop(Owned::new(create(16, vectors - 1), verbs::destroy_cq));
    for (entries, vector) in [(0, 0), (-1, 0), (4_194_304, 0), (16, vectors), (16, -1)] {
        refused(create(entries, vector), EINVAL);
    }
    assert!(end.cq.cqe >= 256);
    let qp = end.qp(RC);
    // SAFETY: a live CQ.
    unsafe {
        assert_eq!(verbs::destroy_cq(end.cq.raw), libc::EBUSY);
        drop(qp);
        ok(verbs::resize_cq(end.cq.raw, 1000));
        assert!(end.cq.cqe >= 1000);
        assert_eq!(verbs::resize_cq(end.cq.raw, 0), EINVAL);
    }
}

#[test]
fn qps_are_made_within_the_limits_and_of_three_services() {
    let (end, other) = two_ends();
    const XRC: u32 = ibv_qp_type::IBV_QPT_XRC_SEND;
    const RAW_PACKET: u32 = ibv_qp_type::IBV_QPT_RAW_PACKET;
    type Change = fn(&mut ibv_qp_init_attr);
    let cases: [(Change, i32); 5] = [
        (|init| init.cap.max_send_wr = 16385, EINVAL),
        (|init| init.send_cq = null_mut(), EINVAL),
        (|init| init.recv_cq = null_mut(), EINVAL),
        (|init| init.qp_type = XRC, libc::EOPNOTSUPP),
        (|init| init.qp_type = RAW_PACKET, libc::EOPNOTSUPP),
    ];
    // SAFETY: live objects, or refused.
    let create = |init: &mut ibv_qp_init_attr| unsafe { verbs::create_qp(end.pd.raw, init) };
    for (number, (change, expected)) in cases.into_iter().enumerate() {
        eprintln!("case {number}");
        let mut init = end.init_attr(RC);
        change(&mut init);
        refused(create(&mut init), expected);
    }
    let mut init = end.init_attr(RC);
    init.recv_cq = other.cq.raw;
    assert!(create(&mut init).is_null());
}

/// Calls that return -1 or null are asked with `errno` wherever they are refused.
#[test]
fn calls_that_return_an_error_number_set_errno_too() {
    let end = one_end();
    let qp = end.qp(RC);
    let (context, busy) = (end.context.raw, libc::EBUSY);
    let mut srq_init: ibv_srq_init_attr = blank();
    (srq_init.attr.max_wr, srq_init.attr.max_sge) = (4, 1);
    // SAFETY: live objects, writable structs, and sizes of them or none.
    unsafe {
        let srq = Owned::new(verbs::create_srq(end.pd.raw, &raw mut srq_init), verbs::destroy_srq);
        let query_device_ex = extended(context).query_device_ex.unwrap();
        let query_rt_values = extended(context).query_rt_values.unwrap();
        let modify_qp_rate_limit = extended(context).modify_qp_rate_limit.unwrap();
        let mut values: ibv_values_ex = blank();
        values.comp_mask = 1 << 30;
        let calls: [(&str, &dyn Fn() -> i32, i32); 12] = [
            ("dealloc_pd", &|| verbs::dealloc_pd(end.pd.raw), busy),
            ("destroy_cq", &|| verbs::destroy_cq(end.cq.raw), busy),
            ("resize_cq", &|| verbs::resize_cq(end.cq.raw, 0), EINVAL),
            ("modify_srq", &|| verbs::modify_srq(srq.raw, &mut { srq_init }.attr, 8), EINVAL),
            ("query_port", &|| verbs::query_port(context, 9, &mut blank()), EINVAL),
            ("query_port_speed", &|| verbs::query_port_speed(context, 9, &mut 0), EINVAL),
            ("query_gid_ex", &|| verbs::query_gid_ex(context, 9, 0, &mut blank(), 0), EINVAL),
            (
                "query_gid_table",
                &|| -(verbs::query_gid_table(context, &mut blank(), 0, 0, 32) as i32),
                EINVAL,
            ),
            ("query_device_ex", &|| query_device_ex(context, null(), &mut blank(), 8), EINVAL),
            (
                "query_rt_values",
                &|| query_rt_values(context, (&raw const values).cast_mut()),
                EINVAL,
            ),
            ("modify_qp", &|| verbs::modify_qp(qp.raw, &mut blank(), 1 << 30), EINVAL),
            ("modify_qp_rate_limit", &|| modify_qp_rate_limit(qp.raw, null_mut()), EINVAL),
        ];
        for (name, call, error) in calls {
            *libc::__errno_location() = 0;
            assert_eq!((call(), errno()), (error, error), "{name}");
        }
    }
}

/// The same of keys: `transport::memory`.
#[test]
fn numbers_of_qps_are_not_told_by_earlier_ones() {
    let end = one_end();
    let qps: Vec<Qp> = (0..100).map(|_| end.qp(RC)).collect();
    let steps: BTreeSet<u32> =
        qps.windows(2).map(|pair| pair[1].qp_num.wrapping_sub(pair[0].qp_num) & 0xffff).collect();
    assert!(steps.len() > 90, "{steps:x?}");
}

#[test]
fn what_was_set_is_what_is_told() {
    let (end, peer) = two_ends();
    let qp = end.qp(RC);
    let mut wanted = attributes(&end, peer.gid(), 0x99);
    // Binding of windows, and flushes, which no driver of Linux refuses here.
    wanted.qp_access_flags |= 0x310;
    qp.connect(wanted);
    let (queried, init) = qp.query();
    assert_eq!([queried.qp_state, queried.cur_qp_state], [IBV_QPS_RTS; 2]);
    let numbers = [queried.rq_psn, queried.sq_psn, queried.dest_qp_num, queried.path_mtu];
    assert_eq!(numbers, [PSN, PSN, 0x99, ibv_mtu::IBV_MTU_1024]);
    assert_eq!((queried.timeout, queried.retry_cnt, queried.rnr_retry), (17, 7, 7));
    assert_eq!((queried.max_rd_atomic, queried.max_dest_rd_atomic), (4, 4));
    assert_eq!((queried.min_rnr_timer, queried.port_num), (1, 1));
    assert_eq!(queried.qp_access_flags, 0x31f);
    // SAFETY: both members of the union are the same bytes.
    unsafe { assert_eq!(queried.ah_attr.grh.dgid.raw, peer.gid().raw) };
    assert_eq!((queried.cap.max_send_wr, queried.cap.max_inline_data), (16, 64));
    assert_eq!((init.send_cq, init.recv_cq), (end.cq.raw, end.cq.raw));
    assert_eq!(init.qp_type, RC);
}

#[test]
fn a_queue_takes_as_many_requests_as_it_says() {
    let (one, other) = two_ends();
    for wrs in [0, 1, 200] {
        let mut init = one.init_attr(RC);
        (init.cap.max_send_wr, init.cap.max_recv_wr) = (wrs, wrs);
        let (qp, peer) = (one.qp_with(&mut init), other.qp(RC));
        assert_eq!((init.cap.max_send_wr, init.cap.max_recv_wr), (wrs, wrs));
        join(&one, &qp, &other, &peer);
        // The peer has no receive, so that none completes.
        let sge = one.sge(0, 8);
        let sends: Vec<i32> = (0..=wrs).map(|id| qp.send(id.into(), SIGNALED, sge)).collect();
        let receives: Vec<i32> = (0..=wrs).map(|id| qp.receive(id.into(), sge)).collect();
        for codes in [sends, receives] {
            let (last, before) = codes.split_last().unwrap();
            assert!(before.iter().all(|code| *code == 0), "{wrs}: {before:?}");
            assert_eq!(*last, libc::ENOMEM, "{wrs}");
        }
    }
}

#[test]
fn what_is_refused_leaves_the_state() {
    let (end, peer) = two_ends();
    let qp = end.qp(RC);
    assert_eq!(qp.receive(1, end.sge(0, 8)), EINVAL, "in RESET");
    let [init, rtr, rts] = masks(RC);
    const CAP: u32 = ibv_qp_attr_mask::IBV_QP_CAP.0;
    let (there, nowhere) = (peer.gid(), ibv_gid { raw: [0xfd; 16] });
    for (state, mask, mtu, gid, expected, then) in [
        (7, STATE, 3, there, EINVAL, IBV_QPS_RESET),
        // The capacities never change.
        (IBV_QPS_INIT, init | CAP, 3, there, EINVAL, IBV_QPS_RESET),
        (IBV_QPS_INIT, init, 3, there, 0, IBV_QPS_INIT),
        (IBV_QPS_RTR, rtr, 6, there, EINVAL, IBV_QPS_INIT),
        (IBV_QPS_RTR, rtr, 3, nowhere, ETIMEDOUT, IBV_QPS_INIT),
        (IBV_QPS_ERR, STATE, 3, there, 0, IBV_QPS_ERR),
        (IBV_QPS_RTS, rts, 3, there, EINVAL, IBV_QPS_ERR),
        (IBV_QPS_RESET, STATE, 3, there, 0, IBV_QPS_RESET),
    ] {
        let mut attr = attributes(&end, gid, 1);
        (attr.qp_state, attr.path_mtu) = (state, mtu);
        let outcome = (qp.modify(&mut attr, mask), qp.state_now(), qp.state);
        assert_eq!(outcome, (expected, then, then), "to {state}, MTU {mtu}");
    }
    let queried = qp.query().0;
    assert_eq!((queried.port_num, queried.timeout), (0, 0));
}

#[test]
fn the_send_queue_drains_and_goes_on() {
    let (one, other) = two_ends();
    let (qp, _peer) = pair(&one, &other, RC);
    drain(&qp);
    let event = one.next_event();
    assert!(event.event_type == ibv_event_type::IBV_EVENT_SQ_DRAINED);
    // SAFETY: an event of a QP.
    assert_eq!(unsafe { event.element.qp }, qp.raw);
    one.acknowledge(event);
    let mut queried = qp.query().0;
    assert_eq!((queried.qp_state, queried.sq_draining), (IBV_QPS_SQD, 0));
    queried.qp_state = IBV_QPS_RTS;
    // That it is in RTS, which is wrong, and in SQD.
    for (now, expected) in [(IBV_QPS_RTS, EINVAL), (IBV_QPS_SQD, 0)] {
        queried.cur_qp_state = now;
        assert_eq!(qp.modify(&mut queried, STATE | 2), expected);
    }
    assert_eq!(qp.state_now(), IBV_QPS_RTS);
}

#[test]
fn an_error_flushes_what_was_posted() {
    let (one, other) = two_ends();
    let (qp, _peer) = pair(&one, &other, RC);
    for wr_id in 0..3 {
        assert_eq!(qp.receive(wr_id, one.sge(0, 8)), 0);
    }
    assert_eq!(qp.move_to(IBV_QPS_ERR), 0);
    let ended = one.cq.completions(3);
    assert_eq!(statuses(&ended), [0, 1, 2].map(|wr_id| (wr_id, FLUSHED)));
    assert!(ended.iter().all(|wc| wc.qp_num == qp.qp_num));
}

const ROUNDS: usize = 5_000;
const OWN_QKEY: u32 = 1 << 31;

#[test]
fn a_datagram_with_the_own_queue_key_is_posted_while_the_qp_is_queried() {
    let own = one_end();
    let sender = own.qp(UD);
    sender.connect(attributes(&own, own.gid(), 0));
    let to_itself = own.ah(&mut attributes(&own, own.gid(), 0).ah_attr).unwrap();
    // Threads that wait for each other never end, and keep all.
    let shared = Arc::new((sender, to_itself, own));
    let (report, reports) = mpsc::channel();
    let in_thread = |count_wrong: fn(&Qp, &Owned<ibv_ah>, &End) -> usize| {
        let (shared, report) = (Arc::clone(&shared), report.clone());
        thread::spawn(move || {
            let wrong = count_wrong(&shared.0, &shared.1, &shared.2);
            drop(shared);
            report.send(wrong).unwrap();
        });
    };
    in_thread(|qp, ah, end| {
        let mut sge = end.sge(0, 8);
        let mut wr = send_wr(SEND, &mut sge);
        wr.send_flags = 0;
        wr.wr.ud = ud_t {
            ah: ah.raw,
            // Nobody has this number.
            remote_qpn: 2,
            remote_qkey: OWN_QKEY,
        };
        (0..ROUNDS)
            .filter(|_| {
                // Requests may wait for a poll.
                assert!(end.cq.poll(1).is_empty());
                qp.post(&mut wr) != 0
            })
            .count()
    });
    in_thread(|qp, _, _| {
        (0..ROUNDS).map(|_| qp.state_now()).filter(|state| *state != IBV_QPS_RTS).count()
    });
    for _ in 0..2 {
        let wrong = reports.recv_timeout(10 * SOON);
        assert_eq!(wrong, Ok(0), "the threads wait for each other");
    }
}
