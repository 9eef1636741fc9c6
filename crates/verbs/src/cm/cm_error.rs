//! Errors of the steps from an IP address to an established connection, with advice.

use std::{fmt, io};

use rdma_sys::rdma_cm_event_type as header;

use crate::error::calls;

calls! {
    /// A step of setting a connection up, by its call of librdmacm.
    CmStep {
        CreateEventChannel = "rdma_create_event_channel",
        GetCmEvent = "rdma_get_cm_event",
        CreateId = "rdma_create_id",
        BindAddr = "rdma_bind_addr",
        Listen = "rdma_listen",
        ResolveAddr = "rdma_resolve_addr",
        ResolveRoute = "rdma_resolve_route",
        Connect = "rdma_connect",
        Accept = "rdma_accept",
        Establish = "rdma_establish",
        Reject = "rdma_reject",
        /// With the QP state whose attributes were asked for.
        InitQpAttr { state: &'static str } = "rdma_init_qp_attr",
    }
}

impl fmt::Display for CmStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            CmStep::InitQpAttr { state } => write!(f, " ({state})"),
            _ => Ok(()),
        }
    }
}

/// Why a connection was rejected (InfiniBand specification volume 1, table 112).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectReason(pub i32);

impl RejectReason {
    /// No program listens on the port.
    pub const NO_LISTENER: RejectReason = RejectReason(8);
    /// The other end still remembers the QP's last connection.
    pub const STALE: RejectReason = RejectReason(10);
    /// The listening program refused it.
    pub const BY_THE_LISTENER: RejectReason = RejectReason(28);

    fn meaning(self) -> &'static str {
        match self.0 {
            1 => "no QP available",
            3 => "no resources",
            4 => "timeout",
            6 | 7 => "unknown communication id",
            8 => "no program listens on that port",
            9 => "transport service not supported",
            10 => "stale connection",
            12 | 18 => "GID not accepted",
            14 | 20 => "service level not accepted",
            15 | 21 => "traffic class not accepted",
            16 | 22 => "hop limit not accepted",
            17 | 23 => "packet rate not accepted",
            26 => "MTU not accepted",
            27 => "too few responder resources",
            28 => "refused by the program that listens",
            29 => "RNR retry count not accepted",
            30 => "duplicate communication id",
            _ => "no text for this reason",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reason {} ({})", self.0, self.meaning())
    }
}

/// A connection failed in rdma_cm.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum CmError {
    #[error("--connect cm needs librdmacm, which cannot be loaded: {detail}")]
    NoLibrary { detail: String },
    #[error("{step} failed for {object}: {source}")]
    Call { step: CmStep, object: String, source: io::Error },
    #[error("{step} failed for {object}: event {event}, {}", status_text(*.status))]
    Event {
        step: CmStep,
        /// The QP, and both addresses.
        object: String,
        event: CmEventKind,
        /// The event's status, a negative error number.
        status: i32,
    },
    #[error("{object} was rejected: {reason}{}", .text.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Rejected {
        /// The QP, and both addresses.
        object: String,
        reason: RejectReason,
        text: Option<String>,
    },
    /// rdma_cm chose another device, port or GID for the address than the run uses.
    #[error("rdma_cm takes {taken} for {address}, but this run uses {wanted}")]
    OtherPort {
        address: String,
        /// The port or GID index that rdma_cm chose.
        taken: String,
        wanted: String,
    },
}

impl CmError {
    /// The error of a call whose error number is in `errno`.
    pub(super) fn last(step: CmStep, object: impl Into<String>) -> Self {
        CmError::Call { step, object: object.into(), source: io::Error::last_os_error() }
    }

    /// Whether the request is at fault, rather than the run.
    pub fn is_bad_input(&self) -> bool {
        match self {
            CmError::NoLibrary { .. } | CmError::OtherPort { .. } => true,
            CmError::Call { step, .. } => *step == CmStep::CreateEventChannel,
            CmError::Event { .. } | CmError::Rejected { .. } => false,
        }
    }

    pub fn hint(&self) -> String {
        match self {
            CmError::NoLibrary { .. } => {
                "install it (`apt-get install librdmacm1`), or connect without it: --connect tcp".into()
            }
            CmError::Call { step, source, .. } => call_hint(*step, source.raw_os_error()).into(),
            CmError::Event { event, status, .. } => event_hint(*event, status.saturating_neg()).into(),
            CmError::Rejected { reason, text, .. } => reject_hint(*reason, text.is_some()).into(),
            CmError::OtherPort { .. } => {
                "choose the device, port and GID that owns this address with --device, --ib-port and --gid-index \
                 (`rocebench devices` lists them), or use --connect tcp, which needs no IP address of the port"
                    .into()
            }
        }
    }
}

/// The status of an event that failed.
fn status_text(status: i32) -> String {
    match status {
        0 => "without a status".to_owned(),
        ..0 => io::Error::from_raw_os_error(status.saturating_neg()).to_string(),
        1.. => format!("status {status}"),
    }
}

fn call_hint(step: CmStep, errno: Option<i32>) -> &'static str {
    match (step, errno) {
        (CmStep::CreateEventChannel, Some(libc::EACCES | libc::EPERM)) => {
            "get permission with `sudo chmod a+rw /dev/infiniband/rdma_cm` or a udev rule for your group; --connect \
             tcp does not need it"
        }
        (CmStep::CreateEventChannel, Some(libc::EMFILE | libc::ENFILE)) => {
            "raise `ulimit -n`: too many files are open"
        }
        (CmStep::CreateEventChannel, _) => {
            "run `sudo modprobe rdma_ucm`: /dev/infiniband/rdma_cm is missing (give a container that device too); \
             --connect tcp does not need it"
        }
        (CmStep::BindAddr, Some(libc::ENODEV | libc::EADDRNOTAVAIL)) => {
            "choose another GID with --gid-index: rdma_cm finds no RDMA device with this address; compare `ip addr` \
             and `rocebench devices`"
        }
        (CmStep::ResolveAddr, Some(libc::ENODEV | libc::EADDRNOTAVAIL)) => {
            "choose the device in the right network with --device: the route to the peer leaves by another (`ip \
             route get PEER from ADDRESS`)"
        }
        (CmStep::ResolveAddr, Some(libc::ENETUNREACH | libc::EHOSTUNREACH)) => {
            "choose other GIDs with --gid-index: this one's interface has no route to the peer's address"
        }
        (_, Some(libc::ENOMEM)) => "lower --qps: the kernel has no memory left for connections",
        (_, Some(libc::ENODEV)) => {
            "look at `dmesg` and `rdma link`: the device went away, or was renamed"
        }
        _ => "`dmesg` may say more; --connect tcp does not need rdma_cm",
    }
}

fn event_hint(event: CmEventKind, errno: i32) -> &'static str {
    match (event, errno) {
        (CmEventKind::AddrError, libc::ETIMEDOUT | libc::EHOSTUNREACH) => {
            "ping the peer from this interface, and see `ip neigh`: its hardware address was not found"
        }
        (CmEventKind::AddrError, _) => {
            "choose devices in one network with --device and --gid-index at both ends: the route to the peer leaves \
             by another (`ip route get PEER from ADDRESS`)"
        }
        (CmEventKind::RouteError, _) => {
            "check that the network interface of this device is up; look at `dmesg`"
        }
        (CmEventKind::Unreachable | CmEventKind::ConnectError, libc::ETIMEDOUT | 0) => {
            "check that UDP port 4791 is open between both ends (`rocebench doctor HOST`): the peer's connection \
             manager does not answer; --connect tcp shows whether data passes"
        }
        (CmEventKind::DeviceRemoval, _) => "look at `dmesg`: the device was removed",
        _ => "look at `dmesg` of both ends; --connect tcp does not need rdma_cm",
    }
}

fn reject_hint(reason: RejectReason, has_words: bool) -> &'static str {
    match reason {
        RejectReason::NO_LISTENER => {
            "read the server's output, and check that no two hosts have this address: the server has ended, or \
             another host answered"
        }
        RejectReason::STALE => {
            "try again after some seconds: the other end still has an earlier connection with this QP number"
        }
        RejectReason::BY_THE_LISTENER if !has_words => {
            "choose devices in one network with --device and --gid-index at both ends: the peer's route back leaves \
             by another interface (`ip route get ADDRESS` there)"
        }
        RejectReason::BY_THE_LISTENER => {
            "check that no two hosts have the server's address, and repeat the run"
        }
        RejectReason(26) => "give a smaller --mtu",
        _ => "look at `dmesg` of the other end; --connect tcp does not need rdma_cm",
    }
}

/// The kind of an event of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is RDMA_CM_EVENT_ and its name
pub enum CmEventKind {
    AddrResolved,
    AddrError,
    RouteResolved,
    RouteError,
    ConnectRequest,
    ConnectResponse,
    ConnectError,
    Unreachable,
    Rejected,
    Established,
    Disconnected,
    DeviceRemoval,
    AddrChange,
    TimewaitExit,
    /// A kind that does not concern connections, or that a newer kernel sends.
    Other(u32),
}

impl CmEventKind {
    pub(super) fn from_code(code: u32) -> Self {
        match code {
            header::RDMA_CM_EVENT_ADDR_RESOLVED => CmEventKind::AddrResolved,
            header::RDMA_CM_EVENT_ADDR_ERROR => CmEventKind::AddrError,
            header::RDMA_CM_EVENT_ROUTE_RESOLVED => CmEventKind::RouteResolved,
            header::RDMA_CM_EVENT_ROUTE_ERROR => CmEventKind::RouteError,
            header::RDMA_CM_EVENT_CONNECT_REQUEST => CmEventKind::ConnectRequest,
            header::RDMA_CM_EVENT_CONNECT_RESPONSE => CmEventKind::ConnectResponse,
            header::RDMA_CM_EVENT_CONNECT_ERROR => CmEventKind::ConnectError,
            header::RDMA_CM_EVENT_UNREACHABLE => CmEventKind::Unreachable,
            header::RDMA_CM_EVENT_REJECTED => CmEventKind::Rejected,
            header::RDMA_CM_EVENT_ESTABLISHED => CmEventKind::Established,
            header::RDMA_CM_EVENT_DISCONNECTED => CmEventKind::Disconnected,
            header::RDMA_CM_EVENT_DEVICE_REMOVAL => CmEventKind::DeviceRemoval,
            header::RDMA_CM_EVENT_ADDR_CHANGE => CmEventKind::AddrChange,
            header::RDMA_CM_EVENT_TIMEWAIT_EXIT => CmEventKind::TimewaitExit,
            code => CmEventKind::Other(code),
        }
    }

    /// Whether `param.conn` of the event is filled.
    pub(super) fn has_connection(self) -> bool {
        matches!(
            self,
            CmEventKind::ConnectRequest
                | CmEventKind::ConnectResponse
                | CmEventKind::Rejected
                | CmEventKind::Established
        )
    }
}

impl fmt::Display for CmEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            CmEventKind::AddrResolved => "ADDR_RESOLVED",
            CmEventKind::AddrError => "ADDR_ERROR",
            CmEventKind::RouteResolved => "ROUTE_RESOLVED",
            CmEventKind::RouteError => "ROUTE_ERROR",
            CmEventKind::ConnectRequest => "CONNECT_REQUEST",
            CmEventKind::ConnectResponse => "CONNECT_RESPONSE",
            CmEventKind::ConnectError => "CONNECT_ERROR",
            CmEventKind::Unreachable => "UNREACHABLE",
            CmEventKind::Rejected => "REJECTED",
            CmEventKind::Established => "ESTABLISHED",
            CmEventKind::Disconnected => "DISCONNECTED",
            CmEventKind::DeviceRemoval => "DEVICE_REMOVAL",
            CmEventKind::AddrChange => "ADDR_CHANGE",
            CmEventKind::TimewaitExit => "TIMEWAIT_EXIT",
            CmEventKind::Other(code) => return write!(f, "RDMA_CM_EVENT number {code}"),
        };
        write!(f, "RDMA_CM_EVENT_{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_tells_step_object_and_cause() {
        let error = CmError::Event {
            step: CmStep::ResolveAddr,
            object: "QP 3 from 10.0.0.2 to 10.0.0.9:7471".into(),
            event: CmEventKind::AddrError,
            status: -libc::ETIMEDOUT,
        };
        let text = error.to_string();
        for part in ["rdma_resolve_addr", "QP 3", "RDMA_CM_EVENT_ADDR_ERROR", "timed out"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(error.hint().contains("ping"), "{}", error.hint());
        assert!(!error.is_bad_input());
    }

    #[test]
    fn rejections_tell_their_reason() {
        let rejected = |reason, text: Option<&str>| CmError::Rejected {
            object: "QP 0".into(),
            reason,
            text: text.map(str::to_owned),
        };
        let unheard = rejected(RejectReason::NO_LISTENER, None);
        let text = "QP 0 was rejected: reason 8 (no program listens on that port)";
        assert_eq!(unheard.to_string(), text);
        assert!(unheard.hint().contains("server"));
        let stale = rejected(RejectReason::STALE, None);
        assert!(stale.to_string().contains("stale") && stale.hint().contains("again"));
        let refused = rejected(RejectReason::BY_THE_LISTENER, Some("another run's nonce"));
        assert!(refused.to_string().ends_with(": another run's nonce"));
        assert!(refused.hint().contains("two hosts"));
        let silent = rejected(RejectReason::BY_THE_LISTENER, None);
        assert!(silent.hint().contains("route back"), "{}", silent.hint());
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let call = |errno| CmError::Call {
            step: CmStep::CreateEventChannel,
            object: "rdma_cm".into(),
            source: io::Error::from_raw_os_error(errno),
        };
        assert!(call(libc::ENOENT).hint().contains("modprobe rdma_ucm"));
        assert!(call(libc::EACCES).hint().contains("chmod"));
        assert!(call(libc::ENOENT).is_bad_input());
        let missing = CmError::NoLibrary { detail: "no such file".into() };
        assert!(missing.hint().contains("librdmacm1") && missing.is_bad_input());
    }
}
