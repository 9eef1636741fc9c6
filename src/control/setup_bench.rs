//! What one end needs to set QPs up and destroy them again, and the steps that every way of connecting has. The QPs
//! carry nothing, so their queues are as small as can be.

use std::sync::Arc;

use crate::plan::{Case, ConnectMode};
use verbs::{
    CompletionQueue, Port, ProtectionDomain, QpCapacity, QueuePair, VerbsError, tear_down,
};

use super::connect_cm::Connections;
use super::device_limits::DeviceLimits;
use super::failure::RunFailure;
use super::needs::Side;
use super::rig::Broken;
use super::setup_cm::{self, Meeting};
use super::setup_steps::{Step, StepTimes};
use super::setup_tcp;
use super::setup_watch::Watch;

/// Room in the queues of QPs that carry nothing.
pub(super) const CAPACITY: QpCapacity = QpCapacity {
    send_wr: 1,
    recv_wr: 1,
    inline_bytes: 0,
};

/// An end that sets QPs up.
pub(super) struct Bench<'a> {
    pub(super) port: &'a Port,
    pub(super) case: &'a Case,
    pd: Arc<ProtectionDomain>,
    cq: Arc<CompletionQueue>,
    /// Where QPs meet through rdma_cm.
    meeting: Option<Meeting>,
}

/// Both ends' QPs of a round in RTS, and what they agreed on.
pub(super) struct Connected {
    pub(super) qps: Vec<Arc<QueuePair>>,
    /// rdma_cm's half of them.
    pub(super) connections: Option<Connections>,
    pub(super) path_mtu_bytes: u32,
    pub(super) outstanding_reads: u8,
}

impl<'a> Bench<'a> {
    /// # Errors
    /// More QPs than the device has; a failed call.
    pub(super) fn new(port: &'a Port, case: &'a Case, side: Side) -> Result<Self, RunFailure> {
        DeviceLimits::of(port).check(case, side)?;
        let pd = ProtectionDomain::new(&port.context)?;
        Ok(Bench {
            port,
            case,
            pd,
            cq: CompletionQueue::new(&port.context, 2)?,
            meeting: None,
        })
    }

    /// Prepares what the case's way of connecting needs for all rounds.
    ///
    /// # Errors
    /// A way that the port does not have, a failed call, or what `watch` saw.
    pub(super) fn arrange(&mut self, side: Side, watch: &mut Watch<'_>) -> Result<(), Broken> {
        if self.case.connect == ConnectMode::Cm {
            self.meeting = Some(Meeting::arrange(self, side, watch)?);
        }
        Ok(())
    }

    /// Brings the QPs of a round from nothing to RTS at this end, in the way of the case.
    ///
    /// # Errors
    /// A failed step, the peer's end or fault, or what `watch` saw.
    pub(super) fn connect(
        &self,
        side: Side,
        watch: &mut Watch<'_>,
        times: &mut StepTimes,
    ) -> Result<Connected, Broken> {
        match &self.meeting {
            None => setup_tcp::connect(self, side, watch, times),
            Some(meeting) => setup_cm::connect(self, meeting, watch, times),
        }
    }

    /// Creates the QPs of a round.
    ///
    /// # Errors
    /// The first that failed, or what `watch` saw.
    pub(super) fn create(
        &self,
        watch: &mut Watch<'_>,
        times: &mut StepTimes,
    ) -> Result<Vec<Arc<QueuePair>>, Broken> {
        let mut qps = Vec::with_capacity(self.case.qps as usize);
        for index in 0..self.case.qps as usize {
            watch.step()?;
            let made = times.time(Step::Create, || {
                QueuePair::new(&self.pd, &self.cq, &self.cq, CAPACITY)
            });
            qps.push(made.map_err(|error| failed(Step::Create, index, self.case.qps, error))?);
        }
        Ok(qps)
    }

    /// Does one step to each QP.
    ///
    /// # Errors
    /// The first that failed, or what `watch` saw.
    pub(super) fn each(
        &self,
        step: Step,
        qps: &[Arc<QueuePair>],
        watch: &mut Watch<'_>,
        times: &mut StepTimes,
        mut body: impl FnMut(usize, &QueuePair) -> Result<(), VerbsError>,
    ) -> Result<(), Broken> {
        for (index, qp) in qps.iter().enumerate() {
            watch.step()?;
            times
                .time(step, || body(index, qp))
                .map_err(|error| failed(step, index, self.case.qps, error))?;
        }
        Ok(())
    }

    /// Destroys the QPs of a round, and the connections that they have.
    ///
    /// # Errors
    /// The first that failed, or what `watch` saw.
    pub(super) fn destroy(
        &self,
        mut connected: Connected,
        watch: &mut Watch<'_>,
        times: &mut StepTimes,
    ) -> Result<(), Broken> {
        for (index, qp) in connected.qps.into_iter().enumerate() {
            watch.step()?;
            times
                .time(Step::Destroy, || {
                    if let Some(connections) = &mut connected.connections {
                        connections.end(index);
                    }
                    tear_down(qp)
                })
                .map_err(|error| failed(Step::Destroy, index, self.case.qps, error))?;
        }
        Ok(())
    }
}

/// A failed call, with its step and which of the round's QPs it was.
pub(super) fn failed(
    step: Step,
    index: usize,
    qps: u32,
    error: impl Into<RunFailure>,
) -> RunFailure {
    let known = error.into();
    RunFailure {
        message: format!(
            "set-up step {} failed at QP {} of {qps}: {}",
            step.name(),
            index + 1,
            known.message
        ),
        ..known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbs::Operation;

    #[test]
    fn a_failed_step_names_itself_its_queue_pair_and_the_error() {
        let error = VerbsError::Call {
            operation: Operation::ModifyToRtr { gid_index: Some(1) },
            object: "rxe0 QP 0x000011".into(),
            source: std::io::Error::from_raw_os_error(libc::ETIMEDOUT),
        };
        let failure = failed(Step::Rtr, 16, 64, error);
        for words in [
            "set-up step rtr failed at QP 17 of 64",
            "rxe0 QP 0x000011",
            "os error 110",
        ] {
            assert!(failure.message.contains(words), "{failure}");
        }
        assert!(failure.hint.unwrap().contains("ping"));
    }
}
