//! Opcodes of the base transport header (InfiniBand specification, table 38): three bits of service, five
//! of operation. An operation is one row.

/// The transport service, the opcode's high three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    Rc,
    Uc,
    Ud,
}

/// What a packet is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub enum PacketKind {
    Send,
    Write,
    ReadRequest,
    ReadResponse,
    Atomic,
    AtomicAck,
    /// NAKs too.
    Ack,
}

/// Its place in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the specification's name
pub enum Place {
    First,
    Middle,
    Last,
    Only,
}

/// What an operation is: a row of the table.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    kind: PacketKind,
    place: Place,
    /// The services that have it.
    services: &'static [Service],
    /// The extended headers that follow.
    headers: u8,
}

const RC: &[Service] = &[Service::Rc];
const EITHER: &[Service] = &[Service::Rc, Service::Uc];
const ANY: &[Service] = &[Service::Rc, Service::Uc, Service::Ud];

const RETH: u8 = 1;
const AETH: u8 = 2;
const ATOMIC_ETH: u8 = 4;
const ATOMIC_ACK: u8 = 8;
const IMMEDIATE: u8 = 16;

macro_rules! opcodes {
    ($($opcode:ident = $code:literal, $name:literal, $kind:ident, $place:ident, $services:ident, $headers:expr;)*) => {
        /// The operation of a packet, the opcode's low five bits. Not every service has every operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // each is the specification's name
        pub enum Opcode {
            $($opcode = $code,)*
        }

        impl Opcode {
            /// Every operation, in numerical order.
            pub const ALL: &[Opcode] = &[$(Opcode::$opcode,)*];

            const fn row(self) -> Row {
                match self {
                    $(Opcode::$opcode => Row {
                        name: $name,
                        kind: PacketKind::$kind,
                        place: Place::$place,
                        services: $services,
                        headers: $headers,
                    },)*
                }
            }
        }
    };
}

opcodes! {
    SendFirst = 0x00, "SEND First", Send, First, EITHER, 0;
    SendMiddle = 0x01, "SEND Middle", Send, Middle, EITHER, 0;
    SendLast = 0x02, "SEND Last", Send, Last, EITHER, 0;
    SendLastImmediate = 0x03, "SEND Last with Immediate", Send, Last, EITHER, IMMEDIATE;
    SendOnly = 0x04, "SEND Only", Send, Only, ANY, 0;
    SendOnlyImmediate = 0x05, "SEND Only with Immediate", Send, Only, ANY, IMMEDIATE;
    WriteFirst = 0x06, "RDMA WRITE First", Write, First, EITHER, RETH;
    WriteMiddle = 0x07, "RDMA WRITE Middle", Write, Middle, EITHER, 0;
    WriteLast = 0x08, "RDMA WRITE Last", Write, Last, EITHER, 0;
    WriteLastImmediate = 0x09, "RDMA WRITE Last with Immediate", Write, Last, EITHER, IMMEDIATE;
    WriteOnly = 0x0a, "RDMA WRITE Only", Write, Only, EITHER, RETH;
    WriteOnlyImmediate = 0x0b, "RDMA WRITE Only with Immediate", Write, Only, EITHER, RETH | IMMEDIATE;
    ReadRequest = 0x0c, "RDMA READ Request", ReadRequest, Only, RC, RETH;
    ReadResponseFirst = 0x0d, "RDMA READ Response First", ReadResponse, First, RC, AETH;
    ReadResponseMiddle = 0x0e, "RDMA READ Response Middle", ReadResponse, Middle, RC, 0;
    ReadResponseLast = 0x0f, "RDMA READ Response Last", ReadResponse, Last, RC, AETH;
    ReadResponseOnly = 0x10, "RDMA READ Response Only", ReadResponse, Only, RC, AETH;
    Acknowledge = 0x11, "Acknowledge", Ack, Only, RC, AETH;
    AtomicAcknowledge = 0x12, "ATOMIC Acknowledge", AtomicAck, Only, RC, AETH | ATOMIC_ACK;
    CompareSwap = 0x13, "CompareSwap", Atomic, Only, RC, ATOMIC_ETH;
    FetchAdd = 0x14, "FetchAdd", Atomic, Only, RC, ATOMIC_ETH;
}

impl Service {
    /// The service of the base transport header's opcode byte; `None` if this device does not support it.
    pub fn of(byte: u8) -> Option<Service> {
        [Service::Rc, Service::Uc, Service::Ud]
            .into_iter()
            .find(|service| service.bits() == byte & 0xe0)
    }

    /// The high three bits in place.
    pub fn bits(self) -> u8 {
        match self {
            Service::Rc => 0x00,
            Service::Uc => 0x20,
            Service::Ud => 0x60,
        }
    }
}

impl Opcode {
    /// The byte of the base transport header.
    pub fn byte(self, service: Service) -> u8 {
        service.bits() | self as u8
    }

    /// Parses that byte; `None` for a service or operation that this device does not support.
    pub fn parse(byte: u8) -> Option<(Service, Opcode)> {
        let service = Service::of(byte)?;
        let opcode = *Opcode::ALL.get(usize::from(byte & 0x1f))?;
        let exists = opcode.row().services.contains(&service);
        exists.then_some((service, opcode))
    }

    /// The specification's name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What a packet is part of.
    pub fn kind(self) -> PacketKind {
        self.row().kind
    }

    /// The place of a packet in its message.
    pub fn place(self) -> Place {
        self.row().place
    }

    /// Whether it answers a request.
    pub fn is_answer(self) -> bool {
        use PacketKind::{Ack, AtomicAck, ReadResponse};
        matches!(self.kind(), ReadResponse | Ack | AtomicAck)
    }

    /// Whether immediate data follows.
    pub fn has_immediate(self) -> bool {
        self.row().headers & IMMEDIATE != 0
    }

    /// Whether an RDMA extended header follows: address, key and length.
    pub fn has_reth(self) -> bool {
        self.row().headers & RETH != 0
    }

    /// Whether an ACK extended header follows: syndrome and message number.
    pub fn has_aeth(self) -> bool {
        self.row().headers & AETH != 0
    }

    /// Whether an atomic extended header follows.
    pub fn has_atomic_eth(self) -> bool {
        self.row().headers & ATOMIC_ETH != 0
    }

    /// Whether an atomic's result follows.
    pub fn has_atomic_ack(self) -> bool {
        self.row().headers & ATOMIC_ACK != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_an_opcode_or_refused() {
        let mut known = 0;
        for byte in 0..=u8::MAX {
            if let Some((service, opcode)) = Opcode::parse(byte) {
                assert_eq!(opcode.byte(service), byte);
                known += 1;
            }
        }
        assert_eq!(known, 21 + 12 + 2);
    }
}
