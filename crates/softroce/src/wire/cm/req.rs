//! The request for a connection (specification 12.6.5, table 106). Fields of alternate paths, end-to-end contexts and
//! reliable datagrams are written as zeros and not read.

use super::fields::Fields;

/// Bytes of private data of a request, with the IP header of annex A11.
pub const REQ_DATA_BYTES: usize = 92;
/// The local identifier of a port that has none, as of RoCE.
const PERMISSIVE_LID: [u8; 2] = [0xff; 2];
/// 10 Gb/s, as the kernel says for RoCE paths; nobody obeys it.
const RATE: u32 = 3;

/// The service of a requested connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    #[default]
    Rc,
    Uc,
    /// Reliable datagrams (2), or by the extended type (3).
    Other(u8),
}

/// A request (table 106).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    pub local_gid: [u8; 16],
    pub remote_gid: [u8; 16],
    pub flow_label: u32,
    pub traffic_class: u8,
    pub hop_limit: u8,
    /// 4.096 µs × 2^this: after which a packet is taken for lost.
    pub ack_timeout: u8,
    pub private_data: Vec<u8>,
}

impl Req {
    pub(super) fn walk(&mut self, fields: &mut Fields<'_>) {
        fields.word(0, &mut self.local_comm);
        fields.long(8, &mut self.service);
        fields.long(16, &mut self.ca_guid);
        fields.three(32, &mut self.qpn);
        fields.byte(35, &mut self.responder_resources);
        fields.byte(39, &mut self.initiator_depth);
        fields.bits(43, 0, 5, &mut self.remote_response_timeout);
        let mut transport = match self.transport {
            Transport::Rc => 0,
            Transport::Uc => 1,
            Transport::Other(other) => other,
        };
        fields.bits(43, 5, 2, &mut transport);
        self.transport = match transport {
            0 => Transport::Rc,
            1 => Transport::Uc,
            other => Transport::Other(other),
        };
        fields.flag(43, 7, &mut self.flow_control);
        fields.three(44, &mut self.starting_psn);
        fields.bits(47, 0, 5, &mut self.local_response_timeout);
        fields.bits(47, 5, 3, &mut self.retry_count);
        fields.half(48, &mut self.pkey);
        fields.bits(50, 0, 4, &mut self.mtu);
        fields.bits(50, 5, 3, &mut self.rnr_retry_count);
        fields.bits(51, 0, 4, &mut self.max_cm_retries);
        fields.flag(51, 4, &mut self.srq);
        fields.bytes(52, &mut { PERMISSIVE_LID });
        fields.bytes(54, &mut { PERMISSIVE_LID });
        fields.bytes(56, &mut self.local_gid);
        fields.bytes(72, &mut self.remote_gid);
        let mut label_and_rate = self.flow_label << 12 | RATE;
        fields.word(88, &mut label_and_rate);
        self.flow_label = label_and_rate >> 12;
        fields.byte(92, &mut self.traffic_class);
        fields.byte(93, &mut self.hop_limit);
        fields.bits(95, 0, 5, &mut self.ack_timeout);
        fields.data(140, REQ_DATA_BYTES, &mut self.private_data);
    }
}
