//! Deliberate faults and their text: `seed=7,drop=5%,duplicate=1%,reorder=1%,corrupt=0.1%,delay=10us,rate=10G`.
//! With `peer=ADDRESS` they are of packets to and from that address alone. `lose=ack#3` loses the third acknowledgement,
//! `blackhole=2s+500ms` all packets for a time, and with `down=2s+500ms` the port is down for that time. `mark=1%` marks packets
//! as a congested switch does, and `mark=100us` those that wait longer than that for the link's rate; `queue=1ms` loses those that
//! would wait longer than that.
//!
//! A name applies to both directions, or with `tx.` or `rx.` before it to one. `delay`, `rate` and `queue` without
//! prefix apply to sending only: a packet between two such devices passes both directions, and would be delayed twice.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::fault_values::{
    Mark, NthPacket, Period, delay_ns, loss, mark, nth_packet, period, probability,
    rate_bits_per_s, rate_text, time_ns, time_text,
};
use super::faults_error::{FaultsError, remedy};
use super::packet_kind;

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
}

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
            parts.push(("lose", format!("{}#{}", packet_kind::kind_name(nth.kind), nth.number)));
        }
        if let Some(period) = self.blackhole {
            parts.push(("blackhole", period.to_string()));
        }
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
                part.split_once('=').ok_or_else(|| FaultsError::of(part, remedy::NO_VALUE))?;
            faults.set(part, name.trim(), value.trim())?;
        }
        Ok(faults)
    }
}

impl Faults {
    fn set(&mut self, part: &str, name: &str, value: &str) -> Result<(), FaultsError> {
        let unknown = || FaultsError::of(part, remedy::NAME);
        if name == "seed" {
            let seed = value.parse();
            self.seed = seed.map_err(|_| FaultsError::of(part, remedy::SEED))?;
            return Ok(());
        }
        if name == "peer" {
            let peer = value.parse::<IpAddr>().map_err(|_| FaultsError::of(part, remedy::PEER))?;
            self.peer = Some(peer.to_canonical());
            return Ok(());
        }
        if name == "down" {
            self.down = Some(period(part, value)?);
            return Ok(());
        }
        let (prefix, kind) = name.split_once('.').unwrap_or(("", name));
        let (transmit, receive) = match (prefix, kind) {
            ("tx", _) | ("", "delay" | "rate" | "queue") => (true, false),
            ("rx", _) => (false, true),
            ("", _) => (true, true),
            _ => return Err(unknown()),
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
                    *place.ok_or_else(|| FaultsError::of(part, remedy::MOST_NAMED))? = Some(nth);
                }
                "blackhole" => direction.blackhole = Some(period(part, value)?),
                _ => return Err(unknown()),
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
            !matches!(part.0, "delay" | "rate" | "queue" | "lose")
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
        match self.peer {
            Some(peer) => write!(to, ",peer={peer}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
