//! Sizes by weight as tables in a file: `size = [{bytes = 64, weight = 9}, {bytes = "64K", weight = 1}]` is `size-mix =
//! "64:9,64K:1"`.

use settings::{Given, Row, Settings};
use toml::de::DeValue;

use super::toml_value::{Fault, Value, fault, scalar_text, set};

/// Whether the value of `size` gives several sizes by weight.
pub(super) fn is_mix(row: &Row, value: &Value<'_>) -> bool {
    row.flag == "size"
        && value.get_ref().as_array().is_some_and(|items| {
            items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_)))
        })
}

/// As [`set`], also of sizes by weight; returns the row that is set.
pub(super) fn set_any(
    given: &mut Given,
    row: &'static Row,
    value: &Value<'_>,
) -> Result<&'static Row, Fault> {
    match Settings::row("size-mix").filter(|_| is_mix(row, value)) {
        Some(mix) => {
            given
                .set(mix, &text(value)?)
                .map_err(|error| fault(value.span(), format!("`size`: {error}")))?;
            Ok(mix)
        }
        None => set(given, row, value).map(|()| row),
    }
}

fn text(value: &Value<'_>) -> Result<String, Fault> {
    let mut texts = Vec::new();
    for item in value.get_ref().as_array().into_iter().flat_map(|items| items.iter()) {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(not_a_size(item));
        };
        let (Some(bytes), Some(weight)) = (table.get("bytes"), table.get("weight")) else {
            return Err(not_a_size(item));
        };
        if table.len() != 2 {
            return Err(not_a_size(item));
        }
        let (bytes, weight) = (scalar_text("bytes", bytes)?, scalar_text("weight", weight)?);
        texts.push(format!("{bytes}:{weight}"));
    }
    Ok(texts.join(","))
}

fn not_a_size(item: &Value<'_>) -> Fault {
    let message = "`size`: write each size with its weight: {bytes = 64, weight = 9}";
    fault(item.span(), message)
}
