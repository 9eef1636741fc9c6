//! A sweep in a TOML file. Keys are the long flags' names, values are what the flags take, lists are
//! arrays or single values; both are read by the same parsers. `[[flow]]` tables are flows. Every error has file, line
//! and column.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use settings::{Given, ROWS, Settings, nearest};
use toml::de::{DeTable, DeValue};

use results::text::{MAX_CHARS, printable};

use super::error::PlanError;
use super::flow_table::{self, FlowTable};
use super::nodes::Nodes;
use super::sizes_table::set_any;
use super::small_file::{self, MAX_BYTES};
use super::toml_value::{Fault, Place, Value, fault, place, scalar_text};

/// A sweep read from a file, and where each of its keys stands.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// The settings that it gives, for all flows that have none of their own.
    pub given: Given,
    /// Its flows; without any, the nodes' usual one.
    pub flows: Vec<FlowTable>,
    /// Its nodes, if it names them.
    pub nodes: Option<Nodes>,
    /// The file's name as given.
    pub path: PathBuf,
    text: String,
    offsets: BTreeMap<&'static str, usize>,
}

/// Why a file gives no sweep.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is larger than {MAX_BYTES} bytes; that is not a configuration file", path.display())]
    TooLarge { path: PathBuf },
    #[error("{}:{place}: {message}", path.display())]
    Content { path: PathBuf, place: Place, message: String },
}

fn unknown_key(key: &str, machine_flags: &[&str]) -> String {
    let dashed = key.replace('_', "-");
    if machine_flags.contains(&dashed.as_str()) {
        return format!("`{key}` is not a setting of a sweep: give it on the command line");
    }
    let others = ["nodes", "flow"].into_iter();
    let keys: Vec<&str> = ROWS.iter().map(|row| row.flag).chain(others).collect();
    match nearest(key, &keys) {
        Some(known) => format!("unknown key `{key}`; did you mean `{known}`?"),
        None => {
            format!("unknown key `{key}`; use the long flags of `rocebench --help`, such as `qps`")
        }
    }
}

fn read_nodes(value: &Value<'_>) -> Result<Nodes, Fault> {
    let nodes = match value.get_ref() {
        DeValue::Array(items) => {
            let names: Result<Vec<_>, _> =
                items.iter().map(|item| scalar_text("nodes", item)).collect();
            Nodes::from_items(&names?)
        }
        _ => scalar_text("nodes", value)?.parse(),
    };
    nodes.map_err(|error| fault(value.span(), format!("`nodes`: {error}")))
}

impl ConfigFile {
    /// Reads the file at `path`. `machine_flags` are the long flags that a file cannot set, because they are about this
    /// machine and not about the sweep.
    ///
    /// # Errors
    /// When it cannot be read, is not TOML, or has a key or value that is not known.
    pub fn read(path: &Path, machine_flags: &[&str]) -> Result<ConfigFile, ConfigError> {
        let bytes = small_file::read(path)
            .map_err(|source| unread(path, source))?
            .ok_or_else(|| ConfigError::TooLarge { path: path.to_owned() })?;
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
    pub fn parse(
        text: &str,
        path: &Path,
        machine_flags: &[&str],
    ) -> Result<ConfigFile, ConfigError> {
        let mut file = ConfigFile {
            given: Given::default(),
            flows: Vec::new(),
            nodes: None,
            path: path.to_owned(),
            text: text.to_owned(),
            offsets: BTreeMap::new(),
        };
        let read = file.read_keys(text, machine_flags);
        read.map_err(|fault| ConfigError::Content {
            path: path.to_owned(),
            place: place(text, fault.span.start),
            // It may quote the file.
            message: printable(&fault.message, MAX_CHARS),
        })?;
        Ok(file)
    }

    fn read_keys(&mut self, text: &str, machine_flags: &[&str]) -> Result<(), Fault> {
        let table = DeTable::parse(text).map_err(|error| {
            let end = text.len();
            fault(error.span().unwrap_or(end..end), error.message())
        })?;
        for (key, value) in table.get_ref() {
            let name = match key.get_ref().as_ref() {
                "flow" => {
                    self.flows = flow_table::read_all(value)?;
                    continue;
                }
                "nodes" => {
                    self.nodes = Some(read_nodes(value)?);
                    "nodes"
                }
                name => {
                    let row = Settings::row(name)
                        .ok_or_else(|| fault(key.span(), unknown_key(name, machine_flags)))?;
                    set_any(&mut self.given, row, value)?.flag
                }
            };
            self.offsets.insert(name, key.span().start);
        }
        Ok(())
    }

    /// Where the file says what the error is about, if it does. `is_overridden` tells whether a flag stands for
    /// what the file gives for all flows.
    pub fn place_of(&self, error: &PlanError, is_overridden: bool) -> Option<Place> {
        let key = error.flag();
        let flow = error.flow().and_then(|name| self.flows.iter().find(|flow| flow.name == name));
        let own = flow.and_then(|flow| flow.offsets.get(key));
        let offset = match (own, is_overridden) {
            (None, true) => None,
            (own, _) => own.or_else(|| {
                let table = flow.and_then(|flow| flow.offsets.get("flow"));
                self.offsets.get(key).or(table)
            }),
        };
        Some(place(&self.text, *offset?))
    }
}

fn unread(path: &Path, source: std::io::Error) -> ConfigError {
    ConfigError::Read { path: path.to_owned(), source }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
