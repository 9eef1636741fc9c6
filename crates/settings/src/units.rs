//! Quantities as people write them: spans of time (`5s`, `500ms`, `1.5s`, `2m`, where a bare number is seconds, exact to
//! the nanosecond), sizes in bytes (`64`, `4K`, `64KiB`, `1M`), and rates (`2M` messages a second, `10Gb`, `50%`).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::text::as_text;

/// A span of time in whole nanoseconds, at most [`TimeSpan::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct TimeSpan(u64);

const SECOND_NS: u64 = 1_000_000_000;

/// Unit names and their nanoseconds.
const TIME_UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    // The micro sign and the Greek letter look alike.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
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

    /// The span in nanoseconds, at most those of [`TimeSpan::MAX`].
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
    /// The span in seconds, with its fraction.
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
            unit => TIME_UNITS
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

/// A number of bytes, at most [`Size::MAX`]; 0 is allowed here and refused where it makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size(u32);

/// Binary units, largest first: K is 1024, as in perftest and fio.
const SIZE_UNITS: [(u32, &str, &str); 3] =
    [(1 << 30, "GiB", "G"), (1 << 20, "MiB", "M"), (1 << 10, "KiB", "K")];

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum SizeError {
    #[error("`{0}` is not a size: write bytes, or 4K, 64KiB, 1M (K = 1024)")]
    Syntax(String),
    /// KB, MB and GB mean 1000 to some and 1024 to others.
    #[error("`{0}` is ambiguous: K, M, G (or KiB, MiB, GiB) count in 1024s, bytes have no unit")]
    Ambiguous(String),
    #[error("`{0}` is not an amount of memory")]
    NoMemory(String),
    #[error("`{0}` is more than one message can be: 2147483647 bytes (2 GiB - 1)")]
    TooLarge(String),
}

impl Size {
    /// The most that one message can be: 2 GiB - 1, as perftest's. Packets have room for one byte more (`DMALen` is 32 bits
    /// wide, and the specification ends at 2^31).
    pub const MAX: Size = Size((1 << 31) - 1);

    /// `bytes` as a size; `None` above [`Size::MAX`].
    pub fn from_bytes(bytes: u32) -> Option<Size> {
        (bytes <= Self::MAX.0).then_some(Size(bytes))
    }

    /// The size in bytes, at most those of [`Size::MAX`].
    pub fn bytes(self) -> u32 {
        self.0
    }
}

/// A number of bytes of memory, with the units of a [`Size`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySize(pub u64);

impl FromStr for MemorySize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let bytes = bytes(text)?;
        bytes
            .filter(|bytes| *bytes > 0)
            .map(MemorySize)
            .ok_or_else(|| SizeError::NoMemory(text.to_owned()))
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        bytes(text)?
            .and_then(|bytes| u32::try_from(bytes).ok())
            .and_then(Size::from_bytes)
            .ok_or_else(|| SizeError::TooLarge(text.to_owned()))
    }
}

/// The bytes that a text says; `None` beyond 64 bits.
pub(crate) fn bytes(text: &str) -> Result<Option<u64>, SizeError> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit_bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" | "mb" | "gb" => return Err(SizeError::Ambiguous(text.to_owned())),
        unit => SIZE_UNITS
            .iter()
            .find(|(_, long, short)| {
                unit.eq_ignore_ascii_case(long) || unit.eq_ignore_ascii_case(short)
            })
            .map(|(bytes, ..)| u64::from(*bytes))
            .ok_or_else(|| SizeError::Syntax(text.to_owned()))?,
    };
    if digits.is_empty() {
        return Err(SizeError::Syntax(text.to_owned()));
    }
    let count = digits.parse::<u64>().ok();
    Ok(count.and_then(|count| count.checked_mul(unit_bytes)))
}

impl fmt::Display for Size {
    /// In the largest binary unit that leaves a whole number, as [`MemorySize`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        MemorySize(self.0.into()).fmt(f)
    }
}

impl fmt::Display for MemorySize {
    /// The exact size in the largest unit that divides it: `64KiB`, `1500B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = SIZE_UNITS
            .iter()
            .map(|(unit_bytes, name, _)| (u64::from(*unit_bytes), name))
            .find(|(unit_bytes, _)| self.0 != 0 && self.0.is_multiple_of(*unit_bytes))
            .map_or_else(
                || format!("{}B", self.0),
                |(unit_bytes, name)| format!("{}{name}", self.0 / unit_bytes),
            );
        f.pad(&text)
    }
}

/// How much a flow is to offer: as much as completes (a closed loop), or at a rate that completions do not change (an
/// open loop). It is text in files and on the wire.
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

/// Factors of 1000 with their letters, largest first: rates are decimal, sizes are not.
const RATE_UNITS: [(u64, char); 3] = [(1_000_000_000, 'G'), (1_000_000, 'M'), (1_000, 'k')];

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
    let known =
        RATE_UNITS.iter().find(|(_, letter)| *letter == unit || (unit == 'K' && *letter == 'k'));
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
    for (factor, unit) in RATE_UNITS {
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
    fn every_spelling_of_a_time_is_read() {
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
            ("10\u{b5}s", 10_000),
            ("10\u{3bc}s", 10_000),
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

    #[test]
    fn every_spelling_of_a_size_is_read() {
        for (text, bytes) in [
            ("0", 0),
            ("64", 64),
            ("64B", 64),
            ("4K", 4096),
            ("4k", 4096),
            ("64KiB", 65536),
            ("64kib", 65536),
            ("1M", 1 << 20),
            ("1G", 1 << 30),
            ("2147483647", (1 << 31) - 1),
        ] {
            assert_eq!(text.parse::<Size>().map(Size::bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "K", "-1", "+4", "4 K", "1.5K", "4X", "0x10", "٣"] {
            let read = text.parse::<Size>();
            assert!(matches!(read, Err(SizeError::Syntax(_))), "{text}");
        }
        assert!(matches!("4KB".parse::<Size>(), Err(SizeError::Ambiguous(_))));
        for text in "2G 2147483648 18446744073709551616 18446744073709551615G".split(' ') {
            let read = text.parse::<Size>();
            assert!(matches!(read, Err(SizeError::TooLarge(_))), "{text}");
        }
    }

    #[test]
    fn sizes_read_well() {
        for (bytes, text) in
            [(0, "0B"), (64, "64B"), (1500, "1500B"), (65536, "64KiB"), (1 << 30, "1GiB")]
        {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_printed_size_is_read_back(bytes in 0..=Size::MAX.0, shift in 0u32..20) {
            let size = Size(bytes >> shift << shift);
            prop_assert_eq!(size.to_string().parse::<Size>(), Ok(size));
        }
    }

    #[test]
    fn rates_are_read_and_written_shortly() {
        for (text, rate, shortest) in [
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
            assert_eq!(rate.to_string(), shortest);
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
