//! Deliberate faults and their text: `seed=7,drop=5%,duplicate=1%,reorder=1%,corrupt=0.1%,delay=10us,rate=10G`.
//! With `peer=ADDRESS` they are of packets to and from that address alone.
//!
//! A name applies to both directions, or with `tx.` or `rx.` before it to one. `delay` and `rate` without prefix
//! apply to sending only: a packet between two such devices passes both directions, and would be delayed twice.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Deliberate faults. The same seed and the same packets give the same faults.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Faults of sent packets.
    pub transmit: Direction,
    /// Faults of received packets.
    pub receive: Direction,
    /// The only address to and from which packets meet them; `None` for all.
    pub peer: Option<IpAddr>,
}

/// The faults of one direction; probabilities are from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Direction {
    /// Probability that a packet is lost.
    pub drop: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet arrives after some later ones.
    pub reorder: f64,
    /// Probability that a bit of a packet is flipped, where the CRC covers it.
    pub corrupt: f64,
    /// Delay of every packet.
    pub delay_ns: u64,
    /// Rate of the link: bits of UDP payload and of IP and UDP headers, 28 bytes a packet (IPv6: 48).
    pub rate_bits_per_s: Option<f64>,
}

impl Direction {
    /// Whether there are any faults.
    pub fn is_faulty(&self) -> bool {
        *self != Direction::default()
    }
}

/// An invalid text of [`Faults`]. Each error names the part and the right form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultsError {
    /// There is no `=`.
    #[error("`{0}` has no value: write it as in `drop=5%`")]
    NoValue(String),
    /// Unknown name.
    #[error(
        "`{0}` is no fault: there are seed, peer, drop, duplicate, reorder, corrupt, delay and rate, all but seed \
         and peer also for one direction, as in `tx.drop=5%` or `rx.drop=5%`"
    )]
    Name(String),
    /// Not a number from 0 to 1.
    #[error("`{0}` is no probability: give one from 0% to 100%, or from 0 to 1")]
    Probability(String),
    /// Not a time.
    #[error("`{0}` is no time: give a number and its unit, ns, us, ms or s, as in `delay=10us`")]
    Time(String),
    /// Not a rate.
    #[error("`{0}` is no rate: give bits a second above 0, as in `rate=10G` or `rate=250M`")]
    Rate(String),
    /// Not a whole number.
    #[error("`{0}` is no seed: give a whole number from 0 to 2^64 - 1")]
    Seed(String),
    /// Not an IP address.
    #[error("`{0}` is no address: give the IP address of the other device, as in `peer=10.0.0.7`")]
    Peer(String),
}

const TIMES: [(&str, u64); 4] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];
const RATES: [(char, f64); 3] = [('K', 1e3), ('M', 1e6), ('G', 1e9)];

impl FromStr for Faults {
    type Err = FaultsError;

    /// An empty text or `none` means no faults.
    fn from_str(text: &str) -> Result<Faults, FaultsError> {
        let mut faults = Faults::default();
        if matches!(text.trim(), "" | "none") {
            return Ok(faults);
        }
        for part in text.split(',').map(str::trim) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| FaultsError::NoValue(part.to_owned()))?;
            faults.set(part, name.trim(), value.trim())?;
        }
        Ok(faults)
    }
}

impl Faults {
    fn set(&mut self, part: &str, name: &str, value: &str) -> Result<(), FaultsError> {
        let unknown = || FaultsError::Name(part.to_owned());
        if name == "seed" {
            let seed = value.parse();
            self.seed = seed.map_err(|_| FaultsError::Seed(part.to_owned()))?;
            return Ok(());
        }
        if name == "peer" {
            let peer = value.parse::<IpAddr>();
            let peer = peer.map_err(|_| FaultsError::Peer(part.to_owned()))?;
            self.peer = Some(peer.to_canonical());
            return Ok(());
        }
        let (prefix, kind) = name.split_once('.').unwrap_or(("", name));
        let (transmit, receive) = match (prefix, kind) {
            ("tx", _) | ("", "delay" | "rate") => (true, false),
            ("rx", _) => (false, true),
            ("", _) => (true, true),
            _ => return Err(unknown()),
        };
        let mut directions = Vec::new();
        if transmit {
            directions.push(&mut self.transmit);
        }
        if receive {
            directions.push(&mut self.receive);
        }
        for direction in directions {
            match kind {
                "drop" => direction.drop = probability(part, value)?,
                "duplicate" => direction.duplicate = probability(part, value)?,
                "reorder" => direction.reorder = probability(part, value)?,
                "corrupt" => direction.corrupt = probability(part, value)?,
                "delay" => direction.delay_ns = time_ns(part, value)?,
                "rate" => direction.rate_bits_per_s = Some(rate_bits_per_s(part, value)?),
                _ => return Err(unknown()),
            }
        }
        Ok(())
    }
}

fn probability(part: &str, value: &str) -> Result<f64, FaultsError> {
    let (number, whole) = match value.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (value, 1.0),
    };
    let probability = number.parse::<f64>().map(|it| it / whole);
    match probability {
        Ok(it) if (0.0..=1.0).contains(&it) => Ok(it),
        _ => Err(FaultsError::Probability(part.to_owned())),
    }
}

fn time_ns(part: &str, value: &str) -> Result<u64, FaultsError> {
    let wrong = || FaultsError::Time(part.to_owned());
    let letters = value.find(char::is_alphabetic).ok_or_else(wrong)?;
    let (number, unit) = value.split_at(letters);
    let number = number.trim();
    let (_, unit_ns) = TIMES
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(*unit_ns).ok_or_else(wrong);
    }
    let ns = number.parse::<f64>().map_err(|_| wrong())? * *unit_ns as f64;
    match (0.0..1e18).contains(&ns) {
        true => Ok(ns.round() as u64),
        false => Err(wrong()),
    }
}

fn rate_bits_per_s(part: &str, value: &str) -> Result<f64, FaultsError> {
    let unit = RATES.iter().find(|(name, _)| value.ends_with(*name));
    let (number, unit) = match unit {
        Some((name, unit)) => (value.trim_end_matches(*name), *unit),
        None => (value, 1.0),
    };
    match number.trim().parse::<f64>().map(|it| it * unit) {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err(FaultsError::Rate(part.to_owned())),
    }
}

impl fmt::Display for Faults {
    /// A text that parses to the same faults.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Faults::default() {
            return to.write_str("none");
        }
        write!(to, "seed={}", self.seed)?;
        let (tx, rx) = (&self.transmit, &self.receive);
        for (name, tx, rx) in [
            ("drop", tx.drop, rx.drop),
            ("duplicate", tx.duplicate, rx.duplicate),
            ("reorder", tx.reorder, rx.reorder),
            ("corrupt", tx.corrupt, rx.corrupt),
        ] {
            if tx == rx && tx > 0.0 {
                write!(to, ",{name}={tx}")?;
                continue;
            }
            for (prefix, probability) in [("tx", tx), ("rx", rx)] {
                if probability > 0.0 {
                    write!(to, ",{prefix}.{name}={probability}")?;
                }
            }
        }
        for (prefix, direction) in [("tx", tx), ("rx", rx)] {
            if direction.delay_ns > 0 {
                let mut units = TIMES.iter().rev();
                let fits = units.find(|(_, unit_ns)| direction.delay_ns % unit_ns == 0);
                let (unit, unit_ns) = fits.unwrap_or(&("ns", 1));
                write!(to, ",{prefix}.delay={}{unit}", direction.delay_ns / unit_ns)?;
            }
            if let Some(rate) = direction.rate_bits_per_s {
                let mut units = RATES.iter().rev();
                match units.find(|(_, unit)| rate / unit >= 1.0 && rate / unit * unit == rate) {
                    Some((name, unit)) => write!(to, ",{prefix}.rate={}{name}", rate / unit)?,
                    None => write!(to, ",{prefix}.rate={rate}")?,
                }
            }
        }
        match self.peer {
            Some(peer) => write!(to, ",peer={peer}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_alone_is_both_directions_but_for_the_link() {
        let faults: Faults =
            "seed=7, drop=5%,duplicate=0.01,tx.reorder=1%,rx.corrupt=0.1%,delay=1.5us,rate=10G"
                .parse()
                .unwrap();
        let both = Direction {
            drop: 0.05,
            duplicate: 0.01,
            ..Direction::default()
        };
        let transmit = Direction {
            reorder: 0.01,
            delay_ns: 1500,
            rate_bits_per_s: Some(1e10),
            ..both
        };
        let receive = Direction {
            corrupt: 0.001,
            ..both
        };
        assert_eq!((faults.seed, faults.transmit), (7, transmit));
        assert_eq!(faults.receive, receive);
        assert_eq!("".parse(), Ok(Faults::default()));
        assert_eq!(
            faults.to_string(),
            "seed=7,drop=0.05,duplicate=0.01,tx.reorder=0.01,rx.corrupt=0.001,tx.delay=1500ns,tx.rate=10G"
        );
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

    #[test]
    fn errors_name_the_part() {
        for (text, part, remedy) in [
            ("drop=5%,dorp=1%", "`dorp=1%`", "drop, duplicate"),
            ("zx.drop=1%", "`zx.drop=1%`", "tx.drop"),
            ("tx.seed=1", "`tx.seed=1`", "all but seed"),
            ("rx.peer=::1", "`rx.peer=::1`", "and peer"),
            ("peer=node7", "`peer=node7`", "peer=10.0.0.7"),
            (
                "peer=10.0.0.7:4791",
                "`peer=10.0.0.7:4791`",
                "peer=10.0.0.7",
            ),
            ("drop", "`drop`", "drop=5%"),
            ("drop=101%", "`drop=101%`", "0% to 100%"),
            ("drop=-1%", "`drop=-1%`", "0% to 100%"),
            ("drop=NaN", "`drop=NaN`", "0% to 100%"),
            ("delay=5", "`delay=5`", "delay=10us"),
            ("delay=-5us", "`delay=-5us`", "delay=10us"),
            ("delay=99999999999999s", "`delay=99999999999999s`", "unit"),
            ("rate=0", "`rate=0`", "above 0"),
            ("rate=fast", "`rate=fast`", "rate=10G"),
            ("seed=1.5", "`seed=1.5`", "whole number"),
            ("drop=1%,", "``", "drop=5%"),
        ] {
            let message = text.parse::<Faults>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.contains(remedy), "{text}: {message}");
        }
    }

    fn directions() -> impl Strategy<Value = Direction> {
        let often_none = || prop_oneof![Just(0.0), 0.0..=1.0];
        let rates = prop_oneof![
            Just(None),
            (1..u64::MAX).prop_map(|it| Some(it as f64 / 1000.0)),
            (1..1000_u64).prop_map(|it| Some(it as f64 * 1e6)),
        ];
        let delays = prop_oneof![
            Just(0),
            any::<u64>(),
            (0..1000_u64).prop_map(|it| it * 1000)
        ];
        let probabilities = (often_none(), often_none(), often_none(), often_none());
        (probabilities, delays, rates).prop_map(
            |((drop, duplicate, reorder, corrupt), delay_ns, rate_bits_per_s)| Direction {
                drop,
                duplicate,
                reorder,
                corrupt,
                delay_ns,
                rate_bits_per_s,
            },
        )
    }

    proptest! {
        #[test]
        fn the_text_is_read_back(
            seed: u64,
            transmit in directions(),
            other in directions(),
            same: bool,
            peer: Option<IpAddr>,
        ) {
            let receive = if same { transmit } else { other };
            let peer = peer.map(|it| it.to_canonical());
            let faults = Faults { seed, transmit, receive, peer };
            prop_assert_eq!(faults.to_string().parse(), Ok(faults));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-z.=,%0-9GKMs -]{0,40}") {
            if let Ok(faults) = text.parse::<Faults>() {
                prop_assert!((0.0..=1.0).contains(&faults.transmit.drop));
            }
        }
    }
}
