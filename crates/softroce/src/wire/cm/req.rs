//! The request for a connection (specification 12.6.5, table 106). Fields of alternate paths, end-to-end contexts and
//! reliable datagrams are written as zeros and not read.

use std::net::Ipv6Addr;

use super::fields::{Fields, MAD_BYTES, at};

/// Bytes of private data of a request, with the IP header of annex A11.
pub const REQ_DATA_BYTES: usize = 92;
/// The local identifier of a port that has none, as of RoCE.
const PERMISSIVE_LID: [u8; 2] = [0xff; 2];
/// 10 Gb/s, as the kernel says for RoCE paths; nobody obeys it.
const RATE: u8 = 3;

/// The service of a requested connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagrams (2), or by the extended type (3).
    Other(u8),
}

/// A request (table 106).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub struct Req {
    pub local_comm: u32,
    pub service: u64,
    pub ca_guid: u64,
    pub qpn: u32,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    /// 4.096 µs × 2^this: how soon the receiver has to answer.
    pub remote_response_timeout: u8,
    pub transport: Transport,
    pub flow_control: bool,
    /// The PSN of the first packet to the sender of the request.
    pub starting_psn: u32,
    /// As `remote_response_timeout`, for the sender.
    pub local_response_timeout: u8,
    pub retry_count: u8,
    pub pkey: u16,
    /// Code of the path MTU: 1 is 256 bytes, 5 is 4096.
    pub mtu: u8,
    pub rnr_retry_count: u8,
    pub max_cm_retries: u8,
    pub srq: bool,
    pub local_gid: Ipv6Addr,
    pub remote_gid: Ipv6Addr,
    pub flow_label: u32,
    pub traffic_class: u8,
    pub hop_limit: u8,
    /// 4.096 µs × 2^this: after which a packet is taken for lost.
    pub ack_timeout: u8,
    pub private_data: [u8; REQ_DATA_BYTES],
}

impl Default for Req {
    fn default() -> Req {
        Req::read(&Fields([0; MAD_BYTES]))
    }
}

impl Req {
    pub(super) fn read(fields: &Fields) -> Req {
        Req {
            local_comm: fields.word(at(0)),
            service: fields.long(at(8)),
            ca_guid: fields.long(at(16)),
            qpn: fields.three(at(32)),
            responder_resources: fields.byte(at(35)),
            initiator_depth: fields.byte(at(39)),
            remote_response_timeout: fields.bits(at(43), 0, 5),
            transport: match fields.bits(at(43), 5, 2) {
                0 => Transport::Rc,
                1 => Transport::Uc,
                other => Transport::Other(other),
            },
            flow_control: fields.bits(at(43), 7, 1) == 1,
            starting_psn: fields.three(at(44)),
            local_response_timeout: fields.bits(at(47), 0, 5),
            retry_count: fields.bits(at(47), 5, 3),
            pkey: fields.half(at(48)),
            mtu: fields.bits(at(50), 0, 4),
            rnr_retry_count: fields.bits(at(50), 5, 3),
            max_cm_retries: fields.bits(at(51), 0, 4),
            srq: fields.bits(at(51), 4, 1) == 1,
            local_gid: Ipv6Addr::from(fields.bytes::<16>(at(56))),
            remote_gid: Ipv6Addr::from(fields.bytes::<16>(at(72))),
            flow_label: fields.word(at(88)) >> 12,
            traffic_class: fields.byte(at(92)),
            hop_limit: fields.byte(at(93)),
            ack_timeout: fields.bits(at(95), 0, 5),
            private_data: fields.bytes(at(140)),
        }
    }

    pub(super) fn write(&self, fields: &mut Fields) {
        fields.put(at(0), self.local_comm.to_be_bytes());
        fields.put(at(8), self.service.to_be_bytes());
        fields.put(at(16), self.ca_guid.to_be_bytes());
        fields.put_three(at(32), self.qpn);
        fields.put(at(35), [self.responder_resources]);
        fields.put(at(39), [self.initiator_depth]);
        fields.put_bits(at(43), 0, 5, self.remote_response_timeout);
        let transport = match self.transport {
            Transport::Rc => 0,
            Transport::Uc => 1,
            Transport::Other(other) => other,
        };
        fields.put_bits(at(43), 5, 2, transport);
        fields.put_bits(at(43), 7, 1, self.flow_control.into());
        fields.put_three(at(44), self.starting_psn);
        fields.put_bits(at(47), 0, 5, self.local_response_timeout);
        fields.put_bits(at(47), 5, 3, self.retry_count);
        fields.put(at(48), self.pkey.to_be_bytes());
        fields.put_bits(at(50), 0, 4, self.mtu);
        fields.put_bits(at(50), 5, 3, self.rnr_retry_count);
        fields.put_bits(at(51), 0, 4, self.max_cm_retries);
        fields.put_bits(at(51), 4, 1, self.srq.into());
        fields.put(at(52), PERMISSIVE_LID);
        fields.put(at(54), PERMISSIVE_LID);
        fields.put(at(56), self.local_gid.octets());
        fields.put(at(72), self.remote_gid.octets());
        let label_and_rate = self.flow_label << 12 | u32::from(RATE);
        fields.put(at(88), label_and_rate.to_be_bytes());
        fields.put(at(92), [self.traffic_class, self.hop_limit]);
        fields.put_bits(at(95), 0, 5, self.ack_timeout);
        fields.put(at(140), self.private_data);
    }
}
