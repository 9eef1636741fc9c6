//! The messages that set up and end a connection (specification 12.6.5 to 12.6.11, tables 106 to 113), and all kinds of
//! messages.

use super::fields::Fields;
use super::req::Req;
use super::sidr::{SIDR_REP, SIDR_REQ, SidrRep, SidrReq};

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
    /// Request for a connection.
    Req(Box<Req>),
    /// The answer will take a while.
    Mra(Mra),
    Rej(Box<Rej>),
    /// Reply to a request.
    Rep(Box<Rep>),
    /// Ready to use: confirms a reply.
    Rtu(Comms),
    /// Request to end the connection.
    Dreq(Dreq),
    /// Reply to that.
    Drep(Comms),
    /// Request for the QP of a datagram service.
    SidrReq(Box<SidrReq>),
    /// Reply to that.
    SidrRep(Box<SidrRep>),
}

/// The numbers that the two managers have given to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comms {
    /// Of the sender.
    pub local: u32,
    /// Of the receiver; 0 if not known.
    pub remote: u32,
}

/// A reply (table 110).
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
    /// Another, or none.
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
    /// Nobody listens.
    pub const INVALID_SERVICE: RejReason = RejReason(8);
    /// The requested transport service is not supported.
    pub const INVALID_TRANSPORT: RejReason = RejReason(9);
    /// The QP is in a connection already.
    pub const STALE: RejReason = RejReason(10);
    /// The path MTU is larger than the port's.
    pub const INVALID_MTU: RejReason = RejReason(26);
    /// The program refused it.
    pub const CONSUMER: RejReason = RejReason(28);
}

/// A rejection (table 108).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rej {
    /// The connection; the sender's number is 0 if it has given none.
    pub comms: Comms,
    /// The message that is rejected.
    pub of: Handled,
    pub reason: RejReason,
    /// The additional information of [`RejReason::TIMEOUT`]: the sender's GUID.
    pub ca_guid: Option<u64>,
    /// Of the program.
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
    pub(super) fn attribute(&self) -> u16 {
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
    pub(super) fn blank(attribute: u16) -> Option<Message> {
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

    pub(super) fn walk(&mut self, fields: &mut Fields<'_>) {
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
