//! The checks of a node while a run waits for something: of its workers, its devices and its link, and whether anything
//! still moves.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use datapath::Counts;
use protocol::{
    error::LinkError,
    failure::RunFailure,
    message::{Drained, Message, RunMessage},
};
use settings::Settings;
use verbs::{AsyncEvent, AsyncEvents, Context};

use crate::run::{FlowEnd, Run, State};

/// Longest interval of the checks while waiting.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// First interval of them, doubled with each check: most waits of a short run are for workers that need less than 1 ms.
const FIRST_TICK: Duration = Duration::from_micros(100);

/// Over a service that loses messages: nothing more is under way when nothing has come for so long after the sender has
/// told that it is done. It is many times what a packet waits in any queue, and short beside a run.
const QUIET: Duration = Duration::from_millis(300);

/// If the device moves this many times the bytes of one completion without completing anything, it is assumed to do
/// nothing but retransmit.
const MOST_TIMES: f64 = 16.0;

/// The most bytes of a packet besides payload: headers, and its acknowledgement.
const PACKET_OVERHEAD_BYTES: f64 = 128.0;

/// The smallest payload of a packet that is not a message's last.
const SMALLEST_MTU_BYTES: f64 = 256.0;

const LOST_HINT: &str = "check the peer's output and both ends' `dmesg`; a lower --rnr-retry than 7 ends the wait \
                         for a receiver that never posts";

/// Without an ACK timeout, which is the first thing to look at.
const NEVER_AGAIN_HINT: &str = "leave --timeout 0 out: with it, lost packets are never sent again";

impl Run<'_> {
    /// Waits until `done`, and checks this node and its link meanwhile. Gives the run up when nothing has moved for so
    /// long that something must be lost. Returns a message of the coordinator if one came first.
    ///
    /// # Errors
    /// The first reason to end the run.
    pub(crate) fn wait(
        &mut self,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<Option<Message>, EarlyEnd> {
        let mut motion = StallDetector::new(self.counts(), self.device_bytes(), Instant::now());
        let mut pause = FIRST_TICK;
        loop {
            let is_done = done(self);
            // Check after reading the counts: a worker reports a failure before it counts the failed message, so a
            // failure of the last message is not missed.
            self.check()?;
            if is_done {
                return Ok(None);
            }
            if let Some(message) = self.link.try_recv()? {
                return unless_end(message).map(Some);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(EarlyEnd::Interrupted);
            }
            if motion.goes_on(self.counts(), self.device_bytes(), Instant::now())? {
                self.link.progressed();
            }
            std::thread::sleep(pause);
            pause = TICK.min(2 * pause);
        }
    }

    /// Waits for the coordinator's next message, and checks this node meanwhile.
    ///
    /// # Errors
    /// As [`Run::wait`]; `limit` without a message or movement there.
    pub(super) fn recv(&self, limit: Duration) -> Result<Message, EarlyEnd> {
        let (message, _) = self.link.recv_while_peer_moves(limit, TICK, self.stop, || {
            // A node that only receives waits here while its window is open.
            self.notes.look(&self.ends);
            self.check()
        })?;
        unless_end(message)
    }

    /// The flows of all ends, with their counts so far.
    fn counts(&self) -> impl Iterator<Item = (&Settings, Counts)> {
        self.ends.iter().map(|end| (end.shared.flow(), end.shared.counts()))
    }

    /// Of each device that the ends use, while the workers run.
    fn events(&self) -> &[(Arc<Context>, AsyncEvents)] {
        match &self.state {
            State::Running { kept, .. } => &kept.events,
            _ => &[],
        }
    }

    /// Bytes that the devices have sent and received, if they report them without delay.
    fn device_bytes(&self) -> Option<u64> {
        self.events().iter().try_fold(0, |sum, (context, _)| {
            let counters = context.counters()?;
            let bytes = counters
                .iter()
                .filter(|(name, _)| *name == "bytes_sent" || *name == "bytes_received");
            Some(sum + bytes.map(|(_, bytes)| bytes).sum::<u64>())
        })
    }

    /// Checks this node's workers and devices.
    ///
    /// # Errors
    /// [`EarlyEnd::Workers`] if a worker met an error, which its report explains; or a device event.
    pub(crate) fn check(&self) -> Result<(), EarlyEnd> {
        let failed = self.ends.iter().any(|end| end.shared.has_failed());
        let is_known = failed || self.ends_fail_alone();
        for (context, events) in self.events() {
            while let Some(event) = events.next() {
                self.judge(context, event, is_known)?;
            }
        }
        // Once a look: an SRQ that stays below its limit would raise the event again at once.
        for receives in self.ends.iter().filter_map(|end| end.objects.shared_receives()) {
            receives.rearm().map_err(RunFailure::from)?;
        }
        if failed && !self.ends_fail_alone() { Err(EarlyEnd::Workers) } else { Ok(()) }
    }

    fn judge(&self, context: &Context, event: AsyncEvent, failed: bool) -> Result<(), EarlyEnd> {
        let mut entries = 0;
        if let AsyncEvent::SrqLimit { srq } = event {
            // None of them has it if an earlier run has left it behind.
            let mut receives = self.ends.iter().filter_map(|end| end.objects.shared_receives());
            receives.any(|receives| receives.count_limit(srq));
            return Ok(());
        }
        if let AsyncEvent::CqError { cq } = event {
            // An earlier run may have left an event behind.
            match self
                .ends
                .iter()
                .find(|end| end.objects.cqs().iter().any(|own| AsyncEvents::is_cq(own, cq)))
            {
                Some(end) => entries = end.objects.cq_entries(),
                None => return Ok(()),
            }
        } else if let AsyncEvent::SrqError { srq } = event {
            let mut receives = self.ends.iter().filter_map(|end| end.objects.shared_receives());
            if !receives.any(|receives| receives.is(srq)) {
                return Ok(());
            }
        } else if failed {
            // What the QP's worker saw says more than the event.
            return Ok(());
        }
        match RunFailure::from_event(event, context.name(), entries) {
            Some(failure) => Err(EarlyEnd::Known(failure)),
            None => Ok(()),
        }
    }
}

/// Why a run ended early at a node.
#[derive(Debug)]
pub(crate) enum EarlyEnd {
    /// A worker met an error, which its report explains.
    Workers,
    Known(RunFailure),
    /// The node was asked to stop.
    Interrupted,
    /// The coordinator ends the run.
    Finish {
        /// What is still in the queues is given up.
        flush: bool,
        /// The QPs stay for another run.
        keep: bool,
    },
}

impl EarlyEnd {
    /// The reason as a person should hear it: of a worker what it saw, where its end has come to rest.
    pub(super) fn failure(self, ends: &[FlowEnd]) -> RunFailure {
        let troubles = ends.iter().flat_map(FlowEnd::troubles);
        match self {
            EarlyEnd::Workers => ends
                .iter()
                .find_map(|end| end.objects.check_memory().err().map(RunFailure::from))
                .or_else(|| RunFailure::from_trouble(&troubles))
                .unwrap_or_else(|| {
                    let text = "a worker stopped without a reason: this is a fault of rocebench";
                    RunFailure::new(text, None)
                }),
            EarlyEnd::Known(failure) => failure,
            EarlyEnd::Interrupted | EarlyEnd::Finish { .. } => RunFailure::server_stopped(),
        }
    }
}

impl From<RunFailure> for EarlyEnd {
    fn from(failure: RunFailure) -> Self {
        EarlyEnd::Known(failure)
    }
}

impl From<LinkError> for EarlyEnd {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Interrupted { .. } => EarlyEnd::Interrupted,
            error => EarlyEnd::Known(error.into()),
        }
    }
}

/// A message, unless it ends the run.
pub(crate) fn unless_end(message: Message) -> Result<Message, EarlyEnd> {
    match message {
        Message::Run(RunMessage::Finish { flush, keep }) => Err(EarlyEnd::Finish { flush, keep }),
        message => Ok(message),
    }
}

/// Whether an end whose peer has sent all has what it will get. Over RC that is all that was sent; over services that lose
/// messages it may be less, and a quiet time tells.
pub(super) struct Arrivals {
    received: u64,
    changed_at: Instant,
}

impl Arrivals {
    pub(super) fn new(end: &FlowEnd) -> Arrivals {
        Arrivals { received: end.shared.counts().received, changed_at: Instant::now() }
    }

    /// Whether nothing more will come. Arrivals of RDMA WRITEs are not seen, so their quiet time is from the beginning.
    pub(super) fn are_over(&mut self, end: &FlowEnd, peer: &Drained) -> bool {
        let received = end.shared.counts().received;
        if received != std::mem::replace(&mut self.received, received) {
            self.changed_at = Instant::now();
        }
        let has_all = !end.receives() || received >= peer.sent_messages;
        let flow = end.shared.flow();
        if flow.service.is_reliable() || peer.sent_messages == 0 {
            return has_all;
        }
        let is_unseen = !end.receives() && flow.verify && end.objects.roles().offers_memory;
        (has_all && !is_unseen) || self.changed_at.elapsed() >= QUIET
    }
}

/// Detects that the traffic of a node has stalled, from its workers' counts and from the bytes that its device moved, if
/// the device reports them without delay.
struct StallDetector {
    flows: Vec<Settings>,
    limit: Duration,
    counts: Vec<Counts>,
    /// Bytes that the devices had moved when the counts last changed, and at the last check.
    bytes_at_counts: Option<u64>,
    bytes: Option<u64>,
    moved_at: Instant,
}

impl StallDetector {
    /// Starts `now`; `device_bytes` is what the devices have sent and received, `None` if they do not report it.
    fn new<'a>(
        ends: impl Iterator<Item = (&'a Settings, Counts)>,
        device_bytes: Option<u64>,
        now: Instant,
    ) -> Self {
        let (flows, counts): (Vec<Settings>, Vec<Counts>) =
            ends.map(|(flow, counts)| (flow.clone(), counts)).unzip();
        StallDetector {
            limit: flows.iter().map(stall_limit).max().unwrap_or_default(),
            flows,
            counts,
            bytes_at_counts: device_bytes,
            bytes: device_bytes,
            moved_at: now,
        }
    }

    /// Whether anything has moved since the last call.
    ///
    /// # Errors
    /// Nothing has moved for so long that something must be lost.
    fn goes_on<'a>(
        &mut self,
        ends: impl Iterator<Item = (&'a Settings, Counts)>,
        device_bytes: Option<u64>,
        now: Instant,
    ) -> Result<bool, RunFailure> {
        let mut is_counted = false;
        for (known, (_, counts)) in self.counts.iter_mut().zip(ends) {
            is_counted |= counts != *known;
            *known = counts;
        }
        if is_counted {
            self.bytes_at_counts = device_bytes;
        }
        // A message may take longer than any limit; endless retransmission does not count as movement.
        let most_bytes: f64 = self.flows.iter().map(most_bytes).sum();
        let is_sent = device_bytes != self.bytes
            && device_bytes
                .zip(self.bytes_at_counts)
                .is_some_and(|(all, then)| all.saturating_sub(then) as f64 <= most_bytes);
        self.bytes = device_bytes;
        if is_counted || is_sent {
            self.moved_at = now;
        } else if now.saturating_duration_since(self.moved_at) > self.limit {
            let end =
                self.counts.iter().position(|counts| counts.posted > counts.completed).unwrap_or(0);
            if let (Some(flow), Some(counts)) = (self.flows.get(end), self.counts.get(end)) {
                return Err(stalled(flow, *counts, self.limit));
            }
        }
        Ok(is_counted || is_sent)
    }
}

/// Payload bytes that must arrive for a completion on every QP.
fn batch_bytes(flow: &Settings) -> f64 {
    flow.mean_bytes() * f64::from(flow.signal_every.max(flow.post_list)) * f64::from(flow.qps)
}

/// The most bytes that the device may move without a completion before it is assumed to only retransmit.
fn most_bytes(flow: &Settings) -> f64 {
    let packets = (flow.mean_bytes() / SMALLEST_MTU_BYTES).ceil();
    let overhead = packets * PACKET_OVERHEAD_BYTES / flow.mean_bytes();
    MOST_TIMES * batch_bytes(flow) * (1.0 + overhead)
}

/// Time without a completion after which something must be lost: the transport has given up by then, and the largest
/// batch had time to cross a slow link (10 MB/s).
fn stall_limit(flow: &Settings) -> Duration {
    // 4.096 µs × 2^timeout per attempt (InfiniBand specification 9.9.2.1.2); devices may take up to four times that.
    let tries = f64::from(flow.retry_cnt) + 1.0;
    let gives_up = match flow.timeout {
        // It never does, and what has not come is not sent again.
        0 => 0.0,
        exponent => 4.0 * 4.096e-6 * 2f64.powi(exponent.into()) * tries,
    };
    let crossing = batch_bytes(flow) / 10e6;
    // A gap of 30 mean gaps never comes.
    let rate = flow.rate.messages_per_second(flow.mean_bytes());
    let gap = rate.map_or(0.0, |rate| 30.0 / rate);
    let moves = Duration::from_secs_f64((10.0 + gives_up + crossing + gap).min(3600.0));
    let on_times = flow.on_times().zip(flow.window_ns());
    let pause_ns = on_times.map_or(0, |(times, window_ns)| times.longest_off_ns(window_ns));
    moves + Duration::from_nanos(pause_ns)
}

fn stalled(flow: &Settings, counts: Counts, limit: Duration) -> RunFailure {
    let Counts { posted, completed, received } = counts;
    let waited = limit.as_secs_f64();
    let lost_hint = match flow.timeout {
        0 => NEVER_AGAIN_HINT,
        _ => LOST_HINT,
    };
    let (message, hint) = match posted.saturating_sub(completed) {
        0 if posted == 0 && flow.op.profile().receives => (
            format!(
                "nothing was received for {waited:.0} s after {received} messages, but the sender had sent all: \
                 messages are lost"
            ),
            lost_hint,
        ),
        0 => (
            format!(
                "nothing was posted for {waited:.0} s after {completed} messages: a worker does not run"
            ),
            "give workers cores that no other program keeps busy: --cores",
        ),
        outstanding => (
            format!(
                "nothing completed for {waited:.0} s while {outstanding} messages are outstanding: completions are lost, \
                 or the peer does not answer"
            ),
            lost_hint,
        ),
    };
    RunFailure::new(message, Some(hint.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Case;
    use settings::Op;

    /// When a look every second at messages that do not complete fails, if it does within three limits.
    fn fails_at(flow: &Settings, bytes_a_look: u64) -> Option<Duration> {
        let counts = Counts { posted: 8, completed: 0, received: 0 };
        let start = Instant::now();
        let ends = || std::iter::once((flow, counts));
        let mut motion = StallDetector::new(ends(), Some(0), start);
        let mut looks = (1_u32..)
            .map(|second| (Duration::from_secs(second.into()), second))
            .take_while(|(at, _)| *at < 3 * stall_limit(flow));
        looks.find_map(|(at, second)| {
            let bytes = Some(u64::from(second) * bytes_a_look);
            let failure = motion.goes_on(ends(), bytes, start + at).err()?;
            assert!(failure.message.contains("8 messages"), "{failure}");
            Some(at)
        })
    }

    #[test]
    fn only_what_may_still_be_sent_for_the_first_time_moves() {
        let (mut large, mut small) = (Case::sample(), Case::sample());
        large.size_bytes = 16 << 20;
        (small.size_bytes, small.qps, small.signal_every) = (64, 1, 1);
        assert_eq!(fails_at(&large, 64 << 10), None);
        for (flow, bytes) in [(&large, 0), (&small, 64 << 10)] {
            let at = fails_at(flow, bytes).unwrap();
            let late = at.checked_sub(stall_limit(flow)).unwrap();
            assert!(late <= Duration::from_secs(1), "{at:?}");
        }
    }

    #[test]
    fn without_an_ack_timeout_what_is_lost_is_told_soon_and_why() {
        let mut flow = Case::sample();
        flow.timeout = 0;
        assert_eq!(fails_at(&flow, 0), Some(Duration::from_secs(11)));
        let lost = Counts { posted: 8, completed: 0, received: 0 };
        let hint =
            |settings: &Settings| stalled(settings, lost, Duration::from_secs(10)).hint.unwrap();
        assert!(hint(&flow).contains("--timeout 0"));
        assert!(hint(&Case::sample()).contains("--rnr-retry"));
    }

    #[test]
    fn who_waits_for_a_worker_and_who_for_messages_is_told_apart() {
        let limit = Duration::from_secs(44);
        let mut flow = Case::sample();
        flow.op = Op::Send.into();
        let message = |posted, received| {
            let counts = Counts { posted, completed: posted, received };
            stalled(&flow, counts, limit).message
        };
        let lost = "nothing was received for 44 s after 186 messages, but the sender had sent all: messages are lost";
        assert_eq!(message(0, 186), lost);
        let stuck = "nothing was posted for 44 s after 120 messages: a worker does not run";
        assert_eq!(message(120, 0), stuck);
    }
}
