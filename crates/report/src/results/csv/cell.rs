//! One cell of a row.

/// A cell's text; an empty one for what was not measured.
pub(super) fn cell<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
