//! Sending from QP 1, and taking the requests for it that any process at the address may take.

use std::io;
use std::net::IpAddr;
use std::sync::PoisonError;

use super::core::Core;
use super::gsi::is_management;
use super::outbox::Outbox;
use crate::transport::state::request_packets::PKEY;
use crate::wire::cm::{GSI_QKEY, GSI_QPN};
use crate::wire::{Deth, Extended, Opcode, Packet, Service};

impl Core {
    /// Takes requests from now on.
    pub(crate) fn begin_requests(&self) -> io::Result<()> {
        match &self.requests {
            None => Ok(()),
            Some((requests, _)) => requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .begin(),
        }
    }

    /// Passes the requests that wait, with their senders, to `each`; returns when the next that faults delay is due.
    pub(crate) fn take_requests(&self, mut each: impl FnMut(IpAddr, &[u8])) -> Option<u64> {
        let (requests, _) = self.requests.as_ref()?;
        let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.take(
            |qpn| qpn == GSI_QPN,
            |arrival| match Packet::parse_body(arrival.bytes) {
                Ok(packet) if is_management(&packet) => each(arrival.source.ip(), packet.payload),
                _ => {}
            },
        )
    }

    /// Sends a datagram to QP 1 of another device.
    pub(crate) fn send_management(&self, to: IpAddr, payload: &[u8]) {
        let packet = Packet {
            service: Service::Ud,
            opcode: Opcode::SendOnly,
            solicited: false,
            pkey: PKEY,
            destination_qpn: GSI_QPN,
            ack_request: false,
            psn: self.gsi.next_psn(),
            extended: Extended {
                deth: Some(Deth {
                    qkey: GSI_QKEY,
                    source_qpn: GSI_QPN,
                }),
                ..Extended::default()
            },
            payload,
        };
        let flow = self.flow(to, 0, [GSI_QPN; 2], 0, 0);
        Outbox::with(self, &self.tables(), |outbox| {
            outbox.push_copy(&flow, &packet, payload);
        });
    }
}
