//! Rails: devices of a node over which its flows go at once, a flow for each. It must not know how devices are found.

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
pub enum DevicesError {
    /// The list is none.
    #[error(transparent)]
    List(#[from] ListError),
    /// Not the name of a device.
    #[error("`{0}` is not the name of a device")]
    Name(String),
    /// The same again.
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

/// A rail of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rail {
    /// As flows ask for it.
    pub device: FlowDevice,
    /// What it is called: the device, and its port where that has several (`mlx4_0:2`).
    pub name: String,
}

/// Which rails of two nodes flows go between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// The first to the first, the second to the second, and so on.
    #[default]
    Same,
    /// Each to each.
    All,
}

/// What is asked of rails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RailsAsked {
    /// Which of them flows go between.
    pub pairing: Pairing,
    /// Whether none may be down.
    pub all_up: bool,
}

/// Why flows cannot go over rails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum RailsError {
    #[error(
        "flow {flow} goes from {} of {from} to {} of {to}, and --rails same pairs as many with as many",
        counted(from_rails),
        counted(to_rails)
    )]
    Unequal {
        flow: String,
        from: String,
        from_rails: Vec<String>,
        to: String,
        to_rails: Vec<String>,
    },
    #[error("the case {case} has {flows} flows over all rails; a case has at most {MOST_FLOWS}")]
    TooManyFlows { case: String, flows: usize },
}

/// `2 rails (mlx5_0, mlx5_1)`.
fn counted(rails: &[String]) -> String {
    match rails {
        [] => "its own device".to_owned(),
        [one] => format!("1 rail ({one})"),
        many => format!("{} rails ({})", many.len(), many.join(", ")),
    }
}

/// The rails of each node; none of a node that has its own device alone.
#[derive(Clone, Debug, Default)]
pub struct Rails {
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// Their rails.
    pub rails: Vec<Vec<Rail>>,
    /// Which of them flows go between.
    pub pairing: Pairing,
}

/// An end of a flow over one rail; without one the device stays.
type End<'a> = Option<&'a Rail>;

/// The ends over these rails.
fn ends(rails: &[Rail]) -> Vec<End<'_>> {
    match rails {
        [] => vec![None],
        some => some.iter().map(Some).collect(),
    }
}

impl Rails {
    /// The case with a flow for each rail, or each two rails, in place of each flow that asks for no device.
    ///
    /// # Errors
    /// Nodes have different numbers of rails, or there are too many flows.
    pub fn expand(&self, case: &Case) -> Result<Case, RailsError> {
        let mut expanded = case.clone();
        let flows: Result<Vec<Vec<Flow>>, _> = case.flows.iter().map(|it| self.over(it)).collect();
        expanded.flows = flows?.into_iter().flatten().collect();
        let flows = expanded.flows.len();
        match flows > MOST_FLOWS {
            true => Err(RailsError::TooManyFlows {
                case: case.id.clone(),
                flows,
            }),
            false => Ok(expanded),
        }
    }

    /// The rails at an end of a flow.
    fn at(&self, node: u32, asked: Option<&FlowDevice>) -> &[Rail] {
        let rails = self.rails.get(node as usize).filter(|_| asked.is_none());
        rails.map_or(&[], Vec::as_slice)
    }

    fn over(&self, flow: &Flow) -> Result<Vec<Flow>, RailsError> {
        let from = self.at(flow.from, flow.device(Side::Initiator));
        let to = self.at(flow.to, flow.device(Side::Target));
        if from.len().max(to.len()) < 2 {
            return Ok(vec![flow.clone()]);
        }
        let (ends_from, ends_to) = (ends(from), ends(to));
        let pairs: Vec<(End<'_>, End<'_>)> = match self.pairing {
            Pairing::Same if ends_from.len() == ends_to.len() => {
                ends_from.into_iter().zip(ends_to).collect()
            }
            Pairing::Same => {
                let node = |node: u32| self.nodes.get(node as usize).cloned().unwrap_or_default();
                let names = |rails: &[Rail]| rails.iter().map(|it| it.name.clone()).collect();
                return Err(RailsError::Unequal {
                    flow: flow.name.clone(),
                    from: node(flow.from),
                    from_rails: names(from),
                    to: node(flow.to),
                    to_rails: names(to),
                });
            }
            Pairing::All => {
                let each = ends_from.iter();
                each.flat_map(|from| ends_to.iter().map(|to| (*from, *to)))
                    .collect()
            }
        };
        let over = pairs.into_iter().map(|(from, to)| {
            let rail = match (from, to) {
                (Some(from), Some(to)) if from.name != to.name => {
                    format!("{}>{}", from.name, to.name)
                }
                (from, to) => from.or(to).map_or_else(String::new, |it| it.name.clone()),
            };
            let device = |end: End<'_>, own: &Option<FlowDevice>| {
                end.map_or_else(|| own.clone(), |rail| Some(rail.device.clone()))
            };
            Flow {
                name: format!("{}{}{rail}", flow.name, Flow::OVER),
                from_device: device(from, &flow.from_device),
                to_device: device(to, &flow.to_device),
                ..flow.clone()
            }
        });
        Ok(over.collect())
    }
}

#[cfg(test)]
mod tests {
    use settings::Settings;

    use super::*;
    use crate::plan::Sweep;
    use crate::tests::has;

    fn rails(names: &str) -> Vec<Rail> {
        let names = names.split_whitespace();
        names
            .map(|name| Rail {
                device: FlowDevice {
                    name: name.to_owned(),
                    ib_port: Some(1),
                },
                name: name.to_owned(),
            })
            .collect()
    }

    fn of(from: &str, to: &str, pairing: Pairing) -> Result<Vec<String>, String> {
        let case = Case::new("c".to_owned(), Settings::default());
        let nodes = ["client", "server"].map(str::to_owned).to_vec();
        let expanded = Rails {
            nodes,
            rails: vec![rails(from), rails(to)],
            pairing,
        }
        .expand(&case)
        .map_err(|error| error.to_string())?;
        Sweep::check(&expanded).unwrap();
        let names = expanded.flows.into_iter();
        Ok(names
            .map(|flow| {
                let device =
                    |it: Option<FlowDevice>| it.map_or_else(|| "-".to_owned(), |it| it.name);
                let (from, to) = (device(flow.from_device), device(flow.to_device));
                format!("{} {from} {to}", flow.name)
            })
            .collect())
    }

    #[test]
    fn a_flow_goes_over_each_rail() {
        use Pairing::{All, Same};
        let same = ["forward@a a a", "forward@b>d b d"].map(str::to_owned);
        assert_eq!(of("a b", "a d", Same).unwrap(), same);
        let one = ["forward - -"].map(str::to_owned);
        for (from, to) in [("", ""), ("a", ""), ("a", "b")] {
            assert_eq!(of(from, to, Same).unwrap(), one);
        }
        let to_one = ["forward@a a -", "forward@b b -"].map(str::to_owned);
        assert_eq!(of("a b", "", All).unwrap(), to_one);
        assert_eq!(of("a b", "c d e", All).unwrap().len(), 6);
        let refused = of("a b", "c d e", Same).unwrap_err();
        has(
            &refused,
            ["2 rails (a, b) of client to 3 rails (c, d, e) of server"],
        );
        has(
            of("a b", "", Same).unwrap_err(),
            ["its own device of server"],
        );
        let many: String = (0..65).map(|it| format!("m{it} ")).collect();
        has(
            of(&many, &many, All).unwrap_err(),
            ["4225 flows over all rails"],
        );
    }

    #[test]
    fn lists_of_devices_are_read_as_lists_of_nodes() {
        let named =
            |names: &[&str]| Devices::Named(names.iter().map(|name| (*name).to_owned()).collect());
        for (text, devices) in [
            ("mlx5_0", named(&["mlx5_0"])),
            ("mlx5_[0-1],rxe0", named(&["mlx5_0", "mlx5_1", "rxe0"])),
            ("all", Devices::All),
        ] {
            assert_eq!(text.parse(), Ok(devices));
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
