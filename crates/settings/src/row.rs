//! What the table has for one setting besides its type and default, where `S` holds the values of all settings; and how a
//! value of each type is read and written.

use super::lists::{QpNumbers, QpWeights, SizeMix};
use super::op::{Service, Workload};
use super::places::{MemoryAt, Register, WORDS as PLACES};
use super::units::Rate;
use super::units::{MemorySize, Size, TimeSpan, bytes};
use super::words::{
    Arrivals, AtomicTarget, CallStyle, ConnectMode, CqMode, Domains, MrMode, Mtu, Ordering, Pace,
    PollMode, RecvQueue, Spread, Timestamps, TouchOrder, Warmup,
};
use super::words::{PATTERNS, Pattern, SPLITS, Split};

/// A setting, as a row of the table.
#[derive(Debug)]
pub struct Row<S: 'static> {
    /// Name in results, as JSON field and CSV column.
    pub field: &'static str,
    /// Name of the long flag, and of the key in a configuration file.
    pub flag: &'static str,
    /// Another name of the long flag, perftest's; empty for none.
    pub alias: &'static str,
    /// The letter of the short flag; `None` for none.
    pub short: Option<char>,
    /// What it is, as help.
    pub help: &'static str,
    /// Its default, as help; empty where there is none to tell.
    pub default: &'static str,
    /// Title of its part of the help.
    pub heading: &'static str,
    /// What follows the flag: a value, a list, or nothing.
    pub takes: Takes,
    /// Whether it holds for a flow, or for a case as a whole.
    pub scope: Scope,
    /// The least and most that a number may be.
    pub range: (u64, u64),
    /// Hint for a number out of range, if there is more to say than the range.
    pub range_hint: &'static str,
    /// The number counts bytes and is written with units.
    pub is_size: bool,
    /// The words that it takes, for completions; none for numbers.
    pub words: fn() -> Vec<&'static str>,
    /// How it stands in the id of a case.
    pub id: Id,
    /// Heading of its column in a table of cases, where that is not the flag.
    pub column: &'static str,
    /// Its name in figures and tables of results; empty if they never show it.
    pub title: &'static str,
    /// Text for a value, with `{}` in its place; after `|`, the text for numbers other than one.
    pub label: &'static str,
    /// The default has no text.
    pub is_quiet: bool,
    /// Its value may follow from another setting, so one line of a figure may have several.
    pub may_follow: bool,
    /// Two results with different values may still be of the same case.
    pub may_differ: bool,
    pub(crate) read: fn(&mut S, &str, &Row<S>) -> Result<(), SettingError>,
    pub(crate) write: fn(&S, &Row<S>) -> String,
    pub(crate) equals: fn(&S, &S) -> bool,
    pub(crate) copy: fn(&mut S, &S),
}

/// What follows a flag on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A list; each of its values makes cases.
    List,
    /// One value, the same in all cases; this stands for it in the help.
    One(&'static str),
    /// Nothing, or `true` or `false`.
    Switch,
}

impl Takes {
    /// What stands for a value in the help.
    pub fn value_name(self) -> &'static str {
        match self {
            Takes::List => "LIST",
            Takes::One(name) => name,
            Takes::Switch => "BOOL",
        }
    }
}

/// What a setting holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A flow, which may have a value of its own.
    Flow,
    /// The case, with all its flows.
    Case,
}

/// How a setting stands in the id of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    /// It is not in the id, whatever its value.
    Never,
    /// In its head, with operation, CQ mode, QPs and size.
    Head,
    /// As this letter and the value, where it varies in the sweep or is not the default.
    Letter(char),
    /// As its value, where that is not the default.
    Word,
}

/// Why a text is no value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum SettingError {
    #[error("{0}")]
    Syntax(String),
    #[error("--{flag} {value} is out of range: it must be {min} to {max}")]
    OutOfRange { flag: &'static str, value: u64, min: u64, max: u64 },
}

impl<S> Row<S> {
    /// The usual value of each part that the table leaves out.
    pub(crate) const USUAL: Row<S> = Row {
        field: "",
        flag: "",
        alias: "",
        short: None,
        help: "",
        default: "",
        heading: "",
        takes: Takes::One("N"),
        scope: Scope::Flow,
        range: (0, u64::MAX),
        range_hint: "",
        is_size: false,
        words: Vec::new,
        id: Id::Never,
        column: "",
        title: "",
        label: "{}",
        is_quiet: false,
        may_follow: false,
        may_differ: false,
        read: |_, _, _| Ok(()),
        write: |_, _| String::new(),
        equals: |_, _| true,
        copy: |_, _| (),
    };

    /// Sets it to what `text` says.
    ///
    /// # Errors
    /// When `text` is none of its values; `settings` are then as before.
    pub fn read(&self, settings: &mut S, text: &str) -> Result<(), SettingError> {
        if let [b'-', b'0'..=b'9', ..] = text.as_bytes() {
            let sentence = format!("`{text}` is negative, which no setting takes");
            return Err(SettingError::Syntax(sentence));
        }
        (self.read)(settings, text, self)
    }

    /// Its value as people write it; empty for none.
    pub fn text(&self, settings: &S) -> String {
        (self.write)(settings, self)
    }

    /// Whether both have the same value.
    pub fn is_equal(&self, one: &S, other: &S) -> bool {
        (self.equals)(one, other)
    }

    /// Gives `settings` the value that `from` has.
    pub fn copy(&self, settings: &mut S, from: &S) {
        (self.copy)(settings, from);
    }

    /// Its value as a number, sizes in bytes; `None` for words.
    pub fn number(&self, settings: &S) -> Option<f64> {
        let text = self.text(settings);
        if self.is_size {
            bytes(&text).ok().flatten().map(|bytes| bytes as f64)
        } else {
            text.parse().ok()
        }
    }

    /// Whether numbers are given that must lie in a range.
    pub fn has_range(&self) -> bool {
        self.range != Row::<S>::USUAL.range
    }

    /// Help: what it is, and its default.
    pub fn full_help(&self) -> String {
        let help = self.help.trim_start();
        match self.default {
            "" => help.to_owned(),
            default => format!("{help} [default: {default}]"),
        }
    }
}

impl<S: Default> Row<S> {
    /// Text for its value, written as `value`; empty if there is nothing to show.
    pub fn words(&self, settings: &S, value: &str) -> String {
        if self.is_quiet && self.is_equal(settings, &S::default()) {
            String::new()
        } else {
            self.labelled(value)
        }
    }

    /// The words for a value that is written so, also for what is usual; empty for none.
    pub fn labelled(&self, value: &str) -> String {
        if value.is_empty() {
            return String::new();
        }
        let (one, many) = self.label.split_once('|').unwrap_or((self.label, self.label));
        let words = if value == "1" { one } else { many };
        words.replace("{}", value)
    }
}

/// A value of a setting.
pub(crate) trait Value: Sized {
    fn read<S>(text: &str, row: &Row<S>) -> Result<Self, SettingError>;

    /// The text from which [`Value::read`] makes the same value.
    fn write<S>(&self, row: &Row<S>) -> String;

    /// The words that it can be, for completions.
    fn words() -> Vec<&'static str> {
        Vec::new()
    }
}

fn number<S>(text: &str, row: &Row<S>) -> Result<u64, SettingError> {
    let value = if row.is_size {
        let bytes = if row.range.1 <= Size::MAX.bytes().into() {
            text.parse::<Size>().map(|size| size.bytes().into())
        } else {
            text.parse::<MemorySize>().map(|size| size.0)
        };
        bytes.map_err(|error| SettingError::Syntax(error.to_string()))?
    } else if text.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(number) = text.parse()
    {
        number
    } else {
        return Err(SettingError::Syntax(format!("`{text}` is not a whole number")));
    };
    let (min, max) = row.range;
    if (min..=max).contains(&value) { Ok(value) } else { Err(out_of_range(row, value, max)) }
}

fn out_of_range<S>(row: &Row<S>, value: u64, max: u64) -> SettingError {
    SettingError::OutOfRange { flag: row.flag, value, min: row.range.0, max }
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Value for $type {
            fn read<S>(text: &str, row: &Row<S>) -> Result<Self, SettingError> {
                let value = number(text, row)?;
                <$type>::try_from(value).map_err(|_| out_of_range(row, value, <$type>::MAX.into()))
            }

            fn write<S>(&self, row: &Row<S>) -> String {
                if row.is_size { MemorySize((*self).into()).to_string() } else { self.to_string() }
            }
        })*
    };
}

numbers!(u8, u32, u64);

/// Types that are read and written as their words; after `:` those that complete.
macro_rules! by_their_words {
    ($($type:ident $(: $words:expr)?),* $(,)?) => {
        $(impl Value for $type {
            $(fn words() -> Vec<&'static str> {
                $words
            })?

            fn read<S>(text: &str, _: &Row<S>) -> Result<Self, SettingError> {
                text.parse().map_err(|error: <$type as std::str::FromStr>::Err| SettingError::Syntax(error.to_string()))
            }

            fn write<S>(&self, _: &Row<S>) -> String {
                self.to_string()
            }
        })*
    };
}

by_their_words!(
    Workload: Workload::ALL.map(Workload::name).to_vec(),
    Pattern: PATTERNS.to_vec(),
    AtomicTarget: AtomicTarget::names(),
    Service: Service::names(),
    RecvQueue: RecvQueue::names(),
    MrMode: MrMode::names(),
    MemoryAt: PLACES.to_vec(),
    Register: Register::names(),
    Ordering: Ordering::names(),
    TouchOrder: TouchOrder::names(),
    CqMode: CqMode::names(),
    PollMode: PollMode::names(),
    ConnectMode: ConnectMode::names(),
    CallStyle: CallStyle::names(),
    Domains: Domains::names(),
    Timestamps: Timestamps::names(),
    Spread: Spread::names(),
    Split: SPLITS.to_vec(),
    Rate: vec!["closed"],
    Arrivals: Arrivals::names(),
    Pace: Pace::names(),
    SizeMix,
    QpWeights,
    Mtu: vec!["256", "512", "1024", "2048", "4096"],
    TimeSpan,
    Warmup: vec!["auto"],
);

impl Value for QpNumbers {
    fn read<S>(text: &str, row: &Row<S>) -> Result<Self, SettingError> {
        let numbers: QpNumbers = text.parse().map_err(SettingError::Syntax)?;
        let (min, max) = row.range;
        let beyond = numbers.numbers().find(|it| !(min..=max).contains(it));
        match beyond {
            None => Ok(numbers),
            Some(value) => Err(out_of_range(row, value, max)),
        }
    }

    fn write<S>(&self, _: &Row<S>) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn words() -> Vec<&'static str> {
        vec!["true", "false"]
    }

    fn read<S>(text: &str, _: &Row<S>) -> Result<Self, SettingError> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(SettingError::Syntax(format!("`{other}` is not true or false"))),
        }
    }

    fn write<S>(&self, _: &Row<S>) -> String {
        self.to_string()
    }
}

impl<T: Value> Value for Option<T> {
    fn words() -> Vec<&'static str> {
        T::words()
    }

    fn read<S>(text: &str, row: &Row<S>) -> Result<Self, SettingError> {
        match text {
            "" => Ok(None),
            text => T::read(text, row).map(Some),
        }
    }

    fn write<S>(&self, row: &Row<S>) -> String {
        self.as_ref().map(|value| value.write(row)).unwrap_or_default()
    }
}
