//! What the device of an end can do, told to the other end, and a whole sweep checked against both before its first
//! run.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::datapath::Geometry;
use crate::plan::{Case, Sweep};
use verbs::{Port, VerbsError};

use super::failure::RunFailure;
use super::memory_needs::admit_sweep;
use super::message::Message;
use super::needs::{Duties, Needs, Side};
use super::run::ANSWER_LIMIT;
use super::session::Session;

/// What the device and the port of an end can do; 0 is a limit that the device does not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Name of the device.
    pub device: String,
    /// QPs.
    pub qps: u64,
    /// CQs.
    pub cqs: u64,
    /// WRs outstanding on one queue of a QP.
    pub wrs_of_a_queue: u64,
    /// Entries of one CQ.
    pub entries_of_a_cq: u64,
    /// Bytes of one message.
    pub message_bytes: u64,
}

impl DeviceLimits {
    /// Of an open port.
    pub(super) fn of(port: &Port) -> DeviceLimits {
        DeviceLimits {
            device: port.context.name().to_owned(),
            qps: port.limits.max_qp,
            cqs: port.limits.max_cq,
            wrs_of_a_queue: port.limits.max_qp_wr,
            entries_of_a_cq: port.limits.max_cqe,
            message_bytes: port.info.max_message_bytes.into(),
        }
    }

    /// Whether the device can give what a case takes of it at `side`.
    ///
    /// # Errors
    /// The first limit that the case exceeds.
    pub(super) fn check(&self, case: &Case, side: Side) -> Result<(), VerbsError> {
        if let Some(setup) = case.setup {
            let qps = u64::from(case.qps) + u64::from(setup.traffic_qps);
            self.allow("QPs", self.qps, qps, "--qps or --traffic-qps")?;
            return case
                .moving()
                .map_or(Ok(()), |moving| self.check(&moving, side));
        }
        let needs = Needs::of(case, &Geometry::of(case), Duties::of(case, side));
        for (what, limit, needed, flags) in [
            ("QPs", self.qps, u64::from(case.qps), "--qps"),
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
                case.size_bytes.into(),
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

/// Checks all cases of a sweep against the devices and the memory of both ends.
///
/// # Errors
/// The first case that either cannot do, by name; or the server does not answer.
pub(super) fn check_sweep(
    sweep: &Sweep,
    session: &Session,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let link = &session.link;
    link.send(&Message::AskLimits)?;
    let (theirs, their_memory) = match link.recv(ANSWER_LIMIT, stop)? {
        Message::Limits { device, memory } => (*device, memory),
        other => return Err(link.unexpected("limits", &other).into()),
    };
    let ours = DeviceLimits::of(session.station.port());
    let ends = [
        (ours, Side::Client, ""),
        (theirs, Side::Server, "at the server: "),
    ];
    for (limits, side, whose) in &ends {
        for case in &sweep.cases {
            limits.check(case, *side).map_err(|error| RunFailure {
                message: format!("{}: {whose}{error}", case.id),
                ..RunFailure::from_verbs(&error)
            })?;
        }
    }
    admit_sweep(sweep, session, &their_memory)
}
