//! A flow of a case: traffic of one kind from one node to another.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use settings::Settings;

/// Traffic of one kind from one node to another, with its settings, which are fields of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Its name, unique in the case.
    pub name: String,
    /// The node that it goes from, by its number in the session.
    pub from: u32,
    /// The node that it goes to.
    pub to: u32,
    /// The device at the node that it goes from; the node's own without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_device: Option<FlowDevice>,
    /// The device at the node that it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_device: Option<FlowDevice>,
    /// Which of a node's sets of workers serve it: 0, or 1 for an attacker, which takes no time of the victim's.
    #[serde(default, skip_serializing_if = "is_first")]
    pub worker_set: u8,
    /// Every setting; those of the case are the same in all of its flows.
    #[serde(flatten)]
    pub settings: Settings,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_first(worker_set: &u8) -> bool {
    *worker_set == 0
}

/// A device that one end of a flow asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowDevice {
    /// Its name, as `--device` takes it: 1 to 64 visible ASCII characters.
    pub name: String,
    /// Its port, from 1; the first active one without.
    pub ib_port: Option<u8>,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The node that the flow goes from: it sends, writes or reads.
    Initiator,
    /// The node that it goes to, which sends, writes or reads only in a bidirectional flow.
    Target,
}

impl Flow {
    /// Sets of workers that a node may have, each of as many as the case says.
    pub const WORKER_SETS: u8 = 2;

    /// The name of the only flow of a case, and of what the initiator sends on it.
    pub const FORWARD: &str = "forward";

    /// What stands in a name before the rail that the flow goes over; no name has it that is given.
    pub const OVER: char = '@';

    /// The only flow of a case: from the first node to the second.
    pub fn forward(settings: Settings) -> Flow {
        Flow {
            name: Flow::FORWARD.to_owned(),
            from: 0,
            to: 1,
            from_device: None,
            to_device: None,
            worker_set: 0,
            settings,
        }
    }

    /// The node and the side of the other end.
    pub fn other_end(&self, side: Side) -> (u32, Side) {
        match side {
            Side::Initiator => (self.to, Side::Target),
            Side::Target => (self.from, Side::Initiator),
        }
    }

    /// The device that an end asks for.
    pub fn device(&self, side: Side) -> Option<&FlowDevice> {
        match side {
            Side::Initiator => self.from_device.as_ref(),
            Side::Target => self.to_device.as_ref(),
        }
    }

    /// Whether a plan makes such names: those that may be given, and `FROM>TO` of two nodes; with `@` and a rail, or two rails,
    /// behind them where it goes over rails.
    pub fn is_name_of_plan(name: &str) -> bool {
        let (name, rail) = match name.split_once(Flow::OVER) {
            Some((name, rail)) => (name, Some(rail)),
            None => (name, None),
        };
        if rail.is_some_and(|rail| !rail.splitn(2, '>').all(FlowDevice::is_name)) {
            return false;
        }
        name.split_once('>').map_or_else(
            || Flow::is_name(name),
            |(from, to)| is_node_name(from) && is_node_name(to),
        )
    }

    /// Whether `name` may be given to a flow: 1 to 32 letters, digits, dots, dashes or underscores.
    pub fn is_name(name: &str) -> bool {
        (1..=32).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    }
}

impl FlowDevice {
    /// `mlx5_0`, `mlx4_0:2`.
    pub fn port_name(&self) -> String {
        match self.ib_port {
            Some(port) => format!("{}:{port}", self.name),
            None => self.name.clone(),
        }
    }

    /// Whether `name` may be a device's.
    pub fn is_name(name: &str) -> bool {
        (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

impl Deref for Flow {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for Flow {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

fn is_node_name(name: &str) -> bool {
    (1..=256).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:%[]".contains(&byte))
}
