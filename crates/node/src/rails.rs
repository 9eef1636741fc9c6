//! The rails of a node: which ports it takes, and which of its threads serve which of them.

use crate::options::NodeOptions;
use plan::Devices;
use protocol::failure::RunFailure;
use verbs::{Adapters, LinkLayer, Port, PortRequest, Route, VerbsError, select_or_embedded};

/// The ports of a node, its own first.
#[derive(Default)]
pub(crate) struct Rails {
    /// At least one.
    pub(crate) ports: Vec<Port>,
    /// Of each that was asked for, whether it can be used.
    pub(crate) are_up: Vec<bool>,
    /// Why others cannot be used.
    pub(crate) left_out: Vec<String>,
}

impl Rails {
    /// Opens the devices that are asked for.
    ///
    /// # Errors
    /// There is no device of a name, or none can be used.
    pub(crate) fn open(options: &NodeOptions, route: Option<Route>) -> Result<Rails, RunFailure> {
        let open = |request: &PortRequest| select_or_embedded(options.library, request, route);
        let any = || open(&options.request(options.request.device.as_deref()));
        let requests = match &options.rails {
            None => return Ok(any()?.into()),
            Some(Devices::Named(names)) => {
                names.iter().map(|name| options.request(Some(name))).collect()
            }
            Some(Devices::All) => match any()? {
                embedded if embedded.embedded.is_some() => return Ok(embedded.into()),
                _ => all_ports(options)?,
            },
        };
        let is_all = options.rails == Some(Devices::All);
        let mut rails = Rails::default();
        let mut first = None;
        for request in requests {
            let opened = open(&request);
            rails.are_up.push(opened.is_ok());
            match opened {
                Ok(port) => rails.ports.push(port),
                Err(VerbsError::NoUsablePort { reasons }) => {
                    rails.left_out.extend_from_slice(&reasons);
                    first = first.or(Some(VerbsError::NoUsablePort { reasons }));
                }
                Err(error) if is_all || matches!(error, VerbsError::Call { .. }) => {
                    rails.left_out.push(error.to_string());
                    first = first.or(Some(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if is_all {
            rails.leave_link_local_out();
        }
        match first {
            Some(error) if rails.ports.is_empty() => Err(error.into()),
            _ => Ok(rails),
        }
    }

    /// Leaves ports out that have a link-local address alone, unless all have.
    fn leave_link_local_out(&mut self) {
        if self.ports.iter().all(is_link_local) {
            return;
        }
        let mut ports = std::mem::take(&mut self.ports).into_iter();
        for is_up in self.are_up.iter_mut().filter(|is_up| **is_up) {
            match ports.next() {
                Some(port) if is_link_local(&port) => {
                    *is_up = false;
                    let name = port.context.name();
                    self.left_out.push(format!("{name} has only a link-local address"));
                }
                port => self.ports.extend(port),
            }
        }
    }
}

/// A request for each port of the system's devices.
fn all_ports(options: &NodeOptions) -> Result<Vec<PortRequest>, VerbsError> {
    let known = Adapters::open(options.library, None)?;
    let mut requests = Vec::new();
    for name in &known.names {
        let adapter = known.opened.iter().find(|it| it.name() == name);
        let ports = adapter.map_or(1, |it| it.limits.ports);
        let numbers = options.request.ib_port.map_or(1..=ports, |port| port..=port);
        requests.extend(
            numbers.map(|port| PortRequest { ib_port: Some(port), ..options.request(Some(name)) }),
        );
    }
    Ok(requests)
}

fn is_link_local(port: &Port) -> bool {
    let is_ethernet = port.info.link_layer == LinkLayer::Ethernet;
    is_ethernet && port.gid.is_some_and(|entry| entry.gid.is_link_local())
}

impl From<Port> for Rails {
    fn from(port: Port) -> Rails {
        Rails { ports: vec![port], are_up: vec![true], left_out: Vec::new() }
    }
}

/// The rails in the order in which threads are given to them: one of each NUMA node in turn.
pub(crate) fn in_turn(numa_nodes: &[Option<u32>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numa_nodes.len()).collect();
    order.sort_by_key(|&rail| {
        let earlier = &numa_nodes[..rail];
        (earlier.iter().filter(|node| **node == numa_nodes[rail]).count(), rail)
    });
    order
}

/// The threads that serve each rail. Each thread has rails of its own in turn, and only where there are fewer threads than
/// rails several; then of one NUMA node, unless there are fewer threads than those.
pub(crate) fn threads(numa_nodes: &[Option<u32>], count: usize) -> Vec<Vec<usize>> {
    let order = in_turn(numa_nodes);
    let mut threads = vec![Vec::new(); order.len()];
    let served = match order.len() {
        0 => 0,
        rails => count.max(rails),
    };
    for thread in 0..served {
        let place = thread % order.len();
        let rail = order[place];
        let near: Vec<usize> = (0..count.min(order.len()))
            .filter(|it| numa_nodes[order[*it]] == numa_nodes[rail])
            .collect();
        threads[rail].push(match (thread < count, near.len()) {
            (true, _) => thread,
            (false, 0) => place % count.max(1),
            (false, some) => near[place % some],
        });
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rails_have_threads_of_their_own_or_share_those_of_their_numa_node() {
        let two_nodes = [Some(0), Some(0), Some(1), Some(1)];
        for (numa, count, wanted) in [
            (&two_nodes[..], 4, vec![vec![0], vec![2], vec![1], vec![3]]),
            (&two_nodes, 2, vec![vec![0], vec![0], vec![1], vec![1]]),
            (&two_nodes, 1, vec![vec![0]; 4]),
            (&[None; 2], 5, vec![vec![0, 2, 4], vec![1, 3]]),
            (&[None; 3], 2, vec![vec![0], vec![1], vec![0]]),
            (&[Some(1), Some(1), Some(1), Some(0)], 3, vec![vec![0], vec![2], vec![2], vec![1]]),
        ] {
            assert_eq!(threads(numa, count), wanted, "{numa:?} {count}");
        }
    }
}
