//! The verbs objects that a node needs to set QPs up and destroy them, and the steps common to all methods of
//! connecting. The QPs carry no data, so their queues are as small as possible.

use std::sync::Arc;

use plan::Case;
use verbs::{
    CompletionQueue, Port, ProtectionDomain, QpCapacity, QueuePair, VerbsError, tear_down,
};

use super::steps::{SetupStep, StepTimes};
use super::watch::Watch;
use crate::connect_cm::Connections;
use crate::run::EarlyEnd;
use protocol::failure::RunFailure;

/// Queue sizes of QPs that carry no data.
pub(crate) const CAPACITY: QpCapacity =
    QpCapacity { send_wr: 1, recv_wr: 1, inline_bytes: 0, sges: 1 };

/// A node's objects for setting QPs up.
pub(crate) struct SetupObjects<'a> {
    pub(crate) port: &'a Port,
    pub(crate) case: &'a Case,
    pd: Arc<ProtectionDomain>,
    cq: Arc<CompletionQueue>,
}

/// The QPs of a round in RTS, and the parameters that both nodes agreed on.
pub(crate) struct ConnectedQps {
    pub(crate) qps: Vec<Arc<QueuePair>>,
    /// Their rdma_cm connections.
    pub(crate) connections: Option<Connections>,
    pub(crate) path_mtu_bytes: u32,
    pub(crate) outstanding_reads: u8,
}

impl<'a> SetupObjects<'a> {
    /// # Errors
    /// More QPs than the device has; a failed call.
    pub(crate) fn new(port: &'a Port, case: &'a Case) -> Result<Self, RunFailure> {
        let pd = ProtectionDomain::new(&port.context)?;
        Ok(SetupObjects { port, case, pd, cq: CompletionQueue::new(&port.context, 2)? })
    }

    /// Creates the QPs of a round.
    ///
    /// # Errors
    /// The first call that failed, or an error that `watch` found.
    pub(crate) fn create(
        &self,
        watch: &mut Watch<'_, '_>,
        times: &mut StepTimes,
    ) -> Result<Vec<Arc<QueuePair>>, EarlyEnd> {
        let mut qps = Vec::with_capacity(self.case.qps as usize);
        for index in 0..self.case.qps as usize {
            watch.step()?;
            let made = times
                .time(SetupStep::Create, || QueuePair::new(&self.pd, &self.cq, &self.cq, CAPACITY));
            qps.push(made.map_err(|error| failed(SetupStep::Create, index, self.case.qps, error))?);
        }
        Ok(qps)
    }

    /// Does one step for each QP.
    ///
    /// # Errors
    /// The first call that failed, or an error that `watch` found.
    pub(crate) fn each(
        &self,
        step: SetupStep,
        qps: &[Arc<QueuePair>],
        watch: &mut Watch<'_, '_>,
        times: &mut StepTimes,
        mut body: impl FnMut(usize, &QueuePair) -> Result<(), VerbsError>,
    ) -> Result<(), EarlyEnd> {
        for (index, qp) in qps.iter().enumerate() {
            watch.step()?;
            times
                .time(step, || body(index, qp))
                .map_err(|error| failed(step, index, self.case.qps, error))?;
        }
        Ok(())
    }

    /// Destroys the QPs of a round and their connections.
    ///
    /// # Errors
    /// The first call that failed, or an error that `watch` found.
    pub(crate) fn destroy(
        &self,
        mut connected: ConnectedQps,
        watch: &mut Watch<'_, '_>,
        times: &mut StepTimes,
    ) -> Result<(), EarlyEnd> {
        for (index, qp) in connected.qps.into_iter().enumerate() {
            watch.step()?;
            times
                .time(SetupStep::Destroy, || {
                    if let Some(connections) = &mut connected.connections {
                        connections.end(index);
                    }
                    tear_down(qp)
                })
                .map_err(|error| failed(SetupStep::Destroy, index, self.case.qps, error))?;
        }
        Ok(())
    }
}

/// A failed call, with its step and the index of its QP.
pub(crate) fn failed(
    step: SetupStep,
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
    use results::sample::has;
    use verbs::Operation;

    #[test]
    fn a_failed_step_names_itself_its_queue_pair_and_the_error() {
        let error = VerbsError::Call {
            operation: Operation::ModifyToRtr { gid_index: Some(1) },
            object: "rxe0 QP 0x000011".into(),
            source: std::io::Error::from_raw_os_error(libc::ETIMEDOUT),
        };
        let failure = failed(SetupStep::Rtr, 16, 64, error);
        let words = ["set-up step rtr failed at QP 17 of 64", "rxe0 QP 0x000011", "os error 110"];
        has(failure.message, words);
        has(failure.hint.unwrap(), ["ping"]);
    }
}
