//! Detects that the traffic of a node has stalled, from its workers' counts and from the bytes that its device moved, if
//! the device reports them without delay.

use settings::Settings;
use std::time::{Duration, Instant};

use datapath::Counts;

use protocol::failure::RunFailure;

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

/// Watches the ends of flows at a node.
pub(crate) struct StallDetector {
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
    pub(crate) fn new<'a>(
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
    pub(crate) fn goes_on<'a>(
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
    Duration::from_secs_f64((10.0 + gives_up + crossing + gap).min(3600.0))
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
    use plan::sample::case;
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
        let (mut large, mut small) = (case(), case());
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
        let mut flow = case();
        flow.timeout = 0;
        assert_eq!(fails_at(&flow, 0), Some(Duration::from_secs(11)));
        let lost = Counts { posted: 8, completed: 0, received: 0 };
        let hint = |flow: &Settings| stalled(flow, lost, Duration::from_secs(10)).hint.unwrap();
        assert!(hint(&flow).contains("--timeout 0"));
        assert!(hint(&case()).contains("--rnr-retry"));
    }

    #[test]
    fn who_waits_for_a_worker_and_who_for_messages_is_told_apart() {
        let limit = Duration::from_secs(44);
        let mut flow = case();
        flow.op = Op::Send.into();
        let told = |posted, received| {
            let counts = Counts { posted, completed: posted, received };
            stalled(&flow, counts, limit).message
        };
        let lost = "nothing was received for 44 s after 186 messages, but the sender had sent all: messages are lost";
        assert_eq!(told(0, 186), lost);
        let stuck = "nothing was posted for 44 s after 120 messages: a worker does not run";
        assert_eq!(told(120, 0), stuck);
    }
}
