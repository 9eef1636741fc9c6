//! The JSON Schema of the result file, made from the model's types and committed, with what `show` adds, as
//! `docs/result.schema.json`, and what a text lacks of its fields.

use std::fmt;
use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_json::Value;

use super::model::ResultFile;

/// The schema of the result file (JSON Schema 2020-12): what this program writes. Every field but `beside` is required, also
/// one that may be `null`.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<ResultFile>()
}

/// The place of the first field that the text of a result lacks, such as `cases[0].config`.
///
/// # Errors
/// The text is not JSON, or something plain stands where an object is due.
pub(super) fn lacking(text: &[u8]) -> serde_json::Result<Option<String>> {
    static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
        let schema = schema().to_value();
        Fields::new(&schema, &schema)
    });
    let lack = FIELDS.deserialize(&mut serde_json::Deserializer::from_slice(text))?;
    Ok(lack.map(|place| place[1..].to_owned()))
}

/// The fields that an object has, or each object of an array, and whether it must. What is plain has none of ours; what a
/// number may be is known by the model's type of its field.
struct Fields(Vec<(String, bool, Fields)>);

impl Fields {
    /// Something that stands for itself, where no object is due.
    fn plain<E: Error>(&self, what: Unexpected<'_>) -> Result<Option<String>, E> {
        if self.0.is_empty() { Ok(None) } else { Err(E::invalid_type(what, &self)) }
    }

    fn new(root: &Value, schema: &Value) -> Fields {
        // What may be null is any of two.
        let schema = schema["anyOf"].get(0).unwrap_or(schema);
        let definition = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
        let schema = definition.and_then(|it| root.pointer(it)).unwrap_or(schema);
        if let Some(items) = schema.get("items") {
            return Fields::new(root, items);
        }
        let fields = schema["properties"].as_object().into_iter().flatten();
        let is_required = |name: &str| {
            let required = schema["required"].as_array();
            required.is_some_and(|all| all.iter().any(|it| it == name))
        };
        Fields(
            fields
                .map(|(name, schema)| (name.clone(), is_required(name), Fields::new(root, schema)))
                .collect(),
        )
    }
}

impl<'de> DeserializeSeed<'de> for &Fields {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<String>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Fields {
    type Value = Option<String>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("an object or an array")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<String>, E> {
        self.plain(Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<String>, E> {
        self.plain(Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<String>, E> {
        self.plain(Unexpected::Float(number))
    }

    fn visit_bool<E: Error>(self, it: bool) -> Result<Option<String>, E> {
        self.plain(Unexpected::Bool(it))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<String>, E> {
        self.plain(Unexpected::Str(text))
    }

    fn visit_unit<E>(self) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<String>, A::Error> {
        let (mut first, mut index) = (None, 0);
        while let Some(below) = items.next_element_seed(self)? {
            first = first.or(below.map(|place| format!("[{index}]{place}")));
            index += 1;
        }
        Ok(first)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<String>, A::Error> {
        let (mut first, mut left) = (None, self.0.iter().collect::<Vec<_>>());
        while let Some(key) = map.next_key::<String>()? {
            match left.iter().position(|(name, ..)| *name == key) {
                None if self.0.is_empty() => drop(map.next_value_seed(self)?),
                None => drop(map.next_value::<IgnoredAny>()?),
                Some(at) => {
                    let below = map.next_value_seed(&left.remove(at).2)?;
                    first = first.or(below.map(|place| format!(".{key}{place}")));
                }
            }
        }
        let mut lacking = left.iter().filter(|(_, is_required, _)| *is_required);
        Ok(first.or(lacking.next().map(|(name, ..)| format!(".{name}"))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::model::CaseResult;
    use super::super::sample;
    use super::*;

    #[test]
    fn results_are_valid_and_damaged_ones_are_not() {
        let schema = serde_json::to_value(schema()).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let mut result = sample::result();
        let (config, run) = sample::connect();
        result.cases.push(CaseResult { config, ..sample::case(vec![run]) });
        result.cases.extend(sample::open_loop().cases);
        let valid = serde_json::to_value(result).unwrap();
        let errors = validator.iter_errors(&valid).map(|error| error.to_string());
        assert_eq!(errors.collect::<Vec<_>>(), [""; 0]);

        // A qps that is a word, a negative count, and so on.
        for damage in [
            "cases/0/config/qps=four",
            "cases/0/runs/0/flows/0/totals/messages=-1",
            "cases/0/runs/0/flows/0/totals=null",
            "schema_version=null",
            "cases/3/searches=null",
            "cases/4/config/rate=50",
            "cases/4/runs/0/flows/0/load/verdict=good",
        ] {
            let damaged = sample::with(&valid, damage);
            assert!(!validator.is_valid(&damaged), "{damage}");
        }
        let mut less = valid;
        let flow = less["cases"][0]["config"]["flows"][0].as_object_mut();
        assert_eq!(flow.unwrap().remove("path_mtu"), Some(json!(4096)));
        assert!(!validator.is_valid(&less));
    }

    #[test]
    fn every_field_is_described() {
        fn undescribed(at: &str, schema: &Value, found: &mut Vec<String>) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if property["description"].as_str().is_none_or(str::is_empty) {
                    found.push(format!("{at}.{name}"));
                }
            }
        }
        let schema = serde_json::to_value(schema()).unwrap();
        let mut found = Vec::new();
        undescribed("result", &schema, &mut found);
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            undescribed(name, definition, &mut found);
        }
        assert!(found.is_empty(), "{found:?}");
    }
}
