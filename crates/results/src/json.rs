//! The result file as JSON: written whole, read with reasons, its texts made printable. Its JSON Schema is made from the
//! model's types and committed, with what `report` adds, as `docs/result.schema.json`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use settings::text_file::without_mark;

use crate::model::{CaseConfig, FlowConfig, FlowResult, ResultFile, SCHEMA_VERSION};
use crate::text;
use crate::whole_file::{WriteError, write_whole};

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
pub fn write_to(result: &ResultFile, out: impl Write) -> io::Result<()> {
    write_document(result, out)
}

/// Writes a result, or what has one in it, with a line for each QP.
///
/// # Errors
/// The stream's.
pub fn write_document(document: &impl Serialize, mut out: impl Write) -> io::Result<()> {
    document.serialize(&mut Serializer::with_formatter(&mut out, Lines::default()))?;
    writeln!(out)
}

/// Lists and objects within each other that have a line for each of their values: down to a list of QPs, each of which is
/// a line.
const DEPTH_OF_LINES: usize = 8;

/// Indented by two spaces, down to [`DEPTH_OF_LINES`].
#[derive(Default)]
struct Lines {
    depth: usize,
    has_value: bool,
}

impl Lines {
    fn begin<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value && self.depth < DEPTH_OF_LINES {
            write!(writer, "\n{:1$}", "", 2 * self.depth)?;
        }
        self.has_value = true;
        writer.write_all(bracket)
    }

    fn next<W: ?Sized + Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        let comma = if is_first { "" } else { "," };
        if self.depth <= DEPTH_OF_LINES {
            write!(writer, "{comma}\n{:1$}", "", 2 * self.depth)
        } else {
            writer.write_all(comma.as_bytes())
        }
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.next(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.depth <= DEPTH_OF_LINES { b": " } else { b":" })
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

/// A result file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read {}: {reason}; name a result file that rocebench wrote", text::path(path))]
    Io {
        /// The file, folder or journal that was to be read.
        path: PathBuf,
        /// The operating system's reason, or that the file is too large.
        reason: io::Error,
    },
    /// It is not what this program writes.
    #[error("{}{place}: {reason}", text::path(path))]
    Content {
        /// The file that was read, whole or up to the fault.
        path: PathBuf,
        /// Where in it: `:LINE`, from 1, or `: cases[0].config`.
        place: String,
        /// What is wrong, and the remedy.
        reason: String,
    },
}

impl ReadError {
    pub(super) fn io(path: &Path, reason: io::Error) -> ReadError {
        ReadError::Io { path: path.to_owned(), reason }
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
    let file = File::open(path).map_err(|error| ReadError::io(path, error))?;
    // Of a pipe the size is not known.
    let is_too_large = file.metadata().is_ok_and(|facts| facts.len() > MAX_BYTES);
    let reader: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut limited = reader.take(MAX_BYTES + 1);
    let mut text = Vec::new();
    while text.trim_ascii_start().is_empty() {
        let more = limited.by_ref().take(4096).read_to_end(&mut text);
        if more.map_err(|error| ReadError::io(path, error))? == 0 {
            return Ok(text);
        }
    }
    let refused = |reason: String| ReadError::Content {
        path: path.to_owned(),
        place: ":1".to_owned(),
        reason: no_result(&reason),
    };
    let behind_mark = without_mark(&text).map_err(|other| refused(other.to_string()))?;
    let mark_bytes = text.len() - behind_mark.len();
    text.drain(..mark_bytes);
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(refused("it does not begin with `{`".to_owned()));
    }
    if !is_too_large {
        limited.read_to_end(&mut text).map_err(|error| ReadError::io(path, error))?;
    }
    if is_too_large || text.len() as u64 > MAX_BYTES {
        return Err(ReadError::io(path, io::Error::other("it is larger than 1 GiB")));
    }
    Ok(text)
}

/// What to do about a file of another revision.
const OTHER_REVISION: &str =
    "measure again with this rocebench, or use the one that wrote the file";

/// Reads a text that is all of a file, or one line of it, from 1.
pub(super) fn parse(
    path: &Path,
    line: Option<usize>,
    text: &[u8],
) -> Result<ResultFile, ReadError> {
    parse_cleaned(&text::cleaned_json(text)).map_err(|fault| {
        let place = match (fault.place, line) {
            (Place::Line(at), line) => format!(":{}", at.max(1) + line.map_or(0, |line| line - 1)),
            (Place::Field(field), Some(line)) => format!(":{line}: {field}"),
            (Place::Field(field), None) => format!(": {field}"),
        };
        ReadError::Content { path: path.to_owned(), place, reason: fault.reason }
    })
}

/// Why a text is no result of this program.
struct Fault {
    place: Place,
    reason: String,
}

enum Place {
    /// A line of the text, from 1.
    Line(usize),
    /// A field of the result, such as `cases[0].config`.
    Field(String),
}

impl Fault {
    fn from_json(error: &serde_json::Error, text: &[u8]) -> Fault {
        let reason = if !error.is_eof() {
            text::printable(&error.to_string(), text::MAX_CHARS)
        } else if text.trim_ascii().is_empty() {
            "it is empty".to_owned()
        } else {
            "it ends here, in the middle; it was cut off".to_owned()
        };
        // The place stands before the reason.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let reason = no_result(reason.strip_suffix(&place).unwrap_or(&reason));
        Fault { place: Place::Line(error.line()), reason }
    }
}

fn parse_cleaned(text: &[u8]) -> Result<ResultFile, Fault> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }
    let read = parse_of_this_version(text);
    if read.as_ref().is_ok_and(|result| result.schema_version == SCHEMA_VERSION) {
        return read;
    }
    // Another version may differ in anything but this.
    let Version { schema_version } =
        serde_json::from_slice(text).map_err(|error| Fault::from_json(&error, text))?;
    if schema_version == u64::from(SCHEMA_VERSION) {
        return read;
    }
    Err(Fault {
        place: Place::Line(line_of(text, b"\"schema_version\"")),
        reason: format!(
            "the file has schema_version {schema_version}, and this rocebench reads only {SCHEMA_VERSION}; {OTHER_REVISION}"
        ),
    })
}

fn parse_of_this_version(text: &[u8]) -> Result<ResultFile, Fault> {
    if let Some(field) = missing_field(text).map_err(|error| Fault::from_json(&error, text))? {
        let reason = format!("there is no such field; {OTHER_REVISION}");
        return Err(Fault { place: Place::Field(field), reason });
    }
    let result = serde_json::from_slice(text).map_err(|error| Fault::from_json(&error, text))?;
    match first_flow_fault(&result) {
        None => Ok(result),
        Some((place, fault)) => {
            let fault = text::printable(&fault, text::MAX_CHARS);
            let reason = format!("{fault}; name a result file as rocebench wrote it");
            Err(Fault { place: Place::Field(place), reason })
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

/// The schema of the result file (JSON Schema 2020-12): what this program writes. Every field is required, also one that may
/// be `null`.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<ResultFile>()
}

/// The place of the first field that the text of a result lacks, such as `cases[0].config`.
///
/// # Errors
/// The text is not JSON, or something plain stands where an object is due.
fn missing_field(text: &[u8]) -> serde_json::Result<Option<String>> {
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
        let present = schema["anyOf"].get(0).unwrap_or(schema);
        let pointer = present["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
        let definition = pointer.and_then(|path| root.pointer(path)).unwrap_or(present);
        if let Some(items) = definition.get("items") {
            return Fields::new(root, items);
        }
        let required: &[Value] = definition["required"].as_array().map_or(&[], Vec::as_slice);
        let properties = definition["properties"].as_object().into_iter().flatten();
        let fields = properties.map(|(name, property)| {
            let is_required = required.iter().any(|known| known == name);
            (name.clone(), is_required, Fields::new(root, property))
        });
        Fields(fields.collect())
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

    fn visit_bool<E: Error>(self, value: bool) -> Result<Option<String>, E> {
        self.plain(Unexpected::Bool(value))
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
        /// Not copied: a result has millions of them.
        #[derive(Deserialize)]
        struct Key<'k>(#[serde(borrow)] Cow<'k, str>);

        let (mut first, mut left) = (None, self.0.iter().collect::<Vec<_>>());
        while let Some(Key(key)) = map.next_key()? {
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

/// What is wrong with the flows of a result that types cannot say: the place of the first fault, such as
/// `cases[0].config.flows[1]`, and what it is.
fn first_flow_fault(result: &ResultFile) -> Option<(String, String)> {
    for (index, case) in result.cases.iter().enumerate() {
        let place = format!("cases[{index}]");
        if let Some((flow, fault)) = config_fault(&case.config) {
            return Some((format!("{place}.config.flows[{flow}]"), fault));
        }
        for (run_index, run) in case.runs.iter().enumerate() {
            if !are_parallel(&case.config.flows, &run.flows) {
                let fault = "they are not those of the case's config, in its order";
                return Some((format!("{place}.runs[{run_index}].flows"), fault.to_owned()));
            }
        }
    }
    None
}

fn config_fault(config: &CaseConfig) -> Option<(usize, String)> {
    let mut names = HashSet::new();
    config.flows.iter().enumerate().find_map(|(index, flow)| {
        let fault = if names.insert(&flow.name) {
            flow.fault(&config.settings)?
        } else {
            format!("another flow of the case is called {:?} too", flow.name)
        };
        Some((index, fault))
    })
}

fn are_parallel(config: &[FlowConfig], run: &[FlowResult]) -> bool {
    config
        .iter()
        .map(|flow| (&flow.name, &flow.from, &flow.to))
        .eq(run.iter().map(|flow| (&flow.name, &flow.from, &flow.to)))
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
