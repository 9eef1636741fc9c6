//! The path of packets.

use std::net::IpAddr;
use std::sync::Arc;

use super::peer::Peer;
use crate::net::Flow;

/// What selects the source port of packets to an address: the flow label, or a hash of both QPNs that is the same for both
/// directions. On loopback there are no paths to spread over: all packets have one port, and those of several QPs can leave
/// together.
pub(crate) fn entropy(to: IpAddr, flow_label: u32, qpns: [u32; 2]) -> u32 {
    match flow_label {
        0 if to.is_loopback() => 0,
        0 => (qpns[0] ^ qpns[1]).wrapping_mul(0x9e37_79b1),
        label => label,
    }
}

/// The source port of a connection's packets: that of the first one whose turn it was.
///
/// Linux' Soft-RoCE, adapters and this device keep it for a QP's life. Another program can send from the peer's address,
/// but not from a port that the peer holds: so it does not get to try PSNs.
#[derive(Clone, Copy, Default)]
pub(crate) struct SourcePort(Option<u16>);

impl SourcePort {
    pub(crate) fn may_be(self, port: u16) -> bool {
        self.0.is_none_or(|known| known == port)
    }

    pub(crate) fn learn(&mut self, port: u16) {
        self.0 = Some(port);
    }
}

/// The path of packets, for both halves of a QP.
#[derive(Clone)]
pub(crate) struct Path {
    pub(crate) flow: Flow,
    pub(crate) peer: Arc<Peer>,
    pub(crate) address: IpAddr,
    pub(crate) qpn: u32,
    pub(crate) mtu_bytes: u32,
}
