//! Tests `null0` through the functions that a program calls.

use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use rdma_sys::ibv_sge;

use rdma_sys::ibv_wr_opcode::{IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND};

use super::{set_locked, set_receives_complete};
use crate::testbed::*;

const NULL: usize = 0;

#[test]
fn signalled_wrs_complete_at_once_and_no_byte_moves() {
    let device = OpenDevice::open(NULL);
    let cq = device.cq(16);
    let [qp, peer] = device.pair(cq, |_| {});
    let (mut memory, mut target) = ([1_u8; 64], [2_u8; 64]);
    let (here, there) = (
        device.mr(&mut memory, ALL_ACCESS),
        device.mr(&mut target, ALL_ACCESS),
    );
    assert_eq!(post_receive(peer, 9, there), 0);
    assert_eq!(post(qp, 1, IBV_WR_RDMA_WRITE, 0, here), 0);
    assert!(poll(cq).is_empty());
    assert_eq!(
        post_remote(qp, (2, IBV_WR_RDMA_WRITE), here, (there.addr, there.lkey)),
        0
    );
    let (mut first, mut second) = (here, here);
    let mut last = send_wr(4, IBV_WR_RDMA_READ, SIGNALED, &mut second);
    let mut list = send_wr(3, IBV_WR_RDMA_WRITE, 0, &mut first);
    list.next = &raw mut last;
    assert_eq!(post_wr(qp, &mut list), 0);
    let wcs = poll(cq);
    assert_eq!(statuses(&wcs), [(2, 0), (4, 0)]);
    assert_eq!([wcs[0].opcode, wcs[1].opcode], [1, 2]);
    assert!(
        wcs.iter()
            .all(|wc| wc.byte_len == 64 && wc.qp_num == number(qp))
    );
    assert!(poll(cq).is_empty());
    assert_eq!(target, [2; 64]);
}

#[test]
fn a_full_cq_loses_completions_and_says_so_once() {
    let device = OpenDevice::open(NULL);
    let cq = device.cq(3);
    let [qp, _] = device.pair(cq, |_| {});
    let mut memory = [0_u8; 8];
    let here = device.mr(&mut memory, 0);
    for wr_id in 0..6 {
        assert_eq!(post(qp, wr_id, IBV_WR_RDMA_WRITE, SIGNALED, here), 0);
    }
    assert_eq!(statuses(&poll(cq)), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    assert_eq!(device.event(), Some(0), "IBV_EVENT_CQ_ERR");
    assert_eq!(device.event(), None);
}

#[test]
fn receives_complete_where_asked_for() {
    let device = OpenDevice::open(NULL);
    set_receives_complete(true);
    let cq = device.cq(4);
    let [qp, _] = device.pair(cq, |_| {});
    let mut memory = [0_u8; 8];
    assert_eq!(post_receive(qp, 5, device.mr(&mut memory, 1)), 0);
    let wcs = poll(cq);
    assert_eq!((wcs[0].wr_id, wcs[0].opcode, wcs[0].byte_len), (5, 128, 8));
}

#[test]
fn unreliable_qps_and_address_handles_are_made() {
    use rdma_sys::ibv_qp_type::{IBV_QPT_UC, IBV_QPT_UD};
    let device = OpenDevice::open(NULL);
    let cq = device.cq(4);
    let mut memory = [0_u8; 8];
    let here = device.mr(&mut memory, 0);
    for qp_type in [IBV_QPT_UC, IBV_QPT_UD] {
        let qp = device.qp_of(cq, qp_type);
        assert_eq!(post(qp, 7, IBV_WR_SEND, SIGNALED, here), 0);
        assert_eq!(statuses(&poll(cq)), [(7, 0)]);
    }
    // SAFETY: a live protection domain, and an address that nobody reads.
    unsafe {
        let mut address = std::mem::zeroed();
        let ah = crate::create_ah(device.pd, &raw mut address);
        assert_eq!((*ah).pd, device.pd);
        assert_eq!(crate::destroy_ah(ah), 0);
    }
}

#[test]
fn threads_share_a_locked_cq() {
    const EACH: u64 = 20_000;
    let device = OpenDevice::open(NULL);
    set_locked(true);
    let cq = device.cq(64) as usize;
    let [qp, _] = device.pair(cq as *mut _, |_| {}).map(|qp| qp as usize);
    let mut memory = [0_u8; 8];
    let address = device.mr(&mut memory, 0).addr;
    let sum = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let sum = &sum;
            scope.spawn(move || {
                for wr_id in 0..EACH {
                    let here = ibv_sge {
                        addr: address,
                        length: 8,
                        lkey: 0,
                    };
                    let wr_id = thread * EACH + wr_id;
                    assert_eq!(
                        post(qp as *mut _, wr_id, IBV_WR_RDMA_WRITE, SIGNALED, here),
                        0
                    );
                    for wc in poll(cq as *mut _) {
                        sum.fetch_add(wc.wr_id, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let left: u64 = poll(cq as *mut _).iter().map(|wc| wc.wr_id).sum();
    assert_eq!(sum.into_inner() + left, (0..2 * EACH).sum());
    assert_eq!(device.event(), None);
}

#[test]
fn limits_and_ports_are_told_and_kept() {
    let device = OpenDevice::open(NULL);
    // SAFETY: an open context and structs of integers.
    unsafe {
        let create = |size| crate::create_cq(device.context, size, null_mut(), null_mut(), 0);
        let mut attributes = std::mem::zeroed();
        assert_eq!(crate::query_device(device.context, &raw mut attributes), 0);
        assert!(create(attributes.max_cqe + 1).is_null() && create(0).is_null());
        let mut port = std::mem::zeroed();
        assert_eq!(
            crate::query_port(device.context, 2, &raw mut port),
            libc::EINVAL
        );
        assert_eq!(crate::query_port(device.context, 1, &raw mut port), 0);
        assert_eq!((port.state, port.active_mtu, port.link_layer), (4, 5, 2));
        let mut gid = std::mem::zeroed();
        assert_eq!(
            crate::query_gid_ex(device.context, 1, 2, &raw mut gid, 0),
            libc::ENODATA
        );
        assert_eq!(
            crate::query_gid_ex(device.context, 1, 1, &raw mut gid, 0),
            0
        );
        assert_eq!(
            (gid.gid_type, &gid.gid.raw[10..]),
            (2, &[255, 255, 127, 0, 0, 1][..])
        );
    }
}
