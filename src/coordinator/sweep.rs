//! A sweep: checked before its first run, then case by case and run by run, with all nodes, into one result. What fails
//! is recorded, and the sweep goes on where it can.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use machine::device::Lossless;
use machine::host;
use node::connect_cm::check_port;
use node::memory_needs::MemoryNeeds;
use node::memory_place::{check_gpus, uses_gpu};
use node::needs::{check_case, check_posts};
use node::ports::is_on_loopback;
use node::resources::NodeResources;
use plan::{Case, FlowDevice, NodeRails, Nodes, Sweep};
use protocol::failure::RunFailure;
use protocol::link::{ANSWER_LIMIT, Link};
use protocol::message::{Message, RunMessage};
use protocol::node_report::DeviceKind;
use results::model::{self, Host};
use results::text::printable;
use settings::ConnectMode;
use verbs::cm::CmChannel;

use super::interface::{Observer, SweepOptions};
use super::nodes::{Node, NodePlaces, failure_of, place_of};
use super::sweeper::{StopReason, SweepOutcome, Sweeper};
use super::{against, beside, check, quick, search, stages, why};

/// Most characters of what a node says that are told.
pub(super) const MOST_CHARACTERS: usize = 600;

/// Runs a sweep.
///
/// # Errors
/// Why it could not begin. What fails later is in the outcome.
pub fn run_sweep(
    options: &SweepOptions,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<SweepOutcome, RunFailure> {
    let (mut sweeper, version) = match begin(options, stop, observer) {
        Ok(begun) => begun,
        Err(failure) => return stages::unreached(options, failure, observer),
    };
    match all_cases(&mut sweeper, version.as_deref()) {
        Ok(()) => {}
        Err(StopReason::Interrupted) => sweeper.outcome.interrupted = true,
        Err(StopReason::Lost(error)) => sweeper.outcome.lost = Some(error),
        Err(StopReason::Broken(error)) => return Err(error),
    }
    Link::part(sweeper.nodes.iter().flatten().map(|node| &node.link), stop);
    if let (Some(ranks), Some(_)) = (&options.ranks, &sweeper.nodes) {
        ranks.release();
    }
    Ok(sweeper.outcome)
}

/// Connects the nodes, and checks all cases; with the version of the perftest that is compared with.
///
/// # Errors
/// Why the sweep cannot begin.
pub(super) fn begin<'a>(
    options: &'a SweepOptions,
    stop: &'a AtomicBool,
    observer: &'a mut dyn Observer,
) -> Result<(Sweeper<'a>, Option<String>), RunFailure> {
    let own_host = host::read();
    let facts = serde_json::to_value(&own_host).unwrap_or_default();
    // Without a device, or without what is compared with, there is no need to bother the peer.
    let mut version = None;
    if !matches!(options.sweep.nodes, Nodes::Hosts(_)) {
        let resources = NodeResources::open(options.ends.resources.clone(), None)?;
        check_cm(options, &resources)?;
        version = against::prepare(options, &resources)?;
    }
    let mut places = NodePlaces::new(options);
    let nodes = places.connect(&options.ends, &facts, stop)?;
    let sweep = over_rails(options, &nodes, observer)?;
    against::ask_server(options, &nodes, stop)?;
    check_sweep(&sweep, &nodes)?;
    if let Some(searches) = &options.searches {
        check_sweep(&searches.as_sweep(&options.sweep), &nodes)?;
    }
    ask_of_gpus(&sweep, &nodes, stop)?;
    let nodes_of_result = nodes.iter().map(|node| node_of(node, &own_host)).collect();
    let outcome = SweepOutcome::new(options, nodes_of_result);
    for node in nodes.iter().filter(|node| node.is_own) {
        if let Some(text) = &node.facts.remark {
            observer.note(text);
        }
    }
    let lossless: Vec<_> = nodes.iter().map(|node| (&*node.name, &node.facts.lossless)).collect();
    for text in pfc_notes(&sweep.cases, &lossless) {
        observer.note(&text);
    }
    let sweeper = Sweeper {
        options,
        total: sweep.cases.len(),
        sweep: Arc::new(sweep),
        places,
        facts,
        stop,
        observer,
        outcome,
        nodes: Some(nodes),
        core_notes: BTreeSet::new(),
    };
    Ok((sweeper, version))
}

/// A node and its host.
pub(super) fn node_of(node: &Node, own_host: &Host) -> model::Node {
    let host = if node.is_in_process {
        own_host.clone()
    } else {
        // A node that says something else about itself still runs cases.
        serde_json::from_value(node.peer.host.clone()).unwrap_or_else(|_| Host {
            hostname: node.peer.address.ip().to_string(),
            ..Host::default()
        })
    };
    let devices = vec![node.facts.device.clone()];
    model::Node { name: node.name.clone(), host, devices, left_out: Vec::new() }
}

/// All cases, in their order.
fn all_cases(sweeper: &mut Sweeper<'_>, perftest_version: Option<&str>) -> Result<(), StopReason> {
    let sweep = Arc::clone(&sweeper.sweep);
    if let Some(rounds) = &sweeper.options.beside {
        return beside::run_cases(sweeper, rounds);
    }
    if let Some(request) = sweeper.options.check {
        return check::run_rounds(sweeper, &sweep, request);
    }
    if let Some(of) = &sweeper.options.stages {
        return stages::run_stages(sweeper, of);
    }
    let request = sweeper.options.why;
    if let Some(request) = request.filter(|request| request.is_alone) {
        return why::explain_case(sweeper, request);
    }
    for (index, case) in sweep.cases.iter().enumerate() {
        if let Some(against) = &sweeper.options.against {
            against::run_case(sweeper, index, case, against, perftest_version)?;
            continue;
        }
        sweeper.run_case(index, case)?;
        if let Some(searches) = &sweeper.options.searches {
            search::run_case(sweeper, index, case, searches)?;
        }
    }
    if sweeper.options.quick {
        quick::measure_again(sweeper, &sweep.cases)?;
    }
    request.map_or(Ok(()), |request| why::explain_slowest(sweeper, request))
}

/// Checks all cases of a sweep against the devices and the memory of all nodes.
///
/// # Errors
/// The first case that one cannot do, by name.
pub(super) fn check_sweep(sweep: &Sweep, nodes: &[Node]) -> Result<(), RunFailure> {
    for (number, node) in (0..).zip(nodes) {
        for case in &sweep.cases {
            let checked = check_case(&node.facts.limits, case, number);
            checked.map_err(|error| RunFailure {
                message: format!("{}: {}{error}", case.id, node.whose()),
                ..RunFailure::from_verbs(&error)
            })?;
        }
    }
    let of_flows = sweep.cases.iter().flat_map(|case| &case.flows);
    for flow in of_flows {
        let ends = [flow.from, flow.to].map(|number| nodes.get(number as usize));
        if let [Some(from), Some(to)] = ends {
            check_reach(from, to)?;
        }
    }
    check_memory(sweep, nodes)
}

/// Refuses a flow between this machine and another one where an end's device is on loopback: packets to such an address
/// stay on the machine that sends them.
fn check_reach(from: &Node, to: &Node) -> Result<(), RunFailure> {
    if from.link.is_within_host() == to.link.is_within_host() {
        return Ok(());
    }
    let on_loopback =
        [(from, to), (to, from)].into_iter().find(|(node, _)| is_on_loopback(&node.facts));
    match on_loopback {
        None => Ok(()),
        Some((node, other)) => Err(RunFailure::refused(
            format!(
                "{}{} is on loopback, and {} is on another machine",
                node.whose(),
                printable(&node.facts.device.name, MOST_CHARACTERS),
                other.name
            ),
            "name a device there that other machines reach with --device, such as soft1 (`rocebench devices`)",
        )),
    }
}

/// Checks that the nodes have memory for each case, those of this host together, and that what they tell each other
/// fits a message.
///
/// # Errors
/// Bad input: as for a run, for the largest case.
fn check_memory(sweep: &Sweep, nodes: &[Node]) -> Result<(), RunFailure> {
    let mut flows = sweep.cases.iter().flat_map(|case| &case.flows);
    flows.try_for_each(|flow| check_posts(flow))?;
    let in_process: Vec<(u32, DeviceKind)> = (0..)
        .zip(nodes)
        .filter(|(_, node)| node.is_in_process)
        .map(|(number, node)| (number, node.facts.memory.device))
        .collect();
    sweep.cases.iter().try_for_each(|case| check_gpus(case, &in_process))?;
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
            let what = if node.is_own {
                format!("the case {}", case.id)
            } else {
                format!("{} the case {}", place_of(&node.name), case.id)
            };
            needs.check(memory, &what)?;
        }
    }
    Ok(())
}

/// Asks the nodes of other processes whether their GPUs have room for each case: nobody else can tell.
///
/// # Errors
/// Bad input: what one refuses, with its name. Or its link.
fn ask_of_gpus(sweep: &Sweep, nodes: &[Node], stop: &AtomicBool) -> Result<(), RunFailure> {
    let elsewhere = (0..).zip(nodes).filter(|(_, node)| !node.is_in_process);
    for (number, Node { name, is_own, link, .. }) in elsewhere {
        for case in sweep.cases.iter().filter(|case| uses_gpu(case, number)) {
            link.send(RunMessage::Admit { case: Box::new(case.clone()), node: number })
                .and_then(|()| link.recv(ANSWER_LIMIT, stop))
                .and_then(|answer| match answer {
                    Message::Run(RunMessage::Admitted) => Ok(()),
                    other => Err(link.unexpected("admitted", &other)),
                })
                .map_err(|error| failure_of(name, *is_own, error))?;
        }
    }
    Ok(())
}

/// Before a sweep bothers its peer: whether this end can do what its cases ask for.
///
/// # Errors
/// The port, the kernel or this system's libraries cannot.
fn check_cm(options: &SweepOptions, resources: &NodeResources) -> Result<(), RunFailure> {
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

/// The sweep with a flow for each rail in place of each flow between nodes that have several. Rails that are left out
/// are noted.
///
/// # Errors
/// Rails are left out where none may be, do not fit each other, or what is asked for is between two devices.
fn over_rails(
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
    // Its rounds go over rails by themselves.
    if options.check.is_some() {
        return Ok(sweep);
    }
    let is_between_two = [
        ("--against", options.against.is_some()),
        ("--beside", options.beside.is_some()),
        ("--slo, --knee and --loss-search", options.searches.is_some()),
        ("--op connect", sweep.cases.iter().any(|it| it.is_set_up())),
    ];
    if let Some((flag, _)) = is_between_two.iter().find(|(_, is_asked)| *is_asked) {
        return Err(RunFailure::refused(
            format!("{flag} cannot be used when a node has several rails"),
            "name one device with --device",
        ));
    }
    for case in &mut sweep.cases {
        let expanded = plan::over_rails(case, &node_rails, options.rails.each_to_each);
        *case = expanded.map_err(|error| {
            RunFailure::refused(
                error,
                "list as many devices for each node with --device, or take --rails all",
            )
        })?;
    }
    Ok(sweep)
}

/// What becomes of a sweep's packets at the nodes' ports: a line for each kind of packets, where a port has PFC; nodes that
/// would say the same say it together.
fn pfc_notes(cases: &[Case], nodes: &[(&str, &Lossless)]) -> Vec<String> {
    let kinds: BTreeSet<(u8, u8)> = cases
        .iter()
        .flat_map(|case| &case.flows)
        .map(|flow| (flow.traffic_class, flow.service_level))
        .collect();
    let with_pfc = nodes.iter().filter(|(_, lossless)| {
        let pfc = lossless.pfc_priorities.as_ref();
        pfc.is_some_and(|pfc| !pfc.is_empty())
    });
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, lossless) in with_pfc {
        for &(traffic_class, service_level) in &kinds {
            let treatment = lossless.treatment(traffic_class, service_level);
            let text = match treatment.is_lossless {
                Some(true) => treatment.to_string(),
                Some(false) | None => format!("{treatment}; {}", lossless.advice()),
            };
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(name),
                None => lines.push((text, vec![name])),
            }
        }
    }
    lines
        .into_iter()
        .map(|(text, names)| {
            if names.len() == nodes.len() { text } else { format!("{}: {text}", names.join(", ")) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use settings::Settings;

    use super::*;

    fn case(pairs: &[(&str, &str)]) -> Case {
        Case::new(String::new(), pairs.iter().copied().collect::<Settings>())
    }

    fn lossless() -> Lossless {
        Lossless {
            pfc_priorities: Some(vec![3]),
            trust: Some("dscp".into()),
            dscp_priorities: Some(vec![(0, 0), (26, 3)]),
            ..Lossless::default()
        }
    }

    #[test]
    fn a_run_says_which_priority_it_has_and_whether_it_is_lossless() {
        let (here, bare) = (lossless(), Lossless::default());
        let usual = case(&[]);
        let lossy = "packets of DSCP 0 have priority 0, without PFC: they can be lost; give --dscp 26, whose packets have PFC here";
        let both = [("client", &here), ("server", &here)];
        assert_eq!(pfc_notes(std::slice::from_ref(&usual), &both), [lossy]);
        let one = [("client", &bare), ("server", &here)];
        let expected = format!("server: {lossy}");
        assert_eq!(pfc_notes(std::slice::from_ref(&usual), &one), [expected]);
        let marked = case(&[("dscp", "26")]);
        let fine = "packets of DSCP 26 have priority 3, with PFC";
        assert_eq!(pfc_notes(&[usual, marked], &both), [lossy, fine]);
    }

    #[test]
    fn without_pfc_there_is_nothing_to_say() {
        let bare = Lossless::default();
        let nodes = [("client", &bare), ("server", &bare)];
        assert!(pfc_notes(&[case(&[])], &nodes).is_empty());
    }
}
