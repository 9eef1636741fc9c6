//! Deliberate faults and their text: `seed=7,drop=5%,duplicate=1%,reorder=1%,corrupt=0.1%,delay=10us,rate=10G`.
//! With `peer=ADDRESS` they are of packets to and from that address alone. `lose=ack#3` loses the third acknowledgement,
//! `blackhole=2s+500ms` all packets for a time, and with `down=2s+500ms` the port is down for that time. `mark=1%` marks packets
//! as a congested switch does, and `mark=100us` those that wait longer than that for the link's rate; `queue=1ms` loses those that
//! would wait longer than that. `pps=1M`, `qp_rate=200K`, `unaligned=3us`, `qp_cache=64:2us`, `pause=20%/1ms`, `paths=4~30us` and
//! `slow_path=1/4:200M` are [limits](super::limits). With `qp_window=65536` a QP has no more bytes unacknowledged.
//!
//! A name applies to both directions, or with `tx.` or `rx.` before it to one. What is the network's applies without a
//! prefix to sending only: a packet between two such devices passes both directions, and would be delayed twice.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::limits::Limits;
use crate::wire::{Opcode, PacketKind};

/// Deliberate faults. The same seed and the same packets give the same faults.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Seed of the random numbers.
    pub seed: u64,
    pub transmit: Direction,
    pub receive: Direction,
    /// The only address to and from which packets meet them; `None` for all.
    pub peer: Option<IpAddr>,
    /// When the port is down, for all peers.
    pub down: Option<Period>,
    /// The most bytes of a QP that are not acknowledged, to any peer: each packet counts as a full one, and one may always be sent.
    pub qp_window_bytes: Option<u32>,
}

/// Names that without a prefix apply to sending only.
const OF_SENDING: [&str; 8] =
    ["delay", "rate", "queue", "qp_rate", "unaligned", "pause", "paths", "slow_path"];

/// The most packets that [`Direction::lose`] names.
pub const MOST_NAMED: usize = 4;

/// The faults of one direction; probabilities are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Direction {
    /// Probability that a packet is lost.
    pub drop: f64,
    /// Mean number of packets that are lost one after the other; 0 if each is lost by itself.
    pub drop_burst: u32,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet arrives after some later ones.
    pub reorder: f64,
    /// Probability that a bit of a packet is flipped, where the CRC covers it.
    pub corrupt: f64,
    /// Probability that a packet is marked, as by a congested switch, if it may be.
    pub mark: f64,
    /// How long packets wait for the link's rate before they are marked.
    pub mark_after_ns: Option<u64>,
    /// How long packets may wait for the link's rate: those that would wait longer are lost, as by a full queue.
    pub queue_ns: Option<u64>,
    pub delay_ns: u64,
    /// How much the delay varies to both sides, evenly; packets stay in order.
    pub jitter_ns: u64,
    /// Rate of the link: bits of UDP payload and of IP and UDP headers, 28 bytes a packet (IPv6: 48).
    pub rate_bits_per_s: Option<f64>,
    /// Packets that are lost, by their number; `None` only behind them.
    pub lose: [Option<NthPacket>; MOST_NAMED],
    /// When all packets are lost.
    pub blackhole: Option<Period>,
    pub limits: Limits,
}

impl Direction {
    /// Whether there are any faults.
    pub fn is_faulty(&self) -> bool {
        *self != Direction::default()
    }

    /// Each fault with its value's text.
    fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = Vec::new();
        if self.drop > 0.0 {
            let burst = match self.drop_burst {
                0 => String::new(),
                burst => format!("/{burst}"),
            };
            parts.push(("drop", format!("{}{burst}", self.drop)));
        }
        for (name, probability) in [
            ("duplicate", self.duplicate),
            ("reorder", self.reorder),
            ("corrupt", self.corrupt),
            ("mark", self.mark),
        ] {
            if probability > 0.0 {
                parts.push((name, probability.to_string()));
            }
        }
        if let Some(ns) = self.mark_after_ns {
            parts.push(("mark", time_text(ns)));
        }
        if let Some(ns) = self.queue_ns {
            parts.push(("queue", time_text(ns)));
        }
        if self.delay_ns > 0 {
            let jitter = match self.jitter_ns {
                0 => String::new(),
                ns => format!("~{}", time_text(ns)),
            };
            parts.push(("delay", format!("{}{jitter}", time_text(self.delay_ns))));
        }
        if let Some(rate) = self.rate_bits_per_s {
            parts.push(("rate", rate_text(rate)));
        }
        for nth in self.lose.iter().flatten() {
            parts.push(("lose", format!("{}#{}", kind_name(nth.kind), nth.number)));
        }
        if let Some(period) = self.blackhole {
            parts.push(("blackhole", period.to_string()));
        }
        parts.extend(self.limits.parts());
        parts
    }
}

impl FromStr for Faults {
    type Err = FaultsError;

    /// An empty text or `none` means no faults.
    fn from_str(text: &str) -> Result<Faults, FaultsError> {
        let mut faults = Faults::default();
        if matches!(text.trim(), "" | "none") {
            return Ok(faults);
        }
        for part in text.split(',').map(str::trim) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| FaultsError::new(part, remedy::NO_VALUE))?;
            faults.set(part, name.trim(), value.trim())?;
        }
        Ok(faults)
    }
}

impl Faults {
    /// The names of faults; all but the first four also apply to one direction.
    pub const NAMES: [&str; 21] = [
        "seed",
        "peer",
        "down",
        "qp_window",
        "drop",
        "duplicate",
        "reorder",
        "corrupt",
        "mark",
        "delay",
        "rate",
        "queue",
        "lose",
        "blackhole",
        "pps",
        "qp_rate",
        "unaligned",
        "qp_cache",
        "pause",
        "paths",
        "slow_path",
    ];

    fn set(&mut self, part: &str, name: &str, value: &str) -> Result<(), FaultsError> {
        if name == "seed" {
            let seed = value.parse();
            self.seed = seed.map_err(|_| FaultsError::new(part, remedy::SEED))?;
            return Ok(());
        }
        if name == "peer" {
            let peer = value.parse::<IpAddr>().map_err(|_| FaultsError::new(part, remedy::PEER))?;
            self.peer = Some(peer.to_canonical());
            return Ok(());
        }
        if name == "down" {
            self.down = Some(period(part, value)?);
            return Ok(());
        }
        if name == "qp_window" {
            let most_bytes = value.parse::<NonZeroU32>();
            let bytes = most_bytes.map_err(|_| FaultsError::new(part, remedy::QP_WINDOW))?;
            self.qp_window_bytes = Some(bytes.get());
            return Ok(());
        }
        let (prefix, kind) = name.split_once('.').unwrap_or(("", name));
        let (transmit, receive) = match (prefix, kind) {
            ("tx", _) => (true, false),
            ("rx", _) => (false, true),
            ("", _) if OF_SENDING.contains(&kind) => (true, false),
            ("", _) => (true, true),
            _ => return Err(FaultsError::unknown(part, name)),
        };
        let directions = [(transmit, &mut self.transmit), (receive, &mut self.receive)];
        for (_, direction) in directions.into_iter().filter(|(is_named, _)| *is_named) {
            match kind {
                "drop" => (direction.drop, direction.drop_burst) = loss(part, value)?,
                "duplicate" => direction.duplicate = probability(part, value)?,
                "reorder" => direction.reorder = probability(part, value)?,
                "corrupt" => direction.corrupt = probability(part, value)?,
                "mark" => match mark(part, value)? {
                    Mark::Share(share) => direction.mark = share,
                    Mark::AfterNs(ns) => direction.mark_after_ns = Some(ns),
                },
                "queue" => direction.queue_ns = Some(time_ns(part, value)?),
                "delay" => (direction.delay_ns, direction.jitter_ns) = delay_ns(part, value)?,
                "rate" => direction.rate_bits_per_s = Some(rate_bits_per_s(part, value)?),
                "lose" => {
                    let nth = nth_packet(part, value)?;
                    let mut places = direction.lose.iter_mut();
                    let place = places.find(|place| place.is_none());
                    *place.ok_or_else(|| FaultsError::new(part, remedy::MOST_NAMED))? = Some(nth);
                }
                "blackhole" => direction.blackhole = Some(period(part, value)?),
                _ if direction.limits.set(part, kind, value)? => {}
                _ => return Err(FaultsError::unknown(part, kind)),
            }
        }
        Ok(())
    }
}

impl fmt::Display for Faults {
    /// A text that parses to the same faults.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Faults::default() {
            return to.write_str("none");
        }
        write!(to, "seed={}", self.seed)?;
        let (tx, rx) = (self.transmit.parts(), self.receive.parts());
        // A name alone means both directions only for some, and of the packets to lose the order would change.
        let is_of_both = |part: &(&str, String)| {
            !OF_SENDING.contains(&part.0)
                && part.0 != "lose"
                && tx.contains(part)
                && rx.contains(part)
        };
        for part @ (name, value) in &tx {
            let prefix = if is_of_both(part) { "" } else { "tx." };
            write!(to, ",{prefix}{name}={value}")?;
        }
        for (name, value) in rx.iter().filter(|part| !is_of_both(part)) {
            write!(to, ",rx.{name}={value}")?;
        }
        if let Some(down) = self.down {
            write!(to, ",down={down}")?;
        }
        if let Some(bytes) = self.qp_window_bytes {
            write!(to, ",qp_window={bytes}")?;
        }
        match self.peer {
            Some(peer) => write!(to, ",peer={peer}"),
            None => Ok(()),
        }
    }
}

const TIMES: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const RATES: [(char, f64); 3] = [('K', 1e3), ('M', 1e6), ('G', 1e9)];

/// The n-th packet of a kind, counted from 1 since the device was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NthPacket {
    /// The packets that count; `None` for all.
    pub kind: Option<PacketKind>,
    pub number: u64,
}

/// A time, counted from the opening of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub after_ns: u64,
    pub lasts_ns: u64,
}

impl Period {
    /// Whether it is now, so long after the opening.
    pub fn has(&self, since_opening_ns: u64) -> bool {
        since_opening_ns
            .checked_sub(self.after_ns)
            .is_some_and(|into_it_ns| into_it_ns < self.lasts_ns)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (after, lasts) = (time_text(self.after_ns), time_text(self.lasts_ns));
        write!(to, "{after}+{lasts}")
    }
}

/// A probability from 0 to 1, written as `5%` or `0.05`.
pub fn probability(part: &str, value: &str) -> Result<f64, FaultsError> {
    let (number, whole) = match value.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (value, 1.0),
    };
    match number.parse::<f64>().map(|it| it / whole) {
        Ok(probability) if (0.0..=1.0).contains(&probability) => Ok(probability),
        _ => Err(FaultsError::new(part, remedy::PROBABILITY)),
    }
}

/// `1%` or `1%/8`: a probability, and the mean length of a burst in packets, 0 if each is lost by itself.
pub fn loss(part: &str, value: &str) -> Result<(f64, u32), FaultsError> {
    let Some((share, burst)) = value.split_once('/') else {
        return Ok((probability(part, value)?, 0));
    };
    let share = probability(part, share.trim())?;
    let wrong = || FaultsError::new(part, remedy::BURST);
    let packets = burst.trim().parse::<u32>().map_err(|_| wrong())?;
    if packets == 0 || burst_begins(share, packets) > 1.0 {
        return Err(wrong());
    }
    Ok(if share > 0.0 { (share, packets) } else { (0.0, 0) })
}

/// The probability that a burst of the mean length `burst` begins, for bursts to lose `share` of all packets. After a burst
/// at least one packet arrives, so the pauses have the mean length 1 / `burst_begins` (E. N. Gilbert, "Capacity of a
/// burst-noise channel", 1960).
pub fn burst_begins(share: f64, burst: u32) -> f64 {
    share / (f64::from(burst) * (1.0 - share))
}

/// A time with its unit, such as `10us`, in nanoseconds.
pub fn time_ns(part: &str, value: &str) -> Result<u64, FaultsError> {
    let wrong = || FaultsError::new(part, remedy::TIME);
    let letters = value.find(char::is_alphabetic).ok_or_else(wrong)?;
    let (number, unit) = value.split_at(letters);
    let (_, unit_ns) = TIMES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    if let Ok(number) = number.trim().parse::<u64>() {
        return number.checked_mul(*unit_ns).ok_or_else(wrong);
    }
    let ns = number.trim().parse::<f64>().map_err(|_| wrong())? * *unit_ns as f64;
    if (0.0..1e18).contains(&ns) { Ok(ns.round() as u64) } else { Err(wrong()) }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    Share(f64),
    /// Those that wait longer than this for the link's rate.
    AfterNs(u64),
}

/// A share of the packets, such as `1%`, or a wait for the link, such as `100us`.
pub fn mark(part: &str, value: &str) -> Result<Mark, FaultsError> {
    probability(part, value)
        .map(Mark::Share)
        .or_else(|_| time_ns(part, value).map(Mark::AfterNs))
        .map_err(|_| FaultsError::new(part, remedy::MARK))
}

/// `10us` or `10us~5us`: a delay and how much it varies to both sides.
pub fn delay_ns(part: &str, value: &str) -> Result<(u64, u64), FaultsError> {
    let Some((delay, jitter)) = value.split_once('~') else {
        return Ok((time_ns(part, value)?, 0));
    };
    let delay_ns = time_ns(part, delay.trim())?;
    let jitter_ns = time_ns(part, jitter.trim())?;
    if jitter_ns <= delay_ns {
        Ok((delay_ns, jitter_ns))
    } else {
        Err(FaultsError::new(part, remedy::JITTER))
    }
}

/// When it begins and how long it lasts, such as `2s+500ms`.
pub fn period(part: &str, value: &str) -> Result<Period, FaultsError> {
    let wrong = || FaultsError::new(part, remedy::PERIOD);
    let (after, lasts) = value.split_once('+').ok_or_else(wrong)?;
    Ok(Period {
        after_ns: time_ns(part, after.trim()).map_err(|_| wrong())?,
        lasts_ns: time_ns(part, lasts.trim()).map_err(|_| wrong())?,
    })
}

/// A kind of packet and a number from 1, such as `ack#3`.
pub fn nth_packet(part: &str, value: &str) -> Result<NthPacket, FaultsError> {
    let wrong = || FaultsError::new(part, remedy::NTH);
    let (name, number) = value.split_once('#').ok_or_else(wrong)?;
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|(known, _)| *known == name.trim());
    let (_, kind) = *kind.ok_or_else(wrong)?;
    match number.trim().parse() {
        Ok(number) if number > 0 => Ok(NthPacket { kind, number }),
        _ => Err(wrong()),
    }
}

/// A rate with its unit, such as `10G`, in bits a second.
pub fn rate_bits_per_s(part: &str, value: &str) -> Result<f64, FaultsError> {
    let unit = RATES.iter().find(|(name, _)| value.ends_with(*name));
    let (number, unit) = match unit {
        Some((name, unit)) => (value.trim_end_matches(*name), *unit),
        None => (value, 1.0),
    };
    match number.trim().parse::<f64>().map(|it| it * unit) {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err(FaultsError::new(part, remedy::RATE)),
    }
}

/// The text of a time, in the largest unit that shows all of it.
pub fn time_text(ns: u64) -> String {
    let mut units = TIMES.iter().rev();
    let fits = units.find(|(_, unit_ns)| ns.is_multiple_of(*unit_ns));
    let (unit, unit_ns) = fits.unwrap_or(&("ns", 1));
    format!("{}{unit}", ns / unit_ns)
}

/// The text of a rate.
pub fn rate_text(rate: f64) -> String {
    let mut units = RATES.iter().rev();
    match units.find(|(_, unit)| rate / unit >= 1.0 && rate / unit * unit == rate) {
        Some((name, unit)) => format!("{}{name}", rate / unit),
        None => rate.to_string(),
    }
}

/// An invalid text of [`super::Faults`], with the part of it that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultsError {
    /// A name that is none of [`Faults::NAMES`].
    #[error(
        "`{part}` is not a fault: faults are {}; all but the first four also for one direction, as in `tx.drop=5%` or \
         `rx.drop=5%`",
        Faults::NAMES.join(", ")
    )]
    Unknown { part: String, name: String },
    #[error("`{part}` {remedy}")]
    Invalid { part: String, remedy: &'static str },
}

impl FaultsError {
    pub(super) fn new(part: &str, remedy: &'static str) -> FaultsError {
        FaultsError::Invalid { part: part.to_owned(), remedy }
    }

    fn unknown(part: &str, name: &str) -> FaultsError {
        FaultsError::Unknown { part: part.to_owned(), name: name.to_owned() }
    }
}

/// How to write what is wrong.
pub mod remedy {
    pub const NO_VALUE: &str = "has no value: write it as in `drop=5%`";
    pub const PROBABILITY: &str = "is not a probability: give one from 0% to 100%, or from 0 to 1";
    pub const BURST: &str = "is not a length of bursts: give their mean length in packets, from 1, as in `drop=1%/8`; at least \
     one packet arrives after each, so bursts of 8 lose at most 8 of 9";
    pub const MARK: &str = "marks nothing: give a probability, as in `mark=1%`, or how long packets wait for the link's rate \
     before they are marked, as in `mark=100us`";
    pub const JITTER: &str =
        "varies by more than its delay: give a shorter time after `~`, as in `delay=10us~5us`";
    pub const PERIOD: &str =
        "is not a period: give when it begins and how long it lasts, as in `blackhole=2s+500ms`";
    pub const NTH: &str = "names no packet: give a kind and a number from 1, as in `lose=ack#3`; kinds are packet, send, write, \
     read-request, read-response, atomic, atomic-ack and ack";
    pub const MOST_NAMED: &str =
        "is one packet too many: `lose` names up to four in a direction; leave one out";
    pub const TIME: &str =
        "is not a time: give a number and its unit, ns, us, ms or s, as in `delay=10us`";
    pub const RATE: &str =
        "is not a rate: give bits a second above 0, as in `rate=10G` or `rate=250M`";
    pub const SEED: &str = "is not a seed: give a whole number from 0 to 2^64 - 1";
    pub const QP_WINDOW: &str = "is not a window: give the most bytes of a QP that are not acknowledged, from 1 to 4294967295, as in \
     `qp_window=65536`";
    pub const PEER: &str =
        "is not an address: give the IP address of the other device, as in `peer=10.0.0.7`";
}

/// Every kind with its name; `None` are all packets.
pub const KINDS: [(&str, Option<PacketKind>); 8] = [
    ("packet", None),
    ("send", Some(PacketKind::Send)),
    ("write", Some(PacketKind::Write)),
    ("read-request", Some(PacketKind::ReadRequest)),
    ("read-response", Some(PacketKind::ReadResponse)),
    ("atomic", Some(PacketKind::Atomic)),
    ("atomic-ack", Some(PacketKind::AtomicAck)),
    ("ack", Some(PacketKind::Ack)),
];

/// The name of a kind.
pub fn kind_name(kind: Option<PacketKind>) -> &'static str {
    let found = KINDS.iter().find(|(_, known)| *known == kind);
    found.map_or("packet", |(name, _)| name)
}

/// Whether a packet with this first byte is of this kind.
pub fn is_of_kind(kind: Option<PacketKind>, opcode_byte: u8) -> bool {
    kind.is_none_or(|kind| {
        Opcode::parse(opcode_byte).is_some_and(|(_, opcode)| opcode.kind() == kind)
    })
}

/// When the port is down.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    period: Period,
    opened_ns: u64,
}

impl Outage {
    /// An outage of a port that is opened now.
    pub(super) fn new(period: Period, now_ns: u64) -> Outage {
        Outage { period, opened_ns: now_ns }
    }

    /// Whether the port is down.
    pub fn is_down(&self, now_ns: u64) -> bool {
        self.period.has(now_ns.saturating_sub(self.opened_ns))
    }

    /// When it goes down or comes up next; `u64::MAX` for never.
    pub fn next_change_ns(&self, now_ns: u64) -> u64 {
        let begin_ns = self.opened_ns.saturating_add(self.period.after_ns);
        let end_ns = begin_ns.saturating_add(self.period.lasts_ns);
        let coming = [begin_ns, end_ns].into_iter().find(|ns| *ns > now_ns);
        coming.unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::limits::tests::some_limits;
    use super::*;
    use crate::wire::PacketKind;

    #[test]
    fn a_name_alone_is_both_directions_but_for_the_link() {
        let text = "seed=7, drop=5%,duplicate=0.01,tx.reorder=1%,rx.corrupt=0.1%,delay=1.5us,rate=10G,queue=1ms";
        let faults: Faults = text.parse().unwrap();
        let both = Direction { drop: 0.05, duplicate: 0.01, ..Direction::default() };
        let transmit = Direction {
            reorder: 0.01,
            delay_ns: 1500,
            rate_bits_per_s: Some(1e10),
            queue_ns: Some(1_000_000),
            ..both
        };
        let receive = Direction { corrupt: 0.001, ..both };
        assert_eq!((faults.seed, faults.transmit), (7, transmit));
        assert_eq!(faults.receive, receive);
        assert_eq!("".parse(), Ok(Faults::default()));
        let shown = "seed=7,drop=0.05,duplicate=0.01,tx.reorder=0.01,tx.queue=1ms,tx.delay=1500ns,tx.rate=10G,rx.corrupt=0.001";
        assert_eq!(faults.to_string(), shown);
    }

    #[test]
    fn a_peer_is_an_address_in_its_shortest_form() {
        for (text, peer, shown) in [
            ("drop=1%,peer=127.0.0.5", "127.0.0.5", "peer=127.0.0.5"),
            ("peer=::ffff:10.0.0.7", "10.0.0.7", "peer=10.0.0.7"),
            ("peer = 2001:db8:0::7", "2001:db8::7", "peer=2001:db8::7"),
        ] {
            let faults: Faults = text.parse().unwrap();
            assert_eq!(faults.peer, Some(peer.parse().unwrap()), "{text}");
            assert!(faults.to_string().ends_with(shown), "{faults}");
        }
        assert_eq!("drop=1%".parse::<Faults>().unwrap().peer, None);
    }

    const FIVE_LOSSES: &str = "lose=ack#1,lose=ack#2,lose=ack#3,lose=ack#4,tx.lose=ack#5";

    #[test]
    fn errors_name_the_part_which_is_the_last_here() {
        for (text, remedy) in [
            ("drop=5%,dorp=1%", "drop, duplicate"),
            ("zx.drop=1%", "tx.drop"),
            ("tx.seed=1", "all but the first four"),
            ("rx.peer=::1", "seed, peer, down, qp_window, drop"),
            ("tx.down=1s+1s", "all but the first four"),
            ("down=1s", "2s+500ms"),
            ("blackhole=1s+soon", "2s+500ms"),
            ("drop=1%/0", "drop=1%/8"),
            ("drop=90%/8", "8 of 9"),
            ("drop=100%/8", "8 of 9"),
            ("drop=5/8", "0% to 100%"),
            ("mark=101%", "mark=1%"),
            ("rx.mark=1%/8", "mark=100us"),
            ("delay=1us~2us", "delay=10us~5us"),
            ("delay=1us~", "unit"),
            ("lose=ack", "lose=ack#3"),
            ("lose=ack#0", "from 1"),
            ("lose=nak#1", "read-response"),
            (FIVE_LOSSES, "up to four"),
            ("peer=node7", "peer=10.0.0.7"),
            ("peer=10.0.0.7:4791", "peer=10.0.0.7"),
            ("drop", "drop=5%"),
            ("drop=101%", "0% to 100%"),
            ("drop=-1%", "0% to 100%"),
            ("drop=NaN", "0% to 100%"),
            ("delay=5", "delay=10us"),
            ("delay=-5us", "delay=10us"),
            ("delay=99999999999999s", "unit"),
            ("rate=0", "above 0"),
            ("rate=fast", "rate=10G"),
            ("seed=1.5", "whole number"),
            ("tx.pps=0", "pps=1M"),
            ("qp_rate=0", "qp_rate=200K"),
            ("qp_rate=1G:bytes", "qp_rate=1G:bits"),
            ("unaligned=3", "unit"),
            ("qp_window=0", "qp_window=65536"),
            ("tx.qp_window=64", "all but the first four"),
            ("qp_cache=64", "qp_cache=64:2us"),
            ("qp_cache=0:2us", "from 1 to 65536"),
            ("rx.qp_cache=65537:2us", "from 1 to 65536"),
            ("pause=20%", "pause=20%/1ms"),
            ("pause=100%/1ms", "less than 100%"),
            ("pause=20%/0s", "pause=20%/1ms"),
            ("paths=1~30us", "from 2"),
            ("paths=4", "paths=4~30us"),
            ("slow_path=4/4:200M", "remainder"),
            ("slow_path=1/4:fast", "slow_path=1/4:200M"),
            ("paths=4~30us,slow_path=1/4:200M", "leave one out"),
            ("rx.slow_path=1/4:200M,rx.paths=4~30us", "leave one out"),
            ("drop=1%,", "drop=5%"),
        ] {
            let part = format!("`{}`", text.rsplit(',').next().unwrap());
            let message = text.parse::<Faults>().unwrap_err().to_string();
            assert!(message.contains(&part), "{text}: {message}");
            assert!(message.contains(remedy), "{text}: {message}");
        }
    }

    #[test]
    fn what_happens_to_named_packets_and_for_a_time() {
        let text = "drop=1%/8,delay=10us~5us,lose=ack#3,tx.lose=read-response#1,rx.blackhole=2s+500ms,down=1.5s+20ms";
        let faults: Faults = text.parse().unwrap();
        let nth = |kind, number| Some(NthPacket { kind, number });
        let (tx, rx) = (faults.transmit, faults.receive);
        assert_eq!((rx.drop, rx.drop_burst), (0.01, 8));
        assert_eq!((tx.delay_ns, tx.jitter_ns), (10_000, 5_000));
        let (ack, read) = (nth(Some(PacketKind::Ack), 3), nth(Some(PacketKind::ReadResponse), 1));
        assert_eq!(rx.lose[..2], [ack, None]);
        assert_eq!(tx.lose[..3], [ack, read, None]);
        assert_eq!(tx.blackhole, None);
        let hole = rx.blackhole.unwrap();
        let (begin, end) = (2_000_000_000, 2_500_000_000);
        let inside = [begin - 1, begin, end - 1, end].map(|ns| hole.has(ns));
        assert_eq!(inside, [false, true, true, false]);
        let shown = "seed=0,drop=0.01/8,tx.delay=10us~5us,tx.lose=ack#3,tx.lose=read-response#1,rx.lose=ack#3,\
                    rx.blackhole=2s+500ms,down=1500ms+20ms";
        assert_eq!(faults.to_string(), shown);
    }

    #[test]
    fn a_mark_is_a_share_or_a_time() {
        let faults: Faults = "mark=1%,rx.mark=100us,rx.rate=1G".parse().unwrap();
        let (tx, rx) = (faults.transmit, faults.receive);
        assert_eq!((tx.mark, tx.mark_after_ns), (0.01, None));
        assert_eq!((rx.mark, rx.mark_after_ns), (0.01, Some(100_000)));
        let text = "seed=0,mark=0.01,rx.mark=100us,rx.rate=1G";
        assert_eq!(faults.to_string(), text);
    }

    fn periods() -> impl Strategy<Value = Option<Period>> {
        let times = || prop_oneof![any::<u64>(), (0..10_000_u64).prop_map(|ms| ms * 1_000_000)];
        prop::option::of(
            (times(), times()).prop_map(|(after_ns, lasts_ns)| Period { after_ns, lasts_ns }),
        )
    }

    fn directions() -> impl Strategy<Value = Direction> {
        let often_none = || prop_oneof![Just(0.0), 0.0..=1.0];
        let losses =
            prop_oneof![often_none().prop_map(|drop| (drop, 0)), (0.001..0.5, 1..1000_u32),];
        let rates = prop_oneof![
            Just(None),
            (1..u64::MAX).prop_map(|it| Some(it as f64 / 1000.0)),
            (1..1000_u64).prop_map(|it| Some(it as f64 * 1e6)),
        ];
        let us = (0..1000_u64).prop_map(|us| us * 1000);
        let some_delays = (prop_oneof![Just(0), any::<u64>(), us], 0.0..=1.0);
        let kinds = prop::sample::select(KINDS.to_vec());
        let some_named =
            (kinds, 1..u64::MAX).prop_map(|((_, kind), number)| NthPacket { kind, number });
        let some_lost = prop::collection::vec(some_named, 0..=MOST_NAMED);
        let some_probabilities = (losses, often_none(), often_none(), often_none());
        let waits = || prop::option::of(any::<u64>());
        let some_marks = (often_none(), waits(), waits());
        let link = (some_delays, rates, some_limits());
        let parts = (some_probabilities, some_marks, link, some_lost, periods());
        parts.prop_map(|(probabilities, marks, (delays, rate, limits), lose, blackhole)| {
            let ((drop, drop_burst), duplicate, reorder, corrupt) = probabilities;
            let (mark, mark_after_ns, queue_ns) = marks;
            let (delay_ns, jitter) = delays;
            let mut named = lose.into_iter();
            Direction {
                drop,
                drop_burst,
                duplicate,
                reorder,
                corrupt,
                mark,
                mark_after_ns,
                queue_ns,
                delay_ns,
                jitter_ns: ((delay_ns as f64 * jitter) as u64).min(delay_ns),
                rate_bits_per_s: rate,
                lose: std::array::from_fn(|_| named.next()),
                blackhole,
                limits,
            }
        })
    }

    proptest! {
        #[test]
        fn the_text_is_read_back(
            seed: u64,
            transmit in directions(),
            other in directions(),
            same: bool,
            peer: Option<IpAddr>,
            down in periods(),
            qp_window_bytes in prop::option::of(1..u32::MAX),
        ) {
            let receive = if same { transmit } else { other };
            let peer = peer.map(|it| it.to_canonical());
            let faults = Faults { seed, transmit, receive, peer, down, qp_window_bytes };
            prop_assert_eq!(faults.to_string().parse(), Ok(faults));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-z_.=,:%0-9GKMs~#+/ -]{0,40}") {
            if let Ok(faults) = text.parse::<Faults>() {
                prop_assert!((0.0..=1.0).contains(&faults.transmit.drop));
            }
        }
    }

    #[test]
    fn it_goes_down_and_comes_up() {
        let period = Period { after_ns: 20, lasts_ns: 5 };
        let outage = Outage::new(period, 100);
        let look = |ns| (outage.is_down(ns), outage.next_change_ns(ns));
        assert_eq!([99, 119].map(look), [(false, 120); 2]);
        assert_eq!([120, 124].map(look), [(true, 125); 2]);
        assert_eq!([125, 900].map(look), [(false, u64::MAX); 2]);
    }
}
