//! Long arrays of figures on one line of a file that is otherwise written to be read by people.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Writes the array without line breaks, however the rest is written.
///
/// # Errors
/// The serialiser's.
pub fn in_one_line<T: Serialize, S: Serializer>(figures: &[T], out: S) -> Result<S::Ok, S::Error> {
    let text = serde_json::to_string(figures).map_err(S::Error::custom)?;
    RawValue::from_string(text).map_err(S::Error::custom)?.serialize(out)
}
