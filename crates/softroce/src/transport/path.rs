//! Where a connected QP's packets go.

use std::net::IpAddr;
use std::sync::Arc;

use super::peer::Peer;
use crate::net::Flow;

/// Where packets go, as both halves need it.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) flow: Flow,
    pub(super) peer: Arc<Peer>,
    pub(super) address: IpAddr,
    pub(super) qpn: u32,
    pub(super) mtu_bytes: u32,
}
