//! A flow of a case: traffic of one kind from one node to another; and flows over rails, which are devices of a node
//! over which its flows go at once, a flow for each.

use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use settings::Settings;

use crate::nodes::{ListError, expand};
use crate::sweep::{Case, MOST_FLOWS};

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
    /// In lock-step: messages of each QP in an iteration; 0 of other flows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps: u32,
    /// Every setting; those of the case are the same in all of its flows.
    #[serde(flatten)]
    pub settings: Settings,
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
            steps: 0,
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

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(steps: &u32) -> bool {
    *steps == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_first(worker_set: &u8) -> bool {
    *worker_set == 0
}

impl FlowDevice {
    /// Its name, and its port where one is chosen: `mlx5_0`, `mlx4_0:2`.
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

/// The devices of a node, as `--device` names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Devices {
    /// All that can be used.
    All,
    /// By their names, of which there is at least one.
    Named(Vec<String>),
}

/// Why a text names no devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum DevicesError {
    #[error(transparent)]
    List(#[from] ListError),
    #[error("`{0}` is not the name of a device")]
    Name(String),
    #[error("{0} is listed twice")]
    Twice(String),
}

impl FromStr for Devices {
    type Err = DevicesError;

    /// `mlx5_0`, `mlx5_[0-3]`, `mlx5_0,mlx5_2` or `all`.
    fn from_str(text: &str) -> Result<Devices, DevicesError> {
        if text == "all" {
            return Ok(Devices::All);
        }
        let names = expand(text)?;
        let mut known = HashSet::new();
        for name in &names {
            if !FlowDevice::is_name(name) {
                return Err(DevicesError::Name(name.clone()));
            }
            if !known.insert(name) {
                return Err(DevicesError::Twice(name.clone()));
            }
        }
        Ok(Devices::Named(names))
    }
}

impl Devices {
    /// The device, where it is one that is named.
    pub fn only(&self) -> Option<&str> {
        match self {
            Devices::Named(names) => match &names[..] {
                [only] => Some(only),
                _ => None,
            },
            Devices::All => None,
        }
    }
}

/// What is asked of rails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RailsAsked {
    /// Flows go from each rail to each, and not from the first to the first, the second to the second and so on.
    pub each_to_each: bool,
    pub all_up: bool,
}

/// A node, and its rails, with a place for each that is down; none of one that has its own device alone.
pub type NodeRails = (String, Vec<Option<FlowDevice>>);

/// The case with a flow for each rail, or each two rails, in place of each flow that asks for no device.
///
/// # Errors
/// Nodes have different numbers of rails, or there are too many flows.
pub fn over_rails(case: &Case, nodes: &[NodeRails], each_to_each: bool) -> Result<Case, String> {
    let mut flows = Vec::new();
    for flow in &case.flows {
        flows.extend(flow_over_rails(flow, nodes, each_to_each)?);
    }
    match flows.len() {
        0..=MOST_FLOWS => Ok(Case { flows, ..case.clone() }),
        count => Err(format!(
            "the case {} has {count} flows over all rails; a case has at most {MOST_FLOWS}",
            case.id
        )),
    }
}

fn flow_over_rails(
    flow: &Flow,
    nodes: &[NodeRails],
    each_to_each: bool,
) -> Result<Vec<Flow>, String> {
    let (from_node, from_rails) = rails_at(flow, nodes, flow.from, Side::Initiator);
    let (to_node, to_rails) = rails_at(flow, nodes, flow.to, Side::Target);
    if from_rails.len().max(to_rails.len()) < 2 {
        return Ok(vec![flow.clone()]);
    }
    let (up_from, up_to) = (ends(from_rails), ends(to_rails));
    let pairs: Vec<(End<'_>, End<'_>)> = if each_to_each {
        up_from.iter().flat_map(|from| up_to.iter().map(move |to| (*from, *to))).collect()
    } else if from_rails.len() == to_rails.len() {
        // One that is down at one node is left out at both.
        from_rails
            .iter()
            .zip(to_rails)
            .filter(|(from, to)| from.is_some() && to.is_some())
            .map(|(from, to)| (from.as_ref(), to.as_ref()))
            .collect()
    } else if up_from.len() == up_to.len() {
        up_from.into_iter().zip(up_to).collect()
    } else {
        Vec::new()
    };
    if pairs.is_empty() {
        return Err(format!(
            "--rails same needs as many rails at both nodes: flow {} goes from {} of {from_node} to {} of {to_node}",
            flow.name,
            counted(from_rails),
            counted(to_rails)
        ));
    }
    let mut of_rail = flow.clone();
    if flow.lock_step {
        // They carry what is sent in a step together.
        of_rail.size_bytes = (flow.size_bytes / pairs.len() as u32).max(1);
    }
    Ok(pairs.into_iter().map(|(from, to)| over_ends(&of_rail, from, to)).collect())
}

/// The flow over these rails, with their names in its own.
pub(crate) fn over_ends(flow: &Flow, from: End<'_>, to: End<'_>) -> Flow {
    let names = [from, to].map(|end| end.map(FlowDevice::port_name));
    let rail = match names {
        [Some(from_name), Some(to_name)] if from_name != to_name => {
            format!("{from_name}>{to_name}")
        }
        [from_name, to_name] => from_name.or(to_name).unwrap_or_default(),
    };
    Flow {
        name: format!("{}{}{rail}", flow.name, Flow::OVER),
        from_device: from.or(flow.from_device.as_ref()).cloned(),
        to_device: to.or(flow.to_device.as_ref()).cloned(),
        ..flow.clone()
    }
}

pub(crate) fn rails_at<'a>(
    flow: &Flow,
    nodes: &'a [NodeRails],
    node: u32,
    side: Side,
) -> (&'a str, &'a [Option<FlowDevice>]) {
    let known = nodes.get(node as usize);
    let (name, rails) = known.map_or(("", &[][..]), |(name, rails)| (name, rails));
    match flow.device(side) {
        None => (name, rails),
        Some(_) => (name, &[]),
    }
}

/// An end over a rail; without one the device stays.
pub(crate) type End<'a> = Option<&'a FlowDevice>;

/// The ends over the rails that are up.
fn ends(rails: &[Option<FlowDevice>]) -> Vec<End<'_>> {
    match rails {
        [] => vec![None],
        some => some.iter().flatten().map(Some).collect(),
    }
}

/// How many rails of a node are up, and which: `2 rails (mlx5_0, mlx5_1)`.
fn counted(rails: &[Option<FlowDevice>]) -> String {
    let names: Vec<String> = rails.iter().flatten().map(FlowDevice::port_name).collect();
    match (rails.len(), names.len()) {
        (0, _) => "its own device".to_owned(),
        (_, 1) => format!("1 rail ({})", names.join("")),
        (_, up) => format!("{up} rails ({})", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use results::sample::has;
    use settings::Given;

    use super::*;
    use crate::Sweep;

    fn flows_over(from: &str, to: &str, each_to_each: bool) -> Result<String, String> {
        let rails = |names: &str| -> Vec<Option<FlowDevice>> {
            names
                .split_whitespace()
                .map(|name| {
                    (name != "down").then(|| FlowDevice { name: name.to_owned(), ib_port: None })
                })
                .collect()
        };
        let nodes = [("client", from), ("server", to)];
        let nodes = nodes.map(|(name, names)| (name.to_owned(), rails(names)));
        let case = Sweep::new(&Given::default()).unwrap().cases.remove(0);
        let expanded = over_rails(&case, &nodes, each_to_each)?;
        Sweep::check(&expanded).unwrap();
        let name = |device: Option<FlowDevice>| device.map_or("-".to_owned(), |it| it.name);
        Ok(expanded
            .flows
            .into_iter()
            .map(|flow| {
                format!("{} {} {}", flow.name, name(flow.from_device), name(flow.to_device))
            })
            .collect::<Vec<_>>()
            .join(", "))
    }

    #[test]
    fn a_flow_goes_over_each_rail() {
        for (from, to, each_to_each, flows) in [
            ("a b", "a d", false, "forward@a a a, forward@b>d b d"),
            ("", "", false, "forward - -"),
            ("a", "b", true, "forward - -"),
            ("a b", "", true, "forward@a a -, forward@b b -"),
            ("a down c", "a b down", false, "forward@a a a"),
            ("a down c", "a c", false, "forward@a a a, forward@c c c"),
            ("a down", "a b", true, "forward@a a a, forward@a>b a b"),
            (
                "a b",
                "b c",
                true,
                "forward@a>b a b, forward@a>c a c, forward@b b b, forward@b>c b c",
            ),
        ] {
            assert_eq!(flows_over(from, to, each_to_each).as_deref(), Ok(flows));
        }
        let many: String = (0..65).map(|it| format!("m{it} ")).collect();
        for (from, to, each_to_each, says) in [
            ("a b", "c d e", false, "2 rails (a, b) of client to 3 rails (c, d, e) of server"),
            ("a b", "", false, "its own device of server"),
            ("a down", "down b", false, "1 rail (a) of client"),
            (&many, &many, true, "4225 flows over all rails"),
        ] {
            has(flows_over(from, to, each_to_each).unwrap_err(), [says]);
        }
    }

    #[test]
    fn lists_of_devices_are_read_as_lists_of_nodes() {
        let names = |text: &str| match text.parse() {
            Ok(Devices::Named(names)) => names.join(" "),
            other => format!("{other:?}"),
        };
        for (text, devices) in
            [("mlx5_0", "mlx5_0"), ("mlx5_[0-1],rxe0", "mlx5_0 mlx5_1 rxe0"), ("all", "Ok(All)")]
        {
            assert_eq!(names(text), devices);
        }
        for (text, words) in [
            ("mlx5_[0-1],mlx5_1", "mlx5_1 is listed twice"),
            ("mlx5_0,", "`` is not the name of a device"),
            ("", "`` is not the name of a device"),
            ("mlx5_[0", "does not close"),
        ] {
            has(text.parse::<Devices>().unwrap_err().to_string(), [words]);
        }
    }
}
