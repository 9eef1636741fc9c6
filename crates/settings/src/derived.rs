//! What follows from the settings of a case: sizes, the end of a measurement, and defaults that fit other settings; and in
//! which settings the flows of a sweep differ, beyond what follows.

use super::lists::SizeMix;
use super::op::{ATOMIC_BYTES, LARGEST_MTU_BYTES, Service, Workload};
use super::row::Id;
use super::table::{FITTED, ROWS, Row, Settings};
use super::units::{Rate, Size, TimeSpan};
use super::words::{CqMode, Mtu, Ordering, Pace, RecvQueue};

/// Receives of a QP by default.
const RECEIVES_OF_A_QP: u32 = 512;
/// Receives that an end posts at least on all of its QPs together, where each may have [`RECEIVES_OF_A_QP`]: those that
/// arrive in the milliseconds in which its worker may have no core.
const RECEIVES_OF_AN_END: u32 = 65_536;
/// Receives for each message that a QP may have in flight.
const RECEIVES_OF_A_MESSAGE: u32 = 4;

/// The size of datagrams by default, or less with a smaller MTU: usual path MTUs have room for it.
const DATAGRAM_BYTES: u32 = 1_024;

/// The most receives of an SRQ by default: usual devices take as many.
const MOST_SHARED_RECEIVES: u32 = 16_384;

/// Above this message size every WR is signalled by default, as perftest does, also where no latency is recorded.
const MODERATED_SIZE_BYTES: u32 = 8_192;

/// CQ moderation by default up to that size, without latency.
const MOST_FITTED: u32 = 64;

/// ECN bits of a packet that a switch may mark (RFC 3168).
const ECT_0: u8 = 2;

/// When a run's measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this time, in nanoseconds.
    DurationNs(u64),
    /// After this many messages on each QP (and in each direction); where set-up is measured, after so many rounds.
    MessagesPerQp(u64),
}

impl Settings {
    /// The sizes of messages in bytes, each with its weight.
    pub fn sizes(&self) -> impl Iterator<Item = (u32, u32)> {
        let mix = self.size_mix.iter().flat_map(SizeMix::sizes);
        let one = self.size_mix.is_none().then_some((self.size_bytes, 1));
        one.into_iter().chain(mix)
    }

    /// The mean size of messages, in bytes.
    pub fn mean_bytes(&self) -> f64 {
        let (bytes, weights) = self.sizes().fold((0.0, 0.0), |sum, (bytes, weight)| {
            let weight = f64::from(weight);
            (sum.0 + f64::from(bytes) * weight, sum.1 + weight)
        });
        bytes / weights
    }

    /// The rate of planned times: a closed loop's also where the device keeps the rate.
    pub fn planned_rate(&self) -> Rate {
        match self.pace {
            Pace::Worker => self.rate,
            Pace::Device => Rate::Closed,
        }
    }

    /// Whether a completion posts the next message, so that no message has a planned time.
    pub fn is_closed_loop(&self) -> bool {
        self.planned_rate().is_closed()
    }

    /// Whether the target answers each message by one of the same kind, so that a latency is half of the round trip: the
    /// adapter alone answers what fetches.
    pub fn is_answered(&self) -> bool {
        self.ping_pong && !self.op.profile().fetches
    }

    /// Whether an answered message shows in memory alone, where its last byte is awaited.
    pub fn awaits_bytes(&self) -> bool {
        self.is_answered() && !self.op.profile().receives
    }

    /// What the device is to let each QP send, in 1000 bits of payload a second; `None` where it keeps no rate.
    pub fn device_kbit_per_s(&self) -> Option<u64> {
        let messages = self.rate.messages_per_second(self.mean_bytes());
        let of_flow = messages.filter(|_| self.pace == Pace::Device)? * self.mean_bytes() * 8.0;
        Some((of_flow / f64::from(self.qps) / 1e3).round() as u64)
    }

    /// The sizes of messages, as people write them.
    pub fn sizes_text(&self) -> String {
        match &self.size_mix {
            Some(mix) => mix.to_string(),
            None => Size::from_bytes(self.size_bytes).unwrap_or(Size::MAX).to_string(),
        }
    }

    /// WRs that a completion frees together: one signalled batch, or one posted list.
    pub fn slot_wrs(&self) -> u32 {
        self.signal_every.max(self.post_list).max(1)
    }

    /// WRs that the send queues of so many QPs hold, each in whole slots.
    pub(crate) fn wrs_of(&self, qps: u32) -> u64 {
        let slot = self.slot_wrs();
        u64::from(self.tx_depth / slot * slot) * u64::from(qps)
    }

    /// Whether set-up is measured, and not a transfer.
    pub fn is_set_up(&self) -> bool {
        self.op == Workload::Connect
    }

    /// Whether messages are moved, be it beside set-ups.
    pub fn has_traffic(&self) -> bool {
        !self.is_set_up() || self.traffic_qps > 0
    }

    /// When the measurement ends: after messages where they were given, else after a time, 5 s where none was.
    pub fn stop(&self) -> Stop {
        match (self.iterations_per_qp, self.duration_seconds) {
            (Some(messages), _) => Stop::MessagesPerQp(messages),
            (None, span) => Stop::DurationNs(span.unwrap_or(TimeSpan::USUAL).ns()),
        }
    }

    /// How long the window is; `None` where messages end the measurement.
    pub fn window_ns(&self) -> Option<u64> {
        match self.stop() {
            Stop::DurationNs(ns) => Some(ns),
            Stop::MessagesPerQp(_) => None,
        }
    }

    /// The longest datagram, as far as the path is known before a device is opened.
    pub(crate) fn longest_datagram_bytes(&self) -> u32 {
        self.mtu.map_or(LARGEST_MTU_BYTES, Mtu::bytes)
    }

    /// WRs that the send queues of a worker's QPs hold, of the worker with the fewest.
    pub(crate) fn wrs_of_a_worker(&self) -> u64 {
        let workers = self.workers.clamp(1, self.qps.max(1));
        self.wrs_of(self.qps / workers)
    }

    /// WRs that can be outstanding on the QPs of one CQ.
    pub(crate) fn cq_entries(&self) -> u64 {
        let qps = match self.cq {
            CqMode::Shared => self.qps,
            CqMode::PerWorker => self.qps.div_ceil(self.workers),
            CqMode::PerQp => 1,
        };
        let receives = if self.op.profile().receives { self.receives_of(qps) } else { 0 };
        u64::from(qps) * u64::from(self.tx_depth) + receives
    }

    /// Ends the measurement otherwise; a time is at most [`TimeSpan::MAX`].
    pub fn set_stop(&mut self, stop: Stop) {
        (self.iterations_per_qp, self.duration_seconds) = match stop {
            Stop::MessagesPerQp(messages) => (Some(messages), None),
            Stop::DurationNs(ns) => (None, Some(TimeSpan::from_ns(ns).unwrap_or(TimeSpan::MAX))),
        };
    }

    /// The defaults, of which those that may follow from other settings, size and send depth too, are left to
    /// [`Settings::fit`].
    pub fn unfitted() -> Settings {
        Settings { size_bytes: FITTED, tx_depth: FITTED, ..Settings::default() }
    }

    /// Fills in the defaults that follow from other settings, once those are set.
    pub fn fit(&mut self) {
        if self.iterations_per_qp.is_none() && self.duration_seconds.is_none() {
            self.duration_seconds = Some(TimeSpan::USUAL);
        }
        if self.size_bytes == FITTED {
            self.size_bytes = self.fitted_size_bytes();
        }
        if self.op.profile().is_atomic() {
            (self.size_bytes, self.size_mix) = (ATOMIC_BYTES, None);
        }
        if let Some(mix) = &self.size_mix {
            self.size_bytes = mix.largest_bytes();
        }
        if self.tx_depth == FITTED {
            self.tx_depth = self.fitted_tx_depth();
        }
        if self.signal_every == FITTED {
            self.signal_every = self.fitted_signal_every();
        }
        if self.rx_depth == FITTED {
            self.rx_depth = self.fitted_rx_depth();
        }
        if self.awaits_bytes() {
            // The last byte is the last to come.
            self.ordering = Ordering::Strict;
        }
        if let Some(dscp) = self.dscp {
            self.traffic_class = dscp << 2 | ECT_0;
        }
    }

    /// The size of messages when none is asked for: over UD each is one packet.
    fn fitted_size_bytes(&self) -> u32 {
        match self.service {
            Service::Rc | Service::Uc => Settings::default().size_bytes,
            Service::Ud => {
                let mtu = self.mtu.map_or(DATAGRAM_BYTES, u32::from);
                mtu.min(DATAGRAM_BYTES)
            }
        }
    }

    /// WRs in flight on each QP when no number is asked for: they hold what is signalled or posted together.
    pub fn fitted_tx_depth(&self) -> u32 {
        if self.ping_pong {
            return 1;
        }
        let usual = Settings::default().tx_depth;
        usual.max(self.signal_every).max(self.post_list)
    }

    /// Receives when no number is asked for. A QP has several for each message that its peer can have in flight, since
    /// that sends the next one before the worker has posted a receive again, and more where there are few QPs. Those of
    /// an SRQ are as many as all senders can have in flight, so that none waits for a receive.
    pub fn fitted_rx_depth(&self) -> u32 {
        match self.recv_queue {
            RecvQueue::PerQp => {
                let part = RECEIVES_OF_AN_END / self.qps.max(1);
                let in_flight = self.tx_depth.saturating_mul(RECEIVES_OF_A_MESSAGE);
                part.max(in_flight).min(RECEIVES_OF_A_QP)
            }
            RecvQueue::Shared => {
                self.qps.saturating_mul(self.tx_depth).clamp(RECEIVES_OF_A_QP, MOST_SHARED_RECEIVES)
            }
        }
    }

    /// Receives that are posted in all at the receiving end.
    pub fn receives(&self) -> u64 {
        self.receives_of(self.qps)
    }

    /// The most receives that `qps` of its QPs can take: any QP may take all of an SRQ.
    pub fn receives_of(&self, qps: u32) -> u64 {
        match self.recv_queue {
            RecvQueue::PerQp => u64::from(self.rx_depth) * u64::from(qps),
            RecvQueue::Shared => self.rx_depth.into(),
        }
    }

    /// CQ moderation when none is asked for, made to fit the send queue and the posted lists.
    ///
    /// 1 where latency is recorded: only of a message with a completion of its own it is known when it was done, and the last of
    /// a batch waits longest. With `-Q 64 -t 128` the mean of those is 128 services, and that of all is 96.5: the k-th of a
    /// batch waits for 64 others and for k of its own.
    ///
    /// Else 1 above 8192 bytes, and in an open loop. Else the largest number up to 64 of which the send queue holds a whole
    /// number, and two at least: each completion then frees as much as it stands for. With lists it is a multiple of `post_list`,
    /// or one completion a list where there is none.
    pub fn fitted_signal_every(&self) -> u32 {
        let is_large = self.size_bytes > MODERATED_SIZE_BYTES;
        if !self.no_latency || is_large || !self.is_closed_loop() || self.lock_step {
            return 1;
        }
        let step = self.post_list.max(1);
        let most = MOST_FITTED.min(self.tx_depth / 2);
        (step..=most)
            .rev()
            .filter(|every| every.is_multiple_of(step))
            .find(|every| self.tx_depth.is_multiple_of(*every))
            .unwrap_or(step)
    }
}

/// What stands in a table for a setting that does not apply.
pub const NO_VALUE: &str = "-";

/// The settings in which `settings` differ, as far as they apply, in the order of the table.
pub fn differing(settings: &[Settings]) -> Vec<&'static Row> {
    ROWS.iter()
        .filter(|row| {
            let mut telling = settings.iter().filter(|one| row.tells(one));
            let first = telling.next();
            first.is_some_and(|first| telling.any(|other| !row.is_equal(first, other)))
        })
        .collect()
}

/// Those by which `settings` are told apart: [`differing`] without those whose value is everywhere the default that follows
/// from the others (`Row::may_follow`).
pub fn telling_apart(settings: &[Settings]) -> Vec<&'static Row> {
    let defaults: Vec<Settings> = settings.iter().map(Settings::usual).collect();
    let mut rows = differing(settings);
    rows.retain(|row| {
        let mut pairs = settings.iter().zip(&defaults);
        !row.may_follow
            || pairs.any(|(given, usual)| row.tells(given) && !row.is_equal(given, usual))
    });
    rows
}

impl Row {
    /// Whether its value tells something of a case with these settings. What stands in the head of an id always does.
    fn tells(&self, settings: &Settings) -> bool {
        self.id == Id::Head || self.has_effect(settings)
    }

    /// Its value in a table of cases: `-` where it does not apply, `auto` where nothing was asked for.
    pub fn cell(&self, settings: &Settings) -> String {
        match self.text(settings) {
            _ if !self.has_effect(settings) => NO_VALUE.to_owned(),
            text if text.is_empty() => "auto".to_owned(),
            text => text,
        }
    }

    /// Heading of its column in a table of cases.
    pub fn heading_of_column(&self) -> &'static str {
        match self.column {
            "" => self.flag,
            column => column,
        }
    }
}

impl Settings {
    /// The settings with the defaults that follow from the rest in place of what may follow.
    fn usual(&self) -> Settings {
        let mut usual = Settings::unfitted();
        for row in ROWS.iter().filter(|row| !row.may_follow) {
            row.copy(&mut usual, self);
        }
        usual.fit();
        usual
    }

    /// The settings that apply and are not their default, in the order of the table; what follows from others is a default
    /// too.
    pub fn unusual(&self) -> impl Iterator<Item = &'static Row> + '_ {
        let (default, usual) = (Settings::default(), self.usual());
        ROWS.iter().filter(move |row| {
            let usual = if row.may_follow { &usual } else { &default };
            row.has_effect(self) && !row.is_equal(self, usual)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(rows: impl IntoIterator<Item = &'static Row>) -> Vec<&'static str> {
        rows.into_iter().map(|row| row.flag).collect()
    }

    /// Two settings that differ in this one alone, to which it applies.
    fn apart(row: &'static Row) -> [Settings; 2] {
        let bases = "op=send pattern=incast pattern=outcast op=connect op=fetch-add service=ud rate=2M \
                     spread=round-robin memory=1M memory-at=cuda:0 lock-step=true on=1s";
        let values = "true 3 7 64 2048 49152 write uc shared per-qp ring 64:1,128:1 huge strict random hash 4:1 event cm \
                      extended thread device 2M fixed 3s spread peermem zipf";
        for base in bases.split(' ') {
            let one = Settings::from([base.split_once('=').unwrap()]);
            for value in values.split(' ') {
                let mut other = one.clone();
                let is_read = row.read(&mut other, value).is_ok() && !row.is_equal(&one, &other);
                if is_read && row.tells(&one) && row.tells(&other) {
                    return [one, other];
                }
            }
        }
        panic!("no two values of --{}", row.flag)
    }

    #[test]
    fn each_setting_that_differs_is_found_and_has_a_heading() {
        for row in ROWS {
            let both = apart(row);
            assert_eq!(flags(differing(&both)), [row.flag]);
            assert_eq!(flags(telling_apart(&both)), [row.flag]);
            assert!(!row.heading_of_column().is_empty());
            let mut others = ROWS.iter().filter(|it| it.field != row.field);
            let is_alone = others.all(|it| it.heading_of_column() != row.heading_of_column());
            assert!(is_alone, "two columns `{}`", row.heading_of_column());
        }
        assert!(differing(&[]).is_empty() && differing(&[Settings::from([])]).is_empty());
    }

    #[test]
    fn what_does_not_apply_does_not_differ() {
        let mut closed = Settings::from([("seed", "1")]);
        let open = Settings::from([("rate", "2M"), ("seed", "7")]);
        closed.signal_every = open.signal_every;
        assert_eq!(flags(differing(&[closed, open])), ["rate"]);
    }

    #[test]
    fn what_follows_from_others_is_shown_where_they_do_not_show_it() {
        let with = |size, signal| match signal {
            "" => Settings::from([("op", "write"), ("size", size), ("no-latency", "true")]),
            signal => Settings::from([("op", "write"), ("size", size), ("signal-every", signal)]),
        };
        let fitted = [with("64", ""), with("64K", "")];
        assert_ne!(fitted[0].signal_every, fitted[1].signal_every);
        assert_eq!(flags(telling_apart(&fitted)), ["size"]);
        assert_eq!(flags(differing(&fitted)), ["size", "signal-every"]);
        let given = [with("64", "1"), with("64", "2"), with("64K", "1")];
        assert_eq!(flags(telling_apart(&given)), ["size", "signal-every"]);
        let timed = ["64", "64K"].map(|size| Settings::from([("size", size)]));
        assert_eq!(flags(differing(&timed)), ["size"]);
        let depths = ["16", "64"].map(|depth| Settings::from([("tx-depth", depth)]));
        assert_eq!(flags(telling_apart(&depths)), ["tx-depth"]);
    }

    #[test]
    fn receives_of_a_qp_follow_what_can_be_in_flight() {
        for (qps, depth, receives) in [
            ("1", "1", 512),
            ("128", "1", 512),
            ("1024", "1", 64),
            ("1024", "32", 128),
            ("1024", "128", 512),
            ("1024", "4096", 512),
            ("131072", "1", 4),
        ] {
            let settings = Settings::from([("qps", qps), ("tx-depth", depth)]);
            assert_eq!(settings.rx_depth, receives, "{qps} QPs, {depth} in flight");
        }
        let given = Settings::from([("qps", "1024"), ("tx-depth", "1"), ("rx-depth", "300")]);
        assert_eq!(given.rx_depth, 300);
    }

    #[test]
    fn cells_say_where_a_setting_is_none() {
        let cell = |flag: &str, settings: &Settings| Settings::row(flag).unwrap().cell(settings);
        let write = Settings::from([("op", "write")]);
        assert_eq!(cell("rx-depth", &write), "-");
        assert_eq!(cell("mtu", &write), "auto");
        assert_eq!(cell("size", &write), "64KiB");
    }

    #[test]
    fn only_what_was_asked_for_is_unusual() {
        assert_eq!(flags(Settings::from([("size", "64")]).unusual()), ["size"]);
        let given = [("qps", "4"), ("signal-every", "2"), ("duration", "1"), ("poll", "event")];
        let unusual = ["qps", "signal-every", "poll", "duration"];
        assert_eq!(flags(Settings::from(given).unusual()), unusual);
        let srq = Settings::from([("recv-queue", "shared"), ("qps", "64")]);
        assert_eq!(flags(srq.unusual()), ["qps", "recv-queue"]);
    }
}
