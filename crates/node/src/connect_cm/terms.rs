//! Preconditions of rdma_cm (a RoCE port of a device that has a connection manager) and the
//! parameters that both ends give rdma_cm for a case's QPs.

use verbs::cm::{CmAddress, CmParameters};
use verbs::{LinkLayer, Port};

use super::private_data::{BYTES, Nonce, PrivateData, Role};
use crate::port_path::Agreed;
use protocol::failure::RunFailure;

/// The parameters common to all connections of a run, at one end.
pub struct Terms {
    pub(crate) local: CmAddress,
    /// Name of its device and its port number.
    pub(crate) port: (String, u8),
    /// QP numbers of this end, in QP order.
    pub(crate) qpns: Vec<u32>,
    /// QP numbers of the other end, if the control connection has sent them.
    pub(crate) peer_qpns: Option<Vec<u32>>,
    responder_resources: u8,
    initiator_depth: u8,
    retry_count: u8,
    rnr_retry_count: u8,
}

impl Terms {
    /// For `port`, whose QPs are connected to the peer's as `agreed`.
    ///
    /// # Errors
    /// A port that rdma_cm does not serve.
    pub(crate) fn new(
        port: &Port,
        agreed: &Agreed,
        qpns: Vec<u32>,
        peer_qpns: Option<Vec<u32>>,
    ) -> Result<Terms, RunFailure> {
        let reliability = &agreed.reliability;
        let local = local_address(port)?;
        Ok(Terms {
            local,
            port: (port.context.name().to_owned(), port.info.port),
            qpns,
            peer_qpns,
            // rdma_cm refuses more than the device reports, even if that is 0.
            responder_resources: port.adapter.limits.max_responder_reads,
            initiator_depth: reliability
                .initiator_reads
                .min(port.adapter.limits.max_initiator_reads),
            retry_count: reliability.retry_cnt,
            rnr_retry_count: reliability.rnr_retry,
        })
    }

    /// This end's private data for QP `index`.
    pub(crate) fn private_data(&self, role: Role, index: u32, nonce: Nonce) -> [u8; BYTES] {
        let qpn = self.qpns.get(index as usize).copied().unwrap_or(0);
        PrivateData { role, index, qpn, nonce }.encode()
    }

    pub(crate) fn parameters<'a>(&self, index: u32, private_data: &'a [u8]) -> CmParameters<'a> {
        CmParameters {
            qpn: self.qpns.get(index as usize).copied().unwrap_or(0),
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            private_data,
        }
    }

    /// Whether a request or answer has the QP number that it claims and that the control connection sent.
    pub(crate) fn is_peer(&self, data: &PrivateData, qpn: u32) -> bool {
        data.qpn == qpn
            && self
                .peer_qpns
                .as_ref()
                .is_none_or(|qpns| qpns.get(data.index as usize) == Some(&qpn))
    }
}

/// The address by which rdma_cm knows a port.
pub(crate) fn local_address(port: &Port) -> Result<CmAddress, RunFailure> {
    let (root, name) = (port.context.root(), port.context.name());
    check_port(port)?;
    match port.gid {
        Some(entry) => Ok(CmAddress::local(root, name, port.info.port, &entry)),
        None => Err(RunFailure::refused(
            format!("{name} has no address for rdma_cm"),
            "give its network interface one",
        )),
    }
}

/// Whether rdma_cm serves a port.
///
/// # Errors
/// It does not; with what to do instead.
pub fn check_port(port: &Port) -> Result<(), RunFailure> {
    let (name, library) = (port.context.name(), port.context.library());
    if !library.is_system() && !library.is_embedded() {
        return Err(RunFailure::refused(
            format!("{name} of {} has no connection manager", library.name),
            "use --connect tcp with it",
        ));
    }
    if port.info.link_layer == LinkLayer::Infiniband {
        return Err(RunFailure::refused(
            format!(
                "--connect cm needs a RoCE port: {name} port {} is InfiniBand, and rocebench does not know its IPoIB \
                 addresses",
                port.info.port
            ),
            "use --connect tcp with it",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbs::{Gid, GidEntry, GidType};

    #[test]
    fn a_peer_is_who_it_says_and_whom_the_control_connection_told() {
        let entry = GidEntry {
            index: 1,
            gid: Gid::from_address("192.0.2.1".parse().unwrap()),
            gid_type: GidType::RoceV2,
            interface: None,
        };
        let mut terms = Terms {
            local: CmAddress::local("/".as_ref(), "rxe0", 1, &entry),
            port: ("rxe0".into(), 1),
            qpns: vec![7, 8],
            peer_qpns: Some(vec![17, 18]),
            responder_resources: 1,
            initiator_depth: 1,
            retry_count: 7,
            rnr_retry_count: 7,
        };
        let data = PrivateData { role: Role::Request, index: 1, qpn: 18, nonce: Nonce::default() };
        assert!(terms.is_peer(&data, 18) && !terms.is_peer(&data, 17));
        let other = PrivateData { index: 0, ..data };
        assert!(!terms.is_peer(&other, 18), "of another QP");
        terms.peer_qpns = None;
        assert!(terms.is_peer(&other, 18) && !terms.is_peer(&other, 17));
    }
}
