//! Opcodes and access flags of an operation, from its profile.

use settings::{ATOMIC_BYTES, Access, AtomicTarget, Profile};
use verbs::{Access as MemoryAccess, MemoryRegion, SendOpcode};

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

// What atomic operations add and exchange, and what the words that they act on may hold.
//
// A FETCH-ADD adds 1, so a word counts those that were made on it. The COMPARE-SWAPs of a QP take and free a lock in
// turn: if the word is 0 it becomes the QP's own value, and if it is that it becomes 0. A QP that is alone on its word
// makes every exchange, unless workers that share a CQ post on it in another order than they numbered them; an exchange
// is not made where another QP has the lock.

pub(super) const ADDED: u64 = 1;

/// What a result holds until it is there: no word ever has this value.
pub(super) const AWAITED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// It is made if the word has this value.
    pub(super) expected: u64,
    /// The word's value after it.
    pub(super) new: u64,
}

impl Exchange {
    /// The exchange with this number, from 0, of QP `qp` on one word.
    pub(super) fn from_number(qp: u32, number: u64) -> Exchange {
        let held = u64::from(qp) + 1;
        if number.is_multiple_of(2) {
            Exchange { expected: 0, new: held }
        } else {
            Exchange { expected: held, new: 0 }
        }
    }

    /// The number of the exchange that ring position `position` posts for the time `count`, from 0, among those of its QP
    /// on the same word.
    pub(super) fn number(target: AtomicTarget, ring: u32, position: u32, count: u32) -> u64 {
        match target {
            AtomicTarget::Spread => count.into(),
            AtomicTarget::Shared | AtomicTarget::PerQp => {
                u64::from(count) * u64::from(ring) + u64::from(position)
            }
        }
    }

    /// Whether exchanges of `qps` QPs may leave this value.
    pub(super) fn may_leave(value: u64, qps: u32) -> bool {
        value <= qps.into()
    }
}

/// The word at `offset`; [`AWAITED`] outside of the memory.
pub(super) fn word(memory: &MemoryRegion, offset: usize) -> u64 {
    let mut bytes = [0; ATOMIC_BYTES as usize];
    if memory.read_at(offset, &mut bytes) == bytes.len() {
        u64::from_ne_bytes(bytes)
    } else {
        AWAITED
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the depth and the order of QPs: who frees the lock is who took it, and a QP alone always succeeds.
        #[test]
        fn exchanges_of_qps_take_and_free_a_lock(order in proptest::collection::vec(0..4u32, 1..200), ring in 1..9u32) {
            let (mut word, mut posted, mut made, mut owner) = (0, [0u32; 4], [0u32; 4], None);
            for qp in order {
                let at = qp as usize;
                let number = Exchange::number(AtomicTarget::Shared, ring, posted[at] % ring, posted[at] / ring);
                prop_assert_eq!(number, u64::from(posted[at]));
                posted[at] += 1;
                let exchange = Exchange::from_number(qp, number);
                if word == exchange.expected {
                    prop_assert!(owner.is_none_or(|owner| owner == qp));
                    word = exchange.new;
                    owner = (word != 0).then_some(qp);
                    made[at] += 1;
                }
                prop_assert!(Exchange::may_leave(word, 4));
            }
        }
    }
}
