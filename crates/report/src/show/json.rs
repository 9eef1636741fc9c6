//! A sweep as JSON: the result as it is in a file, and what it says.

use std::io::{self, Write};

use results::json::write_document;
use results::model::ResultFile;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::Serialize;

use crate::judge::{finding::Finding, findings::Findings};

/// One sweep: its program, machines, cases and results, and what they say.
#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    #[serde(flatten)]
    result: &'a ResultFile,
    /// What the figures say, in the words below a table; nothing reads it back.
    findings: Vec<&'a Finding>,
}

/// Writes the document: a result and what it says.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, report: &Findings, out: impl Write) -> io::Result<()> {
    let document = Document { result, findings: report.iter().collect() };
    write_document(&document, out)
}

/// The schema of the document (JSON Schema 2020-12). Fields that may be left out say so; all others are required, also those
/// that may be `null`.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Document<'_>>()
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

    use serde_json::{Value, json};

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
