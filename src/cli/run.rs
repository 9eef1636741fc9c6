//! From flags and a configuration file to what is to be run: everything that can be wrong with them is
//! found here, before a device or a peer is touched.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::coordinator::options::Against;
use crate::node::resources::Faults;
use crate::plan::{ConfigFile, PlanError, Sweep};
use settings::{Given, Settings};
use verbs::address_of_environment;

use super::against::against;
use super::args::{DEFAULT_PORT, EndpointArgs, OutputArgs, RunArgs};
use super::errors::Failure;
use super::format::Format;
use super::host::HostPort;
use super::token::Token;

/// Everything that running a sweep needs to know.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The cases.
    pub sweep: Sweep,
    /// Server name or address, and port; `None` runs both ends on this machine.
    pub host: Option<(String, u16)>,
    /// This end's device and cores.
    pub endpoint: EndpointOptions,
    /// The secret that is shared with the server.
    pub token: Option<Token>,
    /// Run each case with perftest as well.
    pub against: Option<Against>,
    /// Where results go.
    pub output: OutputOptions,
    /// Print the cases only.
    pub dry_run: bool,
    /// No progress and no notes.
    pub quiet: bool,
    /// 0, or how many times `-v` was given.
    pub verbose: u8,
}

/// This end's device and cores, as asked for; `None` is to be chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointOptions {
    /// Device name.
    pub device: Option<String>,
    /// Device port, from 1.
    pub ib_port: Option<u8>,
    /// Index in the GID table.
    pub gid_index: Option<u8>,
    /// What goes wrong on purpose at this end.
    pub faults: Option<Faults>,
    /// Cores, the first for the first worker.
    pub cores: Option<Vec<usize>>,
}

/// Where results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputOptions {
    /// Folder for the files of every sweep.
    pub out_dir: PathBuf,
    /// Further documents.
    pub further: Vec<(Format, Sink)>,
}

/// Where one document goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Standard output, which then carries nothing else.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl From<PathBuf> for Sink {
    fn from(path: PathBuf) -> Sink {
        if path == Path::new("-") {
            Sink::Stdout
        } else {
            Sink::File(path)
        }
    }
}

impl OutputOptions {
    /// The document that stdout carries: the table then belongs on stderr.
    pub fn on_stdout(&self) -> Option<Format> {
        let on_stdout = self.further.iter().find(|(_, sink)| *sink == Sink::Stdout);
        on_stdout.map(|(format, _)| *format)
    }
}

/// The variable from which every program on the embedded device takes its faults.
const FAULTS_VARIABLE: &str = "SOFTROCE_FAULTS";

/// Checks what the environment says about the embedded device's address, before any device is touched.
///
/// # Errors
/// Bad input.
pub(super) fn check_environment() -> Result<(), Failure> {
    address_of_environment()
        .map(drop)
        .map_err(Failure::bad_input)
}

impl EndpointOptions {
    /// The options that flags give, faults otherwise by the environment.
    ///
    /// # Errors
    /// When the environment's faults or address are none.
    pub fn new(args: EndpointArgs) -> Result<EndpointOptions, Failure> {
        check_environment()?;
        let faults = match (args.faults, std::env::var_os(FAULTS_VARIABLE)) {
            (Some(faults), _) => Some(faults),
            (None, Some(text)) if !text.is_empty() => {
                let text = text.to_string_lossy();
                let wrong = |error: <Faults as FromStr>::Err| {
                    format!("the variable {FAULTS_VARIABLE}: {error}")
                };
                Some(
                    text.parse()
                        .map_err(|error| Failure::bad_input(wrong(error)))?,
                )
            }
            (None, _) => None,
        };
        Ok(EndpointOptions {
            device: args.device,
            ib_port: args.ib_port,
            gid_index: args.gid_index,
            faults,
            cores: args.cores.map(|cores| cores.0),
        })
    }
}

/// The sweep of flags over file. An error about what only the file says is placed in the file.
fn sweep(flags: &Given, config: Option<&Path>) -> Result<Sweep, Failure> {
    let Some(path) = config else {
        return Ok(Sweep::new(flags)?);
    };
    let command = super::args::command();
    let is_of_machine = |flag: &&str| Settings::row(flag).is_none();
    let machine_flags: Vec<&str> = command
        .get_arguments()
        .map(|argument| argument.get_long().unwrap_or(argument.get_id().as_str()))
        .filter(is_of_machine)
        .collect();
    let file = ConfigFile::read(path, &machine_flags)?;
    let given = flags.clone().over(file.given.clone());
    Sweep::new(&given).map_err(|error| match file.place_of(error.flag()) {
        Some(place) if !flags_give(flags, &error) => {
            let hint = error.hint();
            Failure::bad_input(format!("{}:{place}: {error}", path.display())).with_hint(hint)
        }
        _ => error.into(),
    })
}

/// Whether the setting that the error is about was given as a flag: without it, the file's stands.
fn flags_give(flags: &Given, error: &PlanError) -> bool {
    let flag = error.flag();
    flags.has(flag) || flag == "duration" && flags.has("iters")
}

/// The server that HOST and `--port` name; `None` without HOST.
pub(super) fn server(
    host: Option<HostPort>,
    port: Option<u16>,
) -> Result<Option<(String, u16)>, Failure> {
    let Some(host) = host else { return Ok(None) };
    match (host.port, port) {
        (Some(written), Some(flag)) if written != flag => Err(Failure::bad_input(format!(
            "HOST says port {written}, --port says {flag}"
        ))
        .with_hint("leave one of them out")),
        (written, flag) => Ok(Some((host.host, written.or(flag).unwrap_or(DEFAULT_PORT)))),
    }
}

fn output(args: OutputArgs) -> Result<OutputOptions, Failure> {
    let mut further: Vec<(Format, Sink)> = Vec::new();
    for (format, path) in [
        (Format::Json, args.json),
        (Format::Cases, args.csv),
        (Format::Qps, args.csv_qps),
        (Format::Histograms, args.csv_histograms),
    ] {
        let Some(sink) = path.map(Sink::from) else {
            continue;
        };
        if let Some((other, _)) = further.iter().find(|(_, other)| *other == sink) {
            let place = match &sink {
                Sink::File(path) => path.display().to_string(),
                Sink::Stdout => "stdout".to_owned(),
            };
            let (one, two) = (other.option(), format.option());
            return Err(
                Failure::bad_input(format!("{one} and {two} both go to {place}"))
                    .with_hint("give one of them a file of its own"),
            );
        }
        further.push((format, sink));
    }
    Ok(OutputOptions {
        out_dir: args.out,
        further,
    })
}

impl RunPlan {
    /// The plan that the command line asks for. Reads the configuration and token files, nothing else.
    ///
    /// # Errors
    /// Always bad input.
    pub fn new(args: RunArgs) -> Result<RunPlan, Failure> {
        let host = server(args.host, args.connection.port)?;
        let output = output(args.output)?;
        let sweep = sweep(&args.sweep.given, args.config.as_deref())?;
        let against = against(&args.against, &sweep)?;
        let endpoint = EndpointOptions::new(args.endpoint)?;
        if let Some(cores) = &endpoint.cores {
            let workers = sweep.max_workers();
            if u32::try_from(cores.len()).is_ok_and(|cores| cores < workers) {
                return Err(Failure::bad_input(format!(
                    "--cores lists {} cores for {workers} workers",
                    cores.len()
                ))
                .with_hint("list one core for each worker, or lower --workers"));
            }
        }
        Ok(RunPlan {
            sweep,
            host,
            endpoint,
            token: Token::find(args.connection.token)?,
            against,
            output,
            dry_run: args.dry_run,
            quiet: args.speech.quiet,
            verbose: args.speech.verbose,
        })
    }
}
