//! Rails: devices of a node over which its flows go at once, a flow for each.

use std::collections::HashSet;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::case::{Case, MOST_FLOWS};
use super::flow::{Flow, FlowDevice, Side};
use super::node_list::{ListError, expand};

/// The devices of a node, as `--device` names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Devices {
    /// All that can be used.
    All,
    /// These, at least one.
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
    let flows: Vec<Vec<Flow>> = case
        .flows
        .iter()
        .map(|flow| flow_over_rails(flow, nodes, each_to_each))
        .collect::<Result<_, _>>()?;
    let expanded = Case { flows: flows.into_iter().flatten().collect(), ..case.clone() };
    match expanded.flows.len() {
        0..=MOST_FLOWS => Ok(expanded),
        flows => Err(format!(
            "the case {} has {flows} flows over all rails; a case has at most {MOST_FLOWS}",
            case.id
        )),
    }
}

fn flow_over_rails(
    flow: &Flow,
    nodes: &[NodeRails],
    each_to_each: bool,
) -> Result<Vec<Flow>, String> {
    let (from, from_rails) = rails_at(flow, nodes, flow.from, Side::Initiator);
    let (to, to_rails) = rails_at(flow, nodes, flow.to, Side::Target);
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
            .map(|(from, to)| (from.as_ref(), to.as_ref()))
            .filter(|(from, to)| from.is_some() && to.is_some())
            .collect()
    } else if up_from.len() == up_to.len() {
        up_from.into_iter().zip(up_to).collect()
    } else {
        Vec::new()
    };
    if pairs.is_empty() {
        return Err(format!(
            "--rails same needs as many rails at both nodes: flow {} goes from {} of {from} to {} of {to}",
            flow.name,
            counted(from_rails),
            counted(to_rails)
        ));
    }
    Ok(pairs
        .into_iter()
        .map(|(from, to)| {
            let names = [from, to].map(|end| end.map(FlowDevice::port_name));
            let rail = match names {
                [Some(from), Some(to)] if from != to => format!("{from}>{to}"),
                [from, to] => from.or(to).unwrap_or_default(),
            };
            Flow {
                name: format!("{}{}{rail}", flow.name, Flow::OVER),
                from_device: from.or(flow.from_device.as_ref()).cloned(),
                to_device: to.or(flow.to_device.as_ref()).cloned(),
                ..flow.clone()
            }
        })
        .collect())
}

fn rails_at<'a>(
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
type End<'a> = Option<&'a FlowDevice>;

/// The ends over the rails that are up.
fn ends(rails: &[Option<FlowDevice>]) -> Vec<End<'_>> {
    match rails {
        [] => vec![None],
        some => some.iter().flatten().map(Some).collect(),
    }
}

/// `2 rails (mlx5_0, mlx5_1)`.
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
    use settings::Given;

    use super::*;
    use crate::Sweep;
    use results::sample::has;

    fn of(from: &str, to: &str, each_to_each: bool) -> Result<String, String> {
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
        let device = |it: Option<FlowDevice>| it.map_or_else(|| "-".to_owned(), |it| it.name);
        Ok(expanded
            .flows
            .into_iter()
            .map(|flow| {
                let (from, to) = (device(flow.from_device), device(flow.to_device));
                format!("{} {from} {to}", flow.name)
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
            assert_eq!(of(from, to, each_to_each).as_deref(), Ok(flows));
        }
        let many: String = (0..65).map(|it| format!("m{it} ")).collect();
        for (from, to, each_to_each, says) in [
            ("a b", "c d e", false, "2 rails (a, b) of client to 3 rails (c, d, e) of server"),
            ("a b", "", false, "its own device of server"),
            ("a down", "down b", false, "1 rail (a) of client"),
            (&many, &many, true, "4225 flows over all rails"),
        ] {
            has(of(from, to, each_to_each).unwrap_err(), [says]);
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
