//! Comma-separated lists, the whole numbers in them, and lists of CPU cores. It knows no option by
//! name.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

/// A list without repetition, never empty, in the order it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(Vec<T>);

/// A whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

/// CPU cores, such as `2,4-7`, in the order they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreList(Vec<usize>);

/// The most entries of one list. More is a slip, and would only be found out case by case.
const MAX_ITEMS: usize = 4096;

/// The highest core number that is accepted; Linux is built for at most 8192.
const MAX_CORE: usize = 8191;

/// Why a text is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// Nothing in it.
    #[error("the list is empty")]
    Empty,
    /// Two commas, or one at an end.
    #[error("the list has an empty entry: values are separated by single commas, without blanks")]
    EmptyItem,
    /// The same value again (also in another spelling).
    #[error("{0} is listed twice")]
    Duplicate(String),
    /// More than the limit.
    #[error("the list has more than {MAX_ITEMS} entries")]
    TooLong,
    /// An entry that does not parse.
    #[error("{0}")]
    Item(String),
}

impl<T: PartialEq + fmt::Display> List<T> {
    /// A list of `items`.
    ///
    /// # Errors
    /// When there are none or too many, or when two are equal.
    pub fn new(items: Vec<T>) -> Result<Self, ListError> {
        if items.is_empty() {
            return Err(ListError::Empty);
        }
        if items.len() > MAX_ITEMS {
            return Err(ListError::TooLong);
        }
        for (index, item) in items.iter().enumerate() {
            if items.iter().take(index).any(|earlier| earlier == item) {
                return Err(ListError::Duplicate(item.to_string()));
            }
        }
        Ok(List(items))
    }
}

impl<T> List<T> {
    /// The entries in order; at least one.
    pub fn items(&self) -> &[T] {
        &self.0
    }
}

impl<T> FromStr for List<T>
where
    T: FromStr + PartialEq + fmt::Display,
    T::Err: fmt::Display,
{
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        if text.is_empty() {
            return Err(ListError::Empty);
        }
        let items = text
            .split(',')
            .map(|item| match item {
                "" => Err(ListError::EmptyItem),
                item => item
                    .parse()
                    .map_err(|error: T::Err| ListError::Item(error.to_string())),
            })
            .collect::<Result<Vec<T>, ListError>>()?;
        List::new(items)
    }
}

impl<T: fmt::Display> fmt::Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

/// Why a text is no whole number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a whole number")]
pub struct CountError(String);

impl FromStr for Count {
    type Err = CountError;

    fn from_str(text: &str) -> Result<Self, CountError> {
        if text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(number) = text.parse()
        {
            return Ok(Count(number));
        }
        Err(CountError(text.to_owned()))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is no list of cores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoreListError {
    /// Neither a number nor a range.
    #[error("`{0}` is no core: write numbers and ranges, such as 2,4-7")]
    Syntax(String),
    /// A range from high to low.
    #[error("the range {0}-{1} runs backwards")]
    Backwards(usize, usize),
    /// A number that no machine has.
    #[error("core {0} is above {MAX_CORE}")]
    TooHigh(usize),
    /// A core would be given two workers.
    #[error("core {0} is listed twice")]
    Duplicate(usize),
}

impl CoreList {
    /// The cores; at least one.
    pub fn cores(&self) -> &[usize] {
        &self.0
    }

    /// The cores, by value.
    pub fn into_vec(self) -> Vec<usize> {
        self.0
    }
}

fn core_number(digits: &str, item: &str) -> Result<usize, CoreListError> {
    let number = digits
        .parse::<Count>()
        .ok()
        .and_then(|count| usize::try_from(count.0).ok())
        .ok_or_else(|| CoreListError::Syntax(item.to_owned()))?;
    if number > MAX_CORE {
        Err(CoreListError::TooHigh(number))
    } else {
        Ok(number)
    }
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
        for (index, run) in self
            .0
            .chunk_by(|a, b| a.checked_add(1) == Some(*b))
            .enumerate()
        {
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
    use crate::plan::Size;
    use proptest::prelude::*;

    fn counts(text: &str) -> Result<Vec<u64>, ListError> {
        text.parse::<List<Count>>()
            .map(|list| list.items().iter().map(|count| count.0).collect())
    }

    #[test]
    fn lists_keep_their_order() {
        assert_eq!(counts("16,1,4"), Ok(vec![16, 1, 4]));
        assert_eq!(counts("7"), Ok(vec![7]));
    }

    #[test]
    fn bad_lists_are_refused() {
        assert_eq!(counts(""), Err(ListError::Empty));
        for text in [",", "1,", ",1", "1,,2"] {
            assert_eq!(counts(text), Err(ListError::EmptyItem), "{text}");
        }
        assert_eq!(counts("1,2,1"), Err(ListError::Duplicate("1".into())));
        assert_eq!(
            "4K,4096".parse::<List<Size>>(),
            Err(ListError::Duplicate("4KiB".into()))
        );
        for text in ["1, 2", "a", "+1", "1.5", "18446744073709551616"] {
            assert!(matches!(counts(text), Err(ListError::Item(_))), "{text}");
        }
        let long: Vec<String> = (0..=MAX_ITEMS).map(|n| n.to_string()).collect();
        assert_eq!(counts(&long.join(",")), Err(ListError::TooLong));
    }

    #[test]
    fn cores_and_ranges() {
        assert_eq!(
            "2,4-7".parse::<CoreList>().map(CoreList::into_vec),
            Ok(vec![2, 4, 5, 6, 7])
        );
        assert_eq!(
            "3-3".parse::<CoreList>().map(CoreList::into_vec),
            Ok(vec![3])
        );
        assert_eq!(
            "7-4".parse::<CoreList>(),
            Err(CoreListError::Backwards(7, 4))
        );
        assert_eq!(
            "1-4,2".parse::<CoreList>(),
            Err(CoreListError::Duplicate(2))
        );
        assert_eq!(
            "0-9999999".parse::<CoreList>(),
            Err(CoreListError::TooHigh(9_999_999))
        );
        for text in ["", "a", "1-", "-1", "1-2-3", "1,"] {
            assert!(
                matches!(text.parse::<CoreList>(), Err(CoreListError::Syntax(_))),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_printed_list_is_read_back(numbers in proptest::collection::hash_set(0u64.., 1..20)) {
            let list = List::new(numbers.into_iter().map(Count).collect()).unwrap();
            prop_assert_eq!(list.to_string().parse::<List<Count>>(), Ok(list));
        }

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
