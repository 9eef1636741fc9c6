//! Receivers that are not ready, receives that are too small, and invalid memory keys at either end.

use proptest::prelude::*;
use softroce::transport::{Access, CompletionKind, Operation, QpEvent, Sge, State, Status};

use super::memory::Part;
use super::refusals::{FAULTS, Fault, faulty};
use super::scenario::Setup;
use super::script::Script;
use super::testbed::PD;
use crate::support::look::counter;

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
    receive.immediate = Some(0x0102_0304);
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
