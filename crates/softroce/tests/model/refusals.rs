//! Requests that the responder must refuse: they change no memory, end with the right status, and move both QPs to
//! ERR.

use proptest::prelude::*;
use softroce::transport::{Access, Operation, PdId, QpEvent, Region, State, Status};

use crate::scenario::{ALL_ACCESS, Setup};
use crate::script::Script;
use crate::testbed::{Checked, Trouble};

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
    /// The range ends after the region.
    Beyond,
    /// The range exceeds the address space.
    Wraps,
    /// The region does not allow the access.
    RegionAccess,
    /// The QP does not allow the access.
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
    /// All access except what this needs.
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

/// The faulty address and key of a valid target, and keys to deregister at the end.
fn target(script: &Script, fault: Fault, bytes: usize) -> (u64, u32, Option<u32>) {
    let side = &script.testbed.sides[1];
    let (start, length) = (
        side.memory.region_address(),
        side.memory.region_bytes() as u64,
    );
    let another = |pd| {
        let region = Region {
            pd,
            address: start,
            length_bytes: length,
            iova: start,
            access: ALL_ACCESS,
        };
        // SAFETY: the memory lives as long as the testbed; the key is deregistered before.
        unsafe { side.nic.register(region) }.unwrap()
    };
    let inside = start + 4096;
    match fault {
        Fault::UnknownKey => (inside, side.key ^ 0x0055_0055, None),
        Fault::OldKey => {
            let key = another(crate::testbed::PD);
            side.nic.deregister(key);
            (inside, key, None)
        }
        Fault::OtherDomain => {
            let key = another(PdId(2));
            (inside, key, Some(key))
        }
        Fault::Before => (start - 8, side.key, None),
        Fault::Beyond => {
            let over = (start + length - bytes as u64 + 8) & !7;
            (over, side.key, None)
        }
        Fault::Wraps => (u64::MAX - 7, side.key, None),
        Fault::RegionAccess | Fault::QpAccess => (inside, side.key, None),
    }
}

fn refuse(verb: Verb, fault: Fault, bytes: usize, before: usize, after: usize) -> Checked {
    let mut setup = Setup::plain();
    match fault {
        Fault::RegionAccess => setup.region_access = verb.access_without(),
        Fault::QpAccess => setup.qp_access = verb.access_without(),
        _ => {}
    }
    // The preceding request must be of a kind that is allowed.
    let reads_before = !matches!(verb, Verb::Read);
    let bytes = if verb.is_atomic() { 8 } else { bytes };
    let mut script = Script::new(&setup);
    for _ in 0..2 {
        script.receive(0, 64, None, Status::FlushError)?;
        script.receive(1, 64, None, Status::FlushError)?;
    }
    for _ in 0..before {
        if reads_before {
            script.read(0, 1500, Status::Success)?;
        } else {
            script.write(0, 1500, Status::Success)?;
        }
    }
    let local = script.fresh(0, bytes);
    let element = script.element(0, local, script.testbed.sides[0].key);
    let (address, rkey, key) = target(&script, fault, bytes);
    // By the specification and libibverbs' manual, an operation that the QP does not allow is an invalid request.
    let status = if fault == Fault::QpAccess {
        Status::RemoteInvalidRequestError
    } else {
        Status::RemoteAccessError
    };
    let (operation, immediate) = verb.at(address, rkey);
    script.post(0, operation, immediate, &[element], status)?;
    for _ in 0..after {
        if reads_before {
            script.read(0, 700, Status::FlushError)?;
        } else {
            script.write(0, 700, Status::FlushError)?;
        }
    }
    let ended = script.ends([State::Err, State::Err]);
    if let Some(key) = key {
        script.testbed.sides[1].nic.deregister(key);
    }
    ended?;
    let event = if fault == Fault::QpAccess {
        QpEvent::RequestError
    } else {
        QpEvent::AccessError
    };
    let heard = script.testbed.endpoints[1].events.lock().unwrap().clone();
    if heard != [event] {
        return Err(Trouble::Wrong(format!(
            "the responder heard {heard:?}, not {event:?}"
        )));
    }
    script.flushes_what_is_posted_now(0)?;
    script.flushes_what_is_posted_now(1)
}

#[test]
fn every_fault_of_every_verb_is_refused() {
    for verb in VERBS {
        for fault in FAULTS {
            refuse(verb, fault, 2500, 2, 2)
                .unwrap_or_else(|trouble| panic!("{verb:?} {fault:?}: {trouble:?}"));
        }
    }
}

proptest! {
    #![proptest_config(crate::cases(60))]

    #[test]
    fn refused_requests_touch_nothing(
        verb in prop::sample::select(VERBS.to_vec()),
        fault in prop::sample::select(FAULTS.to_vec()),
        bytes in 9..6000usize,
        before in 0..5usize,
        after in 0..5usize,
    ) {
        crate::verdict(refuse(verb, fault, bytes, before, after))?;
    }
}

#[test]
fn an_atomic_that_is_not_aligned_is_refused() {
    for verb in [Verb::FetchAdd, Verb::CompareSwap] {
        let mut script = Script::new(&Setup::plain());
        let local = script.fresh(0, 8);
        let element = script.element(0, local, script.testbed.sides[0].key);
        let address = script.testbed.sides[1].memory.region_address() + 4;
        let (operation, _) = verb.at(address, script.testbed.sides[1].key);
        let status = Status::RemoteInvalidRequestError;
        script.post(0, operation, None, &[element], status).unwrap();
        script.ends([State::Err, State::Err]).unwrap();
    }
}

#[test]
fn the_keys_of_two_regions_are_not_mixed_up() {
    // A key allows only its own region, although the memory beside it is also registered.
    let mut script = Script::new(&Setup::plain());
    let side = &script.testbed.sides[1];
    let start = side.memory.region_address();
    let half = Region {
        pd: crate::testbed::PD,
        address: start,
        length_bytes: 4096,
        iova: start,
        access: ALL_ACCESS,
    };
    // SAFETY: the memory lives as long as the testbed; the key is deregistered before.
    let rkey = unsafe { side.nic.register(half) }.unwrap();
    assert_ne!(rkey, side.key);
    let local = script.fresh(0, 100);
    let element = script.element(0, local, script.testbed.sides[0].key);
    let address = start + 4096 - 99;
    let operation = Operation::Write { address, rkey };
    let status = Status::RemoteAccessError;
    let posted = script.post(0, operation, None, &[element], status);
    let ended = posted.and_then(|()| script.ends([State::Err, State::Err]));
    script.testbed.sides[1].nic.deregister(rkey);
    ended.unwrap();
}
