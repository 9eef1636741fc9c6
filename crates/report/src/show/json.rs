//! A sweep as JSON: the result as it is in a file, and what it says.

use std::io::{self, Write};

use results::model::ResultFile;
use schemars::Schema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::judge::findings::{Finding, Findings};
use crate::show::sentences::{remedy, sentence};

/// Writes the document: a result and what it says.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, report: &Findings, mut out: impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Explained<'a> {
        #[serde(flatten)]
        finding: &'a Finding,
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<&'a str>,
        sentence: String,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        result: &'a ResultFile,
        findings: Vec<Explained<'a>>,
    }
    let findings = report.all_findings();
    let explained = findings.iter().map(|finding| Explained {
        finding,
        remedy: match finding {
            Finding::Wrong(problem) => Some(remedy(problem)),
            _ => None,
        },
        sentence: sentence(finding),
    });
    let document = Document { result, findings: explained.collect() };
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)
}

/// The schema of the document (JSON Schema 2020-12). Every field is required, also one that may be `null`.
pub fn schema() -> Schema {
    let mut schema = results::json::schema();
    let findings = json!({
        "description": "What the figures say, as in the sentences below a table; nothing reads it back.",
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "finding": {
                    "description": "Which kind: `best`, `no_clear_winner`, `few_runs`, `scaling`, `slow_rail`, `rails_differ`, `wrong`, `nothing_wrong`; of nodes `no_figure`, `slow`, `more_slow`, `rest`, `fan`.",
                    "type": "string"
                },
                "sentence": { "description": "Its words.", "type": "string" }
            },
            "required": ["finding", "sentence"]
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
        for (result, key, value, of) in [
            (sample::open_loop(), "kind", "unreliable", ("count", json!(1))),
            (mesh, "finding", "slow", ("case", json!("write-pairs, 14 rounds"))),
        ] {
            let text = sample::text(|out| write_to(&result, &Findings::new(&result), out));
            let document: Value = serde_json::from_str(&text).unwrap();
            let mut findings = document["findings"].as_array().unwrap().iter();
            let found = findings.find(|it| it[key] == value).unwrap();
            assert_eq!(found[of.0], of.1);
            assert!(found["sentence"].is_string());
        }
    }
}
