//! The flows of a sweep over the rails that its nodes have told. It must not know how nodes find them.

use crate::plan::flow::FlowDevice;
use crate::plan::{Pairing, Rails, Sweep};
use crate::protocol::failure::RunFailure;
use report::text::printable;

use super::nodes::Node;
use super::observer::Observer;
use super::options::SweepOptions;

/// The longest reason of a node that is told.
const MOST_CHARACTERS: usize = 300;

/// The sweep with a flow for each rail in place of each flow between nodes that have several. Rails that are left out are noted.
///
/// # Errors
/// Rails are left out where none may be, do not fit each other, or what is asked for is between two devices.
pub(super) fn over_rails(
    options: &SweepOptions,
    nodes: &[Node],
    observer: &mut dyn Observer,
) -> Result<Sweep, RunFailure> {
    tell_left_out(options, nodes, observer)?;
    let mut sweep = options.sweep.clone();
    if nodes.iter().all(|node| node.facts.rails.is_empty()) {
        return Ok(sweep);
    }
    let is_between_two = [
        ("--against", options.against.is_some()),
        ("--slo and --knee", options.searches.is_some()),
        ("--op connect", sweep.cases.iter().any(|it| it.is_set_up())),
    ];
    if let Some((flag, _)) = is_between_two.iter().find(|(_, is_asked)| *is_asked) {
        return Err(RunFailure::refused(
            format!("{flag} is between two devices, and a node has several rails"),
            "name one device with --device",
        ));
    }
    let told = nodes.iter().flat_map(|node| &node.facts.rails);
    if let Some(rail) = told
        .into_iter()
        .find(|it| !FlowDevice::is_name(&it.device.name))
    {
        let name = printable(&rail.device.name, 64);
        return Err(RunFailure::new(format!("a node has a rail `{name}`"), None));
    }
    let rails = Rails {
        nodes: nodes.iter().map(|node| node.name.clone()).collect(),
        rails: nodes.iter().map(|node| node.facts.rails.clone()).collect(),
        pairing: options.rails.pairing,
    };
    for case in &mut sweep.cases {
        let hint = match rails.pairing {
            Pairing::Same => {
                "list as many devices for each node with --device, or take --rails all"
            }
            Pairing::All => "list fewer devices with --device, or take --rails same",
        };
        *case = rails
            .expand(case)
            .map_err(|error| RunFailure::refused(error.to_string(), hint))?;
    }
    Ok(sweep)
}

fn tell_left_out(
    options: &SweepOptions,
    nodes: &[Node],
    observer: &mut dyn Observer,
) -> Result<(), RunFailure> {
    for node in nodes.iter().filter(|node| !node.facts.left_out.is_empty()) {
        let reasons: Vec<String> = (node.facts.left_out.iter())
            .map(|reason| printable(reason, MOST_CHARACTERS))
            .collect();
        let reasons = format!("{}{}", node.whose(), reasons.join("; "));
        if options.rails.all_up {
            return Err(RunFailure::refused(
                format!("--rails-up all: {reasons}"),
                "bring it up, or list the other devices with --device",
            ));
        }
        observer.note(&format!("rails left out: {reasons}"));
    }
    Ok(())
}
