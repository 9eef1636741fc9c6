//! A whole sweep checked against the devices and the memory of all nodes, before its first run.

use node::connect_cm::check_port;
use node::device_limits::check_case;
use node::memory_needs::MemoryNeeds;
use node::needs::check_posts;
use node::resources::NodeResources;
use plan::Case;
use plan::Sweep;
use protocol::failure::RunFailure;
use protocol::memory_offer::DeviceKind;
use settings::ConnectMode;
use verbs::cm::CmChannel;

use super::nodes::Node;
use super::options::SweepOptions;

/// Checks all cases of a sweep against the devices and the memory of all nodes.
///
/// # Errors
/// The first case that one cannot do, by name.
pub(crate) fn check_sweep(sweep: &Sweep, nodes: &[Node]) -> Result<(), RunFailure> {
    for (number, node) in (0..).zip(nodes) {
        for case in &sweep.cases {
            let checked = check_case(&node.facts.limits, case, number);
            checked.map_err(|error| RunFailure {
                message: format!("{}: {}{error}", case.id, node.whose()),
                ..RunFailure::from_verbs(&error)
            })?;
        }
    }
    check_memory(sweep, nodes)
}

/// Checks that the nodes have memory for each case, those of this host together, and that what they tell each other
/// fits a message.
///
/// # Errors
/// Bad input: as for a run, for the largest case.
fn check_memory(sweep: &Sweep, nodes: &[Node]) -> Result<(), RunFailure> {
    let mut flows = sweep.cases.iter().flat_map(|case| &case.flows);
    flows.try_for_each(|flow| check_posts(flow))?;
    let own = nodes.iter().find(|node| node.is_own);
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        (0..).zip(nodes).partition(|(_, node)| node.link.is_within_host());
    let devices: Vec<(u32, DeviceKind)> =
        here.iter().map(|(number, node)| (*number, node.facts.memory.device)).collect();
    if let Some(own) = own
        && let Some((case, needs)) = MemoryNeeds::of_sweep(sweep, &devices)
    {
        let ends = match here.len() {
            0 | 1 => "",
            2 => " at both ends",
            _ => " at all nodes",
        };
        let what = format!("the case {}{ends}", case.id);
        needs.check(&own.facts.memory, &what)?;
    }
    for (number, node) in elsewhere.into_iter().chain(here) {
        let memory = &node.facts.memory;
        let largest =
            sweep.cases.iter().map(|case| (MemoryNeeds::new(case, number, memory.device), case));
        if let Some((needs, case)) = largest.max_by_key(|(needs, _)| needs.total()) {
            let place = node.whose().replace(':', "");
            needs.check(memory, &format!("{place}the case {}", case.id))?;
        }
    }
    Ok(())
}

/// Before a sweep bothers its peer: whether this end can do what its cases ask for.
///
/// # Errors
/// The port, the kernel or this system's libraries cannot.
pub(crate) fn check_cm(
    options: &SweepOptions,
    resources: &NodeResources,
) -> Result<(), RunFailure> {
    if !any_by_cm(&options.sweep.cases) {
        return Ok(());
    }
    check_port(resources.port())?;
    CmChannel::open(resources.port().context.library())?;
    Ok(())
}

fn any_by_cm(cases: &[Case]) -> bool {
    cases.iter().any(|case| case.connect == ConnectMode::Cm)
}
