//! What a packet must be before one half of its QP handles it: parsed, for a QP of this device and of its service, and
//! in its partition (InfiniBand specification 9.6.1). Others are dropped and counted.

use crate::net::{Arrival, Count};
use crate::transport::device::core::Core;
use crate::transport::device::tables::Tables;
use crate::transport::qp_state::QpContext;
use crate::transport::work_queues::PKEY;
use crate::wire::cm::GSI_QPN;
use crate::wire::{Bth, Cnp, Packet, ParseError, Psn, Service};

/// The bits of a P_Key that name the partition. The highest one, full membership, this device has.
const PARTITION: u16 = 0x7fff;

pub(crate) enum Arrived<'a> {
    Packet(Packet<'a>),
    /// A request to a reliable QP whose operation does not exist here.
    UnknownRequest(Psn),
    Notification,
}

impl Core {
    /// Whether there is a QP of this number; counts a packet to one that there is not.
    pub(crate) fn knows(&self, tables: &Tables, qpn: u32) -> bool {
        let known = tables.qp(qpn).is_some() || qpn == GSI_QPN;
        if !known {
            self.statistics.unknown_qp.add(1);
        }
        known
    }

    /// The QP of a packet and the packet, or `None` if it was dropped.
    pub(crate) fn admit<'t, 'a>(
        &self,
        tables: &'t Tables,
        arrival: &Arrival<'a>,
    ) -> Option<(&'t QpContext, Arrived<'a>)> {
        let (bytes, statistics) = (arrival.bytes, &self.statistics);
        let (arrived, qpn, pkey, service) = match Packet::parse_body(bytes) {
            Ok(packet) => {
                let (qpn, pkey) = (packet.destination_qpn, packet.pkey);
                (Arrived::Packet(packet), qpn, pkey, packet.service)
            }
            Err(ParseError::Opcode(byte)) if Service::of(byte) == Some(Service::Rc) => {
                let Some(bth) = bytes.first_chunk().and_then(|bth| Bth::from_bytes(*bth)) else {
                    return drop_counted(&statistics.unparsed);
                };
                let arrived = Arrived::UnknownRequest(bth.psn);
                (arrived, bth.destination_qpn, bth.pkey, Service::Rc)
            }
            Err(ParseError::Opcode(Cnp::OPCODE_BYTE)) => {
                let Some(cnp) = Cnp::parse(bytes) else {
                    return drop_counted(&statistics.unparsed);
                };
                let (qpn, pkey) = (cnp.destination_qpn, cnp.pkey);
                (Arrived::Notification, qpn, pkey, Service::Rc)
            }
            Err(_) => return drop_counted(&statistics.unparsed),
        };
        let Some(qp) = tables.qp(qpn) else {
            if let Arrived::Packet(packet) = &arrived
                && self.gsi.take(packet, arrival.source.ip())
            {
                return None;
            }
            return drop_counted(&statistics.unknown_qp);
        };
        if (pkey ^ PKEY) & PARTITION != 0 {
            return drop_counted(&statistics.pkey_violations);
        }
        if service != qp.kind {
            return drop_counted(&statistics.wrong_service);
        }
        Some((qp, arrived))
    }
}

/// Counts a packet that is dropped.
fn drop_counted<T>(counter: &Count) -> Option<T> {
    counter.add(1);
    None
}
