//! The kinds of events of an id.

use std::fmt;

use rdma_sys::rdma_cm_event_type as header;

/// The kind of an event.
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
