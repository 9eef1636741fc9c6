//! Both devices through the functions that a program calls.
#![allow(missing_docs, clippy::unwrap_used)]

mod loopback;
mod null;

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use testing::null_library::null_library;
use testing::verbs_user::{End, Qp, RC, attributes, never_block};

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
        let end = End::new(null_library(), context, 1);
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

    fn event_type(&self) -> Option<u32> {
        let event = self.waiting_event()?;
        let kind = event.event_type as u32;
        self.acknowledge(event);
        Some(kind)
    }
}
