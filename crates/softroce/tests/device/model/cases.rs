//! Cases by hand: single requests with their bytes, their memory and their expected status.
//!
//! - Requests that the responder must refuse: they change no memory, end with the right status, and move both QPs to
//!   ERR.
//! - Receivers that are not ready, receives that are too small, and invalid memory keys at either end.
//! - Several QPs apply atomics to the same eight bytes: each atomic must see a different value.
//! - A peer that disappears: after the configured number of time-outs an error, then flushes; never a hang.

use std::collections::BTreeSet;

use fastrand::Rng;
use proptest::prelude::*;
use softroce::transport::{
    Access, Attached, CompletionKind, Operation, PdId, Qp, QpEvent, SendRequest, Sge, State, Status,
};

use crate::model::scenario::{ALL_ACCESS, Setup};
use crate::model::testbed::{Expected, PD, Part, Side, Testbed, random};
use crate::support::end::{Plan, pair, request};
use crate::support::look::counter;

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
        self.receive_into(end, element, length_bytes, status);
        part
    }

    pub fn receive_into(
        &mut self,
        end: usize,
        element: Sge,
        length_bytes: Option<u32>,
        status: Status,
    ) {
        let endpoint = &mut self.testbed.endpoints[end];
        let expected = Expected { length_bytes, ..Expected::receive(endpoint.wr_id(), status) };
        endpoint.post_recv(expected, &[element]);
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

/// The code of 1.28 ms.
const RNR_TIMER: u8 = 14;

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

#[test]
fn a_write_with_immediate_needs_no_room_in_the_receive() {
    let mut script = Script::new(&Setup::plain());
    let source = script.fresh(0, 3000);
    let target = script.fresh(1, 3000);
    let data = script.testbed.sides[0].memory.expected(source).to_vec();
    let element = script.testbed.sides[0].element(source);
    script.receive(1, 1, Some(3000), Status::Success);
    let receive = script.testbed.endpoints[1].receives.back_mut().unwrap();
    receive.kind = CompletionKind::ReceiveRdmaWithImmediate;
    receive.attached = Attached::Immediate(0x0102_0304);
    let side = &mut script.testbed.sides[1];
    side.memory.expect(target, &data);
    let (address, rkey) = side.remote(target);
    let operation = Operation::Write { address, rkey };
    let immediate = Some(0x0102_0304);
    script.post(0, operation, immediate, &[element], Status::Success);
    script.ends([State::Rts, State::Rts]);
}

#[test]
fn a_send_without_a_receive_fails_when_its_repetitions_are_used_up() {
    for rnr_retry in [0, 1, 3] {
        let mut script =
            Script::new(&Setup { min_rnr_timer: RNR_TIMER, rnr_retry, ..Setup::plain() });
        script.receive(0, 10, None, Status::FlushError);
        script.write(0, 300, Status::Success);
        script.send(0, 5000, Status::RnrRetryExceededError);
        script.write(0, 300, Status::FlushError);
        // The responder is not affected.
        script.ends([State::Err, State::Rts]);
        let naks = counter(&script.testbed.sides[1].nic, "rnr_naks_sent");
        assert_eq!(naks, u64::from(rnr_retry) + 1);
        script.flushes_what_is_posted_now(0);
    }
}

/// An element of `bytes` on a side with an error.
fn bad_element(script: &Script, side: usize, fault: Fault, bytes: usize) -> Sge {
    let side = &script.testbed.sides[side];
    let (address, mut lkey) = faulty(side, fault, bytes);
    if fault == Fault::RegionAccess {
        lkey = side.register(PD, side.memory.region_bytes(), Access::REMOTE_READ);
    }
    Sge { address, length_bytes: bytes as u32, lkey }
}

/// Those of a local element.
fn local_faults() -> impl Iterator<Item = Fault> {
    FAULTS.into_iter().filter(|it| *it != Fault::QpAccess)
}

#[test]
fn a_bad_local_key_fails_the_request_before_anything_is_touched() {
    for bad in local_faults() {
        for verb in ["send", "write", "read", "second element"] {
            // Only operations that write to it fail.
            if bad == Fault::RegionAccess && verb != "read" {
                continue;
            }
            eprintln!("{verb} {bad:?}");
            let mut script = Script::new(&Setup::plain());
            script.write(0, 2000, Status::Success);
            script.read(0, 2000, Status::Success);
            script.testbed.drained();
            script.receive(0, 10, None, Status::FlushError);
            let element = bad_element(&script, 0, bad, 3000);
            let target = script.fresh(1, 6000);
            let good = script.fresh_element(0, 100);
            let (address, rkey) = script.testbed.sides[1].remote(target);
            let (operation, elements) = match verb {
                "send" => (Operation::Send, vec![element]),
                "read" => (Operation::Read { address, rkey }, vec![element]),
                "write" => (Operation::Write { address, rkey }, vec![element]),
                _ => (Operation::Write { address, rkey }, vec![good, element]),
            };
            let status = Status::LocalProtectionError;
            script.post(0, operation, None, &elements, status);
            script.write(0, 700, Status::FlushError);
            script.testbed.drained();
            // The good element may have been written before the bad one was detected.
            if verb == "second element" {
                script.testbed.sides[1].memory.accept(target);
            }
            script.ends([State::Err, State::Rts]);
            script.flushes_what_is_posted_now(0);
        }
    }
}

#[test]
fn a_bad_key_in_a_receive_is_an_error_at_both_ends() {
    for bad in local_faults() {
        eprintln!("{bad:?}");
        let mut script = Script::new(&Setup::plain());
        let element = bad_element(&script, 1, bad, 3000);
        script.receive_into(1, element, None, Status::LocalProtectionError);
        script.receive(1, 3000, None, Status::FlushError);
        script.send(0, 3000, Status::RemoteOperationError);
        script.write(0, 700, Status::FlushError);
        script.testbed.drained();
        if bad == Fault::Beyond {
            // The region may contain the start of the message.
            let memory = &mut script.testbed.sides[1].memory;
            let (offset, bytes) = (memory.region_bytes() - 2999, 2999);
            memory.accept(Part { offset, bytes });
        }
        script.ends([State::Err, State::Err]);
        let heard = script.testbed.heard(1, 1);
        assert!(!heard.contains(&QpEvent::AccessError), "{heard:?}");
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

/// 2 ms.
const TIMEOUT: u8 = 9;

#[test]
fn a_peer_that_vanished_is_given_up_after_so_many_time_outs() {
    let destroyed: fn(&Qp) = Qp::destroy;
    for (vanish, retry_count, reads, others) in [
        (destroyed, 0, false, 19),
        (destroyed, 7, true, 0),
        (Qp::fail, 2, true, 2),
        (Qp::fail, 0, false, 0),
        (Qp::reset, 1, false, 1),
        (Qp::reset, 3, true, 3),
    ] {
        let mut script = Script::new(&Setup { timeout: TIMEOUT, retry_count, ..Setup::plain() });
        script.write(0, 3000, Status::Success);
        script.testbed.drained();
        vanish(&script.testbed.endpoints[1].qp);
        script.receive(0, 10, None, Status::FlushError);
        if reads {
            script.read(0, 3000, Status::RetryExceededError);
        } else {
            script.write(0, 3000, Status::RetryExceededError);
        }
        for _ in 0..others {
            script.write(0, 3000, Status::FlushError);
        }
        script.testbed.drained();
        let timeouts = counter(&script.testbed.sides[0].nic, "timeouts");
        assert_eq!(timeouts, u64::from(retry_count) + 1);
        script.testbed.memory_fits();
        assert_eq!(script.testbed.endpoints[0].qp.state(), State::Err);
        script.flushes_what_is_posted_now(0);
    }
}

#[test]
fn qps_that_wait_for_ever_leave_the_window_to_others() {
    let mut plan = Plan::on(1, "");
    (plan.qps, plan.deliveries.timeout) = (3, 0);
    let (a, b) = pair(&plan);
    for dead in 0..2 {
        b.qps[dead].destroy();
        // Together more than the window.
        a.post(dead, b.write_to(0), &[a.sge(0, 3 << 20)]);
    }
    a.post(2, b.write_to(0), &[a.sge(0, 64)]);
    let done = a.completion();
    let expected = (a.qps[2].number(), Status::Success);
    assert_eq!((done.qpn, done.status), expected);
}
