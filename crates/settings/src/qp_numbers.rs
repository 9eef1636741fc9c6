//! Settings that are a list of numbers for QPs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::as_text::as_text;

/// The most entries of one list.
const MOST_ENTRIES: usize = 4096;

/// A number for each QP; QPs beyond the last take them again from the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QpNumbers(Vec<u32>);

impl QpNumbers {
    /// The number of QP `index`.
    pub fn of(&self, index: u32) -> u32 {
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
        if numbers.len() <= MOST_ENTRIES {
            Ok(QpNumbers(numbers))
        } else {
            Err(format!("the list has more than {MOST_ENTRIES} entries"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qps_take_the_numbers_in_turn() {
        let numbers: QpNumbers = "7,0x10".parse().unwrap();
        assert_eq!((0..5).map(|qp| numbers.of(qp)).collect::<Vec<_>>(), [7, 16, 7, 16, 7]);
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
}
