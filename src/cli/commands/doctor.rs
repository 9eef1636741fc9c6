//! `rocebench doctor`: findings as they are made, or JSON at the end, and the exit code; with `--nodes` what many nodes
//! tell of themselves.

use crate::cli::args::{DEFAULT_PORT, DoctorArgs};
use crate::cli::commands::devices::not_there;
use crate::cli::endpoint::{check_one_device, resources};
use crate::cli::ends::{check_has_own_node, server, servers};
use crate::cli::signals::stop_flag;
use crate::cli::terminal::errors::{Failure, start_logging_beside_findings};
use crate::cli::terminal::stdout::{print, print_json};
use crate::cli::token::token;
use crate::doctor::examine::ExaminationEvent;
use crate::doctor::nodes::{NodeAddress, examine_nodes, table};
use crate::doctor::{Examination, Machine, State, examine, report_text};
use plan::Nodes;

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
    let resources = resources(args.endpoint)?;
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
    };
    let stop = stop_flag().map_err(Failure::failed)?;
    let (quiet, all_reasons) = (args.speech.quiet, args.speech.verbose > 0);
    let (mut unwritten, mut is_first) = (None, true);
    let report = examine(&examination, &stop, &mut |event| {
        let is_well =
            matches!(&event, ExaminationEvent::Finding(finding) if finding.state == State::Ok);
        let is_section = matches!(event, ExaminationEvent::Section(_));
        if args.json || unwritten.is_some() || quiet && (is_well || is_section) {
            return;
        }
        let text = report_text::lines(&event, all_reasons);
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
        print(&report_text::summary(&report))?;
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
    let servers = servers(nodes, args.connection.port)?;
    let addresses: Vec<NodeAddress> = nodes
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
        .collect();
    let token = token(args.connection.token)?;
    start_logging_beside_findings(args.speech.verbose);
    let stop = stop_flag().map_err(Failure::failed)?;
    let report = examine_nodes(&addresses, token.as_ref(), &stop);
    if args.json {
        print_json(&report)?;
    } else {
        let (quiet, all_reasons) = (args.speech.quiet, args.speech.verbose > 0);
        print(table::text(&report, all_reasons, quiet).trim_start())?;
    }
    let words = ["finding breaks or slows runs", "findings break or slow runs"];
    ending(report.interrupted, report.count(State::Broken), words)
}
