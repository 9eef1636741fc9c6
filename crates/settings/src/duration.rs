//! Spans of time as people write them: `5s`, `500ms`, `1.5s`, `2m`; a bare number is seconds. Exact to the nanosecond.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A span of time in whole nanoseconds, at most [`TimeSpan::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct TimeSpan(u64);

const SECOND_NS: u64 = 1_000_000_000;

/// Unit names and their nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND_NS),
    ("m", 60 * SECOND_NS),
    ("h", 3_600 * SECOND_NS),
];

/// Why a text is no span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum TimeSpanError {
    #[error("`{0}` is not a time: write 5s, 500ms, 1.5s or 2m; a bare number is seconds")]
    Syntax(String),
    #[error("`{0}` is more than 30 days")]
    TooLong(String),
}

impl TimeSpan {
    /// The longest span that is accepted: 30 days. Sums over a whole sweep then fit easily.
    pub const MAX: TimeSpan = TimeSpan(30 * 24 * 3_600 * SECOND_NS);

    /// How long a measurement is when nothing is asked for: 5 s.
    pub(crate) const USUAL: TimeSpan = TimeSpan(5 * SECOND_NS);

    /// `ns` nanoseconds; `None` above [`TimeSpan::MAX`].
    pub fn from_ns(ns: u64) -> Option<TimeSpan> {
        (ns <= Self::MAX.0).then_some(TimeSpan(ns))
    }

    /// In nanoseconds.
    pub fn ns(self) -> u64 {
        self.0
    }
}

impl From<TimeSpan> for Duration {
    fn from(span: TimeSpan) -> Duration {
        Duration::from_nanos(span.0)
    }
}

impl From<TimeSpan> for f64 {
    /// In seconds.
    fn from(span: TimeSpan) -> f64 {
        span.0 as f64 / 1e9
    }
}

impl TryFrom<f64> for TimeSpan {
    type Error = TimeSpanError;

    fn try_from(seconds: f64) -> Result<Self, TimeSpanError> {
        let ns = (seconds * 1e9).round();
        // The comparison refuses what is no number, too.
        if (0.0..=Self::MAX.0 as f64).contains(&ns) {
            Ok(TimeSpan(ns as u64))
        } else {
            Err(TimeSpanError::TooLong(seconds.to_string()))
        }
    }
}

impl JsonSchema for TimeSpan {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// `digits` after the point, as nanoseconds of a unit; what is below a nanosecond is dropped.
fn fraction_ns(digits: &str, unit_ns: u64) -> u64 {
    let mut rest = u128::from(unit_ns);
    let mut divisor = 1u128;
    let mut value = 0u128;
    // 18 digits are finer than a nanosecond of an hour, and no product overflows.
    for digit in digits.bytes().take(18) {
        divisor *= 10;
        value = value * 10 + u128::from(digit - b'0');
    }
    rest *= value;
    u64::try_from(rest / divisor).unwrap_or(u64::MAX)
}

impl FromStr for TimeSpan {
    type Err = TimeSpanError;

    fn from_str(text: &str) -> Result<Self, TimeSpanError> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit_ns = match unit {
            "" => SECOND_NS,
            unit => UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .map(|(_, ns)| *ns)
                .ok_or_else(|| TimeSpanError::Syntax(text.to_owned()))?,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(TimeSpanError::Syntax(text.to_owned()));
        }
        whole
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit_ns))
            .and_then(|ns| ns.checked_add(fraction_ns(fraction, unit_ns)))
            .and_then(TimeSpan::from_ns)
            .ok_or_else(|| TimeSpanError::TooLong(text.to_owned()))
    }
}

impl fmt::Display for TimeSpan {
    /// Exact, in seconds from one second on: `90s`, `1.5s`, `500ms`, `250us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit_ns) = match self.0 {
            0 => ("s", SECOND_NS),
            1..1_000 => ("ns", 1),
            1_000..1_000_000 => ("us", 1_000),
            1_000_000..SECOND_NS => ("ms", 1_000_000),
            _ => ("s", SECOND_NS),
        };
        let (whole, rest) = (self.0 / unit_ns, self.0 % unit_ns);
        let text = if rest == 0 {
            format!("{whole}{name}")
        } else {
            let width = unit_ns.ilog10() as usize;
            let fraction = format!("{rest:0width$}");
            format!("{whole}.{}{name}", fraction.trim_end_matches('0'))
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_is_read() {
        for (text, ns) in [
            ("5s", 5 * SECOND_NS),
            ("500ms", SECOND_NS / 2),
            ("2m", 120 * SECOND_NS),
            ("1.5s", 1_500_000_000),
            ("3", 3 * SECOND_NS),
            ("0.25", SECOND_NS / 4),
            ("0", 0),
            ("1h", 3_600 * SECOND_NS),
            ("10us", 10_000),
            ("10µs", 10_000),
            ("7ns", 7),
            ("0.5m", 30 * SECOND_NS),
            ("1.9ns", 1),
            ("0.00000000000000000000000000000000000000000000001h", 0),
        ] {
            assert_eq!(text.parse::<TimeSpan>().map(TimeSpan::ns), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "s", ".5s", "5.s", "1.2.3", "-1s", "5 s", "5x", "1e3", "5S"] {
            let read = text.parse::<TimeSpan>();
            assert!(matches!(read, Err(TimeSpanError::Syntax(_))), "{text}");
        }
        for text in ["721h", "99999999999999999999", "18446744073709551615h"] {
            let read = text.parse::<TimeSpan>();
            assert!(matches!(read, Err(TimeSpanError::TooLong(_))), "{text}");
        }
    }

    #[test]
    fn times_read_well() {
        for (ns, text) in [
            (0, "0s"),
            (500_000_000, "500ms"),
            (1_500_000_000, "1.5s"),
            (90 * SECOND_NS, "90s"),
            (1_050, "1.05us"),
        ] {
            assert_eq!(TimeSpan(ns).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_printed_time_is_read_back(ns in 0..=TimeSpan::MAX.0, scale in 0u32..15) {
            let span = TimeSpan(ns / 10u64.pow(scale));
            prop_assert_eq!(span.to_string().parse::<TimeSpan>(), Ok(span));
        }
    }
}
