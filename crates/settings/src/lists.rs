//! Settings that are lists: numbers for QPs; weights of message sizes and of groups of QPs, and the order in which weights
//! take turns; and ranges in lists, as `64..64K` for 64, 128, 256 … 64K.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::as_text;
use super::units::{Size, bytes};

/// The most entries of one list.
const MOST_ENTRIES: usize = 16;

/// The most that weights add up to once they have no common divisor: after so many turns, their order repeats.
const MOST_TURNS: u32 = 1_000;

/// Why a text gives no weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum WeightsError {
    #[error(
        "`{0}` has no weight: write 64:9,64K:1 for nine messages of 64 bytes and one of 64 KiB in ten"
    )]
    NoSize(String),
    #[error(
        "`{0}` has no weight: write 4:90,60:10 for 4 QPs that share 90 of 100 messages, and 60 that share 10"
    )]
    NoGroup(String),
    #[error("2 to {MOST_ENTRIES} entries are needed, not {0}")]
    Entries(usize),
    #[error("{0}")]
    Size(String),
    #[error("{0} is listed twice")]
    Twice(Size),
    #[error("`{0}` is not a number from 1 to 1000000")]
    Number(String),
    #[error(
        "the weights repeat after {0} messages: choose weights that add up to at most {MOST_TURNS}"
    )]
    TooLong(u64),
}

/// Message sizes in bytes, each with its weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SizeMix(Vec<(Size, u32)>);

/// Groups of QPs, each with its number of QPs and its share of the messages, in order of the QPs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QpWeights(Vec<(u32, u32)>);

impl SizeMix {
    /// Sizes in bytes and weights.
    pub fn sizes(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().map(|(size, weight)| (size.bytes(), *weight))
    }

    /// The largest size, in bytes.
    pub fn largest_bytes(&self) -> u32 {
        self.sizes().map(|(bytes, _)| bytes).max().unwrap_or(0)
    }

    /// Messages after which the order of sizes repeats.
    pub fn period(&self) -> u32 {
        let weights = self.0.iter().map(|(_, weight)| i64::from(*weight));
        SmoothTurns::new(weights).period() as u32
    }

    /// The size of each message in turn, in bytes, until the order repeats: by smooth weighted round robin.
    pub fn order(&self) -> Vec<u32> {
        let weights = self.0.iter().map(|(_, weight)| i64::from(*weight));
        let mut turns = SmoothTurns::new(weights);
        (0..turns.period()).filter_map(|_| Some(self.0.get(turns.next_turn())?.0.bytes())).collect()
    }
}

impl QpWeights {
    /// Numbers of QPs, and the share that each such group has together.
    pub fn groups(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().copied()
    }

    /// What each QP is to get over an even share, in order of the QPs.
    pub fn shares(&self) -> Vec<f64> {
        let sum: f64 = self.groups().map(|(_, weight)| f64::from(weight)).sum();
        let even = sum / self.qps() as f64;
        self.groups()
            .flat_map(|(qps, weight)| {
                let each = f64::from(weight) / f64::from(qps) / even;
                std::iter::repeat_n(each, qps as usize)
            })
            .collect()
    }

    /// How many QPs all groups have together.
    pub fn qps(&self) -> u64 {
        self.0.iter().map(|(qps, _)| u64::from(*qps)).sum()
    }
}

/// Smooth weighted round robin: each turn adds to every entry its weight, and takes the sum of weights from the entry
/// that has the most, whose turn it is. An entry's turns are spread out evenly over those of the others.
#[derive(Clone, Debug, Default)]
pub struct SmoothTurns {
    /// Weight, and what the entry has.
    entries: Vec<(i64, i64)>,
    sum: i64,
}

impl SmoothTurns {
    /// For entries with these weights, which are not negative.
    pub fn new(weights: impl IntoIterator<Item = i64>) -> SmoothTurns {
        let entries: Vec<(i64, i64)> = weights.into_iter().map(|weight| (weight, 0)).collect();
        SmoothTurns { sum: entries.iter().map(|(weight, _)| weight).sum(), entries }
    }

    /// Turns after which the order repeats.
    pub fn period(&self) -> i64 {
        let divisor =
            self.entries.iter().map(|(weight, _)| weight.unsigned_abs()).fold(0, gcd).max(1);
        self.sum / divisor as i64
    }

    /// The entry whose turn is next; 0 where there is none.
    #[inline]
    pub fn next_turn(&mut self) -> usize {
        let (mut best, mut most) = (0, i64::MIN);
        for (index, (weight, has)) in self.entries.iter_mut().enumerate() {
            *has += *weight;
            if *has > most {
                (best, most) = (index, *has);
            }
        }
        if let Some((_, has)) = self.entries.get_mut(best) {
            *has -= self.sum;
        }
        best
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn weight(text: &str) -> Result<u32, WeightsError> {
    let number =
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    number
        .filter(|number| (1..=1_000_000).contains(number))
        .ok_or_else(|| WeightsError::Number(text.to_owned()))
}

/// Pairs with a colon, separated by commas.
fn entries<T>(
    text: &str,
    missing: fn(String) -> WeightsError,
    first: impl Fn(&str) -> Result<T, WeightsError>,
) -> Result<Vec<(T, u32)>, WeightsError> {
    let entries: Vec<(T, u32)> = text
        .split(',')
        .map(|entry| {
            let (name, share) = entry.split_once(':').ok_or_else(|| missing(entry.to_owned()))?;
            Ok((first(name)?, weight(share)?))
        })
        .collect::<Result<_, _>>()?;
    match entries.len() {
        2..=MOST_ENTRIES => Ok(entries),
        count => Err(WeightsError::Entries(count)),
    }
}

impl FromStr for SizeMix {
    type Err = WeightsError;

    fn from_str(text: &str) -> Result<Self, WeightsError> {
        let entries = entries(text, WeightsError::NoSize, |size| {
            let size =
                size.parse::<Size>().map_err(|error| WeightsError::Size(error.to_string()))?;
            match size.bytes() {
                0 => Err(WeightsError::Size("a message has at least 1 byte".into())),
                _ => Ok(size),
            }
        })?;
        for (index, (size, _)) in entries.iter().enumerate() {
            if entries.iter().take(index).any(|(other, _)| other == size) {
                return Err(WeightsError::Twice(*size));
            }
        }
        let weights = entries.iter().map(|(_, weight)| i64::from(*weight));
        match SmoothTurns::new(weights).period() {
            period if period <= i64::from(MOST_TURNS) => Ok(SizeMix(entries)),
            period => Err(WeightsError::TooLong(period.unsigned_abs())),
        }
    }
}

impl FromStr for QpWeights {
    type Err = WeightsError;

    fn from_str(text: &str) -> Result<Self, WeightsError> {
        entries(text, WeightsError::NoGroup, weight).map(QpWeights)
    }
}

fn write_entries<T: fmt::Display>(f: &mut fmt::Formatter<'_>, entries: &[(T, u32)]) -> fmt::Result {
    let texts: Vec<String> =
        entries.iter().map(|(first, weight)| format!("{first}:{weight}")).collect();
    f.pad(&texts.join(","))
}

impl fmt::Display for SizeMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_entries(f, &self.0)
    }
}

impl fmt::Display for QpWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_entries(f, &self.0)
    }
}

as_text!(SizeMix, { "type": "string" });
as_text!(QpWeights, { "type": "string" });

/// The most entries of one list.
const MOST_NUMBERS: usize = 4096;

/// A number for each QP; QPs beyond the last take them again from the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QpNumbers(Vec<u32>);

impl QpNumbers {
    /// The number of QP `index`.
    pub fn of_qp(&self, index: u32) -> u32 {
        let place = index as usize % self.0.len().max(1);
        self.0.get(place).copied().unwrap_or(0)
    }

    /// All, in the order in which they were given.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|&number| number.into())
    }
}

impl FromStr for QpNumbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text
            .split(',')
            .map(|item| {
                let read = match item.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => item.parse(),
                };
                read.map_err(|_| {
                    format!("`{item}` is not a number: write 1,2,3 or 0x1,0x2, one for each QP")
                })
            })
            .collect::<Result<Vec<u32>, _>>()?;
        if numbers.len() <= MOST_NUMBERS {
            Ok(QpNumbers(numbers))
        } else {
            Err(format!("the list has more than {MOST_NUMBERS} entries"))
        }
    }
}

impl fmt::Display for QpNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.pad(&words.join(","))
    }
}

as_text!(QpNumbers, {
    "type": "string",
    "description": "Numbers for QPs with commas between them; QPs beyond the last take them again from the first.",
});

/// The values of a range, each twice the one before it; the last is the range's end, even if it is less than twice the one
/// before. `None` if the text is no range of two whole numbers, or of sizes where `is_size`.
///
/// # Errors
/// Why such a range has no values.
pub(crate) fn doubled(text: &str, is_size: bool) -> Option<Result<Vec<String>, RangeError>> {
    let (first, last) = text.split_once("..")?;
    let (first, last) = (bound(first, is_size)?, bound(last, is_size)?);
    let reason = if first == 0 {
        Some("its values double, so it begins with 1 or more")
    } else if first > last {
        Some("its first value is the larger one")
    } else {
        None
    };
    if let Some(reason) = reason {
        return Some(Err(RangeError(text.to_owned(), reason)));
    }
    let doubles = std::iter::successors(Some(first), |value| value.checked_mul(2));
    let mut values: Vec<u64> = doubles.take_while(|value| *value < last).collect();
    values.push(last);
    Some(Ok(values.iter().map(u64::to_string).collect()))
}

/// A range as `1-64` has it, as it is to be written: `1..64`.
pub(crate) fn with_dots(text: &str, is_size: bool) -> Option<String> {
    let (first, last) = text.split_once('-')?;
    let are_bounds = bound(first, is_size).is_some() && bound(last, is_size).is_some();
    are_bounds.then(|| format!("{first}..{last}"))
}

fn bound(text: &str, is_size: bool) -> Option<u64> {
    if is_size {
        bytes(text).ok().flatten()
    } else {
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_whole)
    }
}

/// Why a range has no values: the range, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a range: {1}")]
pub struct RangeError(String, &'static str);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mixes_are_read_back() {
        let mix: SizeMix = "64:9,64K:1".parse().unwrap();
        assert_eq!(mix.to_string(), "64B:9,64KiB:1");
        assert_eq!(mix.to_string().parse(), Ok(mix.clone()));
        assert_eq!(mix.largest_bytes(), 65_536);
        let order = mix.order();
        assert_eq!(order.len(), 10);
        assert_eq!(order.iter().filter(|bytes| **bytes == 64).count(), 9);
        let groups: QpWeights = "4:90,60:10".parse().unwrap();
        assert_eq!((groups.qps(), &*groups.to_string()), (64, "4:90,60:10"));
    }

    #[test]
    fn what_is_no_mix_is_refused() {
        let mixes = "64 64:1 64:1, 64:1,64 64:0,1K:1 0:1,1K:1 64:1,64B:2 64:+1,1K:1 64:1,2G:1 64:1:1,1K:1 64:1,1K:1000";
        for text in mixes.split(' ').chain([""]) {
            assert!(text.parse::<SizeMix>().is_err(), "{text}");
        }
        let many: Vec<String> = (1..=17).map(|bytes| format!("{bytes}:1")).collect();
        let error = many.join(",").parse::<SizeMix>();
        assert_eq!(error, Err(WeightsError::Entries(17)));
        for text in ["4", "4:1", "0:1,1:1", "4:0,1:1", "4:1,,1:1"] {
            assert!(text.parse::<QpWeights>().is_err(), "{text}");
        }
    }

    proptest! {
        /// Each entry has its share exactly after a period, and nearly at any time before.
        #[test]
        fn turns_follow_weights(weights in proptest::collection::vec(1i64..50, 2..17)) {
            let mut turns = SmoothTurns::new(weights.iter().copied());
            let sum: i64 = weights.iter().sum();
            let mut had = vec![0i64; weights.len()];
            for turn in 1..=turns.period() {
                had[turns.next_turn()] += 1;
                for (turns_of_entry, weight) in had.iter().zip(&weights) {
                    // Within a few turns: more entries may fall due at once.
                    prop_assert!((turns_of_entry * sum - turn * weight).abs() < 3 * sum, "{} turns of {}", turns_of_entry, turn);
                }
            }
            let period = turns.period();
            for (turns_of_entry, weight) in had.iter().zip(&weights) {
                prop_assert_eq!(turns_of_entry * sum, period * weight);
            }
        }

        #[test]
        fn no_text_upsets_the_parsers(text in "[0-9:,KMG]{0,24}") {
            let _ = (text.parse::<SizeMix>(), text.parse::<QpWeights>());
        }
    }

    #[test]
    fn qps_take_the_numbers_in_turn() {
        let numbers: QpNumbers = "7,0x10".parse().unwrap();
        assert_eq!((0..5).map(|qp| numbers.of_qp(qp)).collect::<Vec<_>>(), [7, 16, 7, 16, 7]);
        assert_eq!(numbers.to_string(), "7,16");
    }

    #[test]
    fn what_is_no_number_is_named() {
        for text in ["", "1,", "1,x", "-1", "0x", "4294967296"] {
            assert!(text.parse::<QpNumbers>().is_err(), "{text}");
        }
        let many = vec!["1"; 4097].join(",");
        assert!(many.parse::<QpNumbers>().unwrap_err().contains("4096"));
    }

    fn values(text: &str, is_size: bool) -> Vec<String> {
        doubled(text, is_size).unwrap().unwrap()
    }

    #[test]
    fn values_double_up_to_the_end() {
        assert_eq!(values("1..8", false), ["1", "2", "4", "8"]);
        assert_eq!(values("3..20", false), ["3", "6", "12", "20"]);
        assert_eq!(values("1K..4K", true), ["1024", "2048", "4096"]);
        assert_eq!(values("7..7", false), ["7"]);
        let above_one_message = ["1073741824", "2147483648", "4294967296"];
        assert_eq!(values("1G..4G", true), above_one_message);
    }

    #[test]
    fn other_texts_are_no_ranges() {
        for text in ["64", "1...4", "a..b", "..", "1..", "..4", "1K..4K", "-1..4", "+1..4"] {
            assert_eq!(doubled(text, false), None, "{text}");
        }
    }

    #[test]
    fn a_range_with_a_dash_is_shown_with_dots() {
        assert_eq!(with_dots("1-64", false).as_deref(), Some("1..64"));
        assert_eq!(with_dots("4K-1M", true).as_deref(), Some("4K..1M"));
        for text in ["-1", "1-", "per-qp", "1..4"] {
            assert_eq!(with_dots(text, false), None, "{text}");
        }
    }

    #[test]
    fn ranges_without_values_are_refused() {
        for text in ["0..8", "8..1"] {
            assert!(matches!(doubled(text, false), Some(Err(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn each_value_is_at_most_twice_the_one_before(first in 1..1_000_000u64, more in 0..1_000_000_000u64) {
            let values = values(&format!("{first}..{}", first + more), false);
            let values: Vec<u64> = values.iter().map(|it| it.parse().unwrap()).collect();
            prop_assert_eq!((values[0], *values.last().unwrap()), (first, first + more));
            prop_assert!(values.windows(2).all(|two| two[0] < two[1] && two[1] <= 2 * two[0]));
        }
    }
}
