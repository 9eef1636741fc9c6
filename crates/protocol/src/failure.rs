//! Why a run failed, in words: one sentence for what happened, one for what to try.

use datapath::{FailedCompletion, Trouble, WorkerPoolError};
use machine::threads::{self, CoreError, ThreadError};
use results::model::Failure;
use verbs::cm::{CmError, CmTransitionError};
use verbs::{AsyncEvent, VerbsError};

use crate::endpoints::EndpointsError;
use crate::error::{ConnectError, LinkError};
use crate::link::Link;
use crate::message::{NodeFailure, SessionMessage};

/// A run that cannot go on.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct RunFailure {
    /// What happened, as one sentence without a full stop.
    pub message: String,
    /// What the user should try next; `None` where nothing is known to help.
    pub hint: Option<String>,
    /// The request is at fault: exit code 2.
    pub bad_input: bool,
    /// Nothing is at fault but that nothing was measured: exit code 3.
    pub unmeasured: bool,
    /// The peer is gone or out of step: the connection is of no more use.
    pub link_lost: bool,
    /// The user asked to stop.
    pub interrupted: bool,
    /// The nodes that are at fault, where it is known which.
    pub nodes: Vec<String>,
}

impl RunFailure {
    /// A failure of this end's own finding.
    pub fn new(message: impl Into<String>, hint: Option<String>) -> Self {
        RunFailure {
            message: message.into(),
            hint,
            bad_input: false,
            unmeasured: false,
            link_lost: false,
            interrupted: false,
            nodes: Vec::new(),
        }
    }

    /// A request that cannot be met: exit code 2.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        RunFailure { bad_input: true, ..RunFailure::new(message, Some(hint.into())) }
    }

    /// The user asked to stop.
    pub fn interrupted() -> Self {
        RunFailure { interrupted: true, ..RunFailure::new("interrupted", None) }
    }

    /// The server was asked to stop, for the coordinator to know.
    pub fn server_stopped() -> Self {
        RunFailure {
            interrupted: true,
            ..RunFailure::new(
                "the server was stopped",
                Some("start `rocebench serve` there again, with the same options".into()),
            )
        }
    }

    /// Lets the peer know why, if it can still hear it: also that it has broken the protocol.
    pub fn tell(&self, link: &Link) {
        // A link that has ended sends nothing.
        let _ = link.send(SessionMessage::Abort(self.into()));
    }

    /// As it stands in a result.
    pub fn to_result(&self) -> Failure {
        Failure { message: self.message.clone(), hint: self.hint.clone() }
    }

    /// What all workers of an end saw, if it was trouble: the earliest cause, and how much followed.
    pub fn from_trouble<'t, I>(workers: &I) -> Option<Self>
    where
        I: Iterator<Item = &'t Trouble> + Clone,
    {
        let sum = |count: fn(&Trouble) -> u64| workers.clone().map(count).sum::<u64>();
        let flushed = sum(|trouble| trouble.flushed_count);
        let mismatches = sum(|trouble| trouble.mismatch_count);
        if let Some(error) = workers.clone().find_map(|trouble| trouble.refused.as_ref()) {
            return Some(RunFailure::from_verbs(error));
        }
        let first = |failed: fn(&Trouble) -> Option<&FailedCompletion>| {
            workers.clone().filter_map(failed).min_by_key(|failed| failed.seen_raw)
        };
        if let Some(cause) = first(|trouble| trouble.failed.first()) {
            let more = sum(|trouble| trouble.failed_count) - 1;
            let mut message = cause.to_string();
            if more > 0 {
                message += &format!("; {more} more failed for reasons of their own");
            }
            if flushed > 0 {
                message += &format!("; {flushed} were flushed after it");
            }
            return Some(RunFailure::new(message, Some(cause.remedy())));
        }
        if let Some(mismatch) = workers.clone().find_map(|trouble| trouble.mismatches.first()) {
            let more = match mismatches - 1 {
                0 => String::new(),
                more => format!("; {more} more"),
            };
            return Some(RunFailure::new(
                format!("verification failed: {mismatch}{more}"),
                Some(VERIFY_HINT.into()),
            ));
        }
        let flush = first(|trouble| trouble.first_flush.as_ref())?;
        Some(RunFailure::new(
            format!("{flush}; {flushed} in all, none of them is the cause"),
            Some(
                "look at the peer's output and at `dmesg`: no completion says why the QP failed"
                    .into(),
            ),
        ))
    }

    /// A verbs call that failed at this end, with the hint for its error.
    pub fn from_verbs(error: &VerbsError) -> Self {
        // So the embedded device says that it has no thread: calls that would wait do not fail by it.
        let has_no_thread = matches!(error, VerbsError::Call { source, .. } if source.raw_os_error() == Some(libc::EAGAIN));
        let hint = if has_no_thread { Some(threads::REMEDY.to_owned()) } else { error.hint() };
        RunFailure { bad_input: error.is_bad_input(), ..RunFailure::new(error.to_string(), hint) }
    }

    /// An asynchronous event that ends a run; `None` for one that does not.
    pub fn from_event(event: AsyncEvent, device: &str, cq_entries: u32) -> Option<Self> {
        let dmesg = "look at `dmesg` and at the peer's output";
        let (message, hint) = match event {
            AsyncEvent::CqError { .. } => (
                format!(
                    "a CQ of {device} with {cq_entries} entries overflowed: completions are lost"
                ),
                "leave --cq-depth out, so that each CQ has room for everything outstanding, or raise it; more \
                 --workers empty a CQ faster",
            ),
            AsyncEvent::QpError { qpn, name } => {
                (format!("QP number {qpn:#08x} of {device} failed: event {name}"), dmesg)
            }
            AsyncEvent::SrqError { .. } => {
                (format!("an SRQ of {device} failed: event SRQ_ERR"), dmesg)
            }
            AsyncEvent::DeviceFatal => (format!("{device} reported a fatal error"), dmesg),
            AsyncEvent::PortError { port } => (
                format!("port {port} of {device} went down"),
                "check the link and bring the interface up again",
            ),
            AsyncEvent::SrqLimit { .. } | AsyncEvent::Other => return None,
        };
        Some(RunFailure::new(message, Some(hint.into())))
    }
}

/// What to do about wrong payloads.
pub const VERIFY_HINT: &str = "check memory, cables and firmware: the device or the network corrupts data; a smaller \
                               --size and --qps may show where it begins";

impl From<&RunFailure> for NodeFailure {
    fn from(failure: &RunFailure) -> Self {
        NodeFailure {
            bad_input: failure.bad_input,
            ..NodeFailure::new(&*failure.message, failure.hint.clone())
        }
    }
}

impl From<NodeFailure> for RunFailure {
    fn from(failure: NodeFailure) -> Self {
        RunFailure { bad_input: failure.bad_input, ..RunFailure::new(failure.reason, failure.hint) }
    }
}

impl From<ThreadError> for RunFailure {
    fn from(error: ThreadError) -> Self {
        RunFailure::new(error.to_string(), Some(threads::REMEDY.to_owned()))
    }
}

impl From<LinkError> for RunFailure {
    fn from(error: LinkError) -> Self {
        RunFailure {
            bad_input: error.bad_input(),
            link_lost: error.is_final(),
            interrupted: matches!(error, LinkError::Interrupted { .. }),
            ..RunFailure::new(error.to_string(), error.hint())
        }
    }
}

impl From<VerbsError> for RunFailure {
    fn from(error: VerbsError) -> Self {
        RunFailure::from_verbs(&error)
    }
}

impl From<ConnectError> for RunFailure {
    fn from(error: ConnectError) -> Self {
        RunFailure {
            bad_input: error.bad_input(),
            interrupted: error.is_interrupt(),
            ..RunFailure::new(error.to_string(), error.hint())
        }
    }
}

impl From<WorkerPoolError> for RunFailure {
    fn from(error: WorkerPoolError) -> Self {
        match error {
            WorkerPoolError::Spawn(error) => error.into(),
            error => RunFailure {
                bad_input: matches!(error, WorkerPoolError::Core(_)),
                ..RunFailure::new(error.to_string(), None)
            },
        }
    }
}

impl From<CmError> for RunFailure {
    fn from(error: CmError) -> Self {
        RunFailure {
            bad_input: error.is_bad_input(),
            ..RunFailure::new(error.to_string(), Some(error.hint()))
        }
    }
}

impl From<CmTransitionError> for RunFailure {
    fn from(error: CmTransitionError) -> Self {
        match error {
            CmTransitionError::Cm(error) => error.into(),
            CmTransitionError::Verbs(error) => error.into(),
        }
    }
}

impl From<CoreError> for RunFailure {
    fn from(error: CoreError) -> Self {
        RunFailure { bad_input: true, ..RunFailure::new(error.to_string(), None) }
    }
}

impl From<EndpointsError> for RunFailure {
    fn from(error: EndpointsError) -> Self {
        RunFailure {
            bad_input: error.is_bad_input(),
            ..RunFailure::new(error.to_string(), Some(error.hint()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_without_a_completion_ends_a_run_with_its_name() {
        let sentence = |event| {
            let failure = RunFailure::from_event(event, "mlx5_0", 64);
            failure.map(|failure| failure.message)
        };
        for (event, message) in [
            (AsyncEvent::SrqError { srq: 1 }, "an SRQ of mlx5_0 failed: event SRQ_ERR"),
            (AsyncEvent::DeviceFatal, "mlx5_0 reported a fatal error"),
            (AsyncEvent::PortError { port: 1 }, "port 1 of mlx5_0 went down"),
        ] {
            assert_eq!(sentence(event).as_deref(), Some(message));
        }
        assert_eq!(sentence(AsyncEvent::SrqLimit { srq: 1 }), None);
    }
}
