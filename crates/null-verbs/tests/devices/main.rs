//! Both devices through the functions that a program calls.
#![allow(missing_docs, clippy::unwrap_used)]

mod loopback;
mod null;
mod ordering;

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use testing::verbs_user::{End, Library, Qp, RC, attributes, never_block};

static LIBRARY: Library = Library {
    close_device: null_verbs::close_device,
    query_gid_ex: null_verbs::query_gid_ex,
    get_async_event: null_verbs::get_async_event,
    ack_async_event: null_verbs::ack_async_event,
    alloc_pd: null_verbs::alloc_pd,
    dealloc_pd: null_verbs::dealloc_pd,
    reg_mr: null_verbs::reg_mr,
    dereg_mr: null_verbs::dereg_mr,
    create_cq: null_verbs::create_cq,
    destroy_cq: null_verbs::destroy_cq,
    create_qp: null_verbs::create_qp,
    query_qp: null_verbs::query_qp,
    modify_qp: null_verbs::modify_qp,
    destroy_qp: null_verbs::destroy_qp,
    create_ah: null_verbs::create_ah,
    destroy_ah: null_verbs::destroy_ah,
};

/// A device used by one test at a time, since hooks and switches belong to the process.
struct Device {
    end: End,
    _alone: MutexGuard<'static, ()>,
}

impl Deref for Device {
    type Target = End;

    fn deref(&self) -> &End {
        &self.end
    }
}

impl Device {
    /// Opens the device at `index` of the list.
    fn open(index: usize) -> Device {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        null_verbs::loopback::reset_hooks();
        null_verbs::null::set_locked(false);
        null_verbs::null::set_receives_complete(false);
        let mut count = 0;
        // SAFETY: the list is freed after the opening.
        let context = unsafe {
            let list = null_verbs::get_device_list(&raw mut count);
            let context = null_verbs::open_device(*list.add(index));
            null_verbs::free_device_list(list);
            context
        };
        assert_eq!(count, 2);
        // Its second GID is one of RoCEv2.
        let end = End::of(&LIBRARY, context, 1);
        never_block(end.context.async_fd);
        Device { end, _alone: alone }
    }

    /// An RC QP of 4 sends and 4 receives.
    fn small_qp(&self) -> Qp {
        let mut init = self.init_attr(RC);
        (init.cap.max_send_wr, init.cap.max_recv_wr) = (4, 4);
        self.qp_with(&mut init)
    }

    /// Two such QPs in RTS, connected to each other.
    fn pair(&self) -> [Qp; 2] {
        self.pair_with(|_| {})
    }

    fn pair_with(&self, tune: fn(&mut rdma_sys::ibv_qp_attr)) -> [Qp; 2] {
        let pair = [self.small_qp(), self.small_qp()];
        for (qp, peer) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            let mut attr = attributes(self, self.gid(), peer.qp_num);
            tune(&mut attr);
            qp.connect(attr);
        }
        pair
    }

    /// The type of the next asynchronous event, if there is one.
    fn event_type(&self) -> Option<u32> {
        self.waiting_event().map(|event| event.event_type as u32)
    }
}
