//! Ranges in lists: `64..64K` stands for 64, 128, 256 … 64K.

use super::size::bytes;

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
