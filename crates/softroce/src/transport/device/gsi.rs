//! QP 1, of the general services: datagrams between connection managers (InfiniBand specification 13.5.1). It must not
//! know what they say.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::lock::Lock;
use crate::wire::cm::{GSI_QKEY, GSI_QPN};
use crate::wire::{Opcode, Packet, Psn, Service};

/// Gets the datagrams: their senders and payloads.
pub type ManagementReceiver = Box<dyn Fn(IpAddr, &[u8]) + Send>;

#[derive(Default)]
pub(crate) struct Gsi {
    receiver: Lock<Option<ManagementReceiver>>,
    psn: AtomicU32,
}

impl Gsi {
    pub(crate) fn set_receiver(&self, receiver: Option<ManagementReceiver>) {
        let mut place = self.receiver.lock();
        *place = receiver;
    }

    /// The PSN of the next packet that is sent. Nobody checks it.
    pub(crate) fn next_psn(&self) -> Psn {
        Psn::new(self.psn.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes a packet if it is for QP 1 and somebody receives there.
    pub(crate) fn take(&self, packet: &Packet<'_>, source: IpAddr) -> bool {
        if !is_management(packet) {
            return false;
        }
        let receiver = self.receiver.lock();
        let Some(receiver) = receiver.as_ref() else {
            return false;
        };
        receiver(source, packet.payload);
        true
    }
}

/// Whether it is a datagram for QP 1.
pub(crate) fn is_management(packet: &Packet<'_>) -> bool {
    packet.destination_qpn == GSI_QPN
        && packet.service == Service::Ud
        && packet.opcode == Opcode::SendOnly
        && packet.extended.deth.is_some_and(|deth| deth.qkey == GSI_QKEY)
}
