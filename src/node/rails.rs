//! The rails of a node: which ports it takes, and which of its threads serve which of them. It must not know the flows over them.

use crate::node::resources::NodeOptions;
use crate::plan::rails::Devices;
use crate::protocol::failure::RunFailure;
use verbs::{Port, Route, VerbsError, select_or_embedded, usable};

/// The ports of a node, its own first.
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
        match &options.rails {
            None => Ok(alone(select_or_embedded(
                options.library,
                &options.request(options.request.device.as_deref()),
                route,
            )?)),
            Some(Devices::Named(names)) => named(options, names, route),
            Some(Devices::All) => all(options, route),
        }
    }
}

fn alone(port: Port) -> Rails {
    Rails {
        ports: vec![port],
        left_out: Vec::new(),
    }
}

fn named(
    options: &NodeOptions,
    names: &[String],
    route: Option<Route>,
) -> Result<Rails, RunFailure> {
    let (mut ports, mut left_out) = (Vec::new(), Vec::new());
    let mut first = None;
    for name in names {
        match select_or_embedded(options.library, &options.request(Some(name)), route) {
            Ok(port) => ports.push(port),
            Err(VerbsError::NoUsablePort { reasons }) => {
                left_out.extend(reasons.iter().cloned());
                first = first.or(Some(VerbsError::NoUsablePort { reasons }));
            }
            Err(error @ VerbsError::Call { .. }) => {
                left_out.push(error.to_string());
                first = first.or(Some(error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    match first {
        Some(error) if ports.is_empty() => Err(error.into()),
        _ => Ok(Rails { ports, left_out }),
    }
}

/// All ports of the system's devices; where the embedded device stands in for them, that.
fn all(options: &NodeOptions, route: Option<Route>) -> Result<Rails, RunFailure> {
    let request = options.request(None);
    let best = select_or_embedded(options.library, &request, route)?;
    if best.embedded.is_some() {
        return Ok(alone(best));
    }
    let (ports, left_out) = usable(options.library, &request, route)?;
    match ports.is_empty() {
        true => Ok(alone(best)),
        false => Ok(Rails { ports, left_out }),
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
                vec![vec![0], vec![2], vec![0], vec![1]],
            ),
        ] {
            assert_eq!(threads(numa, count), wanted, "{numa:?} {count}");
        }
    }
}
