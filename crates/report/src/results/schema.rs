//! The JSON Schema of the result file, made from the model's types and committed as
//! `docs/result.schema.json`. It must not know writers or readers.

use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::model::ResultFile;

/// The schema of the result file (JSON Schema 2020-12): what this program writes. Every field is required, also one
/// that may be `null`.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .into_generator()
        .into_root_schema_for::<ResultFile>()
}

/// The first field that a result lacks: its place, empty for the file's own, and its name.
pub(super) fn lacking(result: &Value) -> Option<(String, String)> {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| schema().to_value());
    let (place, field) = lacking_below(&SCHEMA, &SCHEMA, result)?;
    Some((place.trim_start_matches('.').to_owned(), field))
}

fn lacking_below(root: &Value, schema: &Value, value: &Value) -> Option<(String, String)> {
    // What may be null is any of two.
    let schema = schema["anyOf"].get(0).unwrap_or(schema);
    let definition = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    let schema = definition.and_then(|it| root.pointer(it)).unwrap_or(schema);
    let below = |step: String, schema, value| {
        let (place, field) = lacking_below(root, schema, value)?;
        Some((step + &place, field))
    };
    match value {
        Value::Object(fields) => {
            let required = schema["required"].as_array().into_iter().flatten();
            let mut required = required.filter_map(Value::as_str);
            if let Some(field) = required.find(|field| !fields.contains_key(*field)) {
                return Some((String::new(), field.to_owned()));
            }
            let mut known = schema["properties"].as_object().into_iter().flatten();
            known.find_map(|(name, schema)| below(format!(".{name}"), schema, fields.get(name)?))
        }
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| below(format!("[{index}]"), &schema["items"], item))
        }
        _ => None,
    }
}

/// The schema as it is committed: indented, with a line feed at its end.
///
/// # Errors
/// None in practice: a schema is plain JSON.
pub fn schema_text() -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&schema())? + "\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::model::CaseResult;
    use super::super::sample;
    use super::*;

    #[test]
    fn the_committed_schema_is_that_of_the_types() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json");
        let text = schema_text().unwrap();
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(
            committed == text,
            "docs/result.schema.json is out of date: run `UPDATE_SCHEMA=1 cargo test -p report schema` and commit it"
        );
    }

    #[test]
    fn results_are_valid_and_damaged_ones_are_not() {
        let schema = serde_json::to_value(schema()).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let mut result = sample::result();
        let (config, run) = sample::connect();
        result.cases.push(CaseResult {
            config,
            runs: vec![run],
            ..CaseResult::default()
        });
        let valid = serde_json::to_value(result).unwrap();
        let errors: Vec<_> = validator
            .iter_errors(&valid)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");

        let damages: [fn(&mut Value); 5] = [
            |file| file["cases"][0]["config"]["qps"] = json!("four"),
            |file| file["cases"][0]["runs"][0]["totals"]["messages"] = json!(-1),
            |file| file["cases"][0]["runs"][0]["totals"] = Value::Null,
            |file| file["schema_version"] = Value::Null,
            |file| {
                drop(
                    file["cases"][0]["config"]
                        .as_object_mut()
                        .unwrap()
                        .remove("mtu"),
                )
            },
        ];
        for damage in damages {
            let mut damaged = valid.clone();
            damage(&mut damaged);
            assert!(!validator.is_valid(&damaged));
        }
    }

    #[test]
    fn every_field_is_described() {
        fn undescribed(at: &str, schema: &Value, found: &mut Vec<String>) {
            let properties = schema["properties"].as_object().into_iter().flatten();
            for (name, property) in properties {
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
