//! Sending from QP 1.
#![allow(unsafe_code)]

use std::net::IpAddr;

use super::core::Core;
use super::outbox::{Keep, Outbox};
use crate::transport::state::request_packets::PKEY;
use crate::wire::cm::{GSI_QKEY, GSI_QPN};
use crate::wire::{Deth, Extended, Opcode, Packet, Service};

impl Core {
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
        let pieces = std::iter::once((payload.as_ptr(), payload.len()));
        Outbox::with(self, &self.tables(), |outbox| {
            // SAFETY: the payload is copied.
            unsafe { outbox.push(&flow, &packet, payload.len(), pieces, Keep::Copied) };
        });
    }
}
