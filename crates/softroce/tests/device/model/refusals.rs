//! Requests that the responder must refuse: they change no memory, end with the right status, and move both QPs to
//! ERR.

use proptest::prelude::*;
use softroce::transport::{Access, Operation, PdId, QpEvent, State, Status};

use super::scenario::{ALL_ACCESS, Setup};
use super::script::Script;
use super::testbed::{PD, Side};

/// An operation at an address with a key.
type At = fn(u64, u32) -> Operation;
/// That, its immediate data, and the access that it needs.
type Verb = (At, Option<u32>, Access);

const WRITE: At = |address, rkey| Operation::Write { address, rkey };
const READ: At = |address, rkey| Operation::Read { address, rkey };
pub const FETCH_ADD: At = |address, rkey| Operation::FetchAdd { address, rkey, add: 1 };
const COMPARE_SWAP: At =
    |address, rkey| Operation::CompareSwap { address, rkey, compare: 0, swap: 1 };

const VERBS: [Verb; 5] = [
    (WRITE, None, Access::REMOTE_WRITE),
    (WRITE, Some(9), Access::REMOTE_WRITE),
    (READ, None, Access::REMOTE_READ),
    (FETCH_ADD, None, Access::REMOTE_ATOMIC),
    (COMPARE_SWAP, None, Access::REMOTE_ATOMIC),
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// A key that was never returned.
    UnknownKey,
    /// The key of a region that was deregistered.
    OldKey,
    /// The key of a region in another protection domain.
    OtherDomain,
    /// The range starts before the region.
    Before,
    Beyond,
    /// The range exceeds the address space.
    Wraps,
    /// The region does not allow it; a local one is read-only.
    RegionAccess,
    QpAccess,
}

pub const FAULTS: [Fault; 8] = [
    Fault::UnknownKey,
    Fault::OldKey,
    Fault::OtherDomain,
    Fault::Before,
    Fault::Beyond,
    Fault::Wraps,
    Fault::RegionAccess,
    Fault::QpAccess,
];

/// The faulty address and key of so many bytes of a side.
pub fn faulty(side: &Side, fault: Fault, bytes: usize) -> (u64, u32) {
    let whole = side.memory.region_bytes();
    let start = side.memory.region_address();
    let inside = start + 4096;
    // Atomics are aligned.
    let step = if bytes == 8 { 8 } else { 1 };
    match fault {
        Fault::UnknownKey => (inside, side.key ^ 0x0055_0055),
        Fault::OldKey => {
            let key = side.register(PD, whole, ALL_ACCESS);
            side.nic.deregister(key);
            (inside, key)
        }
        Fault::OtherDomain => (inside, side.register(PdId(2), whole, ALL_ACCESS)),
        Fault::Before => (start - step, side.key),
        Fault::Beyond => (start + (whole - bytes) as u64 + step, side.key),
        Fault::Wraps => (u64::MAX - 7, side.key),
        Fault::RegionAccess | Fault::QpAccess => (inside, side.key),
    }
}

fn refuse(verb: Verb, fault: Fault, bytes: usize, before: usize, after: usize) {
    let (operation, immediate, access) = verb;
    let mut setup = Setup::plain();
    let without = Access(ALL_ACCESS.0 & !access.0);
    match fault {
        Fault::RegionAccess => setup.region_access = without,
        Fault::QpAccess => setup.qp_access = without,
        _ => {}
    }
    // The requests around it must be of a kind that is allowed.
    let allowed = match access {
        Access::REMOTE_READ => Script::write,
        _ => Script::read,
    };
    let is_atomic = access == Access::REMOTE_ATOMIC;
    let bytes = if is_atomic { 8 } else { bytes };
    let mut script = Script::new(&setup);
    for _ in 0..2 {
        script.receive(0, 64, None, Status::FlushError);
        script.receive(1, 64, None, Status::FlushError);
    }
    (0..before).for_each(|_| allowed(&mut script, 0, 1500, Status::Success));
    let element = script.fresh_element(0, bytes);
    let (address, rkey) = faulty(&script.testbed.sides[1], fault, bytes);
    // By the specification and libibverbs' manual, an operation that the QP does not allow is an invalid request.
    let (status, event) = match fault {
        Fault::QpAccess => (Status::RemoteInvalidRequestError, QpEvent::RequestError),
        _ => (Status::RemoteAccessError, QpEvent::AccessError),
    };
    script.post(0, operation(address, rkey), immediate, &[element], status);
    (0..after).for_each(|_| allowed(&mut script, 0, 700, Status::FlushError));
    script.ends([State::Err, State::Err]);
    assert_eq!(script.testbed.heard(1, 1), [event]);
    script.flushes_what_is_posted_now(0);
    script.flushes_what_is_posted_now(1);
}

#[test]
fn every_fault_of_every_verb_is_refused() {
    for verb in VERBS {
        for fault in FAULTS {
            eprintln!("{:?} {:?} {fault:?}", verb.0(0, 0), verb.1);
            refuse(verb, fault, 2500, 2, 2);
        }
    }
}

#[test]
fn refused_requests_touch_nothing() {
    let verb = prop::sample::select(VERBS.to_vec());
    let fault = prop::sample::select(FAULTS.to_vec());
    let cases = (verb, fault, 9..6000usize, 0..5usize, 0..5usize);
    super::seeds("refused_requests", 300, &cases, |(verb, fault, bytes, before, after)| {
        refuse(verb, fault, bytes, before, after);
        Ok(())
    });
}

#[test]
fn an_atomic_that_is_not_aligned_is_refused() {
    for operation in [FETCH_ADD, COMPARE_SWAP] {
        let mut script = Script::new(&Setup::plain());
        let element = script.fresh_element(0, 8);
        let side = &script.testbed.sides[1];
        let operation = operation(side.memory.region_address() + 4, side.key);
        let status = Status::RemoteInvalidRequestError;
        script.post(0, operation, None, &[element], status);
        script.ends([State::Err, State::Err]);
    }
}

#[test]
fn the_keys_of_two_regions_are_not_mixed_up() {
    // A key allows only its own region, although the memory beside it is also registered.
    let mut script = Script::new(&Setup::plain());
    let side = &script.testbed.sides[1];
    let rkey = side.register(PD, 4096, ALL_ACCESS);
    assert_ne!(rkey, side.key);
    let address = side.memory.region_address() + 4096 - 99;
    let element = script.fresh_element(0, 100);
    let status = Status::RemoteAccessError;
    script.post(0, WRITE(address, rkey), None, &[element], status);
    script.ends([State::Err, State::Err]);
}
