//! Opcodes of the base transport header (InfiniBand specification, table 38): three bits of service, five
//! of operation.

/// The transport service, the opcode's high three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

/// The operation of a packet, the opcode's low five bits. Not every service has every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // each is the specification's name
pub enum Opcode {
    SendFirst = 0x00,
    SendMiddle = 0x01,
    SendLast = 0x02,
    SendLastImmediate = 0x03,
    SendOnly = 0x04,
    SendOnlyImmediate = 0x05,
    WriteFirst = 0x06,
    WriteMiddle = 0x07,
    WriteLast = 0x08,
    WriteLastImmediate = 0x09,
    WriteOnly = 0x0a,
    WriteOnlyImmediate = 0x0b,
    ReadRequest = 0x0c,
    ReadResponseFirst = 0x0d,
    ReadResponseMiddle = 0x0e,
    ReadResponseLast = 0x0f,
    ReadResponseOnly = 0x10,
    Acknowledge = 0x11,
    AtomicAcknowledge = 0x12,
    CompareSwap = 0x13,
    FetchAdd = 0x14,
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
    /// Every operation, in numerical order.
    pub const ALL: [Opcode; 21] = [
        Opcode::SendFirst,
        Opcode::SendMiddle,
        Opcode::SendLast,
        Opcode::SendLastImmediate,
        Opcode::SendOnly,
        Opcode::SendOnlyImmediate,
        Opcode::WriteFirst,
        Opcode::WriteMiddle,
        Opcode::WriteLast,
        Opcode::WriteLastImmediate,
        Opcode::WriteOnly,
        Opcode::WriteOnlyImmediate,
        Opcode::ReadRequest,
        Opcode::ReadResponseFirst,
        Opcode::ReadResponseMiddle,
        Opcode::ReadResponseLast,
        Opcode::ReadResponseOnly,
        Opcode::Acknowledge,
        Opcode::AtomicAcknowledge,
        Opcode::CompareSwap,
        Opcode::FetchAdd,
    ];

    /// The byte of the base transport header.
    pub fn byte(self, service: Service) -> u8 {
        service.bits() | self as u8
    }

    /// Parses that byte; `None` for a service or operation that this device does not support.
    pub fn parse(byte: u8) -> Option<(Service, Opcode)> {
        let service = Service::of(byte)?;
        let opcode = *Opcode::ALL.get(usize::from(byte & 0x1f))?;
        opcode.exists_in(service).then_some((service, opcode))
    }

    /// Whether a service has the operation: UC neither reads nor acknowledges, UD only sends single packets.
    pub fn exists_in(self, service: Service) -> bool {
        match service {
            Service::Rc => true,
            Service::Uc => (self as u8) <= Opcode::WriteOnlyImmediate as u8,
            Service::Ud => matches!(self, Opcode::SendOnly | Opcode::SendOnlyImmediate),
        }
    }

    /// Whether immediate data follows.
    pub fn has_immediate(self) -> bool {
        matches!(
            self,
            Opcode::SendLastImmediate
                | Opcode::SendOnlyImmediate
                | Opcode::WriteLastImmediate
                | Opcode::WriteOnlyImmediate
        )
    }

    /// Whether an RDMA extended header follows: address, key and length.
    pub fn has_reth(self) -> bool {
        matches!(
            self,
            Opcode::WriteFirst
                | Opcode::WriteOnly
                | Opcode::WriteOnlyImmediate
                | Opcode::ReadRequest
        )
    }

    /// Whether an ACK extended header follows: syndrome and message number.
    pub fn has_aeth(self) -> bool {
        matches!(
            self,
            Opcode::ReadResponseFirst
                | Opcode::ReadResponseLast
                | Opcode::ReadResponseOnly
                | Opcode::Acknowledge
                | Opcode::AtomicAcknowledge
        )
    }

    /// Whether an atomic extended header follows.
    pub fn has_atomic_eth(self) -> bool {
        matches!(self, Opcode::CompareSwap | Opcode::FetchAdd)
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
