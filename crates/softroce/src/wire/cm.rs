//! Messages of the connection manager: datagrams of 256 bytes (MADs) between the QPs 1 of two ports (InfiniBand
//! specification volume 1, 13.4). Those that set up and end a connection are in 12.6.5 to 12.6.11 (tables 106 to 113),
//! those that look up the QP of a datagram service in 12.11 (tables 119 and 120: "service ID resolution"). The RDMA IP CM
//! service (annex A11) adds service numbers that contain a port, and the header with IP addresses that begins a
//! request's private data.
//!
//! [`Req`]: the request for a connection (specification 12.6.5, table 106). Fields of alternate paths, end-to-end
//! contexts and reliable datagrams are written as zeros and not read.

use std::net::IpAddr;

use crate::wire::as_ipv6;

/// The QP of the general services: connection managers send from it and to it.
pub const GSI_QPN: u32 = 1;
/// The queue key of that QP (specification 10.2.5.1).
pub const GSI_QKEY: u32 = 0x8001_0000;

/// Bytes of private data of a reply.
pub const REP_DATA_BYTES: usize = 196;
/// Bytes of private data of a rejection.
pub const REJ_DATA_BYTES: usize = 148;
const REQ: u16 = 0x10;
const MRA: u16 = 0x11;
const REJ: u16 = 0x12;
const REP: u16 = 0x13;
const RTU: u16 = 0x14;
const DREQ: u16 = 0x15;
const DREP: u16 = 0x16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Req(Box<Req>),
    /// The answer will take a while.
    Mra(Mra),
    Rej(Box<Rej>),
    /// The passive end agrees to a request.
    Rep(Box<Rep>),
    /// Ready to use: confirms a reply.
    Rtu(Comms),
    /// Request to end the connection.
    Dreq(Dreq),
    /// The other end agrees to the end.
    Drep(Comms),
    /// Request for the QP of a datagram service.
    SidrReq(Box<SidrReq>),
    /// The QP of the datagram service, or why there is none.
    SidrRep(Box<SidrRep>),
}

/// The numbers that the two managers have given to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comms {
    /// The sender's number of the connection.
    pub local: u32,
    /// The receiver's number of it; 0 if the sender does not know it.
    pub remote: u32,
}

/// REP, the reply to a request (table 110).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub struct Rep {
    pub comms: Comms,
    pub qpn: u32,
    /// The PSN of the first packet to the sender of the reply.
    pub starting_psn: u32,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub target_ack_delay: u8,
    pub flow_control: bool,
    pub rnr_retry_count: u8,
    pub srq: bool,
    pub ca_guid: u64,
    pub private_data: Vec<u8>,
}

/// The message that an MRA or a rejection is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Handled {
    #[default]
    Req = 0,
    Rep = 1,
    /// Another message, or none: the connection does not end by it.
    Other = 2,
}

impl Handled {
    fn walk(&mut self, fields: &mut Fields<'_>) {
        let mut code = *self as u8;
        fields.bits(8, 0, 2, &mut code);
        *self = match code {
            0 => Handled::Req,
            1 => Handled::Rep,
            _ => Handled::Other,
        };
    }
}

/// The answer to a message will take a while (table 107).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mra {
    pub comms: Comms,
    pub of: Handled,
    /// 4.096 µs × 2^this: how long to wait for the answer.
    pub service_timeout: u8,
}

/// Why a connection was rejected (table 109).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejReason(pub u16);

impl RejReason {
    /// The sender has given up to wait for an answer.
    pub const TIMEOUT: RejReason = RejReason(4);
    /// The receiver's number of the connection is not known.
    pub const INVALID_COMM: RejReason = RejReason(6);
    /// No program listens for the service.
    pub const INVALID_SERVICE: RejReason = RejReason(8);
    /// The requested transport service is not supported.
    pub const INVALID_TRANSPORT: RejReason = RejReason(9);
    /// The QP is in a connection already.
    pub const STALE: RejReason = RejReason(10);
    /// The path MTU is larger than the port's.
    pub const INVALID_MTU: RejReason = RejReason(26);
    /// The program refused the connection, or closed its id first.
    pub const CONSUMER: RejReason = RejReason(28);
}

/// REJ, the refusal of a request or reply (table 108).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rej {
    /// The connection; the sender's number is 0 if it has given none.
    pub comms: Comms,
    /// The message that is rejected.
    pub of: Handled,
    pub reason: RejReason,
    /// The additional information of [`RejReason::TIMEOUT`]: the sender's GUID.
    pub ca_guid: Option<u64>,
    /// What the program that refuses says to the other.
    pub private_data: Vec<u8>,
}

/// A request to end a connection (table 112).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dreq {
    pub comms: Comms,
    pub remote_qpn: u32,
}

impl Comms {
    fn walk(&mut self, fields: &mut Fields<'_>) {
        fields.word(0, &mut self.local);
        fields.word(4, &mut self.remote);
    }
}

impl Message {
    /// Of a request the sender's number for it and the service that it asks for.
    pub fn request(&self) -> Option<(u32, u64)> {
        match self {
            Message::Req(req) => Some((req.local_comm, req.service)),
            Message::SidrReq(req) => Some((req.request, req.service)),
            _ => None,
        }
    }

    /// Its attribute number in the MAD header.
    fn attribute(&self) -> u16 {
        match self {
            Message::Req(_) => REQ,
            Message::Mra(_) => MRA,
            Message::Rej(_) => REJ,
            Message::Rep(_) => REP,
            Message::Rtu(_) => RTU,
            Message::Dreq(_) => DREQ,
            Message::Drep(_) => DREP,
            Message::SidrReq(_) => SIDR_REQ,
            Message::SidrRep(_) => SIDR_REP,
        }
    }

    /// A message with zeros in all its fields; `None` for an attribute that is none of these.
    fn blank(attribute: u16) -> Option<Message> {
        Some(match attribute {
            REQ => Message::Req(Box::default()),
            MRA => Message::Mra(Mra::default()),
            REJ => Message::Rej(Box::default()),
            REP => Message::Rep(Box::default()),
            RTU => Message::Rtu(Comms::default()),
            DREQ => Message::Dreq(Dreq::default()),
            DREP => Message::Drep(Comms::default()),
            SIDR_REQ => Message::SidrReq(Box::default()),
            SIDR_REP => Message::SidrRep(Box::default()),
            _ => return None,
        })
    }

    fn walk(&mut self, fields: &mut Fields<'_>) {
        match self {
            Message::Req(req) => req.walk(fields),
            Message::Mra(mra) => {
                mra.comms.walk(fields);
                mra.of.walk(fields);
                fields.bits(9, 0, 5, &mut mra.service_timeout);
            }
            Message::Rej(rej) => rej.walk(fields),
            Message::Rep(rep) => rep.walk(fields),
            Message::Rtu(comms) | Message::Drep(comms) => comms.walk(fields),
            Message::SidrReq(req) => req.walk(fields),
            Message::SidrRep(rep) => rep.walk(fields),
            Message::Dreq(dreq) => {
                dreq.comms.walk(fields);
                fields.three(8, &mut dreq.remote_qpn);
            }
        }
    }
}

impl Rep {
    /// "Failover accepted": 1 is "not supported".
    const NO_FAILOVER: u8 = 1;

    fn walk(&mut self, fields: &mut Fields<'_>) {
        self.comms.walk(fields);
        fields.three(12, &mut self.qpn);
        fields.three(20, &mut self.starting_psn);
        fields.byte(24, &mut self.responder_resources);
        fields.byte(25, &mut self.initiator_depth);
        fields.bits(26, 0, 5, &mut self.target_ack_delay);
        fields.bits(26, 5, 2, &mut { Rep::NO_FAILOVER });
        fields.flag(26, 7, &mut self.flow_control);
        fields.bits(27, 0, 3, &mut self.rnr_retry_count);
        fields.flag(27, 3, &mut self.srq);
        fields.long(28, &mut self.ca_guid);
        fields.data(36, REP_DATA_BYTES, &mut self.private_data);
    }
}

impl Rej {
    /// Length of the additional information that is a GUID.
    const GUID_BYTES: u8 = 8;

    fn walk(&mut self, fields: &mut Fields<'_>) {
        self.comms.walk(fields);
        self.of.walk(fields);
        let mut information_bytes = self.ca_guid.map_or(0, |_| Rej::GUID_BYTES);
        fields.bits(9, 0, 7, &mut information_bytes);
        fields.half(10, &mut self.reason.0);
        if information_bytes == Rej::GUID_BYTES {
            fields.long(12, self.ca_guid.get_or_insert_default());
        }
        fields.data(84, REJ_DATA_BYTES, &mut self.private_data);
    }
}

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

/// REQ, the request for a connection (table 106).
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
    fn walk(&mut self, fields: &mut Fields<'_>) {
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

/// Their attribute numbers in the MAD header.
pub const SIDR_REQ: u16 = 0x17;
#[allow(missing_docs)] // as above
pub const SIDR_REP: u16 = 0x18;
/// Bytes of private data of a request, with the IP header of annex A11.
pub const SIDR_REQ_DATA_BYTES: usize = 216;
/// Bytes of private data of a reply.
pub const SIDR_REP_DATA_BYTES: usize = 136;

/// A request for the QP of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub struct SidrReq {
    pub request: u32,
    pub pkey: u16,
    pub service: u64,
    pub private_data: Vec<u8>,
}

/// Why there is no QP in a reply (table 120).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SidrStatus(pub u8);

impl SidrStatus {
    /// There is one, and the answer has its QP.
    pub const VALID: SidrStatus = SidrStatus(0);
    /// No program offers the service here.
    pub const UNSUPPORTED: SidrStatus = SidrStatus(1);
    /// A program offers it, but refused the request.
    pub const REJECTED: SidrStatus = SidrStatus(2);
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub struct SidrRep {
    pub request: u32,
    pub status: SidrStatus,
    pub qpn: u32,
    pub service: u64,
    pub qkey: u32,
    pub private_data: Vec<u8>,
}

impl SidrReq {
    fn walk(&mut self, fields: &mut Fields<'_>) {
        fields.word(0, &mut self.request);
        fields.half(4, &mut self.pkey);
        fields.long(8, &mut self.service);
        fields.data(16, SIDR_REQ_DATA_BYTES, &mut self.private_data);
    }
}

impl SidrRep {
    fn walk(&mut self, fields: &mut Fields<'_>) {
        fields.word(0, &mut self.request);
        fields.byte(4, &mut self.status.0);
        fields.three(8, &mut self.qpn);
        fields.long(12, &mut self.service);
        fields.word(20, &mut self.qkey);
        fields.data(96, SIDR_REP_DATA_BYTES, &mut self.private_data);
    }
}

/// Numbers at fixed places of a message, all big-endian; fields narrower than a byte are counted from its highest bit.
///
/// Goes over the fields of a message, and reads or writes each: so its place is said once. Of a place outside nothing is
/// read or written.
struct Fields<'a> {
    bytes: &'a mut [u8],
    /// Whether `walk` copies from the message into the bytes; otherwise from them into the message.
    writes: bool,
}

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self, at: usize, value: &mut [u8; N]) {
        let field = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
        match (field, self.writes) {
            (Some(field), true) => *field = *value,
            (Some(field), false) => *value = *field,
            (None, _) => {}
        }
    }

    fn byte(&mut self, at: usize, value: &mut u8) {
        self.bytes(at, std::array::from_mut(value));
    }

    fn half(&mut self, at: usize, value: &mut u16) {
        let mut bytes = value.to_be_bytes();
        self.bytes(at, &mut bytes);
        *value = u16::from_be_bytes(bytes);
    }

    /// The low three bytes of a number.
    fn three(&mut self, at: usize, value: &mut u32) {
        let [_, mut bytes @ ..] = value.to_be_bytes();
        self.bytes(at, &mut bytes);
        let [high, middle, low] = bytes;
        *value = u32::from_be_bytes([0, high, middle, low]);
    }

    fn word(&mut self, at: usize, value: &mut u32) {
        let mut bytes = value.to_be_bytes();
        self.bytes(at, &mut bytes);
        *value = u32::from_be_bytes(bytes);
    }

    fn long(&mut self, at: usize, value: &mut u64) {
        let mut bytes = value.to_be_bytes();
        self.bytes(at, &mut bytes);
        *value = u64::from_be_bytes(bytes);
    }

    /// `width` bits of a byte, after the `first` ones.
    fn bits(&mut self, at: usize, first: u32, width: u32, value: &mut u8) {
        let (mask, shift) = ((1 << width) - 1, 8 - first - width);
        match (self.bytes.get_mut(at), self.writes) {
            (Some(byte), true) => *byte = *byte & !(mask << shift) | (*value & mask) << shift,
            (Some(byte), false) => *value = *byte >> shift & mask,
            (None, _) => {}
        }
    }

    fn flag(&mut self, at: usize, bit: u32, value: &mut bool) {
        let mut code = u8::from(*value);
        self.bits(at, bit, 1, &mut code);
        *value = code == 1;
    }

    /// A program's data in a field of so many bytes: the rest of it is 0, and what has no room is left out.
    fn data(&mut self, at: usize, bytes: usize, value: &mut Vec<u8>) {
        let field = self.bytes.iter_mut().skip(at).take(bytes);
        if self.writes {
            field.zip(value).for_each(|(to, from)| *to = *from);
        } else {
            *value = field.map(|byte| *byte).collect();
        }
    }
}

pub const MAD_BYTES: usize = 256;
/// Bytes of its header, after which the message begins.
const HEADER_BYTES: usize = 24;
/// How it begins: base version, class "communication management", version of the class, and method "Send".
const START: [u8; 4] = [1, 0x07, 2, 0x03];

const TRANSACTION_AT: usize = 8;
const ATTRIBUTE_AT: usize = 16;

/// A MAD of the connection manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmMad {
    /// The transaction: the same in a message and in its repetitions and answers.
    pub transaction: u64,
    pub message: Message,
}

impl CmMad {
    /// Parses a datagram's payload. `None` if it is not as long as a MAD, of another version, class or method, or has an
    /// attribute that is not supported, as for alternate paths.
    pub fn parse(bytes: &[u8]) -> Option<CmMad> {
        let mut mad: [u8; MAD_BYTES] = bytes.try_into().ok()?;
        if !mad.starts_with(&START) {
            return None;
        }
        let (header, body) = mad.split_at_mut(HEADER_BYTES);
        let mut header = Fields { bytes: header, writes: false };
        let mut body = Fields { bytes: body, writes: false };
        let (mut transaction, mut attribute) = (0, 0);
        header.long(TRANSACTION_AT, &mut transaction);
        header.half(ATTRIBUTE_AT, &mut attribute);
        let mut message = Message::blank(attribute)?;
        message.walk(&mut body);
        Some(CmMad { transaction, message })
    }

    /// Its bytes on the wire.
    pub fn to_bytes(&self) -> [u8; MAD_BYTES] {
        let mut mad = [0; MAD_BYTES];
        let (header, message) = mad.split_at_mut(HEADER_BYTES);
        let mut header = Fields { bytes: header, writes: true };
        header.bytes(0, &mut { START });
        header.long(TRANSACTION_AT, &mut { self.transaction });
        header.half(ATTRIBUTE_AT, &mut self.message.attribute());
        self.message.clone().walk(&mut Fields { bytes: message, writes: true });
        mad
    }
}

/// Service numbers of connections by IP address; the port is added to it.
pub const TCP_PORT_SPACE: u64 = 0x0000_0000_0106_0000;
/// Those of datagrams by IP address.
pub const UDP_PORT_SPACE: u64 = 0x0000_0000_0111_0000;
pub const IP_HEADER_BYTES: usize = 36;
/// Bytes of a request's private data that are left to the program.
pub const PROGRAM_DATA_BYTES: usize = REQ_DATA_BYTES - IP_HEADER_BYTES;

const VERSION: u8 = 0;
const SOURCE_AT: usize = 4;
const DESTINATION_AT: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    pub source_port: u16,
    pub source: IpAddr,
    pub destination: IpAddr,
}

impl IpHeader {
    /// The header, and the program's private data behind it; `None` for another version or family.
    pub fn split(private_data: &[u8]) -> Option<(IpHeader, &[u8])> {
        let (header, rest) = private_data.split_first_chunk::<IP_HEADER_BYTES>()?;
        let [version, family, port_high, port_low, ..] = *header;
        if version != VERSION {
            return None;
        }
        let ip_header = IpHeader {
            source_port: u16::from_be_bytes([port_high, port_low]),
            source: address(header, SOURCE_AT, family)?,
            destination: address(header, DESTINATION_AT, family)?,
        };
        Some((ip_header, rest))
    }

    /// The private data of a request: these addresses, then what the program adds.
    pub fn join(&self, program_data: &[u8]) -> Vec<u8> {
        let four = self.source.is_ipv4() && self.destination.is_ipv4();
        let mut whole = vec![VERSION, if four { 4 << 4 } else { 6 << 4 }];
        whole.extend(self.source_port.to_be_bytes());
        for address in [self.source, self.destination] {
            whole.extend(match address {
                IpAddr::V4(v4) if four => v4.to_ipv6_compatible().octets(),
                address => as_ipv6(address).octets(),
            });
        }
        whole.extend(program_data);
        whole
    }
}

fn address(header: &[u8; IP_HEADER_BYTES], at: usize, family: u8) -> Option<IpAddr> {
    let field: [u8; 16] = *header.get(at..)?.first_chunk()?;
    match family >> 4 {
        4 => Some(IpAddr::from(*field.last_chunk::<4>()?)),
        6 => Some(IpAddr::from(field)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    /// Which bits of a message carry something (specification, tables 106 to 113, 119 and 120): bytes from one place
    /// to before another, and bits of single ones.
    fn carries(attribute: u16, has_guid: bool) -> [u8; MAD_BYTES] {
        type Places<T> = &'static [(usize, T)];
        let (bytes, bits): (Places<usize>, Places<u8>) = match (attribute, has_guid) {
            (0x10, _) => (
                &[(0, 4), (8, 24), (32, 36), (39, 40), (43, 50), (56, 90), (92, 94), (140, 232)],
                &[(50, 0xf7), (51, 0xf8), (90, 0xf0), (95, 0xf8)],
            ),
            (0x11, _) => (&[(0, 8)], &[(8, 0xc0), (9, 0xf8)]),
            (0x12, false) => (&[(0, 8), (10, 12), (84, 232)], &[(8, 0xc0)]),
            (0x12, true) => (&[(0, 8), (10, 20), (84, 232)], &[(8, 0xc0), (9, 0xfe)]),
            (0x13, _) => {
                (&[(0, 8), (12, 15), (20, 23), (24, 26), (28, 232)], &[(26, 0xf9), (27, 0xf0)])
            }
            (0x15, _) => (&[(0, 11)], &[]),
            (0x17, _) => (&[(0, 6), (8, 232)], &[]),
            (0x18, _) => (&[(0, 5), (8, 11), (12, 24), (96, 232)], &[]),
            _ => (&[(0, 8)], &[]),
        };
        let mut mask = [0; MAD_BYTES];
        mask[..18].fill(0xff);
        mask[4..8].fill(0);
        for (start, end) in bytes {
            mask[24 + start..24 + end].fill(0xff);
        }
        bits.iter().for_each(|(at, bits)| mask[24 + at] = *bits);
        mask
    }

    proptest! {
        /// Of messages of the class each known one is parsed, and built from what was parsed it is the same again.
        #[test]
        fn what_is_parsed_is_built(
            random in prop::collection::vec(any::<u8>(), MAD_BYTES),
            has_guid: bool,
        ) {
            for attribute in 0x0e_u16..0x1e {
                let mut bytes = random.clone();
                bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
                bytes[16..18].copy_from_slice(&attribute.to_be_bytes());
                if [0x11, 0x12].contains(&attribute) {
                    // It is about a request, a reply or another message; there is no fourth.
                    bytes[24 + 8] = (random[0] % 3) << 6;
                    bytes[24 + 9] = if has_guid { 8 << 1 } else { random[1] & 0xef };
                }
                let parsed = CmMad::parse(&bytes);
                prop_assert_eq!(parsed.is_some(), (0x10..=0x18).contains(&attribute));
                let Some(mad) = parsed else { continue };
                let built = mad.to_bytes();
                let carried = carries(attribute, has_guid);
                for (at, mask) in carried.into_iter().enumerate() {
                    prop_assert_eq!(built[at] & mask, bytes[at] & mask, "{:#x} at {}", attribute, at);
                }
                prop_assert_eq!(CmMad::parse(&built), Some(mad));
            }
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 250..260)) {
            let good = bytes.len() == MAD_BYTES && bytes.starts_with(&[1, 7, 2, 3]);
            prop_assert!(good || CmMad::parse(&bytes).is_none());
        }
    }

    /// The places are those of the specification's tables 106 to 113.
    #[test]
    fn fields_lie_where_the_specification_has_them() {
        let req = Req {
            local_comm: 0x0102_0304,
            service: 0x0000_0000_0106_1d2f,
            qpn: 0x00ab_cdef,
            responder_resources: 7,
            initiator_depth: 9,
            remote_response_timeout: 20,
            transport: Transport::Uc,
            flow_control: true,
            starting_psn: 0x0011_2233,
            local_response_timeout: 19,
            retry_count: 7,
            pkey: 0xffff,
            mtu: 5,
            rnr_retry_count: 6,
            max_cm_retries: 15,
            srq: true,
            ack_timeout: 18,
            hop_limit: 64,
            private_data: vec![0x5a; 92],
            ..Req::default()
        };
        let mad = CmMad { transaction: 1, message: Message::Req(Box::new(req)) };
        let bytes = mad.to_bytes();
        let at = |place: usize, length: usize| &bytes[24 + place..24 + place + length];
        assert_eq!(bytes[16..18], [0, 0x10]);
        assert_eq!(at(0, 4), [1, 2, 3, 4]);
        assert_eq!(at(8, 8), [0, 0, 0, 0, 1, 6, 0x1d, 0x2f]);
        assert_eq!(at(32, 4), [0xab, 0xcd, 0xef, 7]);
        assert_eq!(at(39, 1), [9]);
        assert_eq!(at(43, 1), [20 << 3 | 1 << 1 | 1]);
        assert_eq!(at(44, 4), [0x11, 0x22, 0x33, 19 << 3 | 7]);
        assert_eq!(at(48, 4), [0xff, 0xff, 5 << 4 | 6, 15 << 4 | 8]);
        assert_eq!(at(52, 4), [0xff; 4], "no LIDs: the permissive one");
        assert_eq!(at(93, 1), [64]);
        assert_eq!(at(95, 1), [18 << 3]);
        assert_eq!(at(140, 92), [0x5a; 92]);
    }

    proptest! {
        #[test]
        fn what_is_joined_is_split(
            source_port in any::<u16>(),
            addresses in any::<(u128, u128, bool)>(),
            data in prop::collection::vec(any::<u8>(), PROGRAM_DATA_BYTES),
        ) {
            let address = |bits: u128| if addresses.2 {
                IpAddr::from(Ipv4Addr::from(bits as u32))
            } else {
                IpAddr::from(Ipv6Addr::from(bits))
            };
            let header = IpHeader {
                source_port,
                source: address(addresses.0),
                destination: address(addresses.1),
            };
            let whole = header.join(&data);
            let (read, rest) = IpHeader::split(&whole).unwrap();
            prop_assert_eq!(read, header);
            prop_assert_eq!(rest, &data[..]);
        }
    }

    #[test]
    fn an_ipv4_address_lies_at_the_end_of_its_field() {
        let header = IpHeader {
            source_port: 0x1234,
            source: IpAddr::from([10, 0, 0, 1]),
            destination: IpAddr::from([10, 0, 0, 2]),
        };
        let whole = header.join(b"abc");
        assert_eq!(whole[..4], [0, 0x40, 0x12, 0x34]);
        assert_eq!(whole[16..20], [10, 0, 0, 1]);
        assert_eq!(whole[32..36], [10, 0, 0, 2]);
        assert_eq!(&whole[36..], b"abc");
    }

    #[test]
    fn other_versions_and_families_are_refused() {
        let mut whole = [0; REQ_DATA_BYTES];
        assert_eq!(IpHeader::split(&whole), None);
        whole[1] = 0x40;
        assert!(IpHeader::split(&whole).is_some());
        whole[0] = 1;
        assert_eq!(IpHeader::split(&whole), None);
    }
}
