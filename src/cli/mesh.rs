//! `rocebench mesh`: a sweep between many nodes. Under a launcher each process finds its rank, and rank 0 leads the others.
//! How ranks find each other is `launch`'s, what they do together the coordinator's and the server's.

use std::{
    ffi::OsString,
    net::{IpAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::ArgMatches;

use crate::{
    cli::{
        args::{LaunchArgs, MeshArgs, RunArgs},
        ends::{self, resources, token},
        given_options,
        signals::{RankSignals, signals_of_rank, stop_flag_or_unread},
        sweep::{
            execute_until,
            plan::{DefaultNodes, RunPlan},
        },
        terminal::{Failure, say, start_logging},
    },
    coordinator::{interface::Target, ranks::Ranks},
    doctor::{Machine, examine::examine_node},
    launch::{self, LaunchError, Launched, Options, Rank0, Variables, pmi},
};
use machine::host;
use node::server::{ServerLog, ServerOptions};
use node::session::{Place, serve_rank_0};
use plan::{HostPort, Nodes};
use protocol::join::Join;

/// Commands whose nodes a launcher may start.
const COMMANDS: [&str; 2] = ["mesh", "accept"];

/// Options that are a rank's own, and what only says how ranks meet.
const OWN_OPTIONS: [&str; 14] = [
    "device",
    "ib-port",
    "gid-index",
    "faults",
    "pcap",
    "wire",
    "cores",
    "token",
    "token-file",
    "quiet",
    "verbose",
    "port",
    "rank-0",
    "ranks",
];

/// A launcher signals all ranks at once. Those that do not lead wait so long for rank 0, which then collects what was
/// measured, before they end by themselves.
const RANK_0_FIRST: Duration = Duration::from_millis(1500);

/// How long nothing is said about ranks that have not joined yet, and between two words.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs a sweep between many nodes.
///
/// # Errors
/// Bad input, what stopped it, or that runs failed.
pub fn run(mut args: MeshArgs, matches: &ArgMatches) -> Result<(), Failure> {
    args.run.check = args.check_request();
    among_nodes("mesh", args.run, args.launch, matches, execute_until)
}

/// What a command does with its plan until a flag is set; of a launcher's ranks with the others.
pub(super) trait Act:
    FnOnce(RunPlan, &AtomicBool, Option<Arc<Ranks>>) -> Result<(), Failure>
{
}

impl<F: FnOnce(RunPlan, &AtomicBool, Option<Arc<Ranks>>) -> Result<(), Failure>> Act for F {}

/// Acts on a plan between the nodes that options name, or at rank 0 of a launcher between all ranks; the others join it.
///
/// # Errors
/// As of `act`, and that it is not known which nodes there are.
pub(super) fn among_nodes(
    command: &str,
    args: RunArgs,
    launch: LaunchArgs,
    matches: &ArgMatches,
    act: impl Act,
) -> Result<(), Failure> {
    let port = args.connection.port;
    let given = Options { rank_0: launch.rank_0, ranks: launch.ranks, port };
    let launched = launch::find(&variables(), &given);
    if args.nodes.is_some() || args.host.is_some() {
        return match launched {
            Ok(Some(launched)) if launched.ranks > 1 => Err(both(&launched)),
            _ => without_ranks(args, command, act),
        };
    }
    match launched.map_err(unlaunched)? {
        Some(launched) if launched.ranks < 2 => Err(Failure::bad_input(format!(
            "{} started 1 rank, but rocebench {command} needs 2 nodes or more",
            launched.launcher
        ))
        .with_hint(format!(
            "start one for each node, such as {}",
            launched.launcher.example().replace("mesh", command)
        ))),
        Some(launched) => {
            let host = launched.host.as_deref().map_or_else(host_name, as_name);
            let own = Join::new(
                launched.rank,
                launched.ranks,
                host,
                given_options(matches, command, &OWN_OPTIONS, &[]),
            );
            match launched.rank {
                0 => lead(args, &launched, own, act),
                _ => follow(args, &launched, &own),
            }
        }
        None if given.rank_0.is_some() || given.ranks.is_some() => Err(Failure::bad_input(
            "no launcher has started this process, so its rank is not known",
        )
        .with_hint(how(command))),
        None => without_ranks(args, command, act),
    }
}

fn how(command: &str) -> String {
    format!(
        "start one process a node with srun, mpirun, mpiexec or an indexed Job of Kubernetes, such as `srun -N8 rocebench {command}`; or \
         run `rocebench serve` on each node, and name them here with --nodes"
    )
}

fn unlaunched(error: LaunchError) -> Failure {
    let hint = error.hint();
    Failure::bad_input(error).with_hint(hint)
}

fn both(launched: &Launched) -> Failure {
    Failure::bad_input(format!(
        "--nodes or HOST is given, but {} started {} ranks: each would measure these nodes",
        launched.launcher, launched.ranks
    ))
    .with_hint("leave --nodes or HOST out to measure the ranks, or run rocebench once, without the launcher")
}

/// In one process, whose nodes are named.
fn without_ranks(args: RunArgs, command: &str, act: impl Act) -> Result<(), Failure> {
    let plan = RunPlan::new(args, &DefaultNodes::Pairs)?;
    if (&plan.options.sweep.nodes, &plan.options.ends.target) == (&Nodes::TwoEnds, &Target::Local) {
        let text = "no launcher has started this process, and no nodes are named";
        return Err(Failure::bad_input(text).with_hint(how(command)));
    }
    start_logging(plan.verbose, plan.quiet);
    let stop = stop_flag_or_unread().map_err(Failure::failed)?;
    act(plan, &stop, None)
}

/// Rank 0: has the others join, and runs the sweep.
fn lead(args: RunArgs, launched: &Launched, own: Join, act: impl Act) -> Result<(), Failure> {
    start_logging(args.speech.verbose, args.speech.quiet);
    let RankSignals { stop, .. } = signals_of_rank(Duration::ZERO).map_err(Failure::failed)?;
    launched
        .check_place(&host_name(), |address: IpAddr| TcpListener::bind((address, 0)).is_ok())
        .map_err(unlaunched)?;
    let token = token(args.connection.token.clone())?;
    let listener = match &launched.rank_0 {
        Rank0::At { port, .. } => listen(*port)?,
        Rank0::Store { descriptor, port } => {
            let listener = listen(port.unwrap_or(0))?;
            let address = listener.local_addr().map_err(Failure::failed)?;
            let place = HostPort {
                host: launched.host.clone().unwrap_or_else(host_name),
                port: Some(address.port()),
            };
            agree(*descriptor, Some(&place.to_string()), &stop)?;
            listener
        }
    };
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let ranks = Arc::new(
        Ranks::open(listener, own, launched.hosts.clone(), token, facts)
            .map_err(Failure::failed)?,
    );
    let done = led(args, &ranks, &stop, act);
    match &done {
        Ok(()) => ranks.part(),
        Err(failure) => {
            ranks.dismiss(&failure.to_run_failure(), stop.load(Ordering::Relaxed));
        }
    }
    done
}

fn led(args: RunArgs, ranks: &Arc<Ranks>, stop: &AtomicBool, act: impl Act) -> Result<(), Failure> {
    let (mut noted_at, mut noted) = (Instant::now(), 0);
    let names = ranks.gather(stop, |joined, of| {
        if !args.speech.quiet && joined != noted && noted_at.elapsed() >= PATIENCE {
            say(&format!("rocebench: {joined} of {of} nodes have joined"));
            (noted_at, noted) = (Instant::now(), joined);
        }
    })?;
    let plan = RunPlan::new(args, &DefaultNodes::Ranks(names))?;
    act(plan, stop, Some(Arc::clone(ranks)))
}

/// Any other rank: a node of the sweep that rank 0 runs.
fn follow(args: RunArgs, launched: &Launched, own: &Join) -> Result<(), Failure> {
    start_logging(args.speech.verbose, args.speech.quiet);
    let signals = signals_of_rank(RANK_0_FIRST).map_err(Failure::failed)?;
    let done = followed(args, launched, own, &signals.stop);
    // mpirun kills all others at once when the first of them ends, and rank 0 has results to write.
    while signals.requested.load(Ordering::SeqCst) && !signals.stop.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // One line of each rank is enough: rank 0 says what to do.
    done.map_err(|failure| failure.without_hint(&own.who()))
}

fn followed(
    args: RunArgs,
    launched: &Launched,
    own: &Join,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let place = match &launched.rank_0 {
        Rank0::At { hosts, port, .. } => Place { hosts: hosts.clone(), port: *port },
        Rank0::Store { descriptor, .. } => {
            let HostPort { host, port } =
                agree(*descriptor, None, stop)?.parse().map_err(Failure::failed)?;
            Place { hosts: vec![host], port: port.unwrap_or_default() }
        }
    };
    let control_port = place.port;
    let options = ServerOptions {
        resources: resources(args.endpoint, &[])?,
        token: token(args.connection.token)?,
        host: serde_json::to_value(host::read()).unwrap_or_default(),
        route: None,
        // Rank 0 says whose.
        whose: String::new(),
        once: false,
        allow_perftest: false,
        shows_results: false,
        files: None,
        examiner: Some(Arc::new(move |node, route, device| {
            examine_node(&Machine::this(), node, route, device, control_port)
        })),
    };
    let log: ServerLog = Arc::new(|event| tracing::debug!(?event, "the node of this rank"));
    Ok(serve_rank_0(&place, own, &options, &log, stop)?)
}

fn agree(descriptor: i32, value: Option<&str>, stop: &AtomicBool) -> Result<String, Failure> {
    pmi::agree(descriptor, value, stop).map_err(|error| {
        let hint = error.hint();
        Failure::failed(error).with_hint(hint)
    })
}

fn listen(port: u16) -> Result<TcpListener, Failure> {
    ends::listen(None, port).map_err(|error| {
        Failure::failed(format!("rank 0 cannot listen at TCP port {port}: {error}"))
            .with_hint("give all ranks another --port")
    })
}

fn variables() -> Variables {
    std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .collect()
}

/// This host's name, as it may stand in the name of a node.
fn host_name() -> String {
    as_name(&host::read().hostname)
}

fn as_name(text: &str) -> String {
    if text.is_empty() {
        return "localhost".to_owned();
    }
    text.chars()
        .take(253)
        .map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' })
        .collect()
}

/// Whether these are the arguments of a rank other than 0, for which rank 0 speaks.
pub(super) fn is_further_rank(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.nth(1).is_some_and(|word| COMMANDS.iter().any(|command| word == *command))
        && launch::rank(&variables()).is_some_and(|rank| rank > 0)
}
