//! A sweep in a TOML file. Keys are the long flags' names, values are what the flags take, lists are
//! arrays or single values; both are read by the same parsers. Every error has file, line and column.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use settings::{Given, ROWS, Row, Settings, Takes, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use report::text::{MAX_CHARS, printable};

/// A sweep read from a file, and where each of its keys stands.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// What the file asks for.
    pub given: Given,
    /// The file's name as given.
    pub path: PathBuf,
    places: BTreeMap<&'static str, Place>,
}

/// Line and column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// Why a file gives no sweep.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// It is too long to be one.
    #[error("{} is larger than {MAX_BYTES} bytes; that is no configuration file", path.display())]
    TooLarge { path: PathBuf },
    /// It is not what a configuration looks like.
    #[error("{}:{place}: {message}", path.display())]
    Content {
        path: PathBuf,
        place: Place,
        message: String,
    },
}

/// Larger files are refused, so that a wrong name such as `/dev/zero` ends at once.
const MAX_BYTES: u64 = 1 << 20;

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

fn place(text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        line: before.matches('\n').count() + 1,
        column: before.get(line_start..).unwrap_or("").chars().count() + 1,
    }
}

/// A message and the bytes of the text that it is about.
struct Fault {
    span: Range<usize>,
    message: String,
}

type Value<'i> = Spanned<DeValue<'i>>;

fn fault(span: Range<usize>, message: impl Into<String>) -> Fault {
    Fault {
        span,
        message: message.into(),
    }
}

/// The value as the flag would be given it.
fn scalar_text(key: &str, value: &Value<'_>) -> Result<String, Fault> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(|number| number.to_string())
            .map_err(|_| fault(value.span(), format!("`{key}`: the number is out of range"))),
        DeValue::Float(float) => Ok(float.as_str().to_owned()),
        other => {
            let what = other.type_str();
            Err(fault(
                value.span(),
                format!("`{key}` takes a number or a string, not {what}"),
            ))
        }
    }
}

/// Sets what `key` names.
fn set(given: &mut Given, row: &'static Row, value: &Value<'_>) -> Result<(), Fault> {
    let key = row.flag;
    let faulty =
        |span: Range<usize>, error: settings::GivenError| fault(span, format!("`{key}`: {error}"));
    let items = match (row.takes, value.get_ref()) {
        (Takes::Switch, DeValue::Boolean(is_on)) => vec![is_on.to_string()],
        (Takes::Switch, _) => {
            return Err(fault(value.span(), format!("`{key}` is true or false")));
        }
        (Takes::List, DeValue::Array(items)) => {
            let mut texts = Vec::with_capacity(items.len());
            for item in items.iter() {
                let text = scalar_text(key, item)?;
                // Alone, so that an error has its place.
                Given::default()
                    .set_items(row, &[&text])
                    .map_err(|error| faulty(item.span(), error))?;
                texts.push(text);
            }
            texts
        }
        _ => vec![scalar_text(key, value)?],
    };
    given
        .set_items(row, &items)
        .map_err(|error| faulty(value.span(), error))
}

fn unknown_key(key: &str, machine_flags: &[&str]) -> String {
    let dashed = key.replace('_', "-");
    if machine_flags.contains(&dashed.as_str()) {
        return format!(
            "`{key}` is about this machine, not about the sweep: give it on the command line"
        );
    }
    let keys: Vec<&str> = ROWS.iter().map(|row| row.flag).collect();
    match nearest(key, &keys) {
        Some(known) => format!("unknown key `{key}`; did you mean `{known}`?"),
        None => format!(
            "unknown key `{key}`; keys are the long flags of `rocebench --help`, such as `qps`"
        ),
    }
}

fn read_given(
    text: &str,
    machine_flags: &[&str],
) -> Result<(Given, BTreeMap<&'static str, Place>), Fault> {
    let table = DeTable::parse(text).map_err(|error| {
        let end = text.len();
        fault(error.span().unwrap_or(end..end), error.message())
    })?;
    let mut given = Given::default();
    let mut places = BTreeMap::new();
    for (key, value) in table.get_ref().iter() {
        let row = Settings::row(key.get_ref())
            .ok_or_else(|| fault(key.span(), unknown_key(key.get_ref(), machine_flags)))?;
        set(&mut given, row, value)?;
        places.insert(row.flag, place(text, key.span().start));
    }
    Ok((given, places))
}

impl ConfigFile {
    /// Reads the file at `path`. `machine_flags` are the long flags that a file cannot set, because they are about this
    /// machine and not about the sweep.
    ///
    /// # Errors
    /// When it cannot be read, is not TOML, or has a key or value that is not known.
    pub fn read(path: &Path, machine_flags: &[&str]) -> Result<ConfigFile, ConfigError> {
        use std::io::Read as _;
        let read = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(read)?;
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(read)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
            return Err(ConfigError::TooLarge {
                path: path.to_owned(),
            });
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes());
            ConfigError::Content {
                path: path.to_owned(),
                place: place(&text, valid),
                message: "this is not UTF-8 text".into(),
            }
        })?;
        Self::parse(&text, path, machine_flags)
    }

    /// Reads `text`, which came from `path`.
    ///
    /// # Errors
    /// As [`ConfigFile::read`].
    pub fn parse(
        text: &str,
        path: &Path,
        machine_flags: &[&str],
    ) -> Result<ConfigFile, ConfigError> {
        let (given, places) =
            read_given(text, machine_flags).map_err(|fault| ConfigError::Content {
                path: path.to_owned(),
                place: place(text, fault.span.start),
                // It may quote the file.
                message: printable(&fault.message, MAX_CHARS),
            })?;
        Ok(ConfigFile {
            given,
            path: path.to_owned(),
            places,
        })
    }

    /// Where the file sets `key`, if it does.
    pub fn place_of(&self, key: &str) -> Option<Place> {
        self.places.get(key).copied()
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
