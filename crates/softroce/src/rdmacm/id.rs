//! The objects behind the pointers to ids that programs hold.

use std::sync::Arc;

use rdma_sys::{ibv_qp_init_attr, ibv_sa_path_rec, rdma_cm_id, rdma_event_channel};

use super::port_space::PortSpace;
use crate::lock::Lock;
use crate::verbs::context::Acks;
use crate::verbs::object::Behind;

/// The data of an id.
pub(super) struct Id {
    /// Its number in the state.
    pub(super) key: u64,
    pub(super) space: PortSpace,
    pub(super) acks: Arc<Acks>,
    own: Lock<Own>,
}

/// What belongs to the id besides what the program sees.
#[derive(Default)]
pub(super) struct Own {
    /// The id has a channel of its own, and calls on it wait for their event.
    pub(super) sync: bool,
    /// For the QPs of requests, of an endpoint that listens.
    pub(super) qp_init: Option<ibv_qp_init_attr>,
    pub(super) path: Option<Box<ibv_sa_path_rec>>,
}

// SAFETY: the pointers in the attributes are the program's; they are only handed back to it.
unsafe impl Send for Own {}

impl Behind<rdma_cm_id> for Id {}

impl Id {
    /// A new id without a device.
    pub(super) fn create(
        key: u64,
        channel: *mut rdma_event_channel,
        space: PortSpace,
    ) -> *mut rdma_cm_id {
        // SAFETY: pointers, integers and addresses, for all of which zero is a value.
        let mut verbs: rdma_cm_id = unsafe { std::mem::zeroed() };
        verbs.channel = channel;
        verbs.ps = space.code();
        verbs.qp_type = space.qp_type();
        let inner = Id { key, space, acks: Arc::default(), own: Lock::default() };
        inner.lend(verbs)
    }

    /// Changes what belongs to it.
    pub(super) fn own<R>(&self, change: impl FnOnce(&mut Own) -> R) -> R {
        change(&mut self.own.lock())
    }

    /// Whether calls on it wait for their event.
    pub(super) fn is_sync(&self) -> bool {
        self.own(|own| own.sync)
    }
}
