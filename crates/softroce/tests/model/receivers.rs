//! Receivers that are not ready, receives that are too small, and invalid memory keys at either end.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use softroce::transport::{Access, Operation, QpEvent, Region, Sge, State, Status};

use crate::memory::Part;
use crate::scenario::Setup;
use crate::script::Script;
use crate::testbed::{Checked, PD};

/// The code of 1.28 ms.
const RNR_TIMER: u8 = 14;
const RNR_WAIT: Duration = Duration::from_micros(1280);

/// Tests a receive that is too small by `missing` bytes.
fn too_small(mtu_bytes: u32, bytes: usize, missing: usize) -> Checked {
    let mut script = Script::new(&Setup {
        mtu_bytes,
        ..Setup::plain()
    });
    let first = script.receive(1, 100, Some(100), Status::Success)?;
    let second = script.receive(1, bytes - missing, None, Status::LocalLengthError)?;
    script.receive(1, 4096, None, Status::FlushError)?;
    let data = script.send(0, 100, Status::Success)?;
    script.testbed.sides[1].memory.expect(first, &data);
    script.send(0, bytes, Status::RemoteInvalidRequestError)?;
    script.send(0, 10, Status::FlushError)?;
    script.testbed.drained()?;
    // The receive may contain the start of the message; nothing else has changed.
    script.testbed.sides[1].memory.accept(second);
    script.ends([State::Err, State::Err])?;
    script.flushes_what_is_posted_now(0)?;
    script.flushes_what_is_posted_now(1)
}

#[test]
fn a_receive_a_byte_too_small_is_an_error_at_both_ends() {
    for (bytes, missing) in [(1, 1), (256, 1), (257, 1), (1000, 1000), (1025, 300)] {
        too_small(256, bytes, missing)
            .unwrap_or_else(|trouble| panic!("{bytes} less {missing}: {trouble:?}"));
    }
}

proptest! {
    #![proptest_config(crate::cases(30))]

    #[test]
    fn a_receive_that_is_too_small_is_an_error_at_both_ends(
        mtu_bytes in prop::sample::select(vec![256, 1024, 4096u32]),
        bytes in 1..6000usize,
        part in 1..=6000usize,
    ) {
        crate::verdict(too_small(mtu_bytes, bytes, part.min(bytes)))?;
    }
}

#[test]
fn a_write_with_immediate_needs_no_room_in_the_receive() {
    let mut script = Script::new(&Setup::plain());
    let source = script.fresh(0, 3000);
    let target = script.fresh(1, 3000);
    let data = script.testbed.sides[0].memory.expected(source).to_vec();
    let element = script.element(0, source, script.testbed.sides[0].key);
    script.receive(1, 1, Some(3000), Status::Success).unwrap();
    let receive = script.testbed.endpoints[1].receives.back_mut().unwrap();
    receive.kind = softroce::transport::CompletionKind::ReceiveRdmaWithImmediate;
    receive.immediate = Some(0x0102_0304);
    let side = &mut script.testbed.sides[1];
    side.memory.expect(target, &data);
    let (address, rkey) = (side.memory.address(target), side.key);
    let operation = Operation::Write { address, rkey };
    let immediate = Some(0x0102_0304);
    script
        .post(0, operation, immediate, &[element], Status::Success)
        .unwrap();
    script.ends([State::Rts, State::Rts]).unwrap();
}

/// Polls both sides for this long.
fn poll_for(script: &mut Script, time: Duration) -> Checked<usize> {
    let began = Instant::now();
    let mut completions = 0;
    while began.elapsed() < time {
        completions += script.testbed.poll(0, 16)? + script.testbed.poll(1, 16)?;
        std::thread::yield_now();
    }
    Ok(completions)
}

#[test]
fn a_send_waits_for_a_receive_that_comes_late() {
    let mut script = Script::new(&Setup {
        min_rnr_timer: RNR_TIMER,
        ..Setup::plain()
    });
    let data = script.send(0, 5000, Status::Success).unwrap();
    // Later requests wait as well.
    script.write(0, 300, Status::Success).unwrap();
    assert_eq!(poll_for(&mut script, 10 * RNR_WAIT).unwrap(), 0);
    let part = script
        .receive(1, 5000, Some(5000), Status::Success)
        .unwrap();
    script.testbed.sides[1].memory.expect(part, &data);
    script.ends([State::Rts, State::Rts]).unwrap();
}

#[test]
fn a_send_without_a_receive_fails_when_its_repetitions_are_used_up() {
    for rnr_retry in [0, 1, 3] {
        let mut script = Script::new(&Setup {
            min_rnr_timer: RNR_TIMER,
            rnr_retry,
            ..Setup::plain()
        });
        script.receive(0, 10, None, Status::FlushError).unwrap();
        script.write(0, 300, Status::Success).unwrap();
        let began = Instant::now();
        script.send(0, 5000, Status::RnrRetryExceededError).unwrap();
        script.write(0, 300, Status::FlushError).unwrap();
        // The responder is not affected.
        script.ends([State::Err, State::Rts]).unwrap();
        let took = began.elapsed();
        let (least, most) = (RNR_WAIT * u32::from(rnr_retry), Duration::from_secs(2));
        assert!(took >= least, "{rnr_retry} repetitions in {took:?}");
        assert!(took < most, "{rnr_retry} repetitions in {took:?}");
        script.flushes_what_is_posted_now(0).unwrap();
    }
}

#[derive(Clone, Copy, Debug)]
enum BadElement {
    UnknownKey,
    Beyond,
    Before,
    OtherDomain,
    NotWritable,
}

/// An element of `bytes` on a side with an error, and the key to deregister.
fn bad_element(script: &mut Script, side: usize, bad: BadElement, bytes: usize) -> (Sge, u32) {
    let part = script.fresh(side, bytes);
    let good = script.element(side, part, script.testbed.sides[side].key);
    let side = &script.testbed.sides[side];
    let region = |pd, access| {
        let region = Region {
            pd,
            address: side.memory.region_address(),
            length_bytes: side.memory.region_bytes() as u64,
            iova: side.memory.region_address(),
            access,
        };
        // SAFETY: the memory lives as long as the testbed; the key is deregistered before.
        unsafe { side.nic.register(region) }.unwrap()
    };
    let unwritable = region(PD, Access::REMOTE_READ);
    let foreign = region(softroce::transport::PdId(2), crate::scenario::ALL_ACCESS);
    let start = side.memory.region_address();
    let end = start + side.memory.region_bytes() as u64;
    let mut element = good;
    match bad {
        BadElement::UnknownKey => element.lkey ^= 0x0055_0055,
        BadElement::Beyond => element.address = end - bytes as u64 + 1,
        BadElement::Before => element.address = start - 1,
        BadElement::OtherDomain => element.lkey = foreign,
        BadElement::NotWritable => element.lkey = unwritable,
    }
    let unused = if element.lkey == foreign {
        unwritable
    } else {
        foreign
    };
    side.nic.deregister(unused);
    let used = if unused == foreign {
        unwritable
    } else {
        foreign
    };
    (element, used)
}

#[test]
fn a_bad_local_key_fails_the_request_before_anything_is_touched() {
    use BadElement::{Before, Beyond, NotWritable, OtherDomain, UnknownKey};
    for bad in [UnknownKey, Beyond, Before, OtherDomain, NotWritable] {
        for verb in ["send", "write", "read", "second element"] {
            // Only operations that write to it fail.
            if matches!(bad, NotWritable) && verb != "read" {
                continue;
            }
            let told = |what| format!("{verb} {bad:?}: {what:?}");
            let mut script = Script::new(&Setup::plain());
            script.write(0, 2000, Status::Success).unwrap();
            script.read(0, 2000, Status::Success).unwrap();
            script.testbed.drained().unwrap();
            script.receive(0, 10, None, Status::FlushError).unwrap();
            let (element, key) = bad_element(&mut script, 0, bad, 3000);
            let target = script.fresh(1, 6000);
            let good = script.fresh(0, 100);
            let good = script.element(0, good, script.testbed.sides[0].key);
            let side = &script.testbed.sides[1];
            let (address, rkey) = (side.memory.address(target), side.key);
            let (operation, elements) = match verb {
                "send" => (Operation::Send, vec![element]),
                "read" => (Operation::Read { address, rkey }, vec![element]),
                "write" => (Operation::Write { address, rkey }, vec![element]),
                _ => (Operation::Write { address, rkey }, vec![good, element]),
            };
            let status = Status::LocalProtectionError;
            let posted = script.post(0, operation, None, &elements, status);
            posted.unwrap_or_else(|trouble| panic!("{}", told(trouble)));
            script.write(0, 700, Status::FlushError).unwrap();
            // The good element may have been written before the bad one was detected.
            script
                .testbed
                .drained()
                .unwrap_or_else(|trouble| panic!("{}", told(trouble)));
            if verb == "second element" {
                script.testbed.sides[1].memory.accept(target);
            }
            let ended = script.ends([State::Err, State::Rts]);
            script.testbed.sides[0].nic.deregister(key);
            ended.unwrap_or_else(|trouble| panic!("{}", told(trouble)));
            script.flushes_what_is_posted_now(0).unwrap();
        }
    }
}

#[test]
fn a_bad_key_in_a_receive_is_an_error_at_both_ends() {
    use BadElement::{Before, Beyond, NotWritable, OtherDomain, UnknownKey};
    for bad in [UnknownKey, Beyond, Before, OtherDomain, NotWritable] {
        let mut script = Script::new(&Setup::plain());
        let (element, key) = bad_element(&mut script, 1, bad, 3000);
        script
            .receive_into(1, element, None, Status::LocalProtectionError)
            .unwrap();
        script.receive(1, 3000, None, Status::FlushError).unwrap();
        script.send(0, 3000, Status::RemoteOperationError).unwrap();
        script.write(0, 700, Status::FlushError).unwrap();
        let drained = script.testbed.drained();
        drained.unwrap_or_else(|trouble| panic!("{bad:?}: {trouble:?}"));
        if matches!(bad, Beyond) {
            // The region may contain the start of the message.
            let memory = &mut script.testbed.sides[1].memory;
            let (bytes, end) = (2999, memory.region_bytes());
            let offset = end - bytes;
            memory.accept(Part { offset, bytes });
        }
        let ended = script.ends([State::Err, State::Err]);
        script.testbed.sides[1].nic.deregister(key);
        ended.unwrap_or_else(|trouble| panic!("{bad:?}: {trouble:?}"));
        let heard = script.testbed.endpoints[1].events.lock().unwrap().clone();
        assert!(!heard.contains(&QpEvent::AccessError), "{heard:?}");
    }
}
