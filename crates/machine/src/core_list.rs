//! Lists of CPU cores, such as `2,4-7`, as the kernel writes them and `--cores` takes them.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// CPU cores, such as `2,4-7`, in the order they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreList(pub Vec<usize>);

/// The highest core number that is accepted; Linux is built for at most 8192.
const MAX_CORE: usize = 8191;

/// Why a text is no list of cores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum CoreListError {
    #[error("`{0}` is not a core: write numbers and ranges, such as 2,4-7")]
    Syntax(String),
    #[error("the range {0}-{1} runs backwards")]
    Backwards(usize, usize),
    #[error("core {0} is above {MAX_CORE}")]
    TooHigh(usize),
    /// A core would be given two workers.
    #[error("core {0} is listed twice")]
    Duplicate(usize),
}

fn core_number(digits: &str, item: &str) -> Result<usize, CoreListError> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits
        .parse::<usize>()
        .ok()
        .filter(|_| is_number)
        .ok_or_else(|| CoreListError::Syntax(item.to_owned()))?;
    if number > MAX_CORE { Err(CoreListError::TooHigh(number)) } else { Ok(number) }
}

impl FromStr for CoreList {
    type Err = CoreListError;

    fn from_str(text: &str) -> Result<Self, CoreListError> {
        let mut cores = Vec::new();
        let mut seen = HashSet::new();
        for item in text.split(',') {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (core_number(first, item)?, core_number(last, item)?);
            if first > last {
                return Err(CoreListError::Backwards(first, last));
            }
            for core in first..=last {
                if !seen.insert(core) {
                    return Err(CoreListError::Duplicate(core));
                }
                cores.push(core);
            }
        }
        Ok(CoreList(cores))
    }
}

impl fmt::Display for CoreList {
    /// Runs of neighbours as ranges: `2,4-7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.0.chunk_by(|a, b| a.checked_add(1) == Some(*b)).enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match run {
                [first, .., last] => write!(f, "{first}-{last}")?,
                run => run.iter().try_for_each(|core| write!(f, "{core}"))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cores_and_ranges() {
        assert_eq!("2,4-7".parse(), Ok(CoreList(vec![2, 4, 5, 6, 7])));
        assert_eq!("3-3".parse(), Ok(CoreList(vec![3])));
        assert_eq!("7-4".parse::<CoreList>(), Err(CoreListError::Backwards(7, 4)));
        assert_eq!("1-4,2".parse::<CoreList>(), Err(CoreListError::Duplicate(2)));
        assert_eq!("0-9999999".parse::<CoreList>(), Err(CoreListError::TooHigh(9_999_999)));
        for text in ["", "a", "1-", "-1", "1-2-3", "1,"] {
            assert!(matches!(text.parse::<CoreList>(), Err(CoreListError::Syntax(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_core_list_is_read_back(cores in proptest::collection::hash_set(0usize..64, 1..40), sorted: bool) {
            let mut cores: Vec<usize> = cores.into_iter().collect();
            if sorted {
                cores.sort_unstable();
            }
            let list = CoreList(cores);
            prop_assert_eq!(list.to_string().parse::<CoreList>(), Ok(list));
        }

        #[test]
        fn no_text_upsets_the_core_parser(text in "[0-9,-]{0,24}") {
            let _ = text.parse::<CoreList>();
        }
    }
}
