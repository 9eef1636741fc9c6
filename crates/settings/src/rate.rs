//! How much a flow is to offer: as much as completes (a closed loop), or at a rate that completions do not change (an
//! open loop), and how planned times follow each other then.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::as_text;
use super::words::words;

words! {
    /// How the planned times of an open loop follow each other.
    Arrivals {
        /// Independently of each other: the gaps are exponential.
        Poisson = "poisson",
        /// At the same distance.
        Fixed = "fixed",
    }
}

/// What a flow offers, as text in files and on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Rate {
    /// A completion posts the next message.
    #[default]
    Closed,
    /// So many messages a second.
    Messages(u64),
    /// So many payload bits a second.
    Bits(u64),
    /// A share of the messages that a closed loop moves with the same settings, in parts of [`Rate::WHOLE`].
    Share(u32),
}

/// Why a text is no rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum RateError {
    #[error(
        "`{0}` is not a rate: write messages a second (200k, 2M), payload bits a second (10Gb), a share of the closed \
         loop's maximum (50%), or `closed`"
    )]
    Syntax(String),
    #[error("`{0}` is not above 0: the least is 1 message a second, 1 bit a second, or 0.01%")]
    Zero(String),
    #[error(
        "`{0}` is more than the closed loop's maximum: give at most 100%, or a rate in messages or bits"
    )]
    AboveMaximum(String),
    #[error("`{0}` is more than any device can do: the most is 1000G messages and 1000000Gb")]
    TooMuch(String),
}

/// Decimal units, largest first.
const UNITS: [(u64, char); 3] = [(1_000_000_000, 'G'), (1_000_000, 'M'), (1_000, 'k')];

/// The most messages a second.
const MOST_MESSAGES: u64 = 1_000_000_000_000;

/// The most bits a second.
const MOST_BITS: u64 = 1_000_000_000_000_000;

impl Rate {
    /// Parts of the closed loop's maximum, 100 %.
    pub const WHOLE: u32 = 10_000;

    /// Whether completions post the next message.
    pub fn is_closed(self) -> bool {
        self == Rate::Closed
    }

    /// The share of the closed loop's maximum, 0 to 1; `None` where it is none.
    pub fn share(self) -> Option<f64> {
        match self {
            Rate::Share(parts) => Some(f64::from(parts) / f64::from(Rate::WHOLE)),
            _ => None,
        }
    }

    /// Messages a second, of `mean_bytes` each; `None` for a closed loop and for a share, which is not known without
    /// the closed loop.
    pub fn messages_per_second(self, mean_bytes: f64) -> Option<f64> {
        match self {
            Rate::Messages(messages) => Some(messages as f64),
            Rate::Bits(bits) => Some(bits as f64 / (mean_bytes.max(1.0) * 8.0)),
            Rate::Closed | Rate::Share(_) => None,
        }
    }
}

/// A positive decimal number with at most `digits` digits after the point, in units of the last of them.
fn decimal(text: &str, digits: u32) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = [whole, part].iter().all(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    if whole.is_empty() || !are_digits || text.ends_with('.') {
        return None;
    }
    let fraction = part.trim_end_matches('0');
    let missing = digits.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let scale = 10u64.checked_pow(digits)?;
    let units: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(units * 10u64.pow(missing))
}

/// A number with a unit, as `1.5M`.
fn with_unit(text: &str) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let known = UNITS.iter().find(|(_, letter)| *letter == unit || (unit == 'K' && *letter == 'k'));
    match known {
        Some((factor, _)) => decimal(&text[..text.len() - 1], factor.ilog10()),
        None => decimal(text, 0),
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        if text == "closed" {
            return Ok(Rate::Closed);
        }
        if let Some(share) = text.strip_suffix('%') {
            let parts =
                decimal(share.trim_end(), 2).ok_or_else(|| RateError::Syntax(text.to_owned()))?;
            return match u32::try_from(parts) {
                Ok(0) => Err(RateError::Zero(text.to_owned())),
                Ok(parts) if parts <= Rate::WHOLE => Ok(Rate::Share(parts)),
                _ => Err(RateError::AboveMaximum(text.to_owned())),
            };
        }
        let (number, is_bits) = match text.strip_suffix('b') {
            Some(number) => (number, true),
            None => (text, false),
        };
        let value = with_unit(number).ok_or_else(|| RateError::Syntax(text.to_owned()))?;
        let most = if is_bits { MOST_BITS } else { MOST_MESSAGES };
        match value {
            0 => Err(RateError::Zero(text.to_owned())),
            value if value > most => Err(RateError::TooMuch(text.to_owned())),
            bits if is_bits => Ok(Rate::Bits(bits)),
            messages => Ok(Rate::Messages(messages)),
        }
    }
}

/// The shortest text that [`Rate::from_str`] reads back: `1.5M`, `1234567`.
fn short(value: u64) -> String {
    for (factor, unit) in UNITS {
        // At most three digits after the point.
        if value >= factor && value.is_multiple_of(factor / 1_000) {
            let (whole, part) = (value / factor, value % factor / (factor / 1_000));
            let text = format!("{whole}.{part:03}");
            return format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    value.to_string()
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Rate::Closed => "closed".to_owned(),
            Rate::Messages(messages) => short(*messages),
            Rate::Bits(bits) => format!("{}b", short(*bits)),
            Rate::Share(parts) => {
                let text = format!("{}.{:02}", parts / 100, parts % 100);
                format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
            }
        };
        f.pad(&text)
    }
}

as_text!(Rate, {
    "type": "string",
    "description": "`closed`, messages a second as `2M`, payload bits a second as `10Gb`, or a share of the closed loop's maximum as `50%`"
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_are_read_and_written_shortly() {
        for (text, rate, told) in [
            ("closed", Rate::Closed, "closed"),
            ("2M", Rate::Messages(2_000_000), "2M"),
            ("1.5M", Rate::Messages(1_500_000), "1.5M"),
            ("1500K", Rate::Messages(1_500_000), "1.5M"),
            ("1234567", Rate::Messages(1_234_567), "1234.567k"),
            ("7", Rate::Messages(7), "7"),
            ("10Gb", Rate::Bits(10_000_000_000), "10Gb"),
            ("2.5Mb", Rate::Bits(2_500_000), "2.5Mb"),
            ("800b", Rate::Bits(800), "800b"),
            ("50%", Rate::Share(5_000), "50%"),
            ("100%", Rate::Share(10_000), "100%"),
            ("0.05%", Rate::Share(5), "0.05%"),
            ("12.50%", Rate::Share(1_250), "12.5%"),
        ] {
            assert_eq!(text.parse(), Ok(rate), "{text}");
            assert_eq!(rate.to_string(), told);
        }
    }

    #[test]
    fn what_is_no_rate_is_said() {
        let refused = |texts: &str, error: fn(String) -> RateError| {
            for text in texts.split(' ') {
                assert_eq!(text.parse::<Rate>(), Err(error(text.into())), "{text}");
            }
        };
        refused("fast -1 1e6 10GB 5%% 1.0001k % .5M 2. 1..2 M 1é", RateError::Syntax);
        refused("0 0M 0b 0% 0.00%", RateError::Zero);
        refused("110% 100.01% 99999999999%", RateError::AboveMaximum);
        refused("1001G 1000001Gb", RateError::TooMuch);
        for text in ["", "5 %%"] {
            assert_eq!(text.parse::<Rate>(), Err(RateError::Syntax(text.into())));
        }
    }

    #[test]
    fn bits_are_messages_of_their_size() {
        let rate = Rate::Bits(8_000_000);
        assert_eq!(rate.messages_per_second(1_000.0), Some(1_000.0));
        assert_eq!(Rate::Messages(5).messages_per_second(64.0), Some(5.0));
        assert_eq!(Rate::Share(1).messages_per_second(64.0), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in 1..MOST_MESSAGES, parts in 1..=Rate::WHOLE) {
            for rate in [Rate::Messages(value), Rate::Bits(value), Rate::Share(parts)] {
                prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            }
        }
    }
}
