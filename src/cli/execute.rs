//! Hands a finished plan to the control path and says how it went. Nothing is parsed or validated here.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use crate::coordinator::options::{Ends, SweepOptions, Target};
use crate::coordinator::sweep::run_sweep;
use crate::coordinator::sweeper::SweepOutcome;
use crate::machine::host;
use crate::node::resources::{NodeOptions, NodeResources, PortRequest, Route};
use crate::protocol::token::Token;
use crate::server::listener::{FileService, Server, ServerOptions};
use crate::transfer::place::Folder;
use crate::transfer::receiver::Receiver;
use report::results::model::CaseResult;

use super::errors::Failure;
use super::output::Output;
use super::run::{EndpointOptions, RunPlan};
use super::serve::ServePlan;
use super::server_log::server_log;
use super::signals::stop_flag;

/// Runs the sweep.
///
/// # Errors
/// What stopped it, or that runs failed.
#[allow(clippy::needless_pass_by_value)] // the plan is used up: a second run would overwrite the first's files
pub fn execute(plan: RunPlan) -> Result<(), Failure> {
    let stop = stop_flag().map_err(Failure::failed)?;
    let mut output = Output::open(&plan)?;
    let options = SweepOptions {
        sweep: plan.sweep.clone(),
        ends: Ends {
            target: match &plan.host {
                Some((host, port)) => Target::Remote(host.clone(), *port),
                None => Target::Local,
            },
            resources: resources(&plan.endpoint),
            token: token(plan.token.as_ref())?,
        },
        command_line: command_line(std::env::args()),
        against: plan.against.clone(),
    };
    let outcome = run_sweep(&options, &stop, &mut output)?;
    let written = output.close(&outcome.result, &stop);
    match (verdict(&plan, &outcome), written) {
        (Err(failed), Err(unwritten)) => {
            unwritten.print();
            Err(failed)
        }
        (judged, written) => judged.and(written),
    }
}

/// What the exit code and the last line say.
fn verdict(plan: &RunPlan, outcome: &SweepOutcome) -> Result<(), Failure> {
    let cases = &outcome.result.cases;
    let done: usize = cases.iter().map(|case| case.runs.len()).sum();
    let each = plan.against.as_ref().map_or(plan.sweep.runs, |it| it.pairs);
    // With pairs it may have been more.
    let wanted = done.max(plan.sweep.cases.len() * each as usize);
    let left = wanted - done;
    if outcome.interrupted {
        return Err(Failure::failed(format!(
            "interrupted; {left} of {wanted} runs were not begun, what was measured is kept"
        )));
    }
    if let Some(error) = &outcome.lost {
        let text = format!("{left} of {wanted} runs were not begun: {error}");
        return Err(Failure::told(text, false, error.hint()));
    }
    if outcome.failed_runs == 0 {
        return comparisons(cases);
    }
    let text = format!("{} of {wanted} runs failed", outcome.failed_runs);
    let hint = "each is explained above and in the JSON file".to_owned();
    Err(Failure::told(text, outcome.only_bad_input, Some(hint)))
}

/// Whether each comparison that was made has a figure.
fn comparisons(cases: &[CaseResult]) -> Result<(), Failure> {
    let made = || cases.iter().filter_map(|case| case.perftest.as_ref());
    let empty = made().filter(|it| it.ratio.is_none()).count();
    if empty == 0 {
        return Ok(());
    }
    let text = format!(
        "{empty} of {} comparisons with perftest have no pair that counts",
        made().count()
    );
    Err(Failure::failed(text)
        .with_hint("what perftest printed is in the JSON file (perftest.pairs[].output)"))
}

/// Serves sweeps.
///
/// # Errors
/// What stopped it.
#[allow(clippy::needless_pass_by_value)] // as above: the plan is used up
pub fn serve(plan: ServePlan) -> Result<(), Failure> {
    let stop = stop_flag().map_err(Failure::failed)?;
    let resources = NodeOptions {
        memory_limit: plan.memory.map(|limit| limit.0),
        ..resources(&plan.endpoint)
    };
    // Found out now, not by the first client.
    let route = plan
        .bind
        .filter(|address| !address.is_unspecified())
        .map(Route::to);
    let opened = NodeResources::open(resources.clone(), route)?;
    let listener = listen(plan.bind, plan.port)?;
    let address = listener.local_addr().map_err(Failure::failed)?;
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let options = ServerOptions {
        resources,
        token: token(plan.token.as_ref())?,
        host: facts,
        once: plan.once,
        allow_perftest: plan.allow_perftest,
        files: receiver(plan.receive.as_deref(), plan.keep_existing)?,
    };
    let log = server_log(plan.quiet);
    if !plan.quiet {
        let port = opened.port();
        let with = match (port.gid, &port.embedded) {
            // It takes its address when a client comes.
            (_, Some(_)) if plan.endpoint.device.is_none() && route.is_none() => {
                "the embedded device of the address that a client comes to (within this machine soft0)".to_owned()
            }
            (_, Some(_)) => port.context.name().to_owned(),
            (gid, None) => {
                let gid = gid.map_or_else(String::new, |gid| format!(", GID {gid}"));
                format!("{} port {}{gid}", port.context.name(), port.info.port)
            }
        };
        super::errors::say(&format!("serving on {address} with {with}; Ctrl-C ends"));
        if let Some(text) = opened.remark() {
            super::errors::say(&format!("rocebench: note: {text}"));
        }
    }
    drop(opened);
    let server = Server::new(listener, options, Arc::clone(&log)).map_err(Failure::failed)?;
    let broken = server
        .run(&stop)
        .map_err(|error| Failure::failed(format!("accepting connections on {address}: {error}")))?;
    match broken {
        None => Ok(()),
        // Its reason and what to try were told when it happened.
        Some(_) => Err(Failure::failed(
            "the session of --once ended early, as told above",
        )),
    }
}

/// What receives files, if `folder` is given.
fn receiver(
    folder: Option<&Path>,
    keep_existing: bool,
) -> Result<Option<Arc<dyn FileService>>, Failure> {
    let Some(folder) = folder else {
        return Ok(None);
    };
    let folder = Folder::open(folder).map_err(|error| {
        let (is_bad_input, hint) = (error.is_bad_input(), error.hint());
        Failure::told(error, is_bad_input, Some(hint))
    })?;
    // A file that may not grow is an error of writing it, not the end of the process.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())
        .map_err(Failure::failed)?;
    Ok(Some(Arc::new(Receiver::new(folder, !keep_existing))))
}

/// Listens on all addresses of both families, or on the one that was asked for.
fn listen(bind: Option<IpAddr>, port: u16) -> Result<TcpListener, Failure> {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let wanted = SocketAddr::new(bind.unwrap_or(any), port);
    let listener = match TcpListener::bind(wanted) {
        // A kernel without IPv6 has IPv4's address for all.
        Err(error) if bind.is_none() && error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], port)))
        }
        other => other,
    };
    listener.map_err(|error| {
        let text = format!("cannot listen on {wanted}: {error}");
        match error.raw_os_error() {
            Some(libc::EADDRINUSE) => Failure::bad_input(text).with_hint(format!(
                "another program has the port, perhaps another `rocebench serve` (`ss -ltnp sport = :{port}` shows it): \
                 end it, or choose another with --port on both ends"
            )),
            Some(libc::EACCES) => Failure::bad_input(text).with_hint("ports below 1024 need root: choose another with --port"),
            Some(libc::EADDRNOTAVAIL) => {
                Failure::bad_input(text).with_hint("--bind takes an address of this machine (`ip addr` lists them)")
            }
            _ => Failure::failed(text),
        }
    })
}

/// This end as the options ask for it, on the system's verbs library.
pub(super) fn resources(endpoint: &EndpointOptions) -> NodeOptions {
    let request = PortRequest {
        device: endpoint.device.clone(),
        ib_port: endpoint.ib_port,
        gid_index: endpoint.gid_index,
        faults: endpoint.faults,
    };
    NodeOptions::system(request, endpoint.cores.clone())
}

/// The token as the control path wants it.
pub(super) fn token(token: Option<&super::token::Token>) -> Result<Option<Token>, Failure> {
    token
        .map(|token| Token::new(token.as_bytes()))
        .transpose()
        .map_err(Failure::bad_input)
}

/// The arguments as they are recorded: without the token.
fn command_line(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut hide_next = false;
    arguments
        .map(|argument| {
            if std::mem::replace(&mut hide_next, argument == "--token") {
                return "***".to_owned();
            }
            match argument.split_once('=') {
                Some(("--token", _)) => "--token=***".to_owned(),
                _ => argument,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_not_recorded() {
        let line = [
            "rocebench",
            "h",
            "--token",
            "secret",
            "-q",
            "4",
            "--token=secret",
        ];
        let recorded = command_line(line.map(str::to_owned).into_iter());
        let expected = ["rocebench", "h", "--token", "***", "-q", "4", "--token=***"];
        assert_eq!(recorded, expected);
    }
}
