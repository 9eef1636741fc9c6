//! `rocebench serve`: a server for sweeps, lessons and files, and a line for each session, run and refusal.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    cli::{
        args::ServeArgs,
        ends::{self, resources, token},
        perftest_rows,
        signals::stop_flag,
        terminal::{Failure, say, start_logging},
    },
    doctor::{Machine, examine::examine_node},
    transfer::{files::Folder, receiver::FileReceiver},
};
use machine::host;
use node::{
    resources::{NodeOptions, NodeResources, Route},
    server::{FileService, Server, ServerEvent, ServerLog, ServerOptions},
};
use plan::FlowDevice;
use report::show::perftest::{Form, PerftestTable};

/// Serves sweeps.
///
/// # Errors
/// What stopped it.
pub fn run(args: ServeArgs, form: Option<Form>) -> Result<(), Failure> {
    start_logging(args.speech.verbose, args.speech.quiet);
    let stop = stop_flag().map_err(Failure::failed)?;
    let resources = NodeOptions {
        memory_limit: args.memory.map(|limit| limit.0),
        ..resources(args.endpoint, &[])?
    };
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
        shows_results: form.is_some(),
        files: receiver(args.receive.as_deref(), args.keep_existing)?,
        examiner: Some(Arc::new(move |options, client, device| {
            examine_node(&Machine::this(), options, client, device, address.port())
        })),
    };
    let mut perftest = form.map(|form| PerftestTable::new(io::stdout(), form));
    perftest.as_mut().map_or(Ok(()), PerftestTable::waits).map_err(Failure::failed)?;
    let table = Arc::new(Mutex::new(perftest));
    let log = server_log(args.speech.quiet, Arc::clone(&table));
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
    let shown = table.lock().unwrap_or_else(PoisonError::into_inner);
    match broken {
        None => match shown.as_ref().and_then(PerftestTable::missed) {
            Some(text) => Err(Failure::failed(text)),
            None => Ok(()),
        },
        // Its reason and what to try were said when it happened.
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
    ends::listen(bind, port).map_err(|error| {
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

/// A log for a person; `quiet` keeps only what went wrong.
fn server_log(quiet: bool, table: Arc<Mutex<Option<PerftestTable<io::Stdout>>>>) -> ServerLog {
    Arc::new(move |event| {
        if let Some(table) = table.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
            && let Err(error) = show(table, &event)
        {
            say(&format!("rocebench: warning: {error}"));
        }
        if let Some(line) = line(&event, quiet) {
            say(&line);
        }
    })
}

/// What a server of perftest's prints.
fn show(table: &mut PerftestTable<io::Stdout>, event: &ServerEvent<'_>) -> io::Result<()> {
    match event {
        ServerEvent::Connecting(ends) => perftest_rows::begin(table, *ends),
        ServerEvent::Result { result } => {
            let mut runs = result.cases.iter().flat_map(|case| &case.runs);
            runs.try_for_each(|run| table.run(run, result))
        }
        ServerEvent::Finished { .. } | ServerEvent::Broken { .. } => table.end(),
        _ => Ok(()),
    }
}

fn line(event: &ServerEvent<'_>, quiet: bool) -> Option<String> {
    let text = match event {
        ServerEvent::Broken { client, failure } => {
            let hint = match &failure.hint {
                Some(hint) => format!("\n  hint: {hint}"),
                None => String::new(),
            };
            format!("{client}: session ended early: {failure}{hint}")
        }
        ServerEvent::Refused { error } => error.to_string(),
        _ if quiet => return None,
        ServerEvent::Connecting(_) | ServerEvent::Result { .. } => return None,
        ServerEvent::Accepted { client } => format!("{client}: session begins"),
        ServerEvent::Run { case, run } => format!("  {case}, run {run}"),
        ServerEvent::Note { text } => format!("rocebench: note: {text}"),
        ServerEvent::Lesson { lesson } => match lesson.mistake {
            None => format!("  a lesson: {}", lesson.op.name()),
            Some(mistake) => {
                format!("  a lesson: {}, with the mistake {}", lesson.op.name(), mistake.name())
            }
        },
        ServerEvent::Perftest { program, case } => format!("  {case}, {program}"),
        ServerEvent::File { name, bytes, seconds, qps: 0 } => {
            format!("  {name:?} again over TCP, {bytes} bytes in {seconds:.2} s, discarded")
        }
        ServerEvent::File { name, bytes, seconds, qps } => {
            format!("  {name:?} received: {bytes} bytes in {seconds:.2} s over {qps} QPs")
        }
        ServerEvent::Finished { client, runs: 0 } => format!("{client}: session ends"),
        ServerEvent::Finished { client, runs } => {
            format!("{client}: session ends, {runs} runs served")
        }
    };
    Some(text)
}
