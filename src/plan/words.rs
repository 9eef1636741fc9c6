//! The words that name operations, CQ modes, polling, ways to connect, MTUs and warm-ups, read from flags and files alike.

use std::fmt;
use std::str::FromStr;

use super::case::{ConnectMode, CqMode, Mtu, Op, PollMode, Warmup};
use super::nearest::nearest;
use super::{Count, TimeSpan};

/// The longest automatic warm-up when none is given: 5 s.
pub(crate) const AUTO_WARMUP_CAP_NS: u64 = 5_000_000_000;

/// Why a word is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// Not one of the words.
    #[error("`{word}` is not one of {known}{}", suggestion(*.nearest))]
    Unknown {
        /// What was given.
        word: String,
        /// All words, comma-separated.
        known: String,
        /// The word that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A warm-up that is neither `auto` nor a time.
    #[error("a warm-up is `auto`, `auto:10s` (with its cap), a time such as 2s, or 0: {0}")]
    Warmup(String),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest
        .map(|word| format!("; did you mean `{word}`?"))
        .unwrap_or_default()
}

pub(super) fn find<T: Copy>(
    word: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, WordError> {
    all.iter()
        .copied()
        .find(|item| name(*item) == word)
        .ok_or_else(|| {
            let known: Vec<&'static str> = all.iter().map(|item| name(*item)).collect();
            WordError::Unknown {
                word: word.to_owned(),
                known: known.join(", "),
                nearest: nearest(word, &known),
            }
        })
}

impl FromStr for Op {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        find(word, &Op::ALL, Op::name)
    }
}

impl FromStr for CqMode {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        find(
            word,
            &[CqMode::Shared, CqMode::PerWorker, CqMode::PerQp],
            CqMode::name,
        )
    }
}

impl FromStr for PollMode {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        find(word, &PollMode::ALL, PollMode::name)
    }
}

impl FromStr for ConnectMode {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        find(word, &ConnectMode::ALL, ConnectMode::name)
    }
}

impl FromStr for Mtu {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let Ok(Count(bytes)) = word.parse() else {
            return Err(format!(
                "an MTU is 256, 512, 1024, 2048 or 4096, not `{word}`"
            ));
        };
        Mtu::try_from(u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

impl Default for Warmup {
    fn default() -> Self {
        Warmup::AutoCapNs(AUTO_WARMUP_CAP_NS)
    }
}

impl FromStr for Warmup {
    type Err = WordError;

    fn from_str(word: &str) -> Result<Self, WordError> {
        let span = |text: &str| {
            text.parse::<TimeSpan>()
                .map(TimeSpan::ns)
                .map_err(|error| WordError::Warmup(error.to_string()))
        };
        match word.strip_prefix("auto") {
            Some("") => Ok(Warmup::default()),
            Some(rest) => match rest.strip_prefix(':').map(span).transpose()? {
                Some(cap_ns) if cap_ns > 0 => Ok(Warmup::AutoCapNs(cap_ns)),
                Some(_) => Err(WordError::Warmup(
                    "a cap of 0 leaves no warm-up; say 0".into(),
                )),
                None => Err(WordError::Warmup(format!("not `{word}`"))),
            },
            None => span(word).map(Warmup::FixedNs),
        }
    }
}

impl fmt::Display for Warmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, ns) = match self {
            Warmup::AutoCapNs(ns) => ("auto:", *ns),
            Warmup::FixedNs(ns) => ("", *ns),
        };
        let span = TimeSpan::from_ns(ns).unwrap_or(TimeSpan::MAX);
        f.pad(&format!("{prefix}{span}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for op in Op::ALL {
            assert_eq!(op.name().parse::<Op>(), Ok(op));
        }
        for cq in [CqMode::Shared, CqMode::PerWorker, CqMode::PerQp] {
            assert_eq!(cq.name().parse::<CqMode>(), Ok(cq));
        }
        for connect in ConnectMode::ALL {
            assert_eq!(connect.name().parse::<ConnectMode>(), Ok(connect));
        }
        for poll in PollMode::ALL {
            assert_eq!(poll.name().parse::<PollMode>(), Ok(poll));
        }
        for mtu in Mtu::ALL {
            assert_eq!(mtu.to_string().parse::<Mtu>(), Ok(mtu));
        }
    }

    #[test]
    fn a_wrong_word_names_the_right_ones() {
        let error = "per_qp".parse::<CqMode>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`per_qp` is not one of shared, per-worker, per-qp; did you mean `per-qp`?"
        );
        assert!("1500".parse::<Mtu>().unwrap_err().contains("not 1500"));
        assert!("9999999999".parse::<Mtu>().is_err());
    }

    #[test]
    fn warm_ups() {
        for (word, warmup) in [
            ("auto", Warmup::AutoCapNs(5_000_000_000)),
            ("auto:10s", Warmup::AutoCapNs(10_000_000_000)),
            ("2s", Warmup::FixedNs(2_000_000_000)),
            ("0", Warmup::FixedNs(0)),
        ] {
            assert_eq!(word.parse::<Warmup>(), Ok(warmup), "{word}");
            assert_eq!(warmup.to_string().parse::<Warmup>(), Ok(warmup), "{word}");
        }
        for word in ["", "auto:", "auto:0", "autos", "auto10s", "long"] {
            assert!(word.parse::<Warmup>().is_err(), "{word}");
        }
    }
}
