//! The nodes of a sweep: who they are, and by which names flows know them. It must not know how they are reached.

use std::str::FromStr;

use report::results::model::{CLIENT, SERVER};
use settings::nearest;

use super::host::{HostError, HostPort};

/// Nodes of one sweep.
pub const MOST_NODES: u32 = 64;

/// The nodes of a sweep, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nodes {
    /// `client` and `server`: this process, and HOST or a second node in this process.
    #[default]
    TwoEnds,
    /// So many in this process: `node0`, `node1` …
    Local(u32),
    /// A server each, named as it was written.
    Hosts(Vec<HostPort>),
}

/// Why a text names no nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodesError {
    /// One of the list is no server.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The same again.
    #[error("{0} is listed twice")]
    Twice(String),
    /// Less than two, or too many.
    #[error("a sweep has 2 to {MOST_NODES} nodes, not {0}")]
    Number(usize),
    /// `local:` is followed by something else than a number.
    #[error("`local:{0}` is not the nodes of this process: local:4 is four of them")]
    Local(String),
}

impl Nodes {
    /// The nodes that a list names: servers, or `local:N` alone.
    ///
    /// # Errors
    /// When one is no server or there twice, or when there are too few or too many.
    pub fn from_items(items: &[impl AsRef<str>]) -> Result<Nodes, NodesError> {
        if let [only] = items
            && let Some(number) = only.as_ref().strip_prefix("local:")
        {
            let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
            return match number.parse::<u32>() {
                Ok(number) if is_number && (2..=MOST_NODES).contains(&number) => {
                    Ok(Nodes::Local(number))
                }
                Ok(number) if is_number => Err(NodesError::Number(
                    usize::try_from(number).unwrap_or(usize::MAX),
                )),
                _ => Err(NodesError::Local(number.to_owned())),
            };
        }
        let mut hosts: Vec<HostPort> = Vec::with_capacity(items.len());
        for item in items {
            let host: HostPort = item.as_ref().parse()?;
            if hosts.contains(&host) {
                return Err(NodesError::Twice(host.to_string()));
            }
            hosts.push(host);
        }
        match u32::try_from(hosts.len()) {
            Ok(2..=MOST_NODES) => Ok(Nodes::Hosts(hosts)),
            _ => Err(NodesError::Number(hosts.len())),
        }
    }

    /// Their names, each at its number.
    pub fn names(&self) -> Vec<String> {
        match self {
            Nodes::TwoEnds => vec![CLIENT.to_owned(), SERVER.to_owned()],
            Nodes::Local(nodes) => (0..*nodes).map(|number| format!("node{number}")).collect(),
            Nodes::Hosts(hosts) => hosts.iter().map(HostPort::to_string).collect(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Nodes::TwoEnds => 2,
            Nodes::Local(nodes) => usize::try_from(*nodes).unwrap_or(usize::MAX),
            Nodes::Hosts(hosts) => hosts.len(),
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
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            nearest(name, &names).map(str::to_owned)
        })
    }
}

impl FromStr for Nodes {
    type Err = NodesError;

    fn from_str(text: &str) -> Result<Nodes, NodesError> {
        Nodes::from_items(&text.split(',').collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_names_in_their_order() {
        for (text, names) in [
            ("local:3", &["node0", "node1", "node2"][..]),
            ("a,b:18516,[::1]:7", &["a", "b:18516", "[::1]:7"]),
            ("local,b", &["local", "b"]),
        ] {
            let nodes: Nodes = text.parse().unwrap();
            assert_eq!(
                (nodes.names(), nodes.count()),
                (
                    names.iter().map(|it| (*it).to_owned()).collect(),
                    names.len()
                )
            );
            for (number, name) in (0..).zip(names) {
                assert_eq!(nodes.number(name), Ok(number));
            }
        }
        let nodes = Nodes::default();
        assert_eq!(nodes.number("sever"), Err(Some("server".to_owned())));
        assert_eq!(nodes.number("q"), Err(None));
    }

    #[test]
    fn what_names_no_nodes_says_why() {
        for (text, words) in [
            ("a", "2 to 64 nodes, not 1"),
            ("a,b,a", "a is listed twice"),
            ("a,,b", "`` is no host"),
            ("", "`` is no host"),
            ("a,local:2,b c", "`b c` is no host"),
            ("local:1", "2 to 64 nodes, not 1"),
            ("local:65", "not 65"),
            ("local:", "local:4"),
            ("local:+4", "local:4"),
            ("local:x", "`local:x`"),
            ("local:99999999999", "local:4"),
        ] {
            let error = text.parse::<Nodes>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        let most: Vec<String> = (0..=MOST_NODES).map(|it| format!("n{it}")).collect();
        assert_eq!(Nodes::from_items(&most), Err(NodesError::Number(65)));
        assert!(Nodes::from_items(&most[1..]).is_ok());
    }
}
