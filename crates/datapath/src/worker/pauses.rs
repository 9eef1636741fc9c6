//! A flow that is not on all the time (`--start`, `--stop`, `--on`): its worker turns it on and off at instants after the
//! opening of the window.
//!
//! Such an instant is one more at which a look at the CQs has something to do, beside the edges of the window
//! ([`Window::due_raw`](super::window::Window)), so it costs a message nothing. While a flow is off its worker goes on polling.
//! What completes frees slots, which it holds and posts when the flow is on again. An open loop plans no message while it is
//! off: its schedule begins anew with each stretch. What it could not post by the end of one is posted as soon as there is
//! room, and given up when the next begins.

use settings::OnTimes;

use super::window::NEVER;
use super::{Mode, Worker, feed};
use crate::Shared;

/// The stretches in which a flow is on, and what its worker holds meanwhile.
pub(super) struct Pauses {
    on_times: OnTimes,
    opens_raw: u64,
    /// The number of the stretch under way, or of the next one.
    stretch: u64,
    is_on: bool,
    /// For each QP the slots that are free and wait for the next stretch: they follow each other in the ring, since a QP's WRs
    /// complete in order.
    held: Box<[Held]>,
}

#[derive(Clone, Copy, Default)]
struct Held {
    first: u32,
    count: u32,
}

impl Pauses {
    /// Memory that a worker keeps per QP of the run, in bytes.
    pub(super) const BYTES_PER_QP: usize = size_of::<Held>();

    /// `None` of a flow that is on all the time, and of an end that sends nothing.
    pub(super) fn new(shared: &Shared) -> Option<Box<Pauses>> {
        let on_times = shared.flow.on_times().filter(|_| shared.sends())?;
        Some(Box::new(Pauses {
            on_times,
            opens_raw: NEVER,
            stretch: 0,
            is_on: on_times.is_on_at_first(),
            held: vec![Held::default(); shared.qp_contexts.len()].into(),
        }))
    }

    /// The instants at which the stretch with this number begins and ends, if the clock gets there.
    fn stretch_raw(&self, shared: &Shared, number: u64) -> [u64; 2] {
        let Some(on) = self.on_times.stretch(number) else {
            return [NEVER; 2];
        };
        [on.start, on.end].map(|ns| match ns {
            u64::MAX => NEVER,
            ns => shared.clock.raw_after(self.opens_raw, ns),
        })
    }
}

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// Begins to post on a flow with pauses.
    #[cold]
    pub(super) fn fill_with_pauses(&mut self) {
        let geometry = self.facts.geometry;
        let Some(pauses) = &mut self.pauses else {
            return;
        };
        for &qp in &self.spec.qps {
            if let Some(held) = pauses.held.get_mut(qp) {
                *held = Held { first: 0, count: geometry.slots };
            }
        }
        let is_on = pauses.is_on;
        if !is_on && FEED != feed::PLANNED {
            self.mode = Mode::Paused;
        }
        match FEED {
            feed::SOURCE => self.fill_from_source(),
            feed::PLANNED if is_on => self.paced.start(self.shared.clock.raw()),
            feed::PLANNED => self.paced.last_raw = 0,
            _ if is_on => self.post_held(),
            _ => {}
        }
    }

    /// Sets the first instant at which the flow turns on or off in a window that opens then.
    #[cold]
    pub(super) fn expect_pauses(&mut self, opens_raw: u64) {
        if let Some(pauses) = &mut self.pauses {
            pauses.opens_raw = opens_raw;
            let [begins_raw, ends_raw] = pauses.stretch_raw(self.shared, 0);
            self.window.set_turn(if pauses.is_on { ends_raw } else { begins_raw });
            if FEED == feed::PLANNED {
                if pauses.is_on {
                    self.paced.last_raw = ends_raw;
                }
                self.paced.begins_raw = if pauses.is_on { NEVER } else { begins_raw };
            }
        }
    }

    /// Turns the flow on or off as often as it was to be until now.
    #[cold]
    pub(super) fn turn(&mut self, now_raw: u64) {
        let shared = self.shared;
        let Some(mut pauses) = self.pauses.take() else {
            return self.window.set_turn(NEVER);
        };
        while self.window.turn_raw <= now_raw {
            if pauses.is_on {
                pauses.stretch += 1;
            }
            pauses.is_on = !pauses.is_on;
            let [begins_raw, ends_raw] = pauses.stretch_raw(shared, pauses.stretch);
            if FEED == feed::PLANNED {
                if pauses.is_on && self.mode == Mode::Run {
                    self.give_up(begins_raw);
                    self.paced.start(begins_raw);
                    self.paced.last_raw = ends_raw;
                }
                self.paced.begins_raw = if pauses.is_on { NEVER } else { begins_raw };
            }
            self.window.set_turn(if pauses.is_on { ends_raw } else { begins_raw });
        }
        let is_on = pauses.is_on;
        self.pauses = Some(pauses);
        match (FEED, self.mode) {
            (feed::PLANNED, _) => {}
            (_, Mode::Run) if !is_on => self.mode = Mode::Paused,
            (_, Mode::Paused) if is_on => {
                self.mode = Mode::Run;
                // The last reading may be of before the pause.
                self.pace.set(now_raw);
                match FEED {
                    feed::SOURCE => self.post_from_source(),
                    _ => self.post_held(),
                }
                self.publish();
            }
            _ => {}
        }
    }

    /// Keeps a slot that is free until the flow is on again.
    #[cold]
    pub(super) fn hold(&mut self, qp: usize, slot: u32) {
        let held = self.pauses.as_mut().and_then(|pauses| pauses.held.get_mut(qp));
        if let Some(held) = held {
            if held.count == 0 {
                held.first = slot;
            }
            held.count += 1;
        }
    }

    /// Posts the slots that were held, one of each QP in turn.
    fn post_held(&mut self) {
        let (spec, shared) = (self.spec, self.shared);
        let slots = self.facts.geometry.slots;
        let mut is_left = true;
        while is_left {
            is_left = false;
            for &qp in &spec.qps {
                // A look while posting may have turned it off.
                if self.mode != Mode::Run {
                    return;
                }
                let Some(held) = self.pauses.as_mut().and_then(|it| it.held.get_mut(qp)) else {
                    continue;
                };
                if held.count == 0 {
                    continue;
                }
                let slot = held.first;
                held.first = (slot + 1) % slots;
                held.count -= 1;
                is_left |= held.count > 0;
                if let Some(qp_context) = shared.qp_contexts.get(qp)
                    && let Some(sender) = &qp_context.sender
                {
                    self.close_open(qp, qp_context, sender, slot);
                    self.open(qp, qp_context, sender, slot);
                }
            }
            self.publish();
        }
    }
}
