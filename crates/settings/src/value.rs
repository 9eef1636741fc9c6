//! Types of settings: how each is read and written.

use super::calls::{CallStyle, Domains, Timestamps};
use super::duration::TimeSpan;
use super::op::Workload;
use super::pattern::Pattern;
use super::qp_numbers::QpNumbers;
use super::rate::{Arrivals, Rate};
use super::row::{Row, SettingError};
use super::service::Service;
use super::size::{MemorySize, Size};
use super::weights::{QpWeights, SizeMix};
use super::words::{
    AtomicTarget, ConnectMode, CqMode, MrMode, Mtu, Ordering, Pace, PageKind, PollMode, RecvQueue,
    Spread, TouchOrder, Warmup,
};

/// A value of a setting.
pub(crate) trait Value: Sized {
    /// What `text` says.
    fn read<S>(text: &str, row: &Row<S>) -> Result<Self, SettingError>;

    /// What [`Value::read`] reads back.
    fn write<S>(&self, row: &Row<S>) -> String;
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

macro_rules! by_their_words {
    ($($type:ty),*) => {
        $(impl Value for $type {
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
    Workload,
    Pattern,
    AtomicTarget,
    Service,
    RecvQueue,
    MrMode,
    PageKind,
    Ordering,
    TouchOrder,
    CqMode,
    PollMode,
    ConnectMode,
    CallStyle,
    Domains,
    Timestamps,
    Spread,
    Rate,
    Arrivals,
    Pace,
    SizeMix,
    QpWeights,
    Mtu,
    TimeSpan,
    Warmup
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
