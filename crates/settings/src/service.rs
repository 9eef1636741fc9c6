//! Transport services, and what each carries ([`Service::carries`]).

use super::op::{Op, Workload};
use super::words::words;

words! {
    /// A transport service of QPs.
    Service {
        /// Reliable connection.
        Rc = "rc",
        /// Unreliable connection: a message is dropped if one of its packets is lost or no receive is posted.
        Uc = "uc",
        /// Unreliable datagrams: each message is one packet.
        Ud = "ud",
    }
}

/// The largest path MTU, and so the largest datagram.
pub const LARGEST_MTU_BYTES: u32 = 4096;

/// The global header before a datagram's payload in its receive (InfiniBand specification, volume 1, 11.4.1.2).
const GRH_BYTES: u32 = 40;

/// The datagram extended transport header of each packet (volume 1, 9.3.1).
const DETH_BYTES: u64 = 8;

impl Service {
    /// The operations that its QPs have (volume 1, table 37).
    pub fn ops(self) -> &'static [Op] {
        match self {
            Service::Rc => Op::ALL,
            Service::Uc => &[Op::Send, Op::SendImm, Op::Write, Op::WriteImm],
            Service::Ud => &[Op::Send, Op::SendImm],
        }
    }

    /// Whether its QPs have the operation of a workload. Set-up is of RC QPs.
    pub fn carries(self, workload: Workload) -> bool {
        match workload {
            Workload::Transfer(op) => self.ops().contains(&op),
            Workload::Connect => self == Service::Rc,
        }
    }

    /// Whether every message comes, once.
    pub fn is_reliable(self) -> bool {
        self == Service::Rc
    }

    /// Bytes that the device puts before the payload in a receive.
    pub fn receive_header_bytes(self) -> u32 {
        match self {
            Service::Rc | Service::Uc => 0,
            Service::Ud => GRH_BYTES,
        }
    }

    /// Bytes of each packet's headers beyond those of a connection's.
    pub fn packet_header_bytes(self) -> u64 {
        match self {
            Service::Rc | Service::Uc => 0,
            Service::Ud => DETH_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rc_fetches_and_only_connections_write() {
        for &op in Op::ALL {
            let profile = op.profile();
            assert!(Service::Rc.carries(op.into()));
            assert_eq!(Service::Uc.carries(op.into()), !profile.fetches, "{op}");
            let is_send = profile.fills_receives();
            assert_eq!(Service::Ud.carries(op.into()), is_send, "{op}");
        }
        let set_up = Service::ALL.iter().map(|it| it.carries(Workload::Connect));
        assert_eq!(set_up.collect::<Vec<_>>(), [true, false, false]);
    }
}
