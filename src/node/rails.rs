//! The rails of a node: which ports it takes, and which of its threads serve which of them. It must not know the flows over them.

use crate::node::options::NodeOptions;
use crate::plan::rails::Devices;
use crate::protocol::failure::RunFailure;
use verbs::{Adapters, LinkLayer, Port, PortRequest, Route, VerbsError, select_or_embedded};

/// The ports of a node, its own first.
#[derive(Default)]
pub(crate) struct Rails {
    /// At least one.
    pub(crate) ports: Vec<Port>,
    /// Why others are left out that were asked for.
    pub(crate) left_out: Vec<String>,
}

impl Rails {
    /// Opens the devices that are asked for.
    ///
    /// # Errors
    /// There is no device of a name, or none can be used.
    pub(crate) fn open(options: &NodeOptions, route: Option<Route>) -> Result<Rails, RunFailure> {
        let any = || {
            let request = options.request(options.request.device.as_deref());
            select_or_embedded(options.library, &request, route)
        };
        let names = match &options.rails {
            None => return Ok(any()?.into()),
            Some(Devices::Named(names)) => names.clone(),
            Some(Devices::All) => {
                let best = any()?;
                if best.embedded.is_some() {
                    return Ok(best.into());
                }
                let rails = all(options, route)?;
                return Ok(match rails.ports.is_empty() {
                    true => best.into(),
                    false => rails,
                });
            }
        };
        let mut rails = Rails::default();
        let mut first = None;
        for name in names {
            match rails.add(options, &options.request(Some(&name)), route) {
                Ok(()) => {}
                Err(error @ (VerbsError::NoUsablePort { .. } | VerbsError::Call { .. })) => {
                    first = first.or(Some(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        match first {
            Some(error) if rails.ports.is_empty() => Err(error.into()),
            _ => Ok(rails),
        }
    }

    /// Opens a port, or notes why it cannot be used.
    fn add(
        &mut self,
        options: &NodeOptions,
        request: &PortRequest,
        route: Option<Route>,
    ) -> Result<(), VerbsError> {
        let opened = select_or_embedded(options.library, request, route);
        match &opened {
            Err(VerbsError::NoUsablePort { reasons }) => self.left_out.extend_from_slice(reasons),
            Err(error) => self.left_out.push(error.to_string()),
            Ok(_) => {}
        }
        self.ports.push(opened?);
        Ok(())
    }
}

/// All ports of the system's devices that can be used; those with a link-local address alone where there are no others.
fn all(options: &NodeOptions, route: Option<Route>) -> Result<Rails, RunFailure> {
    let known = Adapters::open(options.library, None)?;
    let refused = known.refused.iter().map(|it| it.error.to_string());
    let mut rails = Rails {
        ports: Vec::new(),
        left_out: refused.collect(),
    };
    for adapter in &known.opened {
        for port in &adapter.ports {
            let request = PortRequest {
                ib_port: options.request.ib_port.or(Some(port.info.port)),
                ..options.request(Some(adapter.name()))
            };
            if request.ib_port == Some(port.info.port) {
                // Why it cannot be used is noted.
                let _ = rails.add(options, &request, route);
            }
        }
    }
    let is_link_local = |port: &Port| {
        let gid = port
            .gid
            .filter(|_| port.info.link_layer == LinkLayer::Ethernet);
        gid.is_some_and(|entry| entry.gid.is_link_local())
    };
    if !rails.ports.iter().all(is_link_local) {
        let (worse, ports) = rails.ports.into_iter().partition(is_link_local);
        rails.ports = ports;
        let worse: Vec<Port> = worse;
        let told = |port: &Port| format!("{} has a link-local address alone", port.context.name());
        rails.left_out.extend(worse.iter().map(told));
    }
    Ok(rails)
}

impl From<Port> for Rails {
    fn from(port: Port) -> Rails {
        Rails {
            ports: vec![port],
            left_out: Vec::new(),
        }
    }
}

/// The rails in the order in which threads are given to them: one of each NUMA node in turn.
pub(crate) fn in_turn(numa_nodes: &[Option<u32>]) -> Vec<usize> {
    let earlier_alike = |rail: usize| {
        let before = numa_nodes.iter().take(rail);
        before.filter(|node| **node == numa_nodes[rail]).count()
    };
    let mut order: Vec<usize> = (0..numa_nodes.len()).collect();
    order.sort_by_key(|rail| (earlier_alike(*rail), *rail));
    order
}

/// The threads that serve each rail. Each thread has rails of its own in turn, and only where there are fewer threads than
/// rails several; then of one NUMA node, unless there are fewer threads than those.
pub(crate) fn threads(numa_nodes: &[Option<u32>], count: usize) -> Vec<Vec<usize>> {
    let order = in_turn(numa_nodes);
    let mut threads = vec![Vec::new(); order.len()];
    let all = match order.len() {
        0 => 0,
        rails => count.max(rails),
    };
    for thread in 0..all {
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
            (
                &[Some(1), Some(1), Some(1), Some(0)],
                3,
                vec![vec![0], vec![2], vec![2], vec![1]],
            ),
        ] {
            assert_eq!(threads(numa, count), wanted, "{numa:?} {count}");
        }
    }
}
