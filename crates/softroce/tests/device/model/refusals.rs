//! Requests that the responder must refuse: they change no memory, end with the right status, and move both QPs to
//! ERR.

use proptest::prelude::*;
use softroce::transport::{Access, Operation, PdId, QpEvent, State, Status};

use super::scenario::{ALL_ACCESS, Setup};
use super::script::Script;
use super::testbed::PD;

#[derive(Clone, Copy, Debug)]
enum Verb {
    Write,
    WriteImmediate,
    Read,
    FetchAdd,
    CompareSwap,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// A key that was never returned.
    UnknownKey,
    /// The key of a region that was deregistered.
    OldKey,
    /// The key of a region in another protection domain.
    OtherDomain,
    /// The range starts 8 bytes before the region.
    Before,
    Beyond,
    /// The range exceeds the address space.
    Wraps,
    RegionAccess,
    QpAccess,
}

const VERBS: [Verb; 5] = [
    Verb::Write,
    Verb::WriteImmediate,
    Verb::Read,
    Verb::FetchAdd,
    Verb::CompareSwap,
];
const FAULTS: [Fault; 8] = [
    Fault::UnknownKey,
    Fault::OldKey,
    Fault::OtherDomain,
    Fault::Before,
    Fault::Beyond,
    Fault::Wraps,
    Fault::RegionAccess,
    Fault::QpAccess,
];

impl Verb {
    fn access_without(self) -> Access {
        let needed = match self {
            Verb::Write | Verb::WriteImmediate => Access::REMOTE_WRITE,
            Verb::Read => Access::REMOTE_READ,
            Verb::FetchAdd | Verb::CompareSwap => Access::REMOTE_ATOMIC,
        };
        Access(ALL_ACCESS.0 & !needed.0)
    }

    fn is_atomic(self) -> bool {
        matches!(self, Verb::FetchAdd | Verb::CompareSwap)
    }

    fn at(self, address: u64, rkey: u32) -> (Operation, Option<u32>) {
        let operation = match self {
            Verb::Write | Verb::WriteImmediate => Operation::Write { address, rkey },
            Verb::Read => Operation::Read { address, rkey },
            Verb::FetchAdd => Operation::FetchAdd {
                address,
                rkey,
                add: 1,
            },
            Verb::CompareSwap => Operation::CompareSwap {
                address,
                rkey,
                compare: 0,
                swap: 1,
            },
        };
        let immediate = matches!(self, Verb::WriteImmediate).then_some(9);
        (operation, immediate)
    }
}

/// The faulty address and key of a valid target.
fn target(script: &Script, fault: Fault, bytes: usize) -> (u64, u32) {
    let side = &script.testbed.sides[1];
    let whole = side.memory.region_bytes();
    let start = side.memory.region_address();
    let inside = start + 4096;
    match fault {
        Fault::UnknownKey => (inside, side.key ^ 0x0055_0055),
        Fault::OldKey => {
            let key = side.register(PD, whole, ALL_ACCESS);
            side.nic.deregister(key);
            (inside, key)
        }
        Fault::OtherDomain => (inside, side.register(PdId(2), whole, ALL_ACCESS)),
        Fault::Before => (start - 8, side.key),
        Fault::Beyond => ((start + (whole - bytes) as u64 + 8) & !7, side.key),
        Fault::Wraps => (u64::MAX - 7, side.key),
        Fault::RegionAccess | Fault::QpAccess => (inside, side.key),
    }
}

fn refuse(verb: Verb, fault: Fault, bytes: usize, before: usize, after: usize) {
    let mut setup = Setup::plain();
    match fault {
        Fault::RegionAccess => setup.region_access = verb.access_without(),
        Fault::QpAccess => setup.qp_access = verb.access_without(),
        _ => {}
    }
    // The requests around it must be of a kind that is allowed.
    let allowed = match verb {
        Verb::Read => Script::write,
        _ => Script::read,
    };
    let bytes = if verb.is_atomic() { 8 } else { bytes };
    let mut script = Script::new(&setup);
    for _ in 0..2 {
        script.receive(0, 64, None, Status::FlushError);
        script.receive(1, 64, None, Status::FlushError);
    }
    (0..before).for_each(|_| allowed(&mut script, 0, 1500, Status::Success));
    let element = script.fresh_element(0, bytes);
    let (address, rkey) = target(&script, fault, bytes);
    // By the specification and libibverbs' manual, an operation that the QP does not allow is an invalid request.
    let (status, event) = match fault {
        Fault::QpAccess => (Status::RemoteInvalidRequestError, QpEvent::RequestError),
        _ => (Status::RemoteAccessError, QpEvent::AccessError),
    };
    let (operation, immediate) = verb.at(address, rkey);
    script.post(0, operation, immediate, &[element], status);
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
            eprintln!("{verb:?} {fault:?}");
            refuse(verb, fault, 2500, 2, 2);
        }
    }
}

proptest! {
    #![proptest_config(super::cases(30))]

    #[test]
    fn refused_requests_touch_nothing(
        verb in prop::sample::select(VERBS.to_vec()),
        fault in prop::sample::select(FAULTS.to_vec()),
        bytes in 9..6000usize,
        before in 0..5usize,
        after in 0..5usize,
    ) {
        refuse(verb, fault, bytes, before, after);
    }
}

#[test]
fn an_atomic_that_is_not_aligned_is_refused() {
    for verb in [Verb::FetchAdd, Verb::CompareSwap] {
        let mut script = Script::new(&Setup::plain());
        let element = script.fresh_element(0, 8);
        let address = script.testbed.sides[1].memory.region_address() + 4;
        let (operation, _) = verb.at(address, script.testbed.sides[1].key);
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
    let operation = Operation::Write { address, rkey };
    let status = Status::RemoteAccessError;
    script.post(0, operation, None, &[element], status);
    script.ends([State::Err, State::Err]);
}
