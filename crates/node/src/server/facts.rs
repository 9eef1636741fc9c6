//! What a node tells of itself before the first run.

use std::slice;

use crate::outcome;
use crate::resources::NodeResources;
use plan::FlowDevice;
use protocol::failure::RunFailure;
use protocol::node_report::NodeFacts;
use verbs::{Port, PortLimits};

/// The facts of a node at which flows ask for these devices besides.
///
/// # Errors
/// There is none of such a name.
pub(super) fn facts(
    resources: &NodeResources,
    devices: &[FlowDevice],
) -> Result<NodeFacts, RunFailure> {
    let named: Vec<Port> =
        devices.iter().map(|device| resources.port_of(Some(device))).collect::<Result<_, _>>()?;
    let port = resources.port();
    let used = if named.is_empty() { slice::from_ref(port) } else { &named };
    let networks = used.iter().flat_map(|port| &port.choice.networks);
    let device = outcome::device(port);
    Ok(NodeFacts {
        lossless: outcome::lossless(port, &device),
        device,
        limits: PortLimits::new(&port.adapter, &port.info),
        memory: resources.memory_offer(),
        networks: networks.copied().collect(),
        rails: resources.rails(),
        left_out: resources.left_out().to_vec(),
        remark: resources.remark(),
    })
}
