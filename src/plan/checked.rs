//! Numbers as options give them, checked against their ranges. It must not know which range is whose.

use std::ops::RangeInclusive;

use super::error::PlanError;
use super::list::Count;

/// `value` if it lies in the option's range (all of which fit the narrow type).
pub(super) fn checked<T: TryFrom<u64>>(
    flag: &'static str,
    value: u64,
    range: &RangeInclusive<u64>,
) -> Result<T, PlanError> {
    let out_of_range = || PlanError::OutOfRange {
        flag,
        value,
        min: *range.start(),
        max: *range.end(),
    };
    if !range.contains(&value) {
        return Err(out_of_range());
    }
    T::try_from(value).map_err(|_| out_of_range())
}

/// The value asked for, checked, or `default`.
pub(super) fn scalar<T: TryFrom<u64>>(
    flag: &'static str,
    value: Option<Count>,
    default: T,
    range: &RangeInclusive<u64>,
) -> Result<T, PlanError> {
    value.map_or(Ok(default), |count| checked(flag, count.0, range))
}

/// The value asked for, checked, if any was.
pub(super) fn optional<T: TryFrom<u64>>(
    flag: &'static str,
    value: Option<Count>,
    range: &RangeInclusive<u64>,
) -> Result<Option<T>, PlanError> {
    value.map(|count| checked(flag, count.0, range)).transpose()
}
