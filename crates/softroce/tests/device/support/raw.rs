//! What tests of the C functions share.

use std::io;
use std::mem::{offset_of, zeroed};
use std::net::{IpAddr, Ipv6Addr};

use rdma_sys::{ibv_context, ibv_cq, ibv_gid, ibv_poll_cq, ibv_wc, verbs_context};
use softroce::verbs;

use super::look::SOON;
use testing::wait::wait_for;

/// The error of a call that returned null or -1.
pub fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap()
}

/// A C struct of zeros.
pub fn blank<T>() -> T {
    // SAFETY: used for structs of plain data, pointers and optional function pointers.
    unsafe { zeroed() }
}

#[track_caller]
pub fn ok(code: i32) {
    assert_eq!(code, 0, "errno {}", errno());
}

/// Opens a device with these faults.
pub fn open(faults: &str) -> *mut ibv_context {
    let options = verbs::OpenOptions {
        faults: faults.parse().unwrap(),
        ..verbs::OpenOptions::default()
    };
    verbs::open_with("soft0", options).unwrap().as_ptr()
}

/// The GID of an open device, and its address.
pub fn gid(context: *mut ibv_context) -> (ibv_gid, IpAddr) {
    let mut gid: ibv_gid = blank();
    // SAFETY: an open context; both members of the union are the same bytes.
    let raw = unsafe {
        ok(verbs::query_gid(context, 1, 0, &raw mut gid));
        gid.raw
    };
    (gid, Ipv6Addr::from(raw).to_canonical())
}

/// The extended context around a plain one; `rdma_sys::verbs_get_ctx` fails to find it on 64 bits.
pub fn extended<'a>(context: *mut ibv_context) -> &'a verbs_context {
    let around = offset_of!(verbs_context, context);
    // SAFETY: an open context of this device.
    unsafe { &*context.byte_sub(around).cast() }
}

/// Waits for the next completion.
#[track_caller]
pub fn completion(cq: *mut ibv_cq) -> ibv_wc {
    let next = || {
        let mut wc: ibv_wc = blank();
        // SAFETY: a live CQ and room for one.
        match unsafe { ibv_poll_cq(cq, 1, &raw mut wc) } {
            0 => None,
            1 => Some(wc),
            other => panic!("poll_cq returned {other}"),
        }
    };
    wait_for("a completion", SOON, next)
}

/// Makes reading from a descriptor return at once.
pub fn never_block(fd: i32) {
    // SAFETY: an open descriptor.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
}

/// Waits until a descriptor can be read.
#[track_caller]
pub fn readable(fd: i32, what: &str) {
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd.
    let ready = || (unsafe { libc::poll(&raw mut poll, 1, 0) } == 1).then_some(());
    wait_for(what, SOON, ready);
}
