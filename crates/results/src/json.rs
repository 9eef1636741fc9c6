//! The result file as JSON: written whole, read with reasons, its texts made printable.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::file::{WriteError, write_whole};
use super::flow_faults;
use super::model::{ResultFile, SCHEMA_VERSION};
use super::schema;
use crate::text;

/// The largest file that is read: a result of ten thousand cases has a tenth of it.
const MAX_BYTES: u64 = 1 << 30;

/// Replaces the file at `path` with the result.
///
/// # Errors
/// The step that failed; what was there before is then still there.
pub fn write(result: &ResultFile, path: &Path) -> Result<(), WriteError> {
    write_whole(path, |out| write_to(result, out))
}

/// Writes the result to a stream, such as stdout.
///
/// # Errors
/// The stream's.
pub fn write_to(result: &ResultFile, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, result)?;
    writeln!(out)
}

/// A result file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read {}: {reason}; name a result file that rocebench wrote", text::path(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// It is not what this program writes.
    #[error("{}{place}: {reason}", text::path(path))]
    Content {
        /// The file.
        path: PathBuf,
        /// Where in it: `:LINE`, from 1, or `: cases[0].config`.
        place: String,
        /// What is wrong, and the remedy.
        reason: String,
    },
}

impl ReadError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> ReadError {
        move |reason| ReadError::Io { path: path.to_owned(), reason }
    }
}

/// Reads a result file. It has every field of the model, be it `null`; others are ignored.
///
/// # Errors
/// With the file, the line and the reason.
pub fn read(path: &Path) -> Result<ResultFile, ReadError> {
    parse(path, None, &whole(path)?)
}

/// All bytes of a file that begins as a result does. No more is read of one that does not, or that has no end.
pub(super) fn whole(path: &Path) -> Result<Vec<u8>, ReadError> {
    let failed = ReadError::io(path);
    let too_large = || failed(io::Error::other("it is larger than 1 GiB"));
    let file = File::open(path).map_err(&failed)?;
    let is_too_large = file.metadata().is_ok_and(|facts| facts.len() > MAX_BYTES);
    // Of a pipe the size is not known.
    let mut file = file.take(MAX_BYTES + 1);
    let mut text = Vec::new();
    while text.trim_ascii_start().is_empty() {
        let more = file.by_ref().take(4096).read_to_end(&mut text);
        if more.map_err(&failed)? == 0 {
            return Ok(text);
        }
    }
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(ReadError::Content {
            path: path.to_owned(),
            place: ":1".to_owned(),
            reason: no_result("it does not begin with `{`"),
        });
    }
    if is_too_large {
        return Err(too_large());
    }
    file.read_to_end(&mut text).map_err(&failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    Ok(text)
}

/// What to do about a file of another revision.
const OTHER_REVISION: &str =
    "measure again with this rocebench, or use the one that wrote the file";

/// Of a text that is all of a file, or one line of it, from 1.
pub(super) fn parse(
    path: &Path,
    line: Option<usize>,
    text: &[u8],
) -> Result<ResultFile, ReadError> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }
    let content =
        |place: String, reason: String| ReadError::Content { path: path.to_owned(), place, reason };
    let at_line = |at: usize| format!(":{}", at.max(1) + line.map_or(0, |line| line - 1));
    let at_place = |place: &str| match line {
        Some(line) => format!(":{line}: {place}"),
        None => format!(": {place}"),
    };
    let format = |error: serde_json::Error| {
        let reason = match error.is_eof() {
            true if text.trim_ascii().is_empty() => "it is empty".to_owned(),
            true => "it ends here, in the middle; it was cut off".to_owned(),
            false => text::printable(&error.to_string(), text::MAX_CHARS),
        };
        // The place stands before the reason.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let reason = reason.strip_suffix(&place).unwrap_or(&reason);
        content(at_line(error.line()), no_result(reason))
    };
    let text = &*text::json::cleaned(text);
    // Another version may differ in anything but this.
    let Version { schema_version } = serde_json::from_slice(text).map_err(format)?;
    if schema_version != u64::from(SCHEMA_VERSION) {
        let reason = format!(
            "the file has schema_version {schema_version}, and this rocebench reads only {SCHEMA_VERSION}; {OTHER_REVISION}"
        );
        return Err(content(at_line(line_of(text, b"\"schema_version\"")), reason));
    }
    if let Some(field) = schema::lacking(text).map_err(format)? {
        let reason = format!("there is no such field; {OTHER_REVISION}");
        return Err(content(at_place(&field), reason));
    }
    let result = serde_json::from_slice(text).map_err(format)?;
    match flow_faults::first(&result) {
        None => Ok(result),
        Some((place, fault)) => {
            let fault = text::printable(&fault, text::MAX_CHARS);
            let reason = format!("{fault}; name a result file as rocebench wrote it");
            Err(content(at_place(&place), reason))
        }
    }
}

fn no_result(reason: &str) -> String {
    format!("not a rocebench result: {reason}; name a JSON file that rocebench wrote")
}

/// The line, from 1, in which `part` stands first.
fn line_of(text: &[u8], part: &[u8]) -> usize {
    let place = text.windows(part.len()).position(|window| window == part);
    let before = text.get(..place.unwrap_or(0)).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sample::{self, has, starts};
    use super::*;

    fn text(result: &ResultFile) -> String {
        sample::text(|out| write_to(result, out))
    }

    fn parse_text(text: &str) -> Result<ResultFile, ReadError> {
        parse(Path::new("r.json"), None, text.as_bytes())
    }

    fn refused(text: &str) -> String {
        parse_text(text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.json");
        for result in [sample::result(), sample::open_loop()] {
            write(&result, &path).unwrap();
            assert_eq!(read(&path).unwrap(), result);
        }
        has(text(&sample::result()), ["\"messages\": [1780,0,1790]"]);
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let json = text(&sample::result());
        let later = "\"from_later\": [1, {}], \"fairness\": {";
        let more = json.replace("\"fairness\": {", later);
        assert_ne!(json, more);
        assert_eq!(parse_text(&more).unwrap(), sample::result());
    }

    /// The fields of each object below a value: the object's JSON pointer, the field, and its place as messages show it.
    fn fields(value: &Value, [pointer, place]: [&str; 2], found: &mut Vec<[String; 3]>) {
        let mut below = |name: &str, place: String, value: &Value| {
            let pointer = format!("{pointer}/{name}");
            fields(value, [&pointer, &place], found);
        };
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    below(&index.to_string(), format!("{place}[{index}]"), item);
                }
            }
            Value::Object(own) => {
                for (name, value) in own {
                    below(name, format!("{place}.{name}"), value);
                }
                // Counters carry the driver's names, and flows have the settings that differ.
                if !pointer.ends_with("/counters") && !pointer.ends_with("/settings") {
                    let place = |name| format!("{place}.{name}")[1..].to_owned();
                    let own =
                        own.keys().map(|name| [pointer.to_owned(), name.clone(), place(name)]);
                    found.extend(own);
                }
            }
            _ => {}
        }
    }

    /// Without its distributions, which take long to read so often.
    fn shorten(value: &mut Value) {
        match value {
            Value::Object(own) => own.values_mut().for_each(shorten),
            Value::Array(items) => items.iter_mut().for_each(shorten),
            Value::String(text) if text.len() > 99 => text.clear(),
            _ => {}
        }
    }

    #[test]
    fn no_field_may_be_absent() {
        let mut result = sample::result();
        let (config, run) = sample::connect();
        (result.cases[0].config, result.cases[0].runs) = (config, vec![run]);
        // A closed loop with a search, and an open one with a test of its gaps.
        result.cases.extend(sample::open_loop().cases);
        result.cases.truncate(4);
        let mut whole = serde_json::to_value(result).unwrap();
        shorten(&mut whole);
        let mut found = Vec::new();
        fields(&whole, ["", ""], &mut found);
        assert!(found.len() > 300, "{}", found.len());
        // Of lists one item of each kind is enough.
        let kind =
            |[_, _, place]: &[String; 3]| place.replace(|letter: char| letter.is_ascii_digit(), "");
        found.sort_by_key(kind);
        found.dedup_by_key(|it| kind(it));
        for [pointer, field, place] in found {
            let mut less = whole.clone();
            let object = less.pointer_mut(&pointer).unwrap();
            object.as_object_mut().unwrap().shift_remove(&field);
            let told = refused(&less.to_string());
            match &*field {
                "schema_version" => has(told, ["missing field `schema_version`"]),
                _ => {
                    starts(
                        told,
                        &format!("r.json: {place}: there is no such field; measure again"),
                    );
                }
            }
        }
    }

    #[test]
    fn errors_name_file_line_and_reason() {
        let json = text(&sample::result());
        let (before, _) = json.split_once("\"started_at\": ").unwrap();
        let line = before.lines().count();
        let broken = json.replacen("\"started_at\": ", "\"started_at\": 7, \"x\": ", 1);
        let told = refused(&broken);
        starts(&told, &format!("r.json:{line}: "));
        has(&told, ["expected a string"]);
        assert!(!told.contains("column"), "{told}");
        let (cut, _) = json.split_at(json.rfind("\"totals\": ").unwrap());
        has(refused(cut), ["it was cut off"]);
        has(refused(""), ["r.json:1: ", "it is empty"]);
        has(refused("{}"), ["schema_version"]);
        let missing = read(Path::new("/nowhere/r.json")).unwrap_err();
        has(missing.to_string(), ["/nowhere/r.json", "No such file"]);
    }

    #[test]
    fn flows_that_do_not_fit_are_refused() {
        let mut result = sample::mixed();
        assert_eq!(parse_text(&text(&result)).unwrap(), result);
        let settings = &mut result.cases[0].config.flows[1].settings;
        settings.insert("qps".to_owned(), "\u{1b}[2J".into());
        let told = refused(&text(&result));
        starts(&told, "r.json: cases[0].config.flows[1]: invalid type");
        assert!(!told.contains('\u{1b}'), "{told}");
    }

    #[test]
    fn other_versions_are_refused_whatever_else_is_in_them() {
        for version in [0, 2] {
            let text = format!("{{\"cases\": \"elsewhere\",\n\"schema_version\": {version}}}");
            let told = refused(&text);
            let start = format!("r.json:2: the file has schema_version {version}, and");
            starts(&told, &start);
            has(&told, ["measure again with this rocebench"]);
        }
    }
}
