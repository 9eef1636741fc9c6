//! What was asked for: the settings that flags or a file give, each as a list of values that are read. It holds values
//! that are written well, not values that make sense together.

use std::collections::BTreeMap;

use super::lists::{RangeError, doubled, with_dots};
use super::row::{SettingError, Takes};
use super::rules::{Rule, rules};
use super::table::{Row, Settings};

/// The most entries of one list. More is a slip, and would only be found out case by case.
const MAX_ITEMS: usize = 4096;

/// What was asked for, by flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given(BTreeMap<&'static str, Vec<String>>);

/// Why a text gives no setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum GivenError {
    #[error("the list is empty")]
    Empty,
    #[error("the list has an empty entry: separate values by single commas, without spaces")]
    EmptyItem,
    /// The same value again (also in another spelling).
    #[error("{0} is listed twice")]
    Duplicate(String),
    #[error("the list has more than {MAX_ITEMS} entries")]
    TooLong,
    #[error(transparent)]
    Range(#[from] RangeError),
    #[error(
        "`{written}` is no value: write the range as {meant}, which doubles from value to value"
    )]
    Dash { written: String, meant: String },
    #[error("{0}")]
    Item(String),
}

impl Given {
    /// With this setting, as its flag takes it.
    ///
    /// # Errors
    /// When the text is not what the setting takes. Ranges are not looked at.
    pub fn set(&mut self, row: &'static Row, text: &str) -> Result<(), GivenError> {
        self.set_items(row, &Given::items(row, text)?)
    }

    /// The values that a flag's text lists.
    ///
    /// # Errors
    /// When there are none, or one is empty.
    pub fn items<'t>(row: &Row, text: &'t str) -> Result<Vec<&'t str>, GivenError> {
        if row.takes != Takes::List {
            return Ok(vec![text]);
        }
        if text.is_empty() {
            return Err(GivenError::Empty);
        }
        let items: Vec<&str> = text.split(',').collect();
        if items.contains(&"") { Err(GivenError::EmptyItem) } else { Ok(items) }
    }

    /// With these values of a setting.
    ///
    /// # Errors
    /// As [`Given::set`].
    pub fn set_items(
        &mut self,
        row: &'static Row,
        items: &[impl AsRef<str>],
    ) -> Result<(), GivenError> {
        if items.is_empty() {
            return Err(GivenError::Empty);
        }
        let mut read: Vec<String> = Vec::with_capacity(items.len());
        let mut scratch = Settings::default();
        let items = with_ranges(row, items)?;
        if items.len() > MAX_ITEMS {
            return Err(GivenError::TooLong);
        }
        for item in &items {
            let text = match row.read(&mut scratch, item) {
                Ok(()) if !item.is_empty() => row.text(&scratch),
                Ok(()) => return Err(GivenError::EmptyItem),
                // It is refused with the other numbers, once the whole sweep is known.
                Err(SettingError::OutOfRange { .. }) => item.to_owned(),
                Err(error) => {
                    let meant = with_dots(item, row.is_size).filter(|_| row.takes == Takes::List);
                    return Err(match meant {
                        Some(meant) => GivenError::Dash { written: item.to_owned(), meant },
                        None => GivenError::Item(error.to_string()),
                    });
                }
            };
            if read.contains(&text) {
                return Err(GivenError::Duplicate(text));
            }
            read.push(text);
        }
        self.0.insert(row.flag, read);
        Ok(())
    }

    /// Whether this setting was given.
    pub fn has(&self, flag: &str) -> bool {
        self.0.contains_key(flag)
    }

    /// The values of a setting; none where it was not given.
    pub fn values(&self, flag: &str) -> &[String] {
        self.0.get(flag).map_or(&[], Vec::as_slice)
    }

    /// These settings over those of `base`, one by one.
    pub fn over(self, mut base: Given) -> Given {
        for exclusive in rules().filter_map(Rule::exclusive) {
            if exclusive.iter().any(|flag| self.has(flag)) {
                base.0.retain(|flag, _| !exclusive.contains(flag));
            }
        }
        base.0.extend(self.0);
        base
    }
}

/// The values that the items stand for, those of ranges one by one.
fn with_ranges(row: &Row, items: &[impl AsRef<str>]) -> Result<Vec<String>, GivenError> {
    let mut values = Vec::with_capacity(items.len());
    for item in items.iter().map(AsRef::as_ref) {
        match doubled(item, row.is_size).filter(|_| row.takes == Takes::List) {
            Some(range) => values.extend(range?),
            None => values.push(item.to_owned()),
        }
    }
    Ok(values)
}

impl<'a> FromIterator<(&'a str, &'a str)> for Given {
    /// For settings that the program itself asks for; those that are not read are left out.
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Given {
        let mut given = Given::default();
        for (flag, text) in pairs {
            let row = Settings::row(flag);
            debug_assert!(row.is_some(), "{flag}");
            if let Some(row) = row {
                let set = given.set(row, text);
                debug_assert!(set.is_ok(), "{flag} {text}: {set:?}");
            }
        }
        given
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Given {
    fn from(pairs: [(&str, &str); N]) -> Given {
        pairs.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::ROWS;

    #[test]
    fn a_setting_takes_its_words_and_those_with_words_are_not_few() {
        let with_words: Vec<&Row> = ROWS.iter().filter(|row| !(row.words)().is_empty()).collect();
        assert!(with_words.len() > 20);
        for row in with_words {
            for word in (row.words)() {
                Given::default().set(row, word).unwrap();
            }
        }
    }

    fn set(flag: &str, text: &str) -> Result<Vec<String>, GivenError> {
        let mut given = Given::default();
        given.set(Settings::row(flag).unwrap(), text)?;
        Ok(given.values(flag).to_vec())
    }

    #[test]
    fn lists_keep_their_order() {
        assert_eq!(set("qps", "16,1,4").unwrap(), ["16", "1", "4"]);
        assert_eq!(set("qps", "7").unwrap(), ["7"]);
        assert_eq!(set("size", "64K,64").unwrap(), ["64KiB", "64B"]);
    }

    #[test]
    fn a_range_is_a_list_of_doubled_values() {
        assert_eq!(set("qps", "1..4,100").unwrap(), ["1", "2", "4", "100"]);
        assert_eq!(set("size", "512..2K").unwrap(), ["512B", "1KiB", "2KiB"]);
        assert_eq!(set("mtu", "1024..4096").unwrap(), ["1024", "2048", "4096"]);
        assert_eq!(set("qps", "1..4,2"), Err(GivenError::Duplicate("2".into())));
        assert!(matches!(set("size", "4K..1K"), Err(GivenError::Range(_))));
        assert!(set("runs", "1..4").is_err(), "takes no list");
    }

    #[test]
    fn bad_lists_are_refused() {
        assert_eq!(set("qps", ""), Err(GivenError::Empty));
        for text in [",", "1,", ",1", "1,,2"] {
            assert_eq!(set("qps", text), Err(GivenError::EmptyItem), "{text}");
        }
        let twice = |text: &str| Err(GivenError::Duplicate(text.into()));
        assert_eq!(set("qps", "1,2,1"), twice("1"));
        assert_eq!(set("size", "4K,4096"), twice("4KiB"));
        for text in ["1, 2", "a", "+1", "1.5", "18446744073709551616"] {
            let error = set("qps", text);
            assert!(matches!(error, Err(GivenError::Item(_))), "{text}");
        }
        assert!(set("runs", "1,2").is_err(), "takes no list");
        let long: Vec<String> = (0..=MAX_ITEMS).map(|n| n.to_string()).collect();
        assert_eq!(set("qps", &long.join(",")), Err(GivenError::TooLong));
    }

    #[test]
    fn the_upper_layer_wins_setting_by_setting() {
        let flags = Given::from([("qps", "4"), ("verify", "false")]);
        let file = Given::from([("qps", "1,2"), ("verify", "true"), ("size", "64")]);
        let both = Given::from([("qps", "4"), ("verify", "false"), ("size", "64")]);
        assert_eq!(flags.over(file), both);
    }

    #[test]
    fn settings_replace_those_below_that_they_exclude() {
        let file = Given::from([("duration", "1ns"), ("runs", "2")]);
        let both = Given::from([("iters", "10")]).over(file.clone());
        assert_eq!(both, Given::from([("iters", "10"), ("runs", "2")]));
        assert_eq!(Given::default().over(file.clone()), file);
        let mix = Given::from([("size-mix", "64:1,4K:1")]);
        let one = Given::from([("size", "64")]);
        assert_eq!(one.clone().over(mix.clone()), one);
        assert_eq!(mix.clone().over(one), mix);
    }

    proptest! {
        #[test]
        fn values_are_read_back(numbers in proptest::collection::hash_set(1u64..65_536, 1..20)) {
            let text: Vec<String> = numbers.iter().map(u64::to_string).collect();
            prop_assert_eq!(set("tx-depth", &text.join(",")).unwrap(), text);
        }

        #[test]
        fn no_text_upsets_a_setting(text in "\\PC{0,24}") {
            for row in ROWS {
                let _ = Given::default().set(row, &text);
            }
        }
    }
}
