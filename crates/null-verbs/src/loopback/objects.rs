//! The device's objects, as `provider`'s functions make, change and end them.

use std::collections::VecDeque;
use std::os::raw::c_int;

use provider::{
    Change, CqEngine, CqRequest, Description, Engine, Objects, QpEngine, QpRequest, SrqEngine,
    SrqRequest,
};
use rdma_sys::{
    ibv_ah_attr, ibv_cq, ibv_qp_attr_mask as Mask, ibv_qp_state, ibv_qp_type, ibv_srq,
    verbs_context,
};

use super::datapath;
use super::fabric::{Cq as CqState, Qp as QpState, Srq as SrqState};
use super::fabric::{LOCAL_WRITE, REMOTE_ATOMIC, REMOTE_WRITE, Region, fabric};
use crate::personas::{Adapter, LinkLayer};

/// A QPN has 24 bits; after the last the first unused one comes again.
const MAX_QPN: u32 = 0x00ff_ffff;

/// `loop0`, or a persona's device, which moves bytes as it does.
pub(crate) struct Loopback {
    pub(crate) table: &'static Adapter,
}

impl Engine for Loopback {
    fn description(&self) -> &dyn Description {
        self.table
    }

    /// EINVAL for remote write or atomics without local write; EOPNOTSUPP for other addresses than the memory's.
    unsafe fn register(&self, region: provider::Region) -> Result<[u32; 2], c_int> {
        let needs_local_write = region.access & (REMOTE_WRITE | REMOTE_ATOMIC) != 0;
        if needs_local_write && region.access & LOCAL_WRITE == 0 {
            return Err(libc::EINVAL);
        }
        if region.iova != region.address {
            return Err(libc::EOPNOTSUPP);
        }
        Ok(fabric().memory.register(Region {
            start: region.address,
            length: region.length_bytes,
            access: region.access,
            pd: region.pd,
        }))
    }

    fn deregister(&self, lkey: u32) -> Result<(), c_int> {
        fabric().memory.forget(lkey);
        Ok(())
    }
}

impl Objects for Loopback {
    type Cq = Cq;
    type Srq = Srq;
    type Qp = Qp;
    type Ah = ();

    fn fill(&self, verbs: &mut verbs_context) {
        let ops = &mut verbs.context.ops;
        ops.post_send = Some(datapath::post_send);
        ops.post_recv = Some(datapath::post_recv);
        ops.post_srq_recv = Some(datapath::post_srq_recv);
        ops.poll_cq = Some(datapath::poll_cq);
        ops.req_notify_cq = Some(datapath::req_notify_cq);
    }

    /// A CQ of exactly so many entries.
    fn create_cq(&self, request: CqRequest) -> Result<Cq, c_int> {
        let (cq, capacity) = (request.cq, request.capacity);
        let state = CqState {
            capacity: capacity as usize,
            entries: VecDeque::new(),
            overflowed: false,
            armed: false,
            events: request.events,
            notifier: request.notifier,
        };
        fabric().cqs.insert(cq, state);
        Ok(Cq { cq, capacity })
    }

    fn create_srq(&self, request: SrqRequest) -> Result<Srq, c_int> {
        let state = SrqState {
            events: request.events,
            max_wr: request.max_wr,
            max_sge: request.max_sge,
            limit: 0,
            receives: VecDeque::new(),
            outstanding: 0,
        };
        fabric().srqs.insert(request.srq, state);
        Ok(Srq(request.srq))
    }

    fn create_qp(&self, request: QpRequest<'_, Loopback>) -> Result<Qp, c_int> {
        let mut fabric = fabric();
        if fabric.qps.len() >= self.table.max_qp as usize {
            return Err(libc::ENOMEM);
        }
        let mut number = fabric.next_qpn;
        while fabric.qps.contains_key(&number) {
            number = (number + 1) & MAX_QPN;
        }
        fabric.next_qpn = (number + 1) & MAX_QPN;
        let init = request.init;
        let state = QpState {
            events: request.events,
            pd: request.pd,
            send_cq: init.send_cq,
            recv_cq: init.recv_cq,
            srq: init.srq,
            // SAFETY: integers and arrays of them: zero is a value of each, and RESET is 0.
            attr: unsafe { std::mem::zeroed() },
            cap: *request.cap,
            sq_sig_all: init.sq_sig_all != 0,
            is_unreliable: init.qp_type == ibv_qp_type::IBV_QPT_UC,
            posts_writes_alone: self.table.posts_writes_alone,
            sends: VecDeque::new(),
            sends_posted: 0,
            sends_freed: 0,
            receives: VecDeque::new(),
            receives_outstanding: 0,
        };
        fabric.qps.insert(number, state);
        Ok(Qp { number, table: self.table })
    }

    /// EOPNOTSUPP: there are no UD QPs.
    fn create_ah(&self, _attr: &ibv_ah_attr) -> Result<(), c_int> {
        Err(libc::EOPNOTSUPP)
    }
}

/// A CQ of the device's table.
pub(crate) struct Cq {
    cq: *mut ibv_cq,
    capacity: u32,
}

// SAFETY: the pointer is only used as a key.
unsafe impl Send for Cq {}
// SAFETY: as above.
unsafe impl Sync for Cq {}

impl CqEngine for Cq {
    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn close(&self) {
        fabric().cqs.remove(&self.cq);
    }
}

/// An SRQ of the device's table.
pub(crate) struct Srq(*mut ibv_srq);

// SAFETY: the pointer is only used as a key.
unsafe impl Send for Srq {}
// SAFETY: as above.
unsafe impl Sync for Srq {}

impl SrqEngine for Srq {
    fn set_limit(&self, limit: u32) {
        if let Some(state) = fabric().srqs.get_mut(&self.0) {
            state.limit = limit;
        }
    }

    fn limit(&self) -> u32 {
        fabric().srqs.get(&self.0).map_or(0, |state| state.limit)
    }

    fn close(&self) {
        fabric().srqs.remove(&self.0);
    }
}

/// A QP of the device's table.
pub(crate) struct Qp {
    number: u32,
    table: &'static Adapter,
}

impl QpEngine for Qp {
    fn number(&self) -> u32 {
        self.number
    }

    fn state(&self, set: u32) -> u32 {
        fabric().qps.get(&self.number).map_or(set, QpState::state)
    }

    /// EINVAL for SQD, for a port and for a GID that the device has not; ETIMEDOUT for a destination that is not its own.
    fn modify(&self, change: &Change<'_>) -> Result<(), c_int> {
        if change.to == ibv_qp_state::IBV_QPS_SQD {
            return Err(libc::EINVAL);
        }
        if change.has(Mask::IBV_QP_AV) {
            check_path(self.table, &change.attr.ah_attr)?;
        }
        let mut fabric = fabric();
        let state = fabric.qps.get_mut(&self.number).ok_or(libc::EINVAL)?;
        // SAFETY: both are plain data, and apart.
        unsafe { (&raw mut state.attr).copy_from_nonoverlapping(change.attr, 1) };
        match change.to {
            ibv_qp_state::IBV_QPS_ERR => fabric.move_to_error(self.number),
            ibv_qp_state::IBV_QPS_RESET => fabric.clear(self.number),
            _ => {}
        }
        Ok(())
    }

    fn close(&self) {
        let mut fabric = fabric();
        fabric.clear(self.number);
        fabric.service.forget(self.number);
        fabric.qps.remove(&self.number);
    }
}

fn check_path(table: &Adapter, path: &ibv_ah_attr) -> Result<(), c_int> {
    let port = table.port_table(path.port_num.into()).ok_or(libc::EINVAL)?;
    if path.is_global == 0 {
        // RoCE has no path without a GRH, and not every InfiniBand network.
        let has_lid = matches!(port.link_layer, LinkLayer::Infiniband) && !port.grh_required;
        return if has_lid { Ok(()) } else { Err(libc::EINVAL) };
    }
    let index = u32::from(path.grh.sgid_index);
    let gid = port.gid.iter().find(|gid| gid.index == index).ok_or(libc::EINVAL)?;
    // SAFETY: both members of the union are the same 16 bytes.
    if unsafe { path.grh.dgid.raw } == gid.gid.octets() { Ok(()) } else { Err(libc::ETIMEDOUT) }
}
