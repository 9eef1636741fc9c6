//! A sweep as JSON: the result as it is in a file, and what it says.

use std::io::{self, Write};

use results::model::ResultFile;
use schemars::Schema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::judge::{finding::Finding, findings::Findings};

/// Writes the document: a result and what it says.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, report: &Findings, mut out: impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        result: &'a ResultFile,
        findings: Vec<&'a Finding>,
    }
    let document = Document { result, findings: report.iter().collect() };
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)
}

/// The schema of the document (JSON Schema 2020-12). Every field is required, also one that may be `null`.
pub fn schema() -> Schema {
    let mut schema = results::json::schema();
    let findings = json!({
        "description": "What the figures say, in the words below a table; nothing reads it back.",
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "id": {
                    "description": "Which kind it is, such as `best`, `lost_packets` or `slow_path`.",
                    "type": "string"
                },
                "severity": {
                    "description": "`problem` where something is to be done about it, else `note`.",
                    "enum": ["note", "problem"]
                },
                "subject": {
                    "description": "What it is about, as far as it is about that: `cases`, `nodes` (one, or both ends of a path), `flows`, `rails` (each a node and its rail), `qp`.",
                    "type": "object"
                },
                "text": { "description": "What it says.", "type": "string" },
                "data": {
                    "description": "Its figures by name; names end in the unit.",
                    "type": "object"
                }
            },
            "required": ["id", "severity", "subject", "text", "data"]
        }
    });
    let properties = schema.get_mut("properties");
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        properties.insert("findings".to_owned(), findings);
    }
    let required = schema.get_mut("required");
    if let Some(required) = required.and_then(Value::as_array_mut) {
        required.push("findings".into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use results::{
        json::read,
        sample::{
            self,
            mesh::{Mesh, Slow},
        },
    };

    use super::*;

    #[test]
    fn the_committed_schema_is_that_of_the_types() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json");
        let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap();
        let command = "UPDATE_SCHEMA=1 cargo test -p report schema";
        assert!(
            committed == text,
            "docs/result.schema.json is out of date: run `{command}` and commit it"
        );
    }

    #[test]
    fn what_is_written_is_valid_says_what_it_says_and_is_read_back() {
        let validator = jsonschema::draft202012::new(&schema().to_value()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.json");
        for result in [sample::result(), sample::open_loop(), sample::mixed()] {
            let text = sample::text(|out| write_to(&result, &Findings::new(&result), out));
            let document: Value = serde_json::from_str(&text).unwrap();
            let errors = validator.iter_errors(&document).map(|it| it.to_string());
            assert_eq!(errors.collect::<Vec<_>>(), [""; 0]);
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), result);
        }
        let mesh = Mesh::quiet(8).with(Slow::Sends(3, 0.5)).pairs();
        let text = sample::text(|out| write_to(&mesh, &Findings::new(&mesh), out));
        let document: Value = serde_json::from_str(&text).unwrap();
        let finding = &document["findings"][0];
        let subject = json!({ "cases": ["write-pairs, 14 rounds"], "nodes": ["node4"] });
        assert_eq!((&finding["id"], &finding["subject"]), (&json!("slow_sender"), &subject));
        assert_eq!((&finding["data"]["flows"], finding["text"].is_string()), (&json!(7), true));
    }
}
