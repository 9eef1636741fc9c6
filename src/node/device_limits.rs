//! Compares the requirements of a flow with the limits of an end's device.

use crate::datapath::Geometry;
use crate::protocol::device_limits::DeviceLimits;
use settings::Settings;
use verbs::{Port, VerbsError};

use super::needs::{EndRoles, Needs};
use crate::plan::{Case, Side};

impl DeviceLimits {
    /// The limits of an open port.
    pub(crate) fn of(port: &Port) -> DeviceLimits {
        DeviceLimits {
            device: port.context.name().to_owned(),
            qps: port.limits.max_qp,
            cqs: port.limits.max_cq,
            wrs_of_a_queue: port.limits.max_qp_wr,
            entries_of_a_cq: port.limits.max_cqe,
            message_bytes: port.info.max_message_bytes.into(),
        }
    }

    /// Checks that the device can provide what the case requires at node number `node`.
    ///
    /// # Errors
    /// The first limit that the case exceeds.
    pub(crate) fn check(&self, case: &Case, node: u32) -> Result<(), VerbsError> {
        // Of a device that a flow asks for the node finds out when it opens it.
        let ends = || {
            case.ends_at(node)
                .filter(|(_, flow, side)| flow.device(*side).is_none())
        };
        let traffic: u64 = ends().map(|(_, flow, _)| u64::from(flow.qps)).sum();
        if case.is_set_up() {
            let qps = u64::from(case.qps) + traffic;
            self.allow("QPs", self.qps, qps, "--qps or --traffic-qps")?;
        }
        self.allow("QPs", self.qps, traffic, "--qps")?;
        ends().try_for_each(|(_, flow, side)| self.check_flow(flow, side))
    }

    /// Checks that the device can provide what an end of a flow requires.
    ///
    /// # Errors
    /// The first limit that it exceeds.
    pub(crate) fn check_flow(&self, flow: &Settings, side: Side) -> Result<(), VerbsError> {
        let needs = Needs::of(flow, &Geometry::of(flow), EndRoles::of(flow, side));
        for (what, limit, needed, flags) in [
            ("QPs", self.qps, u64::from(flow.qps), "--qps"),
            (
                "CQs",
                self.cqs,
                needs.cqs.into(),
                "--qps, or use --cq shared",
            ),
            (
                "send WRs on one QP",
                self.wrs_of_a_queue,
                needs.capacity.send_wr.into(),
                "--tx-depth",
            ),
            (
                "receive WRs on one QP",
                self.wrs_of_a_queue,
                needs.capacity.recv_wr.into(),
                "--rx-depth",
            ),
            (
                "entries in one CQ",
                self.entries_of_a_cq,
                needs.cq_entries.into(),
                "--qps, --rx-depth or --tx-depth, or use --cq per-qp",
            ),
            (
                "bytes in one message",
                self.message_bytes,
                flow.size_bytes.into(),
                "--size",
            ),
        ] {
            self.allow(what, limit, needed, flags)?;
        }
        Ok(())
    }

    fn allow(
        &self,
        what: &'static str,
        limit: u64,
        needed: u64,
        flags: &'static str,
    ) -> Result<(), VerbsError> {
        if limit == 0 || needed <= limit {
            return Ok(());
        }
        Err(VerbsError::DeviceLimit {
            device: self.device.clone(),
            what,
            limit,
            needed,
            flags,
        })
    }
}
