//! Messages that look up the QP of a datagram service (specification 12.11, tables 119 and 120: "service ID resolution").

use super::fields::{Fields, MAD_BYTES, at};

/// Their attribute numbers in the MAD header.
pub const SIDR_REQ: u16 = 0x17;
#[allow(missing_docs)] // as above
pub const SIDR_REP: u16 = 0x18;
/// Bytes of private data of a request, with the IP header of annex A11.
pub const SIDR_REQ_DATA_BYTES: usize = 216;
/// Bytes of private data of a reply.
pub const SIDR_REP_DATA_BYTES: usize = 136;

/// A request for the QP of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub struct SidrReq {
    pub request: u32,
    pub pkey: u16,
    pub service: u64,
    pub private_data: [u8; SIDR_REQ_DATA_BYTES],
}

/// Why there is no QP in a reply (table 120).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidrStatus(pub u8);

impl SidrStatus {
    /// There is one.
    pub const VALID: SidrStatus = SidrStatus(0);
    /// Nobody offers the service.
    pub const UNSUPPORTED: SidrStatus = SidrStatus(1);
    /// The program refused it.
    pub const REJECTED: SidrStatus = SidrStatus(2);
}

/// A reply to that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub struct SidrRep {
    pub request: u32,
    pub status: SidrStatus,
    pub qpn: u32,
    pub service: u64,
    pub qkey: u32,
    pub private_data: [u8; SIDR_REP_DATA_BYTES],
}

impl SidrReq {
    pub(super) fn read(fields: &Fields) -> SidrReq {
        SidrReq {
            request: fields.word(at(0)),
            pkey: fields.half(at(4)),
            service: fields.long(at(8)),
            private_data: fields.bytes(at(16)),
        }
    }

    pub(super) fn write(&self, fields: &mut Fields) {
        fields.put(at(0), self.request.to_be_bytes());
        fields.put(at(4), self.pkey.to_be_bytes());
        fields.put(at(8), self.service.to_be_bytes());
        fields.put(at(16), self.private_data);
    }
}

impl SidrRep {
    /// A reply without a QP, to a request that is yet to be set.
    pub fn without_qp(status: SidrStatus) -> SidrRep {
        SidrRep {
            status,
            ..SidrRep::read(&Fields([0; MAD_BYTES]))
        }
    }

    pub(super) fn read(fields: &Fields) -> SidrRep {
        SidrRep {
            request: fields.word(at(0)),
            status: SidrStatus(fields.byte(at(4))),
            qpn: fields.three(at(8)),
            service: fields.long(at(12)),
            qkey: fields.word(at(20)),
            private_data: fields.bytes(at(96)),
        }
    }

    pub(super) fn write(&self, fields: &mut Fields) {
        fields.put(at(0), self.request.to_be_bytes());
        fields.put(at(4), [self.status.0]);
        fields.put_three(at(8), self.qpn);
        fields.put(at(12), self.service.to_be_bytes());
        fields.put(at(20), self.qkey.to_be_bytes());
        fields.put(at(96), self.private_data);
    }
}
