//! The messages that set up and end a connection (specification 12.6.5 to 12.6.11, tables 106 to 113), and all kinds of
//! messages.

use super::fields::{Fields, MAD_BYTES, at};
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

/// What a MAD says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Request for a connection.
    Req(Box<Req>),
    /// The answer will take a while.
    Mra(Mra),
    /// Rejection.
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub private_data: [u8; REP_DATA_BYTES],
}

impl Default for Rep {
    fn default() -> Rep {
        Rep::read(&Fields([0; MAD_BYTES]))
    }
}

/// The message that an MRA or a rejection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Handled {
    /// A request.
    Req = 0,
    /// A reply.
    Rep = 1,
    /// Another, or none.
    Other = 2,
}

impl Handled {
    fn of(code: u8) -> Handled {
        match code {
            0 => Handled::Req,
            1 => Handled::Rep,
            _ => Handled::Other,
        }
    }
}

/// The answer to a message will take a while (table 107).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mra {
    /// The connection.
    pub comms: Comms,
    /// The message.
    pub of: Handled,
    /// 4.096 µs × 2^this: how long to wait for the answer.
    pub service_timeout: u8,
}

/// Why a connection was rejected (table 109).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rej {
    /// The connection; the sender's number is 0 if it has given none.
    pub comms: Comms,
    /// The message that is rejected.
    pub of: Handled,
    /// The reason.
    pub reason: RejReason,
    /// The additional information of [`RejReason::TIMEOUT`]: the sender's GUID.
    pub ca_guid: Option<u64>,
    /// Of the program.
    pub private_data: [u8; REJ_DATA_BYTES],
}

/// A request to end a connection (table 112).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dreq {
    /// The connection.
    pub comms: Comms,
    /// The receiver's QP.
    pub remote_qpn: u32,
}

impl Comms {
    fn read(fields: &Fields) -> Comms {
        Comms {
            local: fields.word(at(0)),
            remote: fields.word(at(4)),
        }
    }

    fn write(self, fields: &mut Fields) {
        fields.put(at(0), self.local.to_be_bytes());
        fields.put(at(4), self.remote.to_be_bytes());
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

    /// `None` for an attribute that is none of these.
    pub(super) fn read(attribute: u16, fields: &Fields) -> Option<Message> {
        Some(match attribute {
            REQ => Message::Req(Box::new(Req::read(fields))),
            MRA => Message::Mra(Mra {
                comms: Comms::read(fields),
                of: Handled::of(fields.bits(at(8), 0, 2)),
                service_timeout: fields.bits(at(9), 0, 5),
            }),
            REJ => Message::Rej(Box::new(Rej::read(fields))),
            REP => Message::Rep(Box::new(Rep::read(fields))),
            RTU => Message::Rtu(Comms::read(fields)),
            DREQ => Message::Dreq(Dreq {
                comms: Comms::read(fields),
                remote_qpn: fields.three(at(8)),
            }),
            DREP => Message::Drep(Comms::read(fields)),
            SIDR_REQ => Message::SidrReq(Box::new(SidrReq::read(fields))),
            SIDR_REP => Message::SidrRep(Box::new(SidrRep::read(fields))),
            _ => return None,
        })
    }

    pub(super) fn write(&self, fields: &mut Fields) {
        match self {
            Message::Req(req) => req.write(fields),
            Message::Mra(mra) => {
                mra.comms.write(fields);
                fields.put_bits(at(8), 0, 2, mra.of as u8);
                fields.put_bits(at(9), 0, 5, mra.service_timeout);
            }
            Message::Rej(rej) => rej.write(fields),
            Message::Rep(rep) => rep.write(fields),
            Message::Rtu(comms) | Message::Drep(comms) => comms.write(fields),
            Message::SidrReq(req) => req.write(fields),
            Message::SidrRep(rep) => rep.write(fields),
            Message::Dreq(dreq) => {
                dreq.comms.write(fields);
                fields.put_three(at(8), dreq.remote_qpn);
            }
        }
    }
}

impl Rep {
    /// "Failover accepted": 1 is "not supported".
    const NO_FAILOVER: u8 = 1;

    fn read(fields: &Fields) -> Rep {
        Rep {
            comms: Comms::read(fields),
            qpn: fields.three(at(12)),
            starting_psn: fields.three(at(20)),
            responder_resources: fields.byte(at(24)),
            initiator_depth: fields.byte(at(25)),
            target_ack_delay: fields.bits(at(26), 0, 5),
            flow_control: fields.bits(at(26), 7, 1) == 1,
            rnr_retry_count: fields.bits(at(27), 0, 3),
            srq: fields.bits(at(27), 3, 1) == 1,
            ca_guid: fields.long(at(28)),
            private_data: fields.bytes(at(36)),
        }
    }

    fn write(&self, fields: &mut Fields) {
        self.comms.write(fields);
        fields.put_three(at(12), self.qpn);
        fields.put_three(at(20), self.starting_psn);
        fields.put(at(24), [self.responder_resources, self.initiator_depth]);
        fields.put_bits(at(26), 0, 5, self.target_ack_delay);
        fields.put_bits(at(26), 5, 2, Rep::NO_FAILOVER);
        fields.put_bits(at(26), 7, 1, self.flow_control.into());
        fields.put_bits(at(27), 0, 3, self.rnr_retry_count);
        fields.put_bits(at(27), 3, 1, self.srq.into());
        fields.put(at(28), self.ca_guid.to_be_bytes());
        fields.put(at(36), self.private_data);
    }
}

impl Rej {
    /// Length of the additional information that is a GUID.
    const GUID_BYTES: u8 = 8;

    fn read(fields: &Fields) -> Rej {
        let guid = fields.bits(at(9), 0, 7) == Rej::GUID_BYTES;
        Rej {
            comms: Comms::read(fields),
            of: Handled::of(fields.bits(at(8), 0, 2)),
            reason: RejReason(fields.half(at(10))),
            ca_guid: guid.then(|| fields.long(at(12))),
            private_data: fields.bytes(at(84)),
        }
    }

    fn write(&self, fields: &mut Fields) {
        self.comms.write(fields);
        fields.put_bits(at(8), 0, 2, self.of as u8);
        fields.put(at(10), self.reason.0.to_be_bytes());
        if let Some(guid) = self.ca_guid {
            fields.put_bits(at(9), 0, 7, Rej::GUID_BYTES);
            fields.put(at(12), guid.to_be_bytes());
        }
        fields.put(at(84), self.private_data);
    }
}
