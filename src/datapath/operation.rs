//! What verbs has for an operation: opcodes and access flags, from its profile. It must not know cases.

use settings::{Access, Profile};
use verbs::{Access as MemoryAccess, SendOpcode};

/// Memory that the peer offers to WRITE and READ for one QP.
#[derive(Clone, Copy, Debug)]
pub struct RemoteMemory {
    /// Address of its first byte.
    pub address: u64,
    /// The peer's key.
    pub rkey: u32,
}

/// The opcode of a work request, and where in the target's memory it goes.
pub fn send_opcode(profile: &Profile, remote: RemoteMemory) -> SendOpcode {
    let RemoteMemory { address, rkey } = remote;
    match profile.access {
        Access::None => SendOpcode::Send,
        Access::Write => SendOpcode::Write { address, rkey },
        Access::Read => SendOpcode::Read { address, rkey },
    }
}

/// What the device may do with the initiator's memory.
pub fn initiator_access(profile: &Profile) -> MemoryAccess {
    match profile.fetches {
        true => MemoryAccess::LocalWrite,
        false => MemoryAccess::LocalRead,
    }
}

/// What the device may do with the memory that the target offers; with no access, only receives are written.
pub fn target_access(profile: &Profile) -> MemoryAccess {
    match profile.access {
        Access::None => MemoryAccess::LocalRead,
        Access::Write => MemoryAccess::RemoteWrite,
        Access::Read => MemoryAccess::RemoteRead,
    }
}
