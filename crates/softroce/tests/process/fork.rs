//! A child of a fork has its parent's devices in name only.

use std::mem::offset_of;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use rdma_sys::{
    ibv_poll_cq, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_rate_limit_attr, ibv_wc, verbs_context,
};
use softroce::transport::{Nic, NicOptions, Operation, PostError, Status};
use softroce::verbs;

use crate::child::{end, is_child, start};
use crate::completion::completion;
use crate::end::{self, End, Plan};

/// Forks; the child does this and exits. Returns how it exited, or that it hung.
fn fork(body: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child uses what a fork leaves usable, which is what is tested.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let code = body();
        // SAFETY: ends the child without the parent's functions of atexit(3).
        unsafe { libc::_exit(code) };
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut status = 0;
    // SAFETY: a child of this process, and a writable int.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: the same child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return None;
        }
        std::thread::yield_now();
    }
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

fn write(a: &End, b: &End) -> Status {
    let target = Operation::Write {
        address: b.address(0),
        rkey: b.key,
    };
    a.post(0, target, &[a.sge(0, 64)]);
    completion(a).status
}

/// Runs a test as a process of its own: others would fork with it.
fn alone(test: &str, body: impl FnOnce()) {
    const DONE: i32 = 33;
    if is_child() {
        body();
        // A test that is not found succeeds too.
        std::process::exit(DONE);
    }
    assert_eq!(end(start(test)).code(), Some(DONE));
}

#[test]
fn the_child_fails_and_may_open_its_own() {
    alone("fork::the_child_fails_and_may_open_its_own", || {
        let (a, b) = end::pair(&Plan::default());
        assert_eq!(write(&a, &b), Status::Success);
        let in_child = fork(|| {
            // SAFETY: there is nothing to post.
            let posted = unsafe { a.qps[0].post_send(|| None) };
            let refused = posted == Err(PostError::Process)
                && a.qps[0].post_recv(1, &[]) == Err(PostError::Process)
                && a.cq.poll(1, |_| ()).is_err();
            let (c, d) = end::pair(&Plan::default());
            let works = write(&c, &d) == Status::Success;
            drop((c, d));
            i32::from(refused) + 2 * i32::from(works)
        });
        assert_eq!(in_child, Some(3));
        assert_eq!(write(&a, &b), Status::Success, "the parent goes on");
    });
}

#[test]
fn the_child_does_not_keep_the_address() {
    alone("fork::the_child_does_not_keep_the_address", || {
        let first = Nic::open(&NicOptions::default()).unwrap();
        let options = NicOptions {
            address: Some(first.address()),
            ..NicOptions::default()
        };
        // An address of its own, and then one that other processes may share.
        let mut opened = Ok(first);
        for _ in 0..2 {
            let nic = opened.unwrap();
            let mut ends = [0; 2];
            // SAFETY: room for two descriptors.
            assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
            // SAFETY: as in `fork`.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: waits until the parent closes the other end, and ends.
                unsafe {
                    libc::close(ends[1]);
                    libc::read(ends[0], (&raw mut ends).cast(), 1);
                    libc::_exit(0);
                }
            }
            drop(nic);
            // The child lets go of the sockets when its `fork` returns, which may be after the parent's.
            let deadline = Instant::now() + Duration::from_secs(10);
            opened = Nic::open(&options);
            while opened.is_err() && Instant::now() < deadline {
                std::thread::yield_now();
                opened = Nic::open(&options);
            }
            let mut status = 0;
            // SAFETY: descriptors and a child of this process.
            unsafe {
                libc::close(ends[0]);
                libc::close(ends[1]);
                libc::waitpid(child, &raw mut status, 0);
            }
        }
        assert_eq!(opened.err().map(|error| error.to_string()), None);
    });
}

#[test]
fn a_device_that_is_dropped_in_the_child_does_not_hang() {
    alone(
        "fork::a_device_that_is_dropped_in_the_child_does_not_hang",
        || {
            let options = NicOptions::default();
            let mut nic = Some(Nic::open(&options).unwrap());
            let in_child = fork(|| {
                drop(nic.take());
                4
            });
            assert_eq!(in_child, Some(4));
        },
    );
}

#[test]
fn verbs_fail_in_the_child_instead_of_waiting() {
    alone("fork::verbs_fail_in_the_child_instead_of_waiting", || {
        // SAFETY: live objects throughout, and structs of plain data.
        let in_child = unsafe {
            let list = verbs::get_device_list(null_mut());
            let context = verbs::open_device(*list);
            let pd = verbs::alloc_pd(context);
            let cq = verbs::create_cq(context, 16, null_mut(), null_mut(), 0);
            let mut init: ibv_qp_init_attr = std::mem::zeroed();
            (init.send_cq, init.recv_cq) = (cq, cq);
            init.qp_type = rdma_sys::ibv_qp_type::IBV_QPT_RC;
            let qp = verbs::create_qp(pd, &raw mut init);
            let mut memory = [0_u8; 64];
            let mr = verbs::reg_mr(pd, memory.as_mut_ptr().cast(), memory.len(), 1);
            assert!(!qp.is_null() && !mr.is_null());
            let around = offset_of!(verbs_context, context);
            let extended = context.cast::<u8>().sub(around).cast::<verbs_context>();
            let limit_rate = (*extended).modify_qp_rate_limit.unwrap();
            let mut rate: ibv_qp_rate_limit_attr = std::mem::zeroed();
            fork(|| {
                let mut attr: ibv_qp_attr = std::mem::zeroed();
                let mut wc: ibv_wc = std::mem::zeroed();
                attr.qp_state = rdma_sys::ibv_qp_state::IBV_QPS_ERR;
                let outcomes = [
                    verbs::modify_qp(qp, &raw mut attr, 1),
                    verbs::query_qp(qp, &raw mut attr, 0, &raw mut init),
                    limit_rate(qp, &raw mut rate),
                    verbs::dereg_mr(mr),
                    verbs::destroy_qp(qp),
                    verbs::destroy_cq(cq),
                    verbs::close_device(context),
                ];
                let failed = outcomes.iter().filter(|outcome| **outcome == libc::EIO);
                let polled = ibv_poll_cq(cq, 1, &raw mut wc);
                let made = verbs::reg_mr(pd, memory.as_mut_ptr().cast(), memory.len(), 1);
                failed.count() as i32 + i32::from(polled < 0) + i32::from(made.is_null())
            })
        };
        assert_eq!(in_child, Some(9));
    });
}
