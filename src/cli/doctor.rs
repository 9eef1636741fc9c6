//! What this machine and others have: `rocebench devices` prints the inventory, `rocebench doctor` findings as they are
//! made, with `--nodes` what many nodes say of themselves.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::atomic::AtomicBool,
};

use crate::{
    cli::{
        args::{DEFAULT_PORT, DevicesArgs, DoctorArgs},
        ends::{
            check_environment, check_has_own_node, check_one_device, resources, server, servers,
            token,
        },
        signals::stop_flag,
        sweep::plan::RunPlan,
        terminal::{Failure, print, print_json, screen, start_logging_beside_findings},
    },
    coordinator::ranks::Ranks,
    doctor::{
        Examination, Inventory, Machine, State, examine,
        examine::ExaminationEvent,
        nodes::{NodeAddress, examine_nodes, examine_ranks, table},
        text::{event_lines, inventory_text, summary},
    },
};
use node::resources::{PortRequest, Route};
use plan::{Devices, Nodes};
use protocol::{failure::RunFailure, node_report::Finding};
use report::observe::format::counted;
use results::model::{StageResult, StageVerdict};
use settings::listed;
use verbs::{VerbsError, VerbsLibrary};

/// Examines, and prints what was found.
///
/// # Errors
/// Bad input, an interrupt, or that something is broken.
pub fn run(mut args: DoctorArgs) -> Result<(), Failure> {
    if let Some(nodes) = args.nodes.take() {
        return run_nodes(args, &nodes);
    }
    let target = server(args.host, args.connection.port)?;
    check_one_device(&args.endpoint, "doctor")?;
    let resources = resources(args.endpoint, &[])?;
    let approach = args.connection.approach();
    let token = token(args.connection.token)?;
    start_logging_beside_findings(args.speech.verbose);
    let examination = Examination {
        machine: Machine::this(),
        resources,
        port: target
            .as_ref()
            .map_or(args.connection.port.unwrap_or(DEFAULT_PORT), |(_, port)| *port),
        host: target.map(|(host, _)| host),
        token,
        approach,
    };
    let stop = stop_flag().map_err(Failure::failed)?;
    let (quiet, all_reasons) = (args.speech.quiet, args.speech.verbose > 0);
    let columns = screen(&std::io::stdout()).columns;
    let (mut unwritten, mut is_first) = (None, true);
    let report = examine(&examination, &stop, &mut |event| {
        let is_well =
            matches!(&event, ExaminationEvent::Finding(finding) if finding.state == State::Ok);
        let is_section = matches!(event, ExaminationEvent::Section(_));
        if args.json || unwritten.is_some() || quiet && (is_well || is_section) {
            return;
        }
        let text = event_lines(&event, all_reasons, columns);
        let text = if is_first { text.trim_start() } else { &text };
        is_first = false;
        unwritten = print(text).err();
    })
    .map_err(not_there)?;
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    if args.json {
        print_json(&report)?;
    } else if !quiet {
        print(&summary(&report))?;
    }
    let words = ["check found something broken", "checks found something broken"];
    ending(report.interrupted, report.count(State::Broken), words)
}

/// How an examination ends that has found so much broken; `words` are for one such thing and for several.
fn ending(interrupted: bool, broken: usize, words: [&str; 2]) -> Result<(), Failure> {
    let [one, several] = words;
    match broken {
        _ if interrupted => Err(Failure::failed("interrupted; not everything was examined")),
        0 => Ok(()),
        1 => Err(Failure::failed(format!("1 {one}"))),
        count => Err(Failure::failed(format!("{count} {several}"))),
    }
}

/// Examines nodes, and prints what differs between them.
fn run_nodes(args: DoctorArgs, nodes: &Nodes) -> Result<(), Failure> {
    let Nodes::Hosts(_) = nodes else {
        return Err(Failure::bad_input(
            "--nodes local:N are all in this process: there is nothing to compare",
        )
        .with_hint("`rocebench doctor` without --nodes examines this machine"));
    };
    check_has_own_node(nodes, &args.endpoint)?;
    let addresses = addresses(nodes, servers(nodes, args.connection.port)?);
    let approach = args.connection.approach();
    let token = token(args.connection.token)?;
    start_logging_beside_findings(args.speech.verbose);
    let stop = stop_flag().map_err(Failure::failed)?;
    let report = examine_nodes(&addresses, token.as_ref(), approach, &stop);
    if args.json {
        print_json(&report)?;
    } else {
        let (quiet, all_reasons) = (args.speech.quiet, args.speech.verbose > 0);
        print(table::text(&report, all_reasons, quiet).trim_start())?;
    }
    let words = ["finding breaks or slows runs", "findings break or slow runs"];
    ending(report.interrupted, report.count(State::Broken), words)
}

fn addresses(nodes: &Nodes, servers: Vec<(String, u16)>) -> Vec<NodeAddress> {
    nodes
        .names()
        .into_iter()
        .zip(servers)
        .zip(0..)
        .map(|((name, (host, port)), number)| NodeAddress {
            name,
            host,
            port,
            device: nodes.device(number),
        })
        .collect()
}

/// What all nodes of a sweep have and what differs between them, as a stage of an acceptance; where they are in this process,
/// what this machine has.
///
/// # Errors
/// The user stopped it, a rank is gone, or there is no such device.
pub(super) fn stage(
    plan: &RunPlan,
    ranks: Option<&Ranks>,
    stop: &AtomicBool,
) -> Result<StageResult, Failure> {
    let (nodes, ends) = (&plan.options.sweep.nodes, &plan.options.ends);
    let of_nodes = match (nodes, ranks) {
        (Nodes::Hosts(_), _) => {
            let addresses = addresses(nodes, plan.options.servers.clone());
            Some(examine_nodes(&addresses, ends.token.as_ref(), ends.approach, stop))
        }
        (_, Some(ranks)) => Some(examine_ranks(nodes.names(), ranks, &ends.resources, stop)?),
        (_, None) => None,
    };
    let (what, interrupted, findings): (_, _, Vec<(Vec<String>, Finding)>) =
        if let Some(report) = of_nodes {
            let findings = report.findings.into_iter().map(|it| (it.nodes, it.finding));
            (counted(nodes.count(), "node"), report.interrupted, findings.collect())
        } else {
            let mut resources = ends.resources.clone();
            if let Some(Devices::Named(names)) = resources.rails.take() {
                resources.request.device = names.into_iter().next();
            }
            let examination = Examination {
                machine: Machine::this(),
                resources,
                host: None,
                port: DEFAULT_PORT,
                token: None,
                approach: ends.approach,
            };
            let report = examine(&examination, stop, &mut |_| ()).map_err(not_there)?;
            let findings = report.findings.into_iter().map(|it| (Vec::new(), it));
            ("1 machine".to_owned(), report.interrupted, findings.collect())
        };
    ending(interrupted, 0, [""; 2])?;
    let Some((places, broken)) = findings.iter().find(|(_, it)| it.state == State::Broken) else {
        let warnings = findings.iter().filter(|(_, it)| it.state == State::Warning).count();
        let warnings = counted(warnings, "warning");
        let text = format!("{what}: nothing is broken, {warnings} (`rocebench doctor`).");
        return Ok(StageResult::new("doctor", StageVerdict::Ok, text));
    };
    let at = if places.is_empty() { String::new() } else { format!("{}: ", listed(places)) };
    let remedy = broken.remedy.as_ref().map_or_else(String::new, |it| format!(" Try: {it}"));
    let text = format!("{at}{}: {}.{remedy}", broken.check, broken.found);
    Ok(StageResult {
        nodes: places.clone(),
        ..StageResult::new("doctor", StageVerdict::Failed, text)
    })
}

/// Prints the inventory.
///
/// # Errors
/// `--device` names none of them, the environment's address is none, or stdout cannot be written.
pub fn devices(args: &DevicesArgs) -> Result<(), Failure> {
    check_environment()?;
    let request = PortRequest { device: args.device.clone(), ..PortRequest::default() };
    let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
    let route = Route::between(loopback, loopback);
    let mut inventory = Inventory::read(&Machine::this(), VerbsLibrary::system(), &request, route)
        .map_err(not_there)?;
    if let Some(name) = &args.device {
        inventory.keep_only(name);
    }
    if args.json {
        return print_json(&inventory);
    }
    print(&inventory_text(&inventory, args.device.as_deref()))
}

/// What was asked for is not there.
fn not_there(error: VerbsError) -> Failure {
    let hint = RunFailure::from_verbs(&error).hint;
    Failure::new(error, true, hint)
}
