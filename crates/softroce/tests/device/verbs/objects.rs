//! Devices, ports, PDs, MRs, CQs and AHs: properties, refused requests, and objects in use.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::mem::offset_of;
use std::os::raw::c_void;
use std::ptr::{null, null_mut};

use rdma_sys::*;
use softroce::verbs;

use super::testbed::*;

#[test]
fn the_first_device_is_soft0_and_says_the_same_everywhere() {
    let mut count = 0;
    let end = End::new();
    // SAFETY: the list is freed last.
    unsafe {
        let list = verbs::get_device_list(&raw mut count);
        assert!(count >= 1);
        assert!((*list.add(count as usize)).is_null());
        assert_eq!((*end.context).device, *list);
        assert_eq!(CStr::from_ptr(verbs::get_device_name(*list)), c"soft0");
        assert_eq!(verbs::get_device_index(*list), 0);
        let mut attr: ibv_device_attr = blank();
        assert_eq!(verbs::query_device(end.context, &raw mut attr), 0);
        assert_eq!(attr.node_guid, verbs::get_device_guid(*list));
        assert_eq!(attr.vendor_id, 0);
        assert_eq!(attr.atomic_cap, ibv_atomic_cap::IBV_ATOMIC_HCA);
        let version = CStr::from_ptr(attr.fw_ver.as_ptr());
        assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
        verbs::free_device_list(list);
        assert!(verbs::open_device(null_mut()).is_null());
        assert_eq!(errno(), libc::ENODEV);
    }
}

#[test]
fn each_opening_of_soft0_has_an_address_of_its_own() {
    let (one, other) = (End::new(), End::new());
    let mut gids = Vec::new();
    for end in [&one, &other] {
        let mut entry: ibv_gid_entry = blank();
        // SAFETY: an open context.
        unsafe {
            assert_eq!(verbs::query_gid_ex(end.context, 1, 0, &raw mut entry, 0), 0);
            let beyond = verbs::query_gid_ex(end.context, 1, 1, &raw mut entry, 0);
            assert_eq!(beyond, libc::ENODATA);
            let other_port = verbs::query_gid_ex(end.context, 2, 0, &raw mut entry, 0);
            assert_eq!(other_port, libc::EINVAL);
            assert_eq!(entry.gid_type, 2);
            assert_eq!(entry.ndev_ifindex, 1);
            assert_eq!(entry.gid.raw, end.gid().raw);
            gids.push(entry.gid.raw);
        }
    }
    for gid in &gids {
        assert_eq!(gid[..13], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127]);
    }
    assert_ne!(gids[0], gids[1]);
}

#[test]
fn the_port_is_an_active_ethernet_port() {
    let end = End::new();
    let mut attr: ibv_port_attr = blank();
    // SAFETY: an open context.
    unsafe {
        assert_eq!(verbs::query_port(end.context, 1, &raw mut attr), 0);
        assert_eq!(
            verbs::query_port(end.context, 0, &raw mut attr),
            libc::EINVAL
        );
    }
    assert_eq!(verbs_port(&attr), (4, 5, 5, 2));

    // A program that knows only the old struct gets no byte more.
    let old = offset_of!(ibv_port_attr, port_cap_flags2);
    attr.port_cap_flags2 = 0xaaaa;
    // SAFETY: an open context.
    unsafe { verbs::query_port_compat(end.context, 1, &raw mut attr) };
    assert_eq!(old, 48);
    assert_eq!(attr.port_cap_flags2, 0xaaaa);
}

fn verbs_port(attr: &ibv_port_attr) -> (u32, u32, u32, u8) {
    (attr.state, attr.max_mtu, attr.active_mtu, attr.link_layer)
}

#[test]
fn the_context_is_an_extended_one() {
    let end = End::new();
    // SAFETY: an open context, around which the extended one lies.
    unsafe {
        assert_eq!((*end.context).abi_compat.addr(), usize::MAX);
        let extended = extended(end.context);
        assert_eq!(extended.sz, size_of::<verbs_context>());
        let query = extended.query_device_ex.unwrap();
        let mut attr: ibv_device_attr_ex = blank();
        let whole = size_of::<ibv_device_attr_ex>();
        assert_eq!(query(end.context, null(), &raw mut attr, whole), 0);
        assert_eq!(attr.phys_port_cnt_ex, 1);
        assert!(attr.orig_attr.max_qp > 60000);
        assert_eq!(query(end.context, null(), &raw mut attr, 8), libc::EINVAL);
        let input = ibv_query_device_ex_input { comp_mask: 1 };
        let asked = query(end.context, &raw const input, &raw mut attr, whole);
        assert_eq!(asked, libc::EINVAL);
        let mut init: ibv_xrcd_init_attr = blank();
        assert!(extended.open_xrcd.unwrap()(end.context, &raw mut init).is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP);
    }
}

#[test]
fn memory_is_checked_and_keeps_its_domain_busy() {
    let end = End::new();
    let start = end.buffer.as_ptr().cast_mut().cast();
    // SAFETY: live objects, and memory that is there or refused.
    unsafe {
        assert_eq!(verbs::dealloc_pd(end.pd), libc::EBUSY);
        for (address, length, access, expected) in [
            (start, BUFFER_BYTES, 2, libc::EINVAL),
            (start, BUFFER_BYTES, 8, libc::EINVAL),
            (start, 0, 1, libc::EINVAL),
            (start, usize::MAX, 1, libc::EINVAL),
            (start, 64, 0x40, libc::EOPNOTSUPP),
            (null_mut(), 4096, 1, libc::EFAULT),
        ] {
            assert!(verbs::reg_mr(end.pd, address, length, access).is_null());
            assert_eq!(errno(), expected, "{length} {access:#x}");
        }
        let read_only = verbs::get_device_name as *mut c_void;
        assert!(verbs::reg_mr(end.pd, read_only, 64, 1).is_null());
        assert_eq!(errno(), libc::EFAULT, "writing would end the program");
        let readable = verbs::reg_mr(end.pd, read_only, 64, 4);
        assert!(!readable.is_null());
        assert_eq!(verbs::dereg_mr(readable), 0);
        let optional = verbs::reg_mr_iova2(end.pd, start, 64, start.addr() as u64, 1 << 20);
        assert!(!optional.is_null());
        assert_eq!((*optional).addr, start);
        assert_eq!((*optional).length, 64);
        assert_eq!(verbs::dereg_mr(optional), 0);
    }
}

#[test]
fn cqs_have_limits_and_are_busy_under_qps() {
    let end = End::new();
    // SAFETY: live objects.
    unsafe {
        let vectors = (*end.context).num_comp_vectors;
        let cq = verbs::create_cq(end.context, 16, null_mut(), null_mut(), vectors - 1);
        assert!(!cq.is_null());
        assert_eq!(verbs::destroy_cq(cq), 0);
        for (entries, vector) in [(0, 0), (-1, 0), (4_194_304, 0), (16, vectors), (16, -1)] {
            let cq = verbs::create_cq(end.context, entries, null_mut(), null_mut(), vector);
            assert!(cq.is_null());
            assert_eq!(errno(), libc::EINVAL);
        }
        assert!((*end.cq).cqe >= 256);
        let qp = end.qp(RC);
        assert_eq!(verbs::destroy_cq(end.cq), libc::EBUSY);
        destroy(&[qp]);
        assert_eq!(verbs::resize_cq(end.cq, 1000), 0);
        assert!((*end.cq).cqe >= 1000);
        assert_eq!(verbs::resize_cq(end.cq, 0), libc::EINVAL);
    }
}

#[test]
fn address_handles_lead_to_where_packets_can_go() {
    let end = End::new();
    let mut attr = attributes(end.gid(), 1).ah_attr;
    // SAFETY: live objects.
    unsafe {
        let ah = verbs::create_ah(end.pd, &raw mut attr);
        assert!(!ah.is_null());
        assert_eq!(verbs::destroy_ah(ah), 0);
        attr.grh.dgid.raw = [0; 16];
        assert!(verbs::create_ah(end.pd, &raw mut attr).is_null());
        assert_eq!(errno(), libc::EINVAL);
        attr.grh.dgid.raw[0] = 0xfd;
        assert!(verbs::create_ah(end.pd, &raw mut attr).is_null());
        assert_eq!(errno(), libc::ETIMEDOUT);
    }
}

#[test]
fn qps_are_made_within_the_limits_and_of_three_services() {
    let end = End::new();
    type Change = fn(&mut ibv_qp_init_attr);
    let refused: [(Change, i32); 4] = [
        (|init| init.cap.max_send_wr = 16385, libc::EINVAL),
        (|init| init.send_cq = null_mut(), libc::EINVAL),
        (|init| init.recv_cq = null_mut(), libc::EINVAL),
        (
            |init| init.qp_type = ibv_qp_type::IBV_QPT_XRC_SEND,
            libc::EOPNOTSUPP,
        ),
    ];
    for (number, (change, expected)) in refused.into_iter().enumerate() {
        let mut init = end.init_attr(RC);
        change(&mut init);
        // SAFETY: live objects, or refused.
        let qp = unsafe { verbs::create_qp(end.pd, &raw mut init) };
        assert!(qp.is_null(), "case {number}");
        assert_eq!(errno(), expected, "case {number}");
    }
    let other = End::new();
    let mut init = end.init_attr(RC);
    init.recv_cq = other.cq;
    // SAFETY: live objects.
    assert!(unsafe { verbs::create_qp(end.pd, &raw mut init) }.is_null());
}

#[test]
fn numbers_of_qps_and_keys_are_not_told_by_earlier_ones() {
    let end = End::new();
    let start = end.buffer.as_ptr().cast_mut().cast();
    let (mut qps, mut mrs) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        qps.push(end.qp(RC));
        // SAFETY: a live domain and memory that is there.
        mrs.push(unsafe { verbs::reg_mr(end.pd, start, 64, 1) });
    }
    // SAFETY: live objects.
    let numbers: Vec<u32> = qps.iter().map(|qp| unsafe { (**qp).qp_num }).collect();
    // SAFETY: as above.
    let keys: Vec<u32> = mrs.iter().map(|mr| unsafe { (**mr).rkey }).collect();
    for (all, mask) in [(numbers, 0xffff), (keys, u32::MAX >> 8 << 8)] {
        let steps: BTreeSet<u32> = all
            .windows(2)
            .map(|pair| pair[1].wrapping_sub(pair[0]) & mask)
            .collect();
        assert!(steps.len() > 90, "{steps:x?}");
    }
    destroy(&qps);
    for mr in mrs {
        // SAFETY: a live region, not used again.
        assert_eq!(unsafe { verbs::dereg_mr(mr) }, 0);
    }
}
