//! The nodes of a sweep: who they are, and by which names flows know them.

use std::collections::HashSet;
use std::str::FromStr;

use results::model::{CLIENT, SERVER};
use settings::nearest;

use super::flow::FlowDevice;
use super::host::{HostError, HostPort};
use super::node_list::{ListError, MOST_NODES, expand};
use super::rails::Devices;

pub const MOST_LOCAL: u32 = 256;

/// A node that is a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNode {
    pub address: HostPort,
    /// The devices that its flows have, unless they ask for another; the server's own without.
    pub devices: Option<Devices>,
}

/// The nodes of a sweep, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nodes {
    /// `client` and `server`: this process, and HOST or a second node in this process.
    #[default]
    TwoEnds,
    /// So many in this process: `node0`, `node1` …
    Local(u32),
    /// A server each, named as its address was written.
    Hosts(Vec<ServerNode>),
    /// The processes that a launcher has started, by the names that they gave themselves; this process is the first.
    Ranks(Vec<String>),
}

/// Why a text names no nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum NodesError {
    #[error(transparent)]
    List(#[from] ListError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("`{0}`: a device such as mlx5_1 follows the slash")]
    Device(String),
    #[error("{0} is listed twice")]
    Twice(String),
    #[error("a sweep has 2 to {MOST_NODES} nodes, not {0}")]
    Number(usize),
    #[error("one process has 2 to {MOST_LOCAL} nodes, not {0}")]
    LocalNumber(u64),
    #[error("`local:{0}` is not a number of nodes in this process: write local:4 for four")]
    Local(String),
}

impl Nodes {
    /// The nodes that a list names: servers with brackets and files as in [`expand`], each with a port and a device where
    /// it is to have one or several (`b[01-16]:18600/mlx5_[0-3]`), or `local:N` alone.
    ///
    /// # Errors
    /// When one is no server or there twice, or when there are too few or too many.
    pub fn from_items(items: &[impl AsRef<str>]) -> Result<Nodes, NodesError> {
        if let [only] = items
            && let Some(number) = only.as_ref().strip_prefix("local:")
        {
            let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
            let count = number
                .parse::<u64>()
                .ok()
                .filter(|_| is_number)
                .ok_or_else(|| NodesError::Local(number.to_owned()))?;
            return match u32::try_from(count) {
                Ok(count @ 2..=MOST_LOCAL) => Ok(Nodes::Local(count)),
                _ => Err(NodesError::LocalNumber(count)),
            };
        }
        let mut hosts: Vec<ServerNode> = Vec::new();
        let mut known = HashSet::new();
        for item in items {
            for text in expand(item.as_ref())? {
                let server: ServerNode = text.parse()?;
                if let Some(last) = hosts.last_mut()
                    && last.takes_device_of(&server)
                {
                    continue;
                }
                if !known.insert(server.address.clone()) {
                    return Err(NodesError::Twice(server.address.to_string()));
                }
                hosts.push(server);
            }
        }
        match u32::try_from(hosts.len()) {
            Ok(2..=MOST_NODES) => Ok(Nodes::Hosts(hosts)),
            _ => Err(NodesError::Number(hosts.len())),
        }
    }

    /// The devices of a node that its place in the list names.
    pub fn devices(&self, number: u32) -> Option<&Devices> {
        match self {
            Nodes::Hosts(hosts) => hosts.get(number as usize)?.devices.as_ref(),
            Nodes::TwoEnds | Nodes::Local(_) | Nodes::Ranks(_) => None,
        }
    }

    /// The same, where it is one alone.
    pub fn device(&self, number: u32) -> Option<FlowDevice> {
        let only = self.devices(number)?.only()?;
        Some(FlowDevice { name: only.to_owned(), ib_port: None })
    }

    /// Their names, each at its number.
    pub fn names(&self) -> Vec<String> {
        match self {
            Nodes::TwoEnds => vec![CLIENT.to_owned(), SERVER.to_owned()],
            Nodes::Local(nodes) => (0..*nodes).map(|number| format!("node{number}")).collect(),
            Nodes::Hosts(hosts) => hosts.iter().map(|it| it.address.to_string()).collect(),
            Nodes::Ranks(names) => names.clone(),
        }
    }

    /// Their names for an error: all of few, the first of many.
    pub fn names_in_short(&self) -> String {
        const SHOWN: usize = 8;
        let names = self.names();
        if names.len() > SHOWN {
            format!("{} … ({} in all)", names[..SHOWN].join(", "), names.len())
        } else {
            names.join(", ")
        }
    }

    pub fn count(&self) -> usize {
        match self {
            Nodes::TwoEnds => 2,
            Nodes::Local(nodes) => usize::try_from(*nodes).unwrap_or(usize::MAX),
            Nodes::Hosts(hosts) => hosts.len(),
            Nodes::Ranks(names) => names.len(),
        }
    }

    /// The number of the node with this name.
    ///
    /// # Errors
    /// There is none; the nearest name, if one is near.
    pub fn number(&self, name: &str) -> Result<u32, Option<String>> {
        let names = self.names();
        let number = (0..).zip(&names).find(|(_, it)| *it == name);
        number.map(|(number, _)| number).ok_or_else(|| {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            nearest(name, &known).map(str::to_owned)
        })
    }
}

impl ServerNode {
    /// Whether it is the same server as `next` in the list, of another device, which it then has too.
    fn takes_device_of(&mut self, next: &ServerNode) -> bool {
        let (Some(Devices::Named(own)), Some(next_device)) =
            (&mut self.devices, next.devices.as_ref().and_then(Devices::only))
        else {
            return false;
        };
        let is_new = self.address == next.address && !own.iter().any(|it| it == next_device);
        if is_new {
            own.push(next_device.to_owned());
        }
        is_new
    }
}

impl FromStr for Nodes {
    type Err = NodesError;

    fn from_str(text: &str) -> Result<Nodes, NodesError> {
        Nodes::from_items(&[text])
    }
}

impl FromStr for ServerNode {
    type Err = NodesError;

    fn from_str(text: &str) -> Result<ServerNode, NodesError> {
        let (host, device) = match text.split_once('/') {
            // A URL is no host with a strange device.
            Some((host, name)) if !name.contains('/') => (host, Some(name)),
            _ => (text, None),
        };
        let address = host.parse()?;
        let devices = device.map(str::parse::<Devices>).transpose();
        Ok(ServerNode {
            address,
            devices: devices.map_err(|_| NodesError::Device(text.to_owned()))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;

    #[test]
    fn nodes_have_names_in_their_order() {
        let whole = ["a", "b08:18516", "b09:18516", "b10:18516"];
        for (text, names) in [
            ("local:3", &["node0", "node1", "node2"][..]),
            ("a,b:18516,[::1]:7", &["a", "b:18516", "[::1]:7"]),
            ("local,b", &["local", "b"]),
            ("a,b[08-10]:18516/mlx5_1", &whole),
        ] {
            let nodes: Nodes = text.parse().unwrap();
            assert_eq!(nodes.names(), *names);
            assert_eq!(nodes.count(), names.len());
            for (number, name) in (0..).zip(names) {
                assert_eq!(nodes.number(name), Ok(number));
            }
        }
        let nodes = Nodes::default();
        assert_eq!(nodes.number("sever"), Err(Some("server".to_owned())));
        assert_eq!(nodes.number("q"), Err(None));
    }

    #[test]
    fn a_node_has_the_devices_that_are_listed_with_it() {
        let nodes: Nodes = "n[1-2]:7/mlx5_[0-1],c/all,d/rxe0,e".parse().unwrap();
        assert_eq!(nodes.names(), ["n1:7", "n2:7", "c", "d", "e"]);
        let both = Devices::Named(["mlx5_0", "mlx5_1"].map(str::to_owned).to_vec());
        for (number, devices) in [(0, Some(&both)), (1, Some(&both)), (2, Some(&Devices::All))] {
            assert_eq!((nodes.devices(number), nodes.device(number)), (devices, None));
        }
        assert_eq!(nodes.device(3).unwrap().name, "rxe0");
        assert_eq!(nodes.devices(4), None);
    }

    #[test]
    fn what_names_no_nodes_says_why() {
        for (text, words) in [
            ("a", "2 to 4096 nodes, not 1"),
            ("a,b/", "`b/`: a device"),
            ("a,b[1-2", "does not close"),
            ("a[1-3],a2", "a2 is listed twice"),
            ("a/mlx5_0,a/mlx5_0", "a is listed twice"),
            ("a/mlx5_0,a/all", "a is listed twice"),
            ("a/mlx5_0,a/mlx5_1", "2 to 4096 nodes, not 1"),
            ("a,http://b", "is not a host"),
            ("a,b,a", "a is listed twice"),
            ("a,,b", "`` is not a host"),
            ("", "`` is not a host"),
            ("a,local:2,b c", "`b c` is not a host"),
            ("local:1", "2 to 256 nodes, not 1"),
            ("local:257", "not 257"),
            ("local:", "local:4"),
            ("local:+4", "local:4"),
            ("local:x", "`local:x`"),
            ("local:99999999999", "not 99999999999"),
        ] {
            has(text.parse::<Nodes>().unwrap_err().to_string(), [words]);
        }
        let most = format!("n[1-{MOST_NODES}]");
        assert!(most.parse::<Nodes>().is_ok());
        assert!(format!("{most},m").parse::<Nodes>().is_err());
    }
}
