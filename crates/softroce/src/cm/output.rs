//! What a step of the manager leaves behind: datagrams to send and events for the program.

use std::net::IpAddr;

use super::early::Unheard;
use super::event::{Event, Happening};
use crate::wire::cm::{CmMad, MAD_BYTES, Message};

/// A datagram from QP 1 to QP 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub to: IpAddr,
    pub bytes: [u8; MAD_BYTES],
}

/// Datagrams and events, in order.
#[derive(Debug, Default)]
pub struct Output {
    pub datagrams: Vec<Datagram>,
    pub events: Vec<Event>,
    /// Requests for which nobody has listened here for long: for another manager of the port, or to be refused.
    pub unheard: Vec<Unheard>,
}

impl Output {
    /// Sends a message; returns its bytes, which may be sent again.
    pub(super) fn send(
        &mut self,
        to: IpAddr,
        transaction: u64,
        message: Message,
    ) -> [u8; MAD_BYTES] {
        let mad = CmMad { transaction, message };
        let bytes = mad.to_bytes();
        self.datagrams.push(Datagram { to, bytes });
        bytes
    }

    pub(super) fn tell(&mut self, comm: u32, happening: Happening) {
        self.events.push(Event { comm, happening });
    }
}
