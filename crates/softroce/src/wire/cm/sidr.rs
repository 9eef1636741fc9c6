//! Messages that look up the QP of a datagram service (specification 12.11, tables 119 and 120: "service ID resolution").

use super::fields::Fields;

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
    /// There is one.
    pub const VALID: SidrStatus = SidrStatus(0);
    /// Nobody offers the service.
    pub const UNSUPPORTED: SidrStatus = SidrStatus(1);
    /// The program refused it.
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
    pub(super) fn walk(&mut self, fields: &mut Fields<'_>) {
        fields.word(0, &mut self.request);
        fields.half(4, &mut self.pkey);
        fields.long(8, &mut self.service);
        fields.data(16, SIDR_REQ_DATA_BYTES, &mut self.private_data);
    }
}

impl SidrRep {
    pub(super) fn walk(&mut self, fields: &mut Fields<'_>) {
        fields.word(0, &mut self.request);
        fields.byte(4, &mut self.status.0);
        fields.three(8, &mut self.qpn);
        fields.long(12, &mut self.service);
        fields.word(20, &mut self.qkey);
        fields.data(96, SIDR_REP_DATA_BYTES, &mut self.private_data);
    }
}
