//! The nodes of a sweep: who they are, and by which names flows know them.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use results::model::{CLIENT, SERVER};
use settings::nearest;
use settings::text_file::read_text;

use crate::flow::{Devices, FlowDevice};

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

/// Where a server is, and the port if one was written with it: `name`, `192.0.2.7`, `[2001:db8::7]:18515`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A name or an address without brackets; an IPv6 address may have a zone (`fe80::1%eth0`).
    pub host: String,
    /// The port that follows it.
    pub port: Option<u16>,
}

/// Why a text is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum HostError {
    #[error("there is nothing where a host belongs: is a variable of the shell empty?")]
    Nothing,
    #[error("`{0}` is not a host name or address")]
    Host(String),
    #[error("`{0}` is not a port: ports are 1 to 65535")]
    Port(String),
}

fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "zone"));
    !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok()
}

fn is_host_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

fn parse_port(text: &str) -> Result<u16, HostError> {
    match text.parse() {
        Ok(port) if port > 0 && !text.starts_with('+') => Ok(port),
        _ => Err(HostError::Port(text.to_owned())),
    }
}

impl FromStr for HostPort {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let (host, digits) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or_else(|| not_a_host(text))?;
            if !is_ipv6(address) {
                return Err(not_a_host(text));
            }
            match rest.strip_prefix(':') {
                Some(digits) => (address, Some(digits)),
                None if rest.is_empty() => (address, None),
                None => return Err(not_a_host(text)),
            }
        } else if is_ipv6(text) {
            (text, None)
        } else {
            match text.split_once(':') {
                // A URL is no host with a strange port.
                Some((host, digits)) if is_host_name(host) && !digits.contains(['/', ':']) => {
                    (host, Some(digits))
                }
                None if is_host_name(text) => (text, None),
                _ => return Err(not_a_host(text)),
            }
        };
        Ok(HostPort { host: host.to_owned(), port: digits.map(parse_port).transpose()? })
    }
}

fn not_a_host(text: &str) -> HostError {
    if text.is_empty() { HostError::Nothing } else { HostError::Host(text.to_owned()) }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// Items that a list makes at most.
pub const MOST_NODES: u32 = 4_096;

/// Why a text is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum ListError {
    #[error("`{0}` has a bracket that does not close: write it as in node[01-16]")]
    Open(String),
    #[error("`{0}` has a bracket that closes and was not opened: write it as in node[01-16]")]
    Closed(String),
    #[error(
        "`{item}`: `{part}` is neither a number nor a range in brackets: write them as in node[01-16,20]"
    )]
    Part { item: String, part: String },
    #[error("`{item}`: the range `{part}` runs backwards")]
    Backwards { item: String, part: String },
    #[error("the list has more than {MOST_NODES} nodes")]
    TooMany,
    #[error("cannot read the list of nodes {}: {error}", path.display())]
    Read { path: PathBuf, error: String },
    #[error("{} names no node: write one a line, or as in node[01-16]", .0.display())]
    Empty(PathBuf),
}

/// The items of a list of nodes as people and launchers write it, such as `a,b[01-16],c:18600/mlx5_1`, in their order.
/// Brackets are expanded as in Slurm (scontrol(1), "show hostlist"). `@FILE` is the list in a file: items a line or with commas, and
/// what follows a `#` is left out.
///
/// # Errors
/// Brackets that do not fit, too many items, or a file that cannot be read.
pub fn expand(text: &str) -> Result<Vec<String>, ListError> {
    match text.strip_prefix('@') {
        Some(path) => expand_file(path.into()),
        None => expand_items(text),
    }
}

fn expand_file(path: PathBuf) -> Result<Vec<String>, ListError> {
    let text = read_text(&path)
        .map_err(|error| ListError::Read { path: path.clone(), error: error.to_string() })?;
    let mut items = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default()) {
        for word in line.split_whitespace() {
            items.extend(expand_items(word.trim_end_matches(','))?);
        }
    }
    if items.is_empty() { Err(ListError::Empty(path)) } else { Ok(items) }
}

fn expand_items(text: &str) -> Result<Vec<String>, ListError> {
    let mut items = Vec::new();
    for item in split_items(text)? {
        push_expanded(item, &mut items)?;
    }
    Ok(items)
}

/// The parts between commas outside brackets.
fn split_items(text: &str) -> Result<Vec<&str>, ListError> {
    let mut parts = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for (at, letter) in text.char_indices() {
        match (letter, is_inside) {
            ('[', false) => is_inside = true,
            (']', true) => is_inside = false,
            ('[', true) => return Err(ListError::Open(text[start..].to_owned())),
            (']', false) => return Err(ListError::Closed(text[start..=at].to_owned())),
            (',', false) => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return Err(ListError::Open(text[start..].to_owned()));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

/// Adds an item for each of its bracket's numbers; several brackets multiply. The brackets of an IPv6 address stay.
fn push_expanded(item: &str, items: &mut Vec<String>) -> Result<(), ListError> {
    let mut made = vec![String::new()];
    let mut rest = item;
    while let Some((before, (inside, after))) =
        rest.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once(']')?)))
    {
        rest = after;
        if inside.contains(':') {
            for text in &mut made {
                // Writing to a String cannot fail.
                let _ = write!(text, "{before}[{inside}]");
            }
            continue;
        }
        let mut longer = Vec::new();
        for text in &made {
            for part in inside.split(',') {
                for number in numbers(item, part)? {
                    longer.push(format!("{text}{before}{number}"));
                    if longer.len() > MOST_NODES as usize {
                        return Err(ListError::TooMany);
                    }
                }
            }
        }
        made = longer;
    }
    items.extend(made.into_iter().map(|text| text + rest));
    if items.len() > MOST_NODES as usize { Err(ListError::TooMany) } else { Ok(()) }
}

/// `01-03` is 01, 02, 03; `7` is itself.
fn numbers<'a>(
    item: &str,
    part: &'a str,
) -> Result<impl Iterator<Item = String> + use<'a>, ListError> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (Some(from), Some(to)) = (parse_number(first), parse_number(last)) else {
        return Err(ListError::Part { item: item.to_owned(), part: part.to_owned() });
    };
    if from > to {
        return Err(ListError::Backwards { item: item.to_owned(), part: part.to_owned() });
    }
    let width = first.len();
    Ok((from..=to).map(move |number| format!("{number:0width$}")))
}

fn parse_number(text: &str) -> Option<u32> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse::<u32>().ok()).flatten()
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
