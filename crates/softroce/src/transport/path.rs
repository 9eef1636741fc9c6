//! The path of a connected QP's packets.

use std::net::IpAddr;
use std::sync::Arc;

use super::peer::Peer;
use crate::net::Flow;

/// The path of packets, for both halves of a QP.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) flow: Flow,
    pub(super) peer: Arc<Peer>,
    pub(super) address: IpAddr,
    pub(super) qpn: u32,
    pub(super) mtu_bytes: u32,
}
