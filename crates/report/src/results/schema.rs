//! The JSON Schema of the result file, made from the model's types and committed as
//! `docs/result.schema.json`. It must not know writers or readers.

use schemars::Schema;

use super::model::ResultFile;

/// The schema of the result file (JSON Schema 2020-12). Fields that may be `null` may also be absent, so
/// that files of earlier programs of the same version remain valid.
pub fn schema() -> Schema {
    schemars::schema_for!(ResultFile)
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

    use serde_json::{Value, json};

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

        let damages: [fn(&mut Value); 4] = [
            |file| file["cases"][0]["config"]["qps"] = json!("four"),
            |file| file["cases"][0]["runs"][0]["totals"]["messages"] = json!(-1),
            |file| file["cases"][0]["runs"][0]["totals"] = Value::Null,
            |file| file["schema_version"] = Value::Null,
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
