//! QP 1 of a device: datagrams between connection managers, and requests that any process at the address may take.

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

use crate::transport::device::gsi::{ManagementReceiver, is_management};
use crate::transport::device::outbox::Outbox;
use crate::transport::device::process::OwnClaim;
use crate::transport::nic::Nic;
use crate::transport::work_queues::PKEY;
use crate::wire::cm::{GSI_QKEY, GSI_QPN};
use crate::wire::{Deth, Extended, Opcode, Packet, Service};

impl Nic {
    /// Where processes share its address, the socket of the requests of connection managers, which is readable when some wait
    /// that [`Nic::take_requests`] takes.
    pub fn requests_fd(&self) -> Option<RawFd> {
        self.core().requests_fd()
    }

    /// Says that only this process offers a service at its address. `None` where processes do not share it.
    ///
    /// # Errors
    /// EADDRINUSE if another does.
    pub fn claim(&self, service: u64) -> io::Result<Option<OwnClaim>> {
        self.requests_fd().map(|_| OwnClaim::new(self.address(), service)).transpose()
    }

    /// Takes requests from now on; until then they are other processes'.
    ///
    /// # Errors
    /// The call that failed.
    pub fn begin_requests(&self) -> io::Result<()> {
        let requests = self.core().requests.as_ref();
        requests.map_or(Ok(()), |(requests, _)| requests.lock().begin())
    }

    /// Passes the requests that wait, with their senders, to `each`; returns when the next that faults delay is due.
    pub fn take_requests(&self, mut each: impl FnMut(IpAddr, &[u8])) -> Option<u64> {
        let (requests, _) = self.core().requests.as_ref()?;
        requests.lock().take(
            |qpn| qpn == GSI_QPN,
            |arrival| match Packet::parse_body(arrival.bytes) {
                Ok(packet) if is_management(&packet) => each(arrival.source.ip(), packet.payload),
                _ => {}
            },
        )
    }

    /// Sets who gets the datagrams for QP 1: their senders and payloads. It is called by whoever polls and must not
    /// call this device. `None` drops them.
    pub fn receive_management(&self, receiver: Option<ManagementReceiver>) {
        self.core().gsi.set_receiver(receiver);
    }

    /// Sends a datagram from QP 1 to QP 1 of another device.
    pub fn send_management(&self, to: IpAddr, payload: &[u8]) {
        let core = self.core();
        let packet = Packet {
            service: Service::Ud,
            opcode: Opcode::SendOnly,
            solicited: false,
            pkey: PKEY,
            destination_qpn: GSI_QPN,
            ack_request: false,
            psn: core.gsi.next_psn(),
            extended: Extended {
                deth: Some(Deth { qkey: GSI_QKEY, source_qpn: GSI_QPN }),
                ..Extended::default()
            },
            payload,
        };
        let flow = core.flow(to, 0, [GSI_QPN; 2], 0, 0);
        Outbox::with(core, &core.tables(), |outbox| {
            outbox.push_copy(&flow, &packet, payload);
        });
    }
}
