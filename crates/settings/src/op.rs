//! Operations and transport services, and what each needs and carries ([`Op::profile`], [`Service::carries`]): the only place
//! that tells operations apart.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::as_text;
use super::words::{WordError, find, words};

words! {
    /// An RDMA operation: what `ibv_post_send` is called for.
    Op {
        /// SEND into receives that the target has posted.
        Send = "send",
        /// RDMA WRITE into the target's memory.
        Write = "write",
        /// RDMA READ from the target's memory.
        Read = "read",
        /// SEND with 4 bytes of immediate data for the completion.
        SendImm = "send-imm",
        /// RDMA WRITE with immediate data, which uses up a receive.
        WriteImm = "write-imm",
        /// Atomic addition to 8 bytes of the target's memory; their value before comes back.
        FetchAdd = "fetch-add",
        /// Atomic exchange of 8 bytes if they have the expected value; their value before comes back.
        CompareSwap = "compare-swap",
    }
}

/// What the initiator of an operation may do to the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: the target gives receives.
    None,
    /// Any of its bytes are written.
    Write,
    /// Any of its bytes are read.
    Read,
    /// Add to 8 bytes of it.
    Add,
    /// Exchange 8 bytes of it.
    Swap,
}

/// Bytes on which an atomic operation acts (InfiniBand specification, volume 1, 9.4.5).
pub const ATOMIC_BYTES: u32 = 8;

/// What an operation needs, and where its bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Each message uses up a receive of the target.
    pub receives: bool,
    /// Bytes land at the initiator, from the target; elsewhere at the target.
    pub fetches: bool,
    /// What the initiator may do to the target's memory.
    pub access: Access,
    /// Each message carries immediate data.
    pub immediate: bool,
    /// The opcode's name in `ibv_post_send(3)`.
    pub opcode: &'static str,
    /// Extended headers of the first, last and only packet that carry payload, in bytes: RETH has 16, AETH and ImmDt 4
    /// (InfiniBand specification, volume 1, table 38). Of an atomic's AtomicETH 8 of the 28 bytes are its payload.
    pub extended_header_bytes: [u64; 3],
}

impl Profile {
    /// Whether it acts on [`ATOMIC_BYTES`] of the target's memory.
    pub fn is_atomic(&self) -> bool {
        matches!(self.access, Access::Add | Access::Swap)
    }

    /// Whether payload lands in the target's receives.
    pub fn fills_receives(&self) -> bool {
        self.receives && self.access == Access::None
    }
}

impl Op {
    /// The operations that lessons and `doctor` show: one for each way that bytes go.
    pub const BASIC: [Op; 3] = [Op::Send, Op::Write, Op::Read];

    /// What it needs of both ends; the only place that tells operations apart.
    #[inline]
    pub fn profile(self) -> &'static Profile {
        const SEND: Profile = Profile {
            receives: true,
            fetches: false,
            access: Access::None,
            immediate: false,
            opcode: "IBV_WR_SEND",
            extended_header_bytes: [0, 0, 0],
        };
        const WRITE: Profile = Profile {
            receives: false,
            access: Access::Write,
            opcode: "IBV_WR_RDMA_WRITE",
            extended_header_bytes: [16, 0, 16],
            ..SEND
        };
        // Of the responses those in the middle do not acknowledge.
        const READ: Profile = Profile {
            receives: false,
            fetches: true,
            access: Access::Read,
            opcode: "IBV_WR_RDMA_READ",
            extended_header_bytes: [4, 4, 4],
            ..SEND
        };
        match self {
            Op::Send => &SEND,
            Op::SendImm => &Profile {
                immediate: true,
                opcode: "IBV_WR_SEND_WITH_IMM",
                extended_header_bytes: [0, 4, 4],
                ..SEND
            },
            Op::Write => &WRITE,
            Op::WriteImm => &Profile {
                receives: true,
                immediate: true,
                opcode: "IBV_WR_RDMA_WRITE_WITH_IMM",
                extended_header_bytes: [16, 4, 20],
                ..WRITE
            },
            Op::Read => &READ,
            Op::FetchAdd => &Profile {
                access: Access::Add,
                opcode: "IBV_WR_ATOMIC_FETCH_AND_ADD",
                extended_header_bytes: [20, 20, 20],
                ..READ
            },
            Op::CompareSwap => &Profile {
                access: Access::Swap,
                opcode: "IBV_WR_ATOMIC_CMP_AND_SWP",
                extended_header_bytes: [20, 20, 20],
                ..READ
            },
        }
    }
}

/// A word of `--op`: what a case measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Workload {
    /// Messages are moved by this operation.
    Transfer(Op),
    /// QPs are created, connected and destroyed; beside it, WRITEs go on.
    Connect,
}

impl Workload {
    /// All, in the order in which they are listed.
    pub const ALL: [Workload; 8] = [
        Workload::Transfer(Op::Send),
        Workload::Transfer(Op::Write),
        Workload::Transfer(Op::Read),
        Workload::Transfer(Op::SendImm),
        Workload::Transfer(Op::WriteImm),
        Workload::Transfer(Op::FetchAdd),
        Workload::Transfer(Op::CompareSwap),
        Workload::Connect,
    ];

    /// The word of the command line and of files.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Transfer(op) => op.name(),
            Workload::Connect => "connect",
        }
    }

    /// The operation that moves data: what is measured, or what goes on beside the set-ups.
    pub fn transfer(self) -> Op {
        match self {
            Workload::Transfer(op) => op,
            Workload::Connect => Op::Write,
        }
    }

    /// What moving the data needs.
    pub fn profile(self) -> &'static Profile {
        self.transfer().profile()
    }
}

impl From<Op> for Workload {
    fn from(op: Op) -> Workload {
        Workload::Transfer(op)
    }
}

impl FromStr for Workload {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        match word {
            "send-inv" => Err(WordError::SendWithInvalidate),
            word => find(word, &Workload::ALL, Workload::name),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

as_text!(Workload, { "enum": Workload::ALL.map(Workload::name) });

words! {
    /// A transport service of QPs.
    Service {
        /// Reliable connection: what is lost is sent again, and every message comes once.
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
    fn words_are_read_back() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        let error = "conect".parse::<Workload>().unwrap_err().to_string();
        assert!(error.contains("did you mean `connect`"), "{error}");
        assert_eq!("connect".parse::<Op>().ok(), None, "not an operation");
        let refusal = "send-inv".parse::<Workload>().unwrap_err().to_string();
        assert!(refusal.ends_with("use send or send-imm"), "{refusal}");
    }

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
