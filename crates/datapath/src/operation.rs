//! Opcodes and access flags of an operation, from its profile.

use settings::{Access, Profile};
use verbs::{Access as MemoryAccess, SendOpcode};

use super::atomic::ADDED;

/// Memory that the peer offers for one QP's WRITEs and READs.
#[derive(Clone, Copy, Debug)]
pub struct RemoteMemory {
    /// Address of its first byte.
    pub address: u64,
    pub rkey: u32,
}

/// The opcode of a work request; with the target address, if it has one.
pub fn send_opcode(profile: &Profile, remote: RemoteMemory) -> SendOpcode {
    let RemoteMemory { address, rkey } = remote;
    match (profile.access, profile.immediate) {
        (Access::None, false) => SendOpcode::Send,
        (Access::None, true) => SendOpcode::SendImmediate,
        (Access::Write, false) => SendOpcode::Write { address, rkey },
        (Access::Write, true) => SendOpcode::WriteImmediate { address, rkey },
        (Access::Read, _) => SendOpcode::Read { address, rkey },
        (Access::Add, _) => SendOpcode::FetchAdd { address, rkey, add: ADDED },
        (Access::Swap, _) => SendOpcode::CompareSwap { address, rkey },
    }
}

/// The device's access to the initiator's memory.
pub fn initiator_access(profile: &Profile) -> MemoryAccess {
    if profile.fetches { MemoryAccess::LocalWrite } else { MemoryAccess::LocalRead }
}

/// The device's access to the memory that the target offers. Without access, the target has only receive buffers.
pub fn target_access(profile: &Profile) -> MemoryAccess {
    match profile.access {
        Access::None => MemoryAccess::LocalRead,
        Access::Write => MemoryAccess::RemoteWrite,
        Access::Read => MemoryAccess::RemoteRead,
        Access::Add | Access::Swap => MemoryAccess::RemoteAtomic,
    }
}
