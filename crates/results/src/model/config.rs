//! The settings of a case and of its flows.

use std::ops::{Deref, DerefMut};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use settings::{CrossRail, ROWS, Settings, names};

/// The node that runs the sweep, in a sweep of two nodes.
pub const CLIENT: &str = "client";
/// The node that serves the one that runs the sweep, in a sweep of two nodes.
pub const SERVER: &str = "server";
/// The flow from client to server, of a case that names none.
pub const FORWARD: &str = "forward";
/// The flow from server to client of a bidirectional case.
pub const REVERSE: &str = "reverse";

/// The settings of a case, as all nodes applied them, and its flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseConfig {
    /// Every setting of the case, by its field; a flow may differ in some.
    #[serde(flatten)]
    pub settings: Settings,
    /// Its flows; in a case that measures set-up, the traffic beside it.
    pub flows: Vec<FlowConfig>,
    /// Of a round of `mesh --check`: what is checked; left out of other cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckRound>,
}

/// What a round of `mesh --check` is for. Each of its flows fails alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRound {
    /// What is expected of paths from one rail to another.
    pub cross_rail: CrossRail,
    /// Its flows go from one rail to another.
    pub is_cross: bool,
    /// A path below this part of the median is slow, in percent.
    pub slow_below_percent: u32,
}

/// A flow: traffic of one kind from one node to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowConfig {
    /// Name, unique in the case. Without a name of its own: `forward`, and `reverse` for the other direction.
    pub name: String,
    /// The node that posts its WRs: it sends, writes or reads.
    pub from: String,
    /// The node at the other end.
    pub to: String,
    /// Verbs name of the device at `from`; `null` when none was opened.
    pub from_device: Option<String>,
    /// Verbs name of the device at `to`; `null` when that node did not report it.
    pub to_device: Option<String>,
    /// Path MTU in use, in bytes; `null` when no connection was made.
    pub path_mtu: Option<u32>,
    /// How packets went between embedded devices; left out of others, and when no connection was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireKind>,
    /// Its settings that differ from the case's, by name.
    pub settings: Map<String, Value>,
}

names! {
    /// How packets go between embedded devices.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    WireKind {
        /// By sockets of the kernel's.
        #[default]
        Udp = "udp",
        /// Through memory: both ends are in one process.
        Memory = "memory",
    }
}

/// Separates the name of a flow from its rail.
const OVER: char = '@';

impl FlowConfig {
    /// The name that the flows over all rails share, and its rails at `from` and `to`; `None` if it goes over no rail.
    pub fn over_rails(&self) -> Option<(&str, [&str; 2])> {
        let (name, rails) = self.name.split_once(OVER)?;
        let (one, two) = rails.split_once('>').unwrap_or((rails, rails));
        let ends = [(&self.from_device, [one, two]), (&self.to_device, [two, one])];
        // The way back has the same name, and that of a node with one device is in none.
        let rails_of_ends = ends.map(|(device, names)| {
            let own = device.as_deref().unwrap_or(names[0]);
            names.into_iter().find(|rail| rail.split(':').next() == Some(own)).unwrap_or(own)
        });
        Some((name, rails_of_ends))
    }

    /// A flow with the settings `flow` of a case with the settings `case`, before a connection is made.
    pub fn new(name: &str, from: &str, to: &str, case: &Settings, flow: &Settings) -> FlowConfig {
        let mut values = object(flow);
        values.retain(|field, _| {
            ROWS.iter().any(|row| row.field == *field && !row.is_equal(case, flow))
        });
        FlowConfig {
            name: name.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            settings: values,
            ..FlowConfig::default()
        }
    }

    /// What is wrong with its settings in a case of these.
    pub(crate) fn fault(&self, case: &Settings) -> Option<String> {
        let mut fields = self.settings.keys();
        match fields.find(|field| !ROWS.iter().any(|row| row.field == **field)) {
            Some(field) => Some(format!("there is no setting `{field}`")),
            None => self.over(case).err().map(|error| error.to_string()),
        }
    }

    /// The case's settings with its own laid over them.
    fn over(&self, case: &Settings) -> serde_json::Result<Settings> {
        if self.settings.is_empty() {
            return Ok(case.clone());
        }
        let mut values = object(case);
        values.extend(self.settings.clone());
        serde_json::from_value(values.into())
    }
}

fn object(settings: &Settings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(values)) => values,
        _ => Map::new(),
    }
}

impl CaseConfig {
    /// The settings of the flow with this index: the case's, with what differs laid over. Where there is no such flow,
    /// the case's.
    pub fn flow(&self, index: usize) -> Settings {
        self.flows
            .get(index)
            .and_then(|flow| flow.over(&self.settings).ok())
            .unwrap_or_else(|| self.settings.clone())
    }

    /// The settings shown with figures of a flow: its own, or the case's if that measured set-up.
    pub fn shown(&self, index: usize) -> Settings {
        if self.is_set_up() { self.settings.clone() } else { self.flow(index) }
    }

    /// The flow's name, if a case needs it to distinguish its flows; else empty.
    pub fn flow_label<'a>(&self, name: &'a str) -> &'a str {
        if self.flows.len() < 2 && name == FORWARD { "" } else { name }
    }
}

/// The case `id`, with its flow's name if the case needs it: `ID, flow NAME`.
pub fn subject(config: &CaseConfig, id: &str, name: &str) -> String {
    match config.flow_label(name) {
        "" => id.to_owned(),
        label => format!("{id}, flow {label}"),
    }
}

impl From<Settings> for CaseConfig {
    /// A case of one kind before a connection was made: its flow is `forward`, and with `bidirectional` there is
    /// `reverse` too.
    fn from(settings: Settings) -> CaseConfig {
        let mut flows = vec![FlowConfig::new(FORWARD, CLIENT, SERVER, &settings, &settings)];
        if settings.bidirectional {
            flows.push(FlowConfig::new(REVERSE, SERVER, CLIENT, &settings, &settings));
        }
        CaseConfig { settings, flows, check: None }
    }
}

impl Deref for CaseConfig {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for CaseConfig {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_what_differs_and_gives_all_back() {
        let case = Settings::from([
            ("op", "write"),
            ("qps", "12"),
            ("size", "64"),
            ("signal-every", "64"),
        ]);
        let mut other = Settings::from([("op", "read"), ("qps", "4"), ("size", "1M")]);
        other.duration_seconds = "3s".parse().ok();
        let flows = [&case, &other].map(|flow| FlowConfig::new("f", CLIENT, SERVER, &case, flow));
        assert!(flows[0].settings.is_empty());
        let names = flows[1].settings.keys();
        let differing = "op size_bytes qps signal_every duration_seconds";
        assert!(names.eq(differing.split(' ')));
        assert!(flows.iter().all(|flow| flow.fault(&case).is_none()));
        let config = CaseConfig { settings: case.clone(), flows: flows.to_vec(), check: None };
        let settings_of_flows = [0, 1, 2].map(|index| config.flow(index));
        assert_eq!(settings_of_flows, [case.clone(), other, case]);
    }
}
