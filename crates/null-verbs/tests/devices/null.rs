//! `null0`.

use std::iter;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use null_verbs::null::{set_locked, set_receives_complete};
use rdma_sys::ibv_wc_opcode::{IBV_WC_RDMA_READ, IBV_WC_RDMA_WRITE, IBV_WC_RECV};
use rdma_sys::{ibv_device_attr, ibv_srq_init_attr};
use testing::null_library::null_library;
use testing::verbs_user::*;

use super::Device;

const NULL: usize = 0;

#[test]
fn signalled_wrs_complete_at_once_and_no_byte_moves() {
    let mut device = Device::open(NULL);
    device.end.buffer[64..128].fill(2);
    let [qp, peer] = device.pair();
    let (here, there) = (device.sge(0, 64), device.remote(64));
    assert_eq!(peer.receive(9, device.sge(64, 64)), 0);
    let (mut first, mut second) = (here, here);
    let mut unsignalled = send_wr(WRITE, &mut first);
    unsignalled.send_flags = 0;
    assert_eq!(qp.post(&mut unsignalled), 0);
    assert!(device.cq.poll(16).is_empty());
    assert_eq!(qp.fetch((2, WRITE), here, there), 0);
    let mut last = send_wr(READ, &mut second);
    last.wr_id = 4;
    unsignalled.next = &raw mut last;
    assert_eq!(qp.post(&mut unsignalled), 0);
    let wcs = device.cq.poll(16);
    assert_eq!(statuses(&wcs), [(2, 0), (4, 0)]);
    let opcodes = [wcs[0].opcode, wcs[1].opcode];
    assert_eq!(opcodes, [IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ]);
    assert!(wcs.iter().all(|wc| (wc.byte_len, wc.qp_num) == (64, qp.qp_num)));
    assert!(device.cq.poll(16).is_empty());
    assert_eq!(device.buffer[64..128], [2; 64]);
}

#[test]
fn a_full_cq_loses_completions_and_says_so_once() {
    let device = Device::open(NULL);
    let small = device.new_cq(3);
    let mut init = device.init_attr(RC);
    init.send_cq = small.raw;
    let qp = device.qp_with(&mut init);
    qp.connect(attributes(&device, device.gid(), 1));
    for wr_id in 0..6 {
        let write = (wr_id, WRITE);
        assert_eq!(qp.fetch(write, device.sge(0, 8), device.remote(0)), 0);
    }
    let kept = statuses(&small.poll(16));
    assert_eq!(kept, [(0, 0), (1, 0), (2, 0), (3, 0)]);
    assert_eq!(device.event_type(), Some(0), "IBV_EVENT_CQ_ERR");
    assert_eq!(device.event_type(), None);
}

#[test]
fn receives_complete_where_asked_for() {
    let device = Device::open(NULL);
    set_receives_complete(true);
    let [qp, _peer] = device.pair();
    assert_eq!(qp.receive(5, device.sge(0, 8)), 0);
    let wc = &device.cq.poll(16)[0];
    assert_eq!((wc.wr_id, wc.opcode, wc.byte_len), (5, IBV_WC_RECV, 8));
}

#[test]
fn unreliable_qps_and_address_handles_are_made() {
    let device = Device::open(NULL);
    for qp_type in [UC, UD] {
        let qp = device.qp(qp_type);
        assert_eq!(qp.send(7, SIGNALED, device.sge(0, 8)), 0);
        assert_eq!(statuses(&device.cq.poll(16)), [(7, 0)]);
    }
    let ah = device.ah(&mut blank()).unwrap();
    assert_eq!(ah.pd, device.pd.raw);
}

#[test]
fn there_are_no_more_objects_than_the_device_says() {
    let device = Device::open(0);
    let library = null_library();
    let (context, pd) = (device.context.raw, device.pd.raw);
    let mut limits: ibv_device_attr = blank();
    // SAFETY: an open context and a writable struct.
    ok(unsafe { (library.query_device)(context, &raw mut limits) });
    // SAFETY: live objects in each, and structs that can be read and written.
    unsafe {
        // There are a domain and a CQ already.
        fill_up(limits.max_pd - 1, || (library.alloc_pd)(context), library.dealloc_pd);
        fill_up(
            limits.max_cq - 1,
            || (library.create_cq)(context, 1, null_mut(), null_mut(), 0),
            library.destroy_cq,
        );
        let mut init: ibv_srq_init_attr = blank();
        init.attr.max_wr = 1;
        fill_up(limits.max_srq, || (library.create_srq)(pd, &raw mut init), library.destroy_srq);
        let mut path = attributes(&device, device.gid(), 0).ah_attr;
        fill_up(limits.max_ah, || (library.create_ah)(pd, &raw mut path), library.destroy_ah);
    }
}

/// Makes so many, is refused one more, and gets one once another has gone.
fn fill_up<T>(
    most: i32,
    make: impl FnMut() -> *mut T,
    destroy: unsafe extern "C" fn(*mut T) -> i32,
) {
    let mut made = iter::repeat_with(make);
    let mut objects: Vec<Owned<T>> =
        made.by_ref().take(most as usize).map(|raw| Owned::new(raw, destroy)).collect();
    assert!(most > 0);
    refused(made.next().unwrap(), libc::ENOMEM);
    objects.pop();
    objects.push(Owned::new(made.next().unwrap(), destroy));
}

#[test]
fn threads_share_a_locked_cq() {
    const EACH: u64 = 20_000;
    let device = Device::open(NULL);
    set_locked(true);
    let cq = device.new_cq(64);
    let mut init = device.init_attr(RC);
    init.send_cq = cq.raw;
    let qp = device.qp_with(&mut init);
    qp.connect(attributes(&device, device.gid(), 1));
    let sum = AtomicU64::new(0);
    let write_all = |thread: u64| {
        for wr_id in 0..EACH {
            let write = (thread * EACH + wr_id, WRITE);
            assert_eq!(qp.fetch(write, device.sge(0, 8), device.remote(0)), 0);
            for wc in cq.poll(16) {
                sum.fetch_add(wc.wr_id, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write_all(0));
        scope.spawn(|| write_all(1));
    });
    let left: u64 = cq.poll(16).iter().map(|wc| wc.wr_id).sum();
    assert_eq!(sum.into_inner() + left, (0..2 * EACH).sum::<u64>());
    assert_eq!(device.event_type(), None);
}

#[test]
fn limits_and_ports_are_reported_and_kept() {
    let device = Device::open(NULL);
    let context = device.context.raw;
    // SAFETY: an open context and structs of integers.
    unsafe {
        let mut limits: ibv_device_attr = blank();
        ok(null_verbs::query_device(context, &raw mut limits));
        for size in [0, limits.max_cqe + 1] {
            assert!(null_verbs::create_cq(context, size, null_mut(), null_mut(), 0).is_null());
        }
        let mut port: rdma_sys::ibv_port_attr = blank();
        for (number, expected) in [(2, libc::EINVAL), (1, 0)] {
            assert_eq!(null_verbs::query_port(context, number, &raw mut port), expected);
        }
        assert_eq!((port.state, port.active_mtu, port.link_layer), (4, 5, 2));
    }
    assert_eq!(device.gid_entry(1, 2).err(), Some(libc::ENODATA));
    let entry = device.gid_entry(1, 1).unwrap();
    // SAFETY: both members of the union are the same bytes.
    let address = unsafe { entry.gid.raw }[10..].to_vec();
    let expected = (2, vec![255, 255, 127, 0, 0, 1]);
    assert_eq!((entry.gid_type, address), expected);
}
