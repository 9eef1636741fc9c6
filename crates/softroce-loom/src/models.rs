//! The models.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread::{self, JoinHandle};

use crate::net::{Clock, Inbox, NOW_NS, Wakeup};
use crate::sync::{AtomicBool, AtomicUsize, Ordering, yield_now};
use crate::transport::completion_queue::{Completion, CompletionKind, CqContext, Status};
use crate::transport::peer::Peer;
use crate::transport::timing::{Activity, CORKED_LATE_NS, Corked, Sleep};
use crate::verbs::latch::Latch;

/// Runs it in all orders in which few threads are interrupted between two of their steps: faults need one or two.
fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(run);
}

/// Runs `step` on what both threads have.
fn beside<S: Send + Sync + 'static, T: Send + 'static>(
    shared: &Arc<S>,
    step: impl FnOnce(&S) -> T + Send + 'static,
) -> JoinHandle<T> {
    let shared = Arc::clone(shared);
    thread::spawn(move || step(&shared))
}

fn activity() -> Activity {
    Activity::new(Clock, -1).unwrap()
}

fn cq(on_event: impl Fn() + Send + Sync + 'static) -> Arc<CqContext> {
    let (activity, on_event) = (Arc::new(activity()), Box::new(on_event));
    Arc::new(CqContext::new(&activity, 4, false, on_event, Box::new(|| {})))
}

fn push(cq: &CqContext) {
    assert!(cq.push(Completion::new(1, 7, Status::Success, CompletionKind::Receive)));
}

/// A program that finds the CQ empty, requests an event and sleeps does not miss what came in between.
#[test]
fn a_sleeping_program_is_woken_for_a_completion() {
    model(|| {
        let channel = Arc::new(Wakeup::new().unwrap());
        let raised = Arc::clone(&channel);
        let cq = cq(move || raised.wake());
        let device = beside(&cq, push);
        while cq.is_empty() {
            cq.arm(false);
            channel.wait(None, None, u64::MAX);
        }
        assert_eq!(cq.take(4, |completion, _| assert_eq!(completion.wr_id, 7)), Ok(1));
        device.join().unwrap();
    });
}

/// A program that waits, hears of a completion from its own call or from the thread that adds it, and requests the next event
/// before it takes the completion.
#[test]
fn a_completion_raises_one_event() {
    model(|| {
        let events = Arc::new(AtomicUsize::new(0));
        let raised = Arc::clone(&events);
        let cq = cq(move || {
            raised.fetch_add(1, Ordering::SeqCst);
        });
        cq.arm(false);
        let device = beside(&cq, push);
        cq.remind();
        while events.load(Ordering::SeqCst) == 0 {
            yield_now();
            cq.remind();
        }
        cq.arm(false);
        device.join().unwrap();
        assert_eq!(cq.take(4, |_, _| {}), Ok(1));
        assert_eq!(events.load(Ordering::SeqCst), 1);
    });
}

/// Posts that wait for a poll which does not come: the engine naps, looks for them, and sleeps until something wakes it.
#[test]
fn posts_wake_an_engine_that_goes_to_sleep() {
    model(|| {
        let shared = Arc::new((activity(), Corked::default()));
        shared.0.should_check_socket(NOW_NS);
        let program = beside(&shared, |(activity, corked)| {
            corked.add(7, true, 1, NOW_NS);
            activity.posts_wait(NOW_NS + CORKED_LATE_NS);
        });
        let (activity, corked) = &*shared;
        activity.sleep(NOW_NS + 1, Sleep::NearPoller, None, || None);
        while corked.is_empty() {
            activity.sleep(u64::MAX, Sleep::OnSocket, None, || None);
        }
        assert_eq!(corked.next(), Some(7));
        program.join().unwrap();
    });
}

#[test]
fn an_armed_cq_ends_the_engines_nap() {
    model(|| {
        let activity = Arc::new(activity());
        activity.should_check_socket(NOW_NS);
        let program = beside(&activity, Activity::cq_armed);
        activity.sleep(u64::MAX, Sleep::NearPoller, None, || None);
        program.join().unwrap();
    });
}

/// A QP goes away while the engine goes to sleep, and others wait for its peer: `Core::release_waiting` and `Core::work`.
#[test]
fn what_is_due_at_once_wakes_the_engine() {
    model(|| {
        let shared = Arc::new((activity(), AtomicBool::new(false)));
        let program = beside(&shared, |(activity, waiting_may_send)| {
            waiting_may_send.store(true, Ordering::SeqCst);
            activity.departure_at(0);
        });
        let (activity, waiting_may_send) = &*shared;
        loop {
            activity.take_due_departure(NOW_NS);
            if waiting_may_send.load(Ordering::Relaxed) {
                break;
            }
            activity.sleep(u64::MAX, Sleep::OnSocket, None, || None);
        }
        program.join().unwrap();
    });
}

/// A program finds a socket full and sleeps, while the engine goes to sleep: it is the engine that waits for room.
#[test]
fn a_full_socket_wakes_the_engine() {
    model(|| {
        let shared = Arc::new((activity(), AtomicBool::new(false)));
        let program = beside(&shared, |(activity, is_full)| {
            is_full.store(true, Ordering::SeqCst);
            activity.wake();
        });
        let (activity, is_full) = &*shared;
        while !is_full.load(Ordering::SeqCst) {
            activity.sleep(u64::MAX, Sleep::OnSocket, None, || {
                is_full.load(Ordering::SeqCst).then_some([0])
            });
        }
        program.join().unwrap();
    });
}

/// A packet of this process comes while the engine's nap ends, so that its sender takes the program for one that polls.
#[test]
fn a_packet_in_memory_wakes_the_engine() {
    model(|| {
        let shared = Arc::new((activity(), Inbox(AtomicUsize::new(0))));
        shared.0.should_check_socket(NOW_NS);
        let sender = beside(&shared, |(activity, inbox)| {
            inbox.0.store(1, Ordering::SeqCst);
            activity.packets_came();
        });
        let (activity, inbox) = &*shared;
        activity.sleep(NOW_NS + 1, Sleep::NearPoller, Some(inbox), || None);
        while inbox.0.load(Ordering::Acquire) == 0 {
            activity.sleep(u64::MAX, Sleep::OnSocket, Some(inbox), || None);
        }
        sender.join().unwrap();
    });
}

const HALF_BYTES: i64 = 64 << 10;

/// A peer whose window is full.
fn full_peer() -> Arc<Peer> {
    let peer = Peer::new(1 << 20);
    peer.charge(2 * HALF_BYTES);
    assert!(!peer.stays_open(0));
    Arc::new(peer)
}

/// Counts an answer, and lets the QPs send that wait for it.
fn answer(peer: &Peer, bytes: i64) -> Vec<u32> {
    peer.credit(bytes);
    std::iter::from_fn(|| peer.next_waiting()).map(|(number, _)| number).collect()
}

/// The last answers come while a QP finds the window full.
#[test]
fn a_qp_that_waits_for_a_window_gets_its_turn() {
    model(|| {
        let peer = full_peer();
        let answers = [0, 1].map(|_| beside(&peer, |peer| answer(peer, HALF_BYTES)));
        let waits = !peer.stays_open(0) && peer.wait_unless_open(7);
        let turns: Vec<u32> = answers.into_iter().flat_map(|it| it.join().unwrap()).collect();
        assert_eq!(turns, vec![7; usize::from(waits)]);
    });
}

/// A QP queues behind another one, whose turn comes.
#[test]
fn a_qp_that_waits_behind_another_gets_its_turn() {
    model(|| {
        let peer = full_peer();
        let first = beside(&peer, |peer| !peer.stays_open(0) && peer.wait_unless_open(7));
        let answered = beside(&peer, |peer| answer(peer, 2 * HALF_BYTES));
        let waits = peer.has_waiting() && peer.wait_unless_open(8);
        let all_waits = usize::from(waits) + usize::from(first.join().unwrap());
        assert_eq!(answered.join().unwrap().len(), all_waits);
    });
}

/// A number that belongs to who holds the latch.
#[derive(Default)]
struct Latched {
    latch: Latch,
    number: UnsafeCell<u32>,
}

// SAFETY: it is only changed by who holds the latch.
unsafe impl Sync for Latched {}

impl Latched {
    fn add_one(&self) -> u32 {
        self.latch.take();
        // SAFETY: the latch is held.
        let number = self.number.with_mut(|number| unsafe {
            *number += 1;
            *number
        });
        self.latch.give();
        number
    }
}

#[test]
fn a_latch_is_held_by_one_thread() {
    model(|| {
        let latched = Arc::new(Latched::default());
        let other = beside(&latched, Latched::add_one);
        assert_eq!(latched.add_one() + other.join().unwrap(), 1 + 2);
    });
}
