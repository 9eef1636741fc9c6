//! Cases by hand: single requests with their bytes, their memory and their expected status.
//!
//! - Requests that the responder must refuse: they change no memory, end with the right status, and move both QPs to
//!   ERR.
//! - Receives that are too small.
//! - Several QPs apply atomics to the same eight bytes: each atomic must see a different value.

use std::collections::BTreeSet;

use fastrand::Rng;
use proptest::prelude::*;
use softroce::transport::{Access, Operation, PdId, QpEvent, SendRequest, Sge, State, Status};

use crate::model::scenario::{ALL_ACCESS, Setup};
use crate::model::testbed::{Expected, PD, Part, Side, Testbed, random};
use crate::support::end::request;

pub struct Script {
    pub testbed: Testbed,
    numbers: Rng,
}

impl Script {
    pub fn new(setup: &Setup) -> Script {
        Script { testbed: Testbed::new(setup), numbers: Rng::with_seed(1) }
    }

    pub fn fresh(&mut self, side: usize, bytes: usize) -> Part {
        let memory = &mut self.testbed.sides[side].memory;
        let part = memory.deal(bytes, 3, bytes == 8);
        let fresh = random(&mut self.numbers, bytes);
        memory.put(part, &fresh);
        part
    }

    pub fn fresh_element(&mut self, side: usize, bytes: usize) -> Sge {
        let part = self.fresh(side, bytes);
        self.testbed.sides[side].element(part)
    }

    /// Posts a signalled request that must end with `status`; does not change the model.
    pub fn post(
        &mut self,
        end: usize,
        operation: Operation,
        immediate: Option<u32>,
        sges: &[Sge],
        status: Status,
    ) {
        let endpoint = &mut self.testbed.endpoints[end];
        let wr_id = endpoint.wr_id();
        let expected = Expected::new(wr_id, status, operation);
        endpoint.sends.push_back(expected);
        endpoint.post(&[SendRequest {
            immediate,
            // A flush also completes unsignalled requests.
            signaled: status != Status::FlushError,
            ..request(wr_id, operation, sges)
        }]);
    }

    pub fn write(&mut self, end: usize, bytes: usize, status: Status) {
        self.transfer(end, bytes, status, false);
    }

    pub fn read(&mut self, end: usize, bytes: usize, status: Status) {
        self.transfer(end, bytes, status, true);
    }

    /// A valid WRITE or READ; applied to the model if it is to succeed.
    fn transfer(&mut self, end: usize, bytes: usize, status: Status, reads: bool) {
        let own = self.testbed.endpoints[end].side;
        let (here, there) = (self.fresh(own, bytes), self.fresh(1 - own, bytes));
        let element = self.testbed.sides[own].element(here);
        let (address, rkey) = self.testbed.sides[1 - own].remote(there);
        let (here, there) = ((own, here), (1 - own, there));
        let (operation, from, to) = if reads {
            (Operation::Read { address, rkey }, there, here)
        } else {
            (Operation::Write { address, rkey }, here, there)
        };
        if status == Status::Success {
            let data = self.testbed.sides[from.0].memory.expected(from.1).to_vec();
            self.testbed.sides[to.0].memory.expect(to.1, &data);
        }
        self.post(end, operation, None, &[element], status);
    }

    /// A SEND of new bytes; returns them.
    pub fn send(&mut self, end: usize, bytes: usize, status: Status) -> Vec<u8> {
        let own = self.testbed.endpoints[end].side;
        let source = self.fresh(own, bytes);
        let element = self.testbed.sides[own].element(source);
        self.post(end, Operation::Send, None, &[element], status);
        self.testbed.sides[own].memory.expected(source).to_vec()
    }

    /// A receive of this many bytes that must end with `status` and report `length_bytes`.
    pub fn receive(
        &mut self,
        end: usize,
        bytes: usize,
        length_bytes: Option<u32>,
        status: Status,
    ) -> Part {
        let side = self.testbed.endpoints[end].side;
        let part = self.fresh(side, bytes);
        let element = self.testbed.sides[side].element(part);
        let endpoint = &mut self.testbed.endpoints[end];
        let expected = Expected { length_bytes, ..Expected::receive(endpoint.wr_id(), status) };
        endpoint.post_recv(expected, &[element]);
        part
    }

    /// Checks that all completions come, memory equals the model, and the QPs of pair 0 have these states.
    #[track_caller]
    pub fn ends(&mut self, states: [State; 2]) {
        self.testbed.drained();
        self.testbed.memory_fits();
        let states_now = [0, 1].map(|end| self.testbed.endpoints[end].qp.state());
        assert_eq!(states_now, states);
    }

    #[track_caller]
    pub fn flushes_what_is_posted_now(&mut self, end: usize) {
        self.write(end, 8, Status::FlushError);
        self.receive(end, 8, None, Status::FlushError);
        self.testbed.drained();
        self.testbed.memory_fits();
    }
}

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
            side.nic.deregister(key).unwrap();
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
    // Immediate data in the first packet take a receive, which ends for the same reason.
    let takes_receive = immediate.is_some() && bytes <= setup.mtu_bytes as usize;
    let of_receive = match fault {
        _ if !takes_receive => Status::FlushError,
        Fault::QpAccess => Status::RemoteInvalidRequestError,
        _ => Status::LocalAccessError,
    };
    for status in [of_receive, Status::FlushError] {
        script.receive(0, 64, None, Status::FlushError);
        script.receive(1, 64, None, status);
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
    let verbs = prop::sample::select(VERBS.to_vec());
    let faults = prop::sample::select(FAULTS.to_vec());
    let cases = (verbs, faults, 9..6000usize, 0..5usize, 0..5usize);
    super::seeds("refused_requests", 300, &cases, |(verb, fault, bytes, before, after)| {
        refuse(verb, fault, bytes, before, after);
        Ok(())
    });
}

fn too_small(mtu_bytes: u32, bytes: usize, missing: usize) {
    let mut script = Script::new(&Setup { mtu_bytes, ..Setup::plain() });
    let first = script.receive(1, 100, Some(100), Status::Success);
    let second = script.receive(1, bytes - missing, None, Status::LocalLengthError);
    script.receive(1, 4096, None, Status::FlushError);
    let data = script.send(0, 100, Status::Success);
    script.testbed.sides[1].memory.expect(first, &data);
    script.send(0, bytes, Status::RemoteInvalidRequestError);
    script.send(0, 10, Status::FlushError);
    script.testbed.drained();
    // The receive may contain the start of the message; nothing else has changed.
    script.testbed.sides[1].memory.accept(second);
    script.ends([State::Err, State::Err]);
    script.flushes_what_is_posted_now(0);
    script.flushes_what_is_posted_now(1);
}

#[test]
fn a_receive_that_is_too_small_is_an_error_at_both_ends() {
    let mtu = prop::sample::select(vec![256, 1024, 4096u32]);
    let cases = (mtu, 1..6000usize, 1..=6000usize);
    super::seeds("too_small", 200, &cases, |(mtu_bytes, bytes, part)| {
        too_small(mtu_bytes, bytes, part.min(bytes));
        Ok(())
    });
}

#[test]
fn messages_of_every_length_arrive_whole() {
    for bytes in [0, 1, 64, 4096, 4097, 65536, 1 << 20] {
        let mut script =
            Script::new(&Setup { mtu_bytes: 4096, region_bytes: 8 << 20, ..Setup::plain() });
        script.write(0, bytes, Status::Success);
        script.read(0, bytes, Status::Success);
        let part = script.receive(1, 1 << 20, Some(bytes as u32), Status::Success);
        let data = script.send(0, bytes, Status::Success);
        script.testbed.sides[1].memory.expect(part, &data);
        script.ends([State::Rts, State::Rts]);
    }
}

const EACH: usize = 50;

#[test]
fn no_fetch_add_of_several_qps_is_lost_or_done_twice() {
    for faults in ["", "seed=3,rx.drop=5%,rx.duplicate=5%,rx.reorder=2%"] {
        let plain = Setup::plain();
        let mut script = Script::new(&Setup {
            pairs: [&plain.pairs[..]; 3].concat(),
            faults: faults.into(),
            ..plain
        });
        let counter = script.fresh(1, 8);
        let side = &mut script.testbed.sides[1];
        side.memory.put(counter, &0u64.to_ne_bytes());
        let (address, rkey) = side.remote(counter);
        let mut results = Vec::new();
        for round in 0..3 * EACH {
            let end = 2 * (round % 3);
            let testbed = &mut script.testbed;
            testbed.until("room", |testbed| testbed.endpoints[end].room() > 0);
            let result = script.fresh(0, 8);
            let element = script.testbed.sides[0].element(result);
            let operation = FETCH_ADD(address, rkey);
            script.post(end, operation, None, &[element], Status::Success);
            results.push(result);
        }
        script.testbed.drained();
        let memory = &mut script.testbed.sides[0].memory;
        let mut seen = BTreeSet::new();
        for result in results {
            memory.accept(result);
            let bytes = memory.expected(result).try_into().unwrap();
            seen.insert(u64::from_ne_bytes(bytes));
        }
        assert_eq!(seen, (0..3 * EACH as u64).collect(), "with {faults:?}");
        let total = (3 * EACH as u64).to_ne_bytes();
        script.testbed.sides[1].memory.expect(counter, &total);
        script.ends([State::Rts, State::Rts]);
    }
}
