//! A sweep in a TOML file. Keys are the long flags' names, values are what the flags take, lists are
//! arrays or single values; both are read by the same parsers. `[[flow]]` tables are flows. Every error has file, line
//! and column.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use results::text::{MAX_CHARS, printable};
use settings::text_file::{Place, TextFileError, read_text};
use settings::{Given, GivenError, ROWS, Row, Scope, Settings, Takes, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::flow::{Flow, FlowDevice};
use crate::nodes::{HostPort, Nodes};
use crate::sweep::PlanError;

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
    Read { path: PathBuf, source: TextFileError },
    #[error("{}:{place}: {message}", path.display())]
    Content { path: PathBuf, place: Place, message: String },
}

impl ConfigFile {
    /// Reads the file at `path`. `machine_flags` are the long flags that a file cannot set, because they are about this
    /// machine and not about the sweep.
    ///
    /// # Errors
    /// When it cannot be read, is not TOML, or has a key or value that is not known.
    pub fn read(path: &Path, machine_flags: &[&str]) -> Result<ConfigFile, ConfigError> {
        let text = read_text(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
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
            place: Place::new(text, fault.span.start),
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
                    self.flows = read_flows(value)?;
                    continue;
                }
                "nodes" => {
                    self.nodes = Some(read_nodes(value)?);
                    "nodes"
                }
                name => {
                    let row = Settings::row(name)
                        .ok_or_else(|| fault(key.span(), unknown_key(name, machine_flags)))?;
                    set_with_mix(&mut self.given, row, value)?.flag
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
        Some(Place::new(&self.text, *offset?))
    }
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

/// Keys of a flow besides its settings.
const FLOW_KEYS: [&str; 7] =
    ["name", "from", "to", "from-device", "to-device", "from-ib-port", "to-ib-port"];

/// A `[[flow]]` table of a file: a flow as it is asked for, before nodes have numbers and settings above it are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    pub name: String,
    /// The name of the node that it goes from; the first one without.
    pub from: Option<String>,
    /// The name of the node that it goes to; the second one without.
    pub to: Option<String>,
    /// The device at the node that it goes from.
    pub from_device: Option<FlowDevice>,
    /// The device at the node that it goes to.
    pub to_device: Option<FlowDevice>,
    /// Settings of its own, one value each.
    pub given: Given,
    /// Where its keys stand in the file, in bytes; the table itself by the key `flow`.
    offsets: BTreeMap<&'static str, usize>,
}

/// Reads the `[[flow]]` tables of a file.
fn read_flows(value: &Value<'_>) -> Result<Vec<FlowTable>, Fault> {
    let DeValue::Array(items) = value.get_ref() else {
        return Err(not_tables(value));
    };
    let mut flows: Vec<FlowTable> = Vec::new();
    let mut names = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(not_tables(value));
        };
        let mut flow = FlowTable { name: format!("flow{}", index + 1), ..FlowTable::default() };
        flow.offsets.insert("flow", item.span().start);
        flow.read(table)?;
        if !names.insert(flow.name.clone()) {
            let start = flow.offset("name");
            let message = format!("two flows are named `{}`: give each its own `name`", flow.name);
            return Err(fault(start..start, message));
        }
        flows.push(flow);
    }
    if flows.is_empty() {
        return Err(not_tables(value));
    }
    Ok(flows)
}

fn not_tables(value: &Value<'_>) -> Fault {
    fault(value.span(), "`flow` is a list of tables: write [[flow]] above the keys of each flow")
}

impl FlowTable {
    /// Where a key stands, or the table.
    fn offset(&self, key: &str) -> usize {
        let at = self.offsets.get(key).or_else(|| self.offsets.get("flow"));
        at.copied().unwrap_or_default()
    }

    fn read(&mut self, table: &DeTable<'_>) -> Result<(), Fault> {
        let mut ports = BTreeMap::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if let Some(&key_of_flow) = FLOW_KEYS.iter().find(|it| **it == name) {
                self.offsets.insert(key_of_flow, key.span().start);
                match key_of_flow {
                    "name" => self.name = read_name(value)?,
                    "from" => self.from = Some(read_node("from", value)?),
                    "to" => self.to = Some(read_node("to", value)?),
                    "from-device" => self.from_device = Some(read_device("from-device", value)?),
                    "to-device" => self.to_device = Some(read_device("to-device", value)?),
                    _ => drop(ports.insert(key_of_flow, read_port(key_of_flow, value)?)),
                }
                continue;
            }
            let row = Settings::row(name)
                .filter(|row| row.scope == Scope::Flow)
                .ok_or_else(|| fault(key.span(), unknown_flow_key(name)))?;
            self.set(row, value)?;
            self.offsets.insert(row.flag, key.span().start);
        }
        for (key, needed, device) in [
            ("from-ib-port", "from-device", &mut self.from_device),
            ("to-ib-port", "to-device", &mut self.to_device),
        ] {
            match (ports.get(key), device) {
                (Some(port), Some(device)) => device.ib_port = Some(*port),
                (Some(_), None) => {
                    let start = self.offsets.get(key).copied().unwrap_or_default();
                    let message = format!("`{key}` needs `{needed}`: give both");
                    return Err(fault(start..start, message));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn set(&mut self, row: &'static Row, value: &Value<'_>) -> Result<(), Fault> {
        let key = row.flag;
        if matches!(value.get_ref(), DeValue::Array(_)) && !is_size_mix(row, value) {
            return Err(fault(
                value.span(),
                format!("`{key}`: a flow has one value; put a list above the first [[flow]]"),
            ));
        }
        set_with_mix(&mut self.given, row, value)?;
        if key == "op" && self.given.values(key) == ["connect"] {
            return Err(fault(
                value.span(),
                "`op`: a flow cannot be connect; measure set-up without [[flow]]",
            ));
        }
        Ok(())
    }
}

fn read_name(value: &Value<'_>) -> Result<String, Fault> {
    let name = text("name", value)?;
    if Flow::is_name(name) {
        Ok(name.to_owned())
    } else {
        Err(fault(
            value.span(),
            format!("`name`: `{name}` is not 1 to 32 letters, digits, dots, dashes or underscores"),
        ))
    }
}

fn read_node(key: &str, value: &Value<'_>) -> Result<String, Fault> {
    let node = text(key, value)?;
    // Whatever a node is called, it is called as a host is.
    let read = node.parse::<HostPort>();
    read.map_err(|error| fault(value.span(), format!("`{key}`: {error}")))?;
    Ok(node.to_owned())
}

fn read_device(key: &str, value: &Value<'_>) -> Result<FlowDevice, Fault> {
    let name = text(key, value)?.to_owned();
    if FlowDevice::is_name(&name) {
        Ok(FlowDevice { name, ib_port: None })
    } else {
        Err(fault(
            value.span(),
            format!("`{key}`: `{name}` is not the name of a device, such as mlx5_0"),
        ))
    }
}

fn read_port(key: &str, value: &Value<'_>) -> Result<u8, Fault> {
    let port = scalar_text(key, value)?;
    port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
        let message = format!("`{key}`: `{port}` is not a port: ports are 1 to 255");
        fault(value.span(), message)
    })
}

/// Why a flow does not have a key.
fn unknown_flow_key(key: &str) -> String {
    if key == "nodes" || Settings::row(key).is_some() {
        return format!("`{key}` holds for all flows of a case: set it above the first [[flow]]");
    }
    let of_flows = ROWS.iter().filter(|row| row.scope == Scope::Flow);
    let keys: Vec<&str> = FLOW_KEYS.into_iter().chain(of_flows.map(|row| row.flag)).collect();
    match nearest(key, &keys) {
        Some(known) => format!("unknown key `{key}` of a flow; did you mean `{known}`?"),
        None => format!(
            "unknown key `{key}` of a flow; keys are {} and the settings of a flow, such as `qps`",
            FLOW_KEYS.join(", ")
        ),
    }
}

/// Whether the value of `size` gives several sizes by weight: `size = [{bytes = 64, weight = 9}, {bytes = "64K", weight = 1}]`
/// is `size-mix = "64:9,64K:1"`.
fn is_size_mix(row: &Row, value: &Value<'_>) -> bool {
    row.flag == "size"
        && value.get_ref().as_array().is_some_and(|items| {
            items.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_)))
        })
}

/// As [`set`], also of sizes by weight; returns the row that is set.
fn set_with_mix(
    given: &mut Given,
    row: &'static Row,
    value: &Value<'_>,
) -> Result<&'static Row, Fault> {
    match Settings::row("size-mix").filter(|_| is_size_mix(row, value)) {
        Some(mix) => {
            given
                .set(mix, &size_mix_text(value)?)
                .map_err(|error| fault(value.span(), format!("`size`: {error}")))?;
            Ok(mix)
        }
        None => set(given, row, value).map(|()| row),
    }
}

fn size_mix_text(value: &Value<'_>) -> Result<String, Fault> {
    let mut texts = Vec::new();
    for item in value.get_ref().as_array().into_iter().flat_map(|items| items.iter()) {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(not_a_size(item));
        };
        let (Some(bytes), Some(weight)) = (table.get("bytes"), table.get("weight")) else {
            return Err(not_a_size(item));
        };
        if table.len() != 2 {
            return Err(not_a_size(item));
        }
        let (bytes, weight) = (scalar_text("bytes", bytes)?, scalar_text("weight", weight)?);
        texts.push(format!("{bytes}:{weight}"));
    }
    Ok(texts.join(","))
}

fn not_a_size(item: &Value<'_>) -> Fault {
    let message = "`size`: write each size with its weight: {bytes = 64, weight = 9}";
    fault(item.span(), message)
}

/// A message and the bytes of the text that it is about.
struct Fault {
    span: Range<usize>,
    message: String,
}

type Value<'i> = Spanned<DeValue<'i>>;

fn fault(span: Range<usize>, message: impl Into<String>) -> Fault {
    Fault { span, message: message.into() }
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
            Err(fault(value.span(), format!("`{key}` takes a number or a string, not {what}")))
        }
    }
}

/// The value of a key that takes a text.
fn text<'v>(key: &str, value: &'v Value<'_>) -> Result<&'v str, Fault> {
    let what = value.get_ref().type_str();
    value
        .get_ref()
        .as_str()
        .ok_or_else(|| fault(value.span(), format!("`{key}` takes a string, not {what}")))
}

/// Sets what the row names.
fn set(given: &mut Given, row: &'static Row, value: &Value<'_>) -> Result<(), Fault> {
    let key = row.flag;
    let items = match (row.takes, value.get_ref()) {
        (Takes::Switch, DeValue::Boolean(is_on)) => vec![is_on.to_string()],
        (Takes::Switch, _) => {
            return Err(fault(value.span(), format!("`{key}` is true or false")));
        }
        (Takes::List, DeValue::Array(items)) => {
            let mut texts = Vec::with_capacity(items.len());
            for item in items {
                let text = scalar_text(key, item)?;
                // Alone, so that an error has its place.
                Given::default()
                    .set_items(row, &[&text])
                    .map_err(|error| faulty(key, item, &error))?;
                texts.push(text);
            }
            texts
        }
        _ => vec![scalar_text(key, value)?],
    };
    given.set_items(row, &items).map_err(|error| faulty(key, value, &error))
}

fn faulty(key: &str, value: &Value<'_>, error: &GivenError) -> Fault {
    fault(value.span(), format!("`{key}`: {error}"))
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
