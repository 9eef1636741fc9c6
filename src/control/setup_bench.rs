//! What one end needs to set QPs up and destroy them again, and the steps that every way of connecting has. The QPs
//! carry nothing, so their queues are as small as can be.

use std::sync::Arc;

use crate::plan::Case;
use crate::verbs::{
    CompletionQueue, Port, ProtectionDomain, QpCapacity, QueuePair, VerbsError, tear_down,
};

use super::failure::RunFailure;
use super::needs::Side;
use super::rig::Broken;
use super::setup_steps::{Step, StepTimes};
use super::setup_tcp;
use super::setup_watch::Watch;

/// Room in the queues of QPs that carry nothing.
const CAPACITY: QpCapacity = QpCapacity {
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
}

/// Both ends' QPs of a round in RTS, and what they agreed on.
pub(super) struct Connected {
    pub(super) qps: Vec<Arc<QueuePair>>,
    pub(super) path_mtu_bytes: u32,
    pub(super) outstanding_reads: u8,
}

impl<'a> Bench<'a> {
    /// # Errors
    /// More QPs than the device has; a failed call.
    pub(super) fn new(port: &'a Port, case: &'a Case) -> Result<Self, RunFailure> {
        let traffic = case.setup.map_or(0, |setup| setup.traffic_qps);
        let (needed, limit) = (u64::from(case.qps) + u64::from(traffic), port.limits.max_qp);
        if limit > 0 && needed > limit {
            return Err(VerbsError::DeviceLimit {
                device: port.context.name().to_owned(),
                what: "QPs",
                limit,
                needed,
                flags: "--qps or --traffic-qps",
            }
            .into());
        }
        let pd = ProtectionDomain::new(&port.context)?;
        Ok(Bench {
            port,
            case,
            pd,
            cq: CompletionQueue::new(&port.context, 2)?,
        })
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
        setup_tcp::connect(self, side, watch, times)
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
            watch.look()?;
            let made = times.time(Step::Create, || {
                QueuePair::new(&self.pd, &self.cq, &self.cq, CAPACITY)
            });
            qps.push(made.map_err(|error| failed(Step::Create, index, self.case.qps, &error))?);
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
            watch.look()?;
            times
                .time(step, || body(index, qp))
                .map_err(|error| failed(step, index, self.case.qps, &error))?;
        }
        Ok(())
    }

    /// Destroys the QPs of a round.
    ///
    /// # Errors
    /// The first that failed, or what `watch` saw.
    pub(super) fn destroy(
        &self,
        qps: Vec<Arc<QueuePair>>,
        watch: &mut Watch<'_>,
        times: &mut StepTimes,
    ) -> Result<(), Broken> {
        for (index, qp) in qps.into_iter().enumerate() {
            watch.look()?;
            times
                .time(Step::Destroy, || tear_down(qp))
                .map_err(|error| failed(Step::Destroy, index, self.case.qps, &error))?;
        }
        Ok(())
    }
}

/// A failed call, with its step and which of the round's QPs it was.
fn failed(step: Step, index: usize, qps: u32, error: &VerbsError) -> RunFailure {
    let known = RunFailure::from_verbs(error);
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
    use crate::verbs::Operation;

    #[test]
    fn a_failed_step_names_itself_its_queue_pair_and_the_error() {
        let error = VerbsError::Call {
            operation: Operation::ModifyToRtr { gid_index: Some(1) },
            object: "rxe0 QP 0x000011".into(),
            source: std::io::Error::from_raw_os_error(libc::ETIMEDOUT),
        };
        let failure = failed(Step::Rtr, 16, 64, &error);
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
