//! Values in a TOML text, and where they stand.

use std::fmt;
use std::ops::Range;

use settings::{Given, GivenError, Row, Takes};
use toml::Spanned;
use toml::de::DeValue;

/// Line and column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

pub(super) fn place(text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        line: before.matches('\n').count() + 1,
        column: before.get(line_start..).unwrap_or("").chars().count() + 1,
    }
}

/// A message and the bytes of the text that it is about.
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

pub(super) type Value<'i> = Spanned<DeValue<'i>>;

pub(super) fn fault(span: Range<usize>, message: impl Into<String>) -> Fault {
    Fault { span, message: message.into() }
}

/// The value as the flag would be given it.
pub(super) fn scalar_text(key: &str, value: &Value<'_>) -> Result<String, Fault> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(|number| number.to_string())
            .map_err(|_| fault(value.span(), format!("`{key}`: the number is out of range"))),
        DeValue::Float(float) => Ok(float.as_str().to_owned()),
        other => {
            let what = other.type_str();
            Err(fault(value.span(), format!("`{key}` takes a number or a string, not {what}")))
        }
    }
}

/// The value of a key that takes a text.
pub(super) fn text<'v>(key: &str, value: &'v Value<'_>) -> Result<&'v str, Fault> {
    let what = value.get_ref().type_str();
    value
        .get_ref()
        .as_str()
        .ok_or_else(|| fault(value.span(), format!("`{key}` takes a string, not {what}")))
}

/// Sets what the row names.
pub(super) fn set(given: &mut Given, row: &'static Row, value: &Value<'_>) -> Result<(), Fault> {
    let key = row.flag;
    let items = match (row.takes, value.get_ref()) {
        (Takes::Switch, DeValue::Boolean(is_on)) => vec![is_on.to_string()],
        (Takes::Switch, _) => {
            return Err(fault(value.span(), format!("`{key}` is true or false")));
        }
        (Takes::List, DeValue::Array(items)) => {
            let mut texts = Vec::with_capacity(items.len());
            for item in items {
                let text = scalar_text(key, item)?;
                // Alone, so that an error has its place.
                Given::default()
                    .set_items(row, &[&text])
                    .map_err(|error| faulty(key, item, &error))?;
                texts.push(text);
            }
            texts
        }
        _ => vec![scalar_text(key, value)?],
    };
    given.set_items(row, &items).map_err(|error| faulty(key, value, &error))
}

fn faulty(key: &str, value: &Value<'_>, error: &GivenError) -> Fault {
    fault(value.span(), format!("`{key}`: {error}"))
}
