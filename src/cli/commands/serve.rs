//! `rocebench serve`: a server for sweeps, lessons and files.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use crate::cli::args::ServeArgs;
use crate::cli::commands::listen;
use crate::cli::commands::server_log::server_log;
use crate::cli::endpoint::resources;
use crate::cli::signals::stop_flag;
use crate::cli::terminal::errors::{Failure, say, start_logging};
use crate::cli::token::token;
use crate::doctor::{Machine, node};
use crate::transfer::files::Folder;
use crate::transfer::receiver::FileReceiver;
use ::node::resources::{NodeOptions, NodeResources, Route};
use ::node::server::listener::Server;
use ::node::server::options::{FileService, ServerOptions};
use machine::host;
use plan::FlowDevice;

/// Serves sweeps.
///
/// # Errors
/// What stopped it.
pub fn run(args: ServeArgs) -> Result<(), Failure> {
    start_logging(args.speech.verbose, args.speech.quiet);
    let stop = stop_flag().map_err(Failure::failed)?;
    let resources =
        NodeOptions { memory_limit: args.memory.map(|limit| limit.0), ..resources(args.endpoint)? };
    let token = token(args.token)?;
    let any_device = resources.request.device.is_none() && resources.rails.is_none();
    // Found out now, not by the first client.
    let route = args.bind.filter(|address| !address.is_unspecified()).map(Route::to);
    let opened = NodeResources::open(resources.clone(), route)?;
    let listener = listen(args.bind, args.port)?;
    let address = listener.local_addr().map_err(Failure::failed)?;
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let options = ServerOptions {
        route: None,
        whose: "at the server: ".to_owned(),
        resources,
        token,
        host: facts,
        once: args.once,
        allow_perftest: args.allow_perftest,
        files: receiver(args.receive.as_deref(), args.keep_existing)?,
        examiner: Some(Arc::new(move |options, route, device| {
            node::examine_node(&Machine::this(), options, route, device, address.port())
        })),
    };
    let log = server_log(args.speech.quiet);
    if !args.speech.quiet {
        let port = opened.port();
        let with = match (port.gid, &port.embedded) {
            // It takes its address when a client comes.
            (_, Some(_)) if any_device && route.is_none() => {
                "the embedded device of the address that a client connects to (soft0 for clients on this \
                 machine)".to_owned()
            }
            _ if !opened.rails().is_empty() => {
                let rails = opened.rails();
                let names: Vec<String> = rails.iter().flatten().map(FlowDevice::port_name).collect();
                names.join(", ")
            }
            (_, Some(_)) => port.context.name().to_owned(),
            (gid, None) => {
                let shown_gid = gid.map_or_else(String::new, |gid| format!(", GID {gid}"));
                format!("{} port {}{shown_gid}", port.context.name(), port.info.port)
            }
        };
        say(&format!("serving on {address} with {with}; Ctrl-C stops"));
        let left_out = opened.left_out().iter().map(|why| format!("rail left out: {why}"));
        for text in opened.remark().into_iter().chain(left_out) {
            say(&format!("rocebench: note: {text}"));
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
        Some(_) => Err(Failure::failed("the session of --once ended early, see above")),
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
        Failure::new(error, is_bad_input, Some(hint))
    })?;
    Ok(Some(Arc::new(FileReceiver::new(folder, !keep_existing))))
}

/// Listens, or says what to do instead.
fn listen(bind: Option<IpAddr>, port: u16) -> Result<TcpListener, Failure> {
    listen::listen(bind, port).map_err(|error| {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let wanted = SocketAddr::new(bind.unwrap_or(any), port);
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
