//! The flows of a sweep over the rails that its nodes have told.

use plan::Sweep;
use plan::flow::FlowDevice;
use plan::rails::{self, NodeRails};
use protocol::failure::RunFailure;
use results::text::printable;

use super::nodes::Node;
use super::observer::Observer;
use super::options::SweepOptions;

/// What a node says is told up to so many characters.
const MOST_CHARACTERS: usize = 600;

/// The sweep with a flow for each rail in place of each flow between nodes that have several. Rails that are left out are noted.
///
/// # Errors
/// Rails are left out where none may be, do not fit each other, or what is asked for is between two devices.
pub(super) fn over_rails(
    options: &SweepOptions,
    nodes: &[Node],
    observer: &mut dyn Observer,
) -> Result<Sweep, RunFailure> {
    for node in nodes.iter().filter(|node| !node.facts.left_out.is_empty()) {
        let reasons = printable(&node.facts.left_out.join("; "), MOST_CHARACTERS);
        let reasons = format!("{}{reasons}", node.whose());
        if options.rails.all_up {
            return Err(RunFailure::refused(
                format!("--rails-up all: {reasons}"),
                "bring it up, or list the other devices with --device",
            ));
        }
        observer.note(&format!("rails left out: {reasons}"));
    }
    let mut sweep = options.sweep.clone();
    let node_rails: Vec<NodeRails> =
        nodes.iter().map(|node| (node.name.clone(), node.facts.rails.clone())).collect();
    if node_rails.iter().all(|(_, rails)| rails.is_empty()) {
        return Ok(sweep);
    }
    let mut rails = node_rails.iter().flat_map(|(_, rails)| rails.iter().flatten());
    if let Some(rail) = rails.find(|it| !FlowDevice::is_name(&it.name)) {
        let name = printable(&rail.name, 64);
        return Err(RunFailure::new(format!("a node has a rail `{name}`"), None));
    }
    let is_between_two = [
        ("--against", options.against.is_some()),
        ("--beside", options.beside.is_some()),
        ("--slo and --knee", options.searches.is_some()),
        ("--op connect", sweep.cases.iter().any(|it| it.is_set_up())),
    ];
    if let Some((flag, _)) = is_between_two.iter().find(|(_, is_asked)| *is_asked) {
        return Err(RunFailure::refused(
            format!("{flag} cannot be used when a node has several rails"),
            "name one device with --device",
        ));
    }
    for case in &mut sweep.cases {
        let expanded = rails::over_rails(case, &node_rails, options.rails.each_to_each);
        *case = expanded.map_err(|error| {
            RunFailure::refused(
                error,
                "list as many devices for each node with --device, or take --rails all",
            )
        })?;
    }
    Ok(sweep)
}
