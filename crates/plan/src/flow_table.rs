//! A `[[flow]]` table of a file: a flow as it is asked for, before nodes have numbers and settings above it are known.

use std::collections::BTreeMap;

use settings::{Given, ROWS, Row, Scope, Settings, nearest};
use toml::de::{DeTable, DeValue};

use super::flow::{Flow, FlowDevice};
use super::host::HostPort;
use super::sizes_table::{is_mix, set_any};
use super::toml_value::{Fault, Value, fault, scalar_text, text};

/// Keys of a flow besides its settings.
const KEYS: [&str; 7] =
    ["name", "from", "to", "from-device", "to-device", "from-ib-port", "to-ib-port"];

/// A flow as it is asked for.
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
    pub(super) offsets: BTreeMap<&'static str, usize>,
}

/// Reads the `[[flow]]` tables of a file.
pub(super) fn read_all(value: &Value<'_>) -> Result<Vec<FlowTable>, Fault> {
    let DeValue::Array(items) = value.get_ref() else {
        return Err(not_tables(value));
    };
    let mut flows: Vec<FlowTable> = Vec::new();
    let mut names = std::collections::HashSet::new();
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
            if let Some(&key_of_flow) = KEYS.iter().find(|it| **it == name) {
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
                .ok_or_else(|| fault(key.span(), no_key(name)))?;
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
        if matches!(value.get_ref(), DeValue::Array(_)) && !is_mix(row, value) {
            return Err(fault(
                value.span(),
                format!("`{key}`: a flow has one value; put a list above the first [[flow]]"),
            ));
        }
        set_any(&mut self.given, row, value)?;
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
fn no_key(key: &str) -> String {
    if key == "nodes" || Settings::row(key).is_some() {
        return format!("`{key}` holds for all flows of a case: set it above the first [[flow]]");
    }
    let of_flows = ROWS.iter().filter(|row| row.scope == Scope::Flow);
    let keys: Vec<&str> = KEYS.into_iter().chain(of_flows.map(|row| row.flag)).collect();
    match nearest(key, &keys) {
        Some(known) => format!("unknown key `{key}` of a flow; did you mean `{known}`?"),
        None => format!(
            "unknown key `{key}` of a flow; keys are {} and the settings of a flow, such as `qps`",
            KEYS.join(", ")
        ),
    }
}

#[cfg(test)]
#[path = "flow_table_tests.rs"]
mod tests;
