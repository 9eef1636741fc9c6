//! The values in a text of faults: probabilities, times, rates, and what is made of them. It must not know
//! the names of faults.

use std::fmt;

use super::faults_error::{FaultsError, remedy};
use super::packet_kind::KINDS;
use crate::wire::PacketKind;

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

/// `5%` or `0.05`.
pub fn probability(part: &str, value: &str) -> Result<f64, FaultsError> {
    let (number, whole) = match value.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (value, 1.0),
    };
    let probability = number.parse::<f64>().map(|it| it / whole);
    match probability {
        Ok(it) if (0.0..=1.0).contains(&it) => Ok(it),
        _ => Err(FaultsError::of(part, remedy::PROBABILITY)),
    }
}

/// `1%` or `1%/8`: a probability, and the mean length of a burst in packets, 0 if each is lost by itself.
pub fn loss(part: &str, value: &str) -> Result<(f64, u32), FaultsError> {
    let Some((share, burst)) = value.split_once('/') else {
        return Ok((probability(part, value)?, 0));
    };
    let share = probability(part, share.trim())?;
    let wrong = || FaultsError::of(part, remedy::BURST);
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

/// `10us`.
pub fn time_ns(part: &str, value: &str) -> Result<u64, FaultsError> {
    let wrong = || FaultsError::of(part, remedy::TIME);
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

/// `1%` or `100us`.
pub fn mark(part: &str, value: &str) -> Result<Mark, FaultsError> {
    probability(part, value)
        .map(Mark::Share)
        .or_else(|_| time_ns(part, value).map(Mark::AfterNs))
        .map_err(|_| FaultsError::of(part, remedy::MARK))
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
        Err(FaultsError::of(part, remedy::JITTER))
    }
}

/// `2s+500ms`.
pub fn period(part: &str, value: &str) -> Result<Period, FaultsError> {
    let wrong = || FaultsError::of(part, remedy::PERIOD);
    let (after, lasts) = value.split_once('+').ok_or_else(wrong)?;
    Ok(Period {
        after_ns: time_ns(part, after.trim()).map_err(|_| wrong())?,
        lasts_ns: time_ns(part, lasts.trim()).map_err(|_| wrong())?,
    })
}

/// `ack#3`.
pub fn nth_packet(part: &str, value: &str) -> Result<NthPacket, FaultsError> {
    let wrong = || FaultsError::of(part, remedy::NTH);
    let (name, number) = value.split_once('#').ok_or_else(wrong)?;
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|(known, _)| *known == name.trim());
    let (_, kind) = *kind.ok_or_else(wrong)?;
    match number.trim().parse() {
        Ok(number) if number > 0 => Ok(NthPacket { kind, number }),
        _ => Err(wrong()),
    }
}

/// `10G`.
pub fn rate_bits_per_s(part: &str, value: &str) -> Result<f64, FaultsError> {
    let unit = RATES.iter().find(|(name, _)| value.ends_with(*name));
    let (number, unit) = match unit {
        Some((name, unit)) => (value.trim_end_matches(*name), *unit),
        None => (value, 1.0),
    };
    match number.trim().parse::<f64>().map(|it| it * unit) {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err(FaultsError::of(part, remedy::RATE)),
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
