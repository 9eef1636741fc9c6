//! What is asked of each flow, as it is written. It must not know results.

use std::fmt;
use std::str::FromStr;

/// What each flow must reach at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A share, 0 to 1, of the median of all flows with its settings.
    OfMedian(f64),
    /// A share, 0 to 1, of what its link and the protocol allow.
    OfLink(f64),
    /// So many 10^9 bits of payload a second.
    GbitPerS(f64),
}

/// Why a text is no threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum ThresholdError {
    #[error(
        "`{0}` is not a threshold: write 90% or 90%median (of the median of all flows), 90%link (of what the link allows) \
         or 40Gb (10^9 bits a second)"
    )]
    Unknown(String),
    #[error("`{0}` is not above 0 %: no flow could be below it")]
    NotAboveZero(String),
    #[error("`{0}` is above 100 %, which flows need not reach: write at most 100%")]
    AboveAll(String),
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Threshold, ThresholdError> {
        let unknown = || ThresholdError::Unknown(text.to_owned());
        let number = |digits: &str| -> Result<f64, ThresholdError> {
            let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
            let value: f64 = digits.parse().map_err(|_| unknown())?;
            match is_plain && value.is_finite() {
                true if value > 0.0 => Ok(value),
                true => Err(ThresholdError::NotAboveZero(text.to_owned())),
                false => Err(unknown()),
            }
        };
        if let Some(digits) = text.strip_suffix("Gb") {
            return Ok(Threshold::GbitPerS(number(digits)?));
        }
        let (digits, of) = text.split_once('%').ok_or_else(unknown)?;
        let percent = number(digits)?;
        if percent > 100.0 {
            return Err(ThresholdError::AboveAll(text.to_owned()));
        }
        match of {
            "" | "median" => Ok(Threshold::OfMedian(percent / 100.0)),
            "link" => Ok(Threshold::OfLink(percent / 100.0)),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (share * 1e6).round() / 1e4;
        match self {
            Threshold::OfMedian(share) => write!(f, "{}%median", percent(*share)),
            Threshold::OfLink(share) => write!(f, "{}%link", percent(*share)),
            Threshold::GbitPerS(gbit_per_s) => write!(f, "{gbit_per_s}Gb"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::has;

    #[test]
    fn thresholds_are_read_as_they_are_written() {
        for (text, threshold, told) in [
            ("90%", Threshold::OfMedian(0.9), "90%median"),
            ("92.5%median", Threshold::OfMedian(0.925), "92.5%median"),
            ("100%link", Threshold::OfLink(1.0), "100%link"),
            ("40Gb", Threshold::GbitPerS(40.0), "40Gb"),
            ("0.5Gb", Threshold::GbitPerS(0.5), "0.5Gb"),
        ] {
            assert_eq!(text.parse(), Ok(threshold), "{text}");
            assert_eq!(threshold.to_string(), told);
        }
    }

    #[test]
    fn what_is_none_says_how_to_write_one() {
        let error = |text: &str| text.parse::<Threshold>().unwrap_err().to_string();
        for text in [
            "", "90", "%", "-5%", "90%peer", "40", "40GB", "nanGb", "infGb", "1e3Gb", "9 0%", "+5%",
        ] {
            has(error(text), ["write 90% or 90%median"]);
        }
        for (text, words) in [
            ("0%", "not above 0"),
            ("0Gb", "not above 0"),
            ("101%", "at most 100%"),
        ] {
            has(error(text), [words]);
        }
    }
}
