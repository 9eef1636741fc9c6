//! A sweep in a TOML file. Keys are the long flags' names, values are what the flags take, lists are
//! arrays or single values; both are read by the same parsers. Every error has file, line and column.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::{List, SweepSpec};
use report::text::{MAX_CHARS, printable};

/// A sweep read from a file, and where each of its keys stands.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// What the file asks for.
    pub spec: SweepSpec,
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
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is too long to be one.
    #[error("{} is larger than {MAX_BYTES} bytes; that is no configuration file", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not what a configuration looks like.
    #[error("{}:{place}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What is wrong there.
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

fn one<T: FromStr<Err: fmt::Display>>(key: &str, value: &Value<'_>) -> Result<T, Fault> {
    scalar_text(key, value)?
        .parse()
        .map_err(|error: T::Err| fault(value.span(), format!("`{key}`: {error}")))
}

fn many<T>(key: &str, value: &Value<'_>) -> Result<List<T>, Fault>
where
    T: FromStr<Err: fmt::Display> + PartialEq + fmt::Display,
{
    let items = match value.get_ref() {
        DeValue::Array(items) => items
            .iter()
            .map(|item| one(key, item))
            .collect::<Result<_, _>>()?,
        _ => vec![one(key, value)?],
    };
    List::new(items).map_err(|error| fault(value.span(), format!("`{key}`: {error}")))
}

fn flag(key: &str, value: &Value<'_>) -> Result<bool, Fault> {
    value
        .get_ref()
        .as_bool()
        .ok_or_else(|| fault(value.span(), format!("`{key}` is true or false")))
}

/// Defines the keys, once, with the field of [`SweepSpec`] and the reader of each.
macro_rules! keys {
    ($($key:literal => $field:ident = $read:ident),* $(,)?) => {
        /// Every key that a file may hold: the long names of the flags that describe a sweep.
        pub const KEYS: &[&str] = &[$($key),*];

        fn set(spec: &mut SweepSpec, key: &str, value: &Value<'_>) -> Option<Result<&'static str, Fault>> {
            match key {
                $($key => Some($read(key, value).map(|read| {
                    spec.$field = Some(read);
                    $key
                })),)*
                _ => None,
            }
        }
    };
}

keys! {
    "op" => op = many,
    "cq" => cq = many,
    "poll" => poll = many,
    "connect" => connect = many,
    "size" => size = many,
    "qps" => qps = many,
    "traffic-qps" => traffic_qps = many,
    "workers" => workers = many,
    "tx-depth" => tx_depth = many,
    "rx-depth" => rx_depth = many,
    "signal-every" => signal_every = many,
    "post-list" => post_list = many,
    "inline" => inline = many,
    "mtu" => mtu = many,
    "bidirectional" => bidirectional = flag,
    "duration" => duration = one,
    "iters" => iters = one,
    "warmup" => warmup = one,
    "runs" => runs = one,
    "verify" => verify = flag,
    "no-latency" => no_latency = flag,
    "cq-depth" => cq_depth = one,
    "timeout" => timeout = one,
    "retry-cnt" => retry_cnt = one,
    "rnr-retry" => rnr_retry = one,
    "min-rnr-timer" => min_rnr_timer = one,
    "max-rd-atomic" => max_rd_atomic = one,
    "service-level" => service_level = one,
    "traffic-class" => traffic_class = one,
}

fn unknown_key(key: &str, machine_flags: &[&str]) -> String {
    let dashed = key.replace('_', "-");
    if machine_flags.contains(&dashed.as_str()) {
        return format!(
            "`{key}` is about this machine, not about the sweep: give it on the command line"
        );
    }
    match nearest(key, KEYS) {
        Some(known) => format!("unknown key `{key}`; did you mean `{known}`?"),
        None => format!(
            "unknown key `{key}`; keys are the long flags of `rocebench --help`, such as `qps`"
        ),
    }
}

fn read_spec(
    text: &str,
    machine_flags: &[&str],
) -> Result<(SweepSpec, BTreeMap<&'static str, Place>), Fault> {
    let table = DeTable::parse(text).map_err(|error| {
        let end = text.len();
        fault(error.span().unwrap_or(end..end), error.message())
    })?;
    let mut spec = SweepSpec::default();
    let mut places = BTreeMap::new();
    for (key, value) in table.get_ref().iter() {
        let known = set(&mut spec, key.get_ref(), value).unwrap_or_else(|| {
            let message = unknown_key(key.get_ref(), machine_flags);
            Err(fault(key.span(), message))
        })?;
        places.insert(known, place(text, key.span().start));
    }
    Ok((spec, places))
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
        let (spec, places) =
            read_spec(text, machine_flags).map_err(|fault| ConfigError::Content {
                path: path.to_owned(),
                place: place(text, fault.span.start),
                // It may quote the file.
                message: printable(&fault.message, MAX_CHARS),
            })?;
        Ok(ConfigFile {
            spec,
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
