//! What can be written on the command line: its commands, and its help; options of the commands that run no sweep stand
//! here.

mod results;
mod sweep;

use std::{ffi::OsString, net::IpAddr, path::PathBuf};

use clap::{
    Args, CommandFactory as _, Parser, Subcommand,
    builder::{PossibleValue, PossibleValuesParser},
};
use clap_complete::Shell;

use crate::cli::terminal::EXIT_STATUS;
use crate::explain::Language;
use plan::{HostPort, Nodes};
use protocol::lesson::Mistake;
use settings::{MemorySize, Mtu, Size, TimeSpan};

pub use results::{
    CompareArgs, GateArgs, HistoryAction, HistoryArgs, HistoryCompareArgs, PlotArgs, Strict,
    Switch, UnclearArgs, WhatArgs,
};
pub use sweep::{
    AcceptArgs, AgainstArgs, ConnectionArgs, DEFAULT_PORT, EndpointArgs, FaultsOfDevices,
    LaunchArgs, Least, MeshArgs, NOT_OF_ACCEPT, NOT_OF_SOAK, NOT_OF_WHY, OutputArgs, RunArgs,
    SearchArgs, SoakArgs, SpeechArgs, SweepArgs, TokenArgs, WhyArgs, Wire,
};

const ABOUT: &str = "\
Multi-QP throughput and latency benchmark for RDMA over Converged Ethernet (RoCEv2)

Runs a sweep against HOST, which runs `rocebench serve`; without HOST both ends run on this machine.";

/// What `-h` prints: a page by what one wants to do.
pub const SHORT_HELP: &str = include_str!("short_help.txt");

const AFTER_HELP: &str = "\
Separate list entries with commas; 1..16 stands for 1,2,4,8,16. A sweep runs every combination.
In sizes K, M and G count in 1024s.
To turn off a switch that a configuration file turns on, add =false: --verify=false.

Examples:
  rocebench serve                                on one host, and then on the other:
  rocebench HOST -q 1,4,16 --op send,write,read -s 64,4K,64K
  rocebench --dry-run --config bench-configs/qp-scaling.toml -q 1,16
  rocebench HOST --cq shared,per-qp --workers 4 --cores 2,4-7 --runs 5 --json result.json
  rocebench -D 1s --verify                       both ends on this machine
  srun -N64 rocebench mesh --quick               find slow nodes, cables and paths
  rocebench accept --nodes node[01-64]           is this fabric good?
  rocebench soak HOST --fail-below 90%link       measure for days, and tell what goes wrong
  rocebench -s 64,64K --against perftest         compare with ib_send_bw, in turns
  rocebench -d soft0 --faults drop=1%,seed=7     the embedded device loses packets
  rocebench compare results/base results/new     is anything slower?
  rocebench gate --base lib=OLD --new lib=NEW    is that driver slower?
  rocebench send FILE HOST                       a file over many QPs, to `serve --receive DIR`
  rocebench doctor HOST                          find problems and their remedies
  rocebench why HOST -q 4                        what limits this case?
  rocebench recipe run first-day HOST            are new adapters well, and how fast?
  rocebench explain --op write                   one transfer, step by step";

/// The command line of `rocebench`. Of commands help is the same for `-h` and `--help`, hence no long texts.
#[derive(Debug, Parser)]
#[command(
    name = "rocebench",
    version,
    about = ABOUT,
    after_help = AFTER_HELP,
    override_usage = "rocebench [OPTIONS] [HOST]\n       rocebench <COMMAND>",
    subcommand_help_heading = "Commands",
    max_term_width = 100
)]
pub struct Cli {
    /// What to do other than run a sweep.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Everything but running a sweep.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve sweeps of other hosts
    Serve(ServeArgs),
    /// Run a sweep between many nodes: --nodes, or the ranks of srun, mpirun, mpiexec or a Kubernetes Job
    Mesh(Box<MeshArgs>),
    /// Say whether a fabric is good: doctor, preflight, mesh, rails, bisection, incast and ping-pong one after the other
    Accept(Box<AcceptArgs>),
    /// Measure one case for days, and tell when something goes wrong and when it is over
    Soak(Box<SoakArgs>),
    /// Find out what limits a case: change one thing at a time, and say which cause is proven
    Why(Box<WhyArgs>),
    /// Report whether results are slower than a baseline
    Compare(CompareArgs),
    /// Launch two builds, libraries, drivers or environments in turns until it is clear whether the new one is slower
    Gate(GateArgs),
    /// Draw results: one page with figures and tables, and SVG files
    Plot(PlotArgs),
    /// Keep results of many nights or commits in a folder, and report when something stepped
    History(HistoryArgs),
    /// Run ready-made measurements, such as those of a first day, KV caches or storage, each with an answer in a sentence
    Recipe(RecipeArgs),
    /// List RDMA devices, ports and GIDs, and mark those that a sweep would use
    Devices(DevicesArgs),
    /// Check this machine and the path to HOST, with a remedy for each problem
    Doctor(DoctorArgs),
    /// Show one transfer step by step, or a mistake and its error
    Explain(ExplainArgs),
    /// Send files over many QPs to HOST, which runs `rocebench serve --receive DIR`
    Send(SendArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual, or write its pages to a folder
    Man(ManArgs),
}

/// The whole command line, as clap knows it. Each help ends with the exit statuses.
pub fn command() -> clap::Command {
    let commands = Cli::command()
        .mut_subcommand("soak", |soak| {
            without(soak, NOT_OF_SOAK).mut_arg("out", |it| it.default_value("results/soak"))
        })
        .mut_subcommand("accept", |accept| without(accept, NOT_OF_ACCEPT))
        .mut_subcommand("why", |why| without(why, NOT_OF_WHY));
    with_exit_status(commands.mut_subcommands(with_exit_status))
}

/// Without options that it does not take, by their ids.
fn without(command: clap::Command, ids: &str) -> clap::Command {
    ids.split(' ').fold(command, |command, id| command.mut_arg(id, |it| it.hide(true)))
}

fn with_exit_status(command: clap::Command) -> clap::Command {
    let above = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    command.after_help(above + EXIT_STATUS)
}

const SERVE_AFTER_HELP: &str = "\
A server runs its clients' sweeps one after another, with the clients' settings.

Examples:
  rocebench serve
  rocebench serve --bind 192.0.2.7 --token-file ~/.rocebench-token
  rocebench serve --device mlx5_0 --cores 8-15 --once
  rocebench serve --receive /srv/incoming        files that `rocebench send` sends";

#[derive(Debug, Args)]
#[command(after_help = SERVE_AFTER_HELP)]
pub struct ServeArgs {
    /// Address to listen on [default: all of this machine's]
    #[arg(long, value_name = "ADDR", help_heading = "Connection")]
    pub bind: Option<IpAddr>,
    /// TCP port to listen on; 0 takes a free one and prints it
    #[arg(short, long, value_name = "PORT", default_value_t = DEFAULT_PORT, help_heading = "Connection")]
    pub port: u16,
    #[command(flatten)]
    pub token: TokenArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// Exit after one session, with status 1 if it ended early
    #[arg(long, help_heading = "Connection")]
    pub once: bool,
    /// Memory limit for a client's run, such as 8G; never more than the machine has left
    #[arg(long, value_name = "LIMIT", help_heading = "Connection")]
    pub memory: Option<MemorySize>,
    /// Start perftest's servers for clients that run with --against perftest
    #[arg(long, help_heading = "Connection")]
    pub allow_perftest: bool,
    /// Receive files into DIR from clients that run `rocebench send`
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub receive: Option<PathBuf>,
    /// Never overwrite a file, even if a sender gives --force
    #[arg(long, requires = "receive", help_heading = "Files")]
    pub keep_existing: bool,
    #[command(flatten)]
    pub speech: SpeechArgs,
}

const SEND_AFTER_HELP: &str = "\
HOST stores each FILE under its name without folders: whole, checked and synced to disk, or not at all.
Each end takes QPs x window x chunk of memory, whatever the size of the files.

Examples:
  rocebench serve --receive /srv/incoming        on one host, and then on the other:
  rocebench send disk.img HOST
  rocebench send *.tar HOST -q 64 --chunk 1M --force
  rocebench send disk.img HOST --against tcp     compare with plain TCP";

#[derive(Debug, Args)]
#[command(
    after_help = SEND_AFTER_HELP,
    override_usage = "rocebench send [OPTIONS] <FILE>... <HOST>"
)]
pub struct SendArgs {
    /// Files to send, then the host that runs `rocebench serve --receive DIR`: a name or address, optionally with a
    /// port (`host:port`, `[v6]:port`)
    #[arg(value_name = "FILE|HOST", num_args = 1.., required = true)]
    pub words: Vec<OsString>,
    /// Overwrite files with the same names at the receiver
    #[arg(short, long)]
    pub force: bool,
    /// Send each file over a plain TCP connection as well, and say which was faster
    #[arg(long, value_name = "tcp", value_parser = ["tcp"], hide_possible_values = true)]
    pub against: Option<String>,
    /// QPs to write over, 1 to 4096
    #[arg(short, long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "How")]
    pub qps: u32,
    /// Bytes of each chunk, one RDMA WRITE: a multiple of 4K, up to 64M
    #[arg(long, value_name = "BYTES", default_value = "256K", help_heading = "How")]
    pub chunk: Size,
    /// Chunks outstanding on each QP, 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "How")]
    pub window: u32,
    /// Path MTU in bytes: 256, 512, 1024, 2048, 4096 [default: the smaller of both ports' MTUs]
    #[arg(short, long, value_name = "BYTES", help_heading = "Transport")]
    pub mtu: Option<Mtu>,
    /// ACK timeout, 0 to 31: 4.096 us x 2^N, 0 for ever [default: 16, which is 268 ms]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=31), help_heading = "Transport")]
    pub timeout: Option<u8>,
    /// Retries after a timeout, 0 to 7 [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=7), help_heading = "Transport")]
    pub retry_cnt: Option<u8>,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Print the result of each file as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[command(flatten)]
    pub speech: SpeechArgs,
}

const DOCTOR_AFTER_HELP: &str = "\
Needs no root and changes nothing; it says which facts only root can see. At the end it sends a few
messages of each operation both ways, to HOST or within this machine, and checks every byte.

Examples:
  rocebench doctor
  rocebench doctor HOST                          HOST runs `rocebench serve`
  rocebench doctor -d mlx5_0 -v                  one device; why each check matters
  rocebench doctor --nodes node[01-16]           compare nodes that run `rocebench serve`";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_AFTER_HELP)]
pub struct DoctorArgs {
    /// Host that runs `rocebench serve`: a name or address, optionally with a port (`host:port`, `[v6]:port`)
    #[arg(value_name = "HOST")]
    pub host: Option<HostPort>,
    /// Nodes to examine and compare, in place of this machine: servers such as a,b[01-16],c:18600/mlx5_1, or @FILE
    #[arg(long, value_name = "LIST", conflicts_with = "host")]
    pub nodes: Option<Nodes>,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[command(flatten)]
    pub speech: SpeechArgs,
}

const RECIPE_AFTER_HELP: &str = "\
A recipe is a question about a network, with the commands that answer it. Without HOST and --nodes
all ends run on this machine.

Examples:
  rocebench recipe                               which recipes there are
  rocebench recipe show kv-cache                 its commands, and how to read their tables
  rocebench recipe run first-day HOST            HOST runs `rocebench serve`
  rocebench recipe run incast --nodes node[1-5]  each node runs `rocebench serve`";

#[derive(Debug, Args)]
#[command(after_help = RECIPE_AFTER_HELP)]
pub struct RecipeArgs {
    #[command(subcommand)]
    pub action: Option<RecipeAction>,
}

/// What to do with recipes.
#[derive(Debug, Subcommand)]
pub enum RecipeAction {
    /// List the recipes, with the time that each takes
    List,
    /// Show a recipe: where it comes from, its commands, and how to read their tables
    Show {
        /// The recipe, as `rocebench recipe` lists it
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Run the stages of a recipe one after the other, and answer its question
    Run(Box<RecipeRunArgs>),
}

#[derive(Debug, Args)]
pub struct RecipeRunArgs {
    /// The recipe, as `rocebench recipe` lists it
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Host that runs `rocebench serve`: a name or address, optionally with a port (`host:port`, `[v6]:port`)
    #[arg(value_name = "HOST")]
    pub host: Option<HostPort>,
    /// Nodes, in place of HOST: servers such as a,b:18516, or local:N for N nodes in this process
    #[arg(long, value_name = "LIST", help_heading = "What to run", conflicts_with = "host")]
    pub nodes: Option<Nodes>,
    /// Run only these stages
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "What to run")]
    pub stages: Vec<String>,
    /// Window of each run, in place of the recipe's
    #[arg(short = 'D', long, value_name = "TIME", help_heading = "What to run")]
    pub duration: Option<TimeSpan>,
    /// Print the commands and exit
    #[arg(long, help_heading = "What to run")]
    pub dry_run: bool,
    /// Folder for the result files, with a folder a recipe and stage
    #[arg(long, value_name = "DIR", default_value = "results", help_heading = "Output")]
    pub out: PathBuf,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(flatten)]
    pub speech: SpeechArgs,
}

const DEVICES_AFTER_HELP: &str = "\
Needs no root. If this user has no permission to open a device, facts such as its MTU are missing.";

#[derive(Debug, Args)]
#[command(after_help = DEVICES_AFTER_HELP)]
pub struct DevicesArgs {
    /// List only this device; an embedded one is opened to show its port and GID
    #[arg(short, long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub device: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXPLAIN_AFTER_HELP: &str = "\
Makes every call and shows its result; on the embedded device it shows the packets too.

Examples:
  rocebench explain                              a SEND, both ends on this machine
  rocebench explain HOST --op write              HOST runs `rocebench serve`
  rocebench explain --break rkey                 a wrong remote key: the error and its remedy
  rocebench explain --break rkey --all           with the steps before it
  rocebench explain --op read --lang zh";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_AFTER_HELP)]
pub struct ExplainArgs {
    /// Host that runs `rocebench serve`: a name or address, optionally with a port (`host:port`, `[v6]:port`)
    #[arg(value_name = "HOST")]
    pub host: Option<HostPort>,
    /// Operation: send, write or read [default: send; with --break the one that shows it]
    #[arg(long, value_name = "OP", value_parser = ["send", "write", "read"], hide_possible_values = true, help_heading = "Lesson")]
    pub op: Option<String>,
    /// The message, up to 4096 bytes
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "Hello, remote memory!",
        help_heading = "Lesson"
    )]
    pub text: String,
    /// Make this mistake: gid, rkey, no-recv (or rnr), qp-count or mtu
    #[arg(long = "break", value_name = "MISTAKE", value_parser = mistakes(), hide_possible_values = true, help_heading = "Lesson")]
    pub mistake: Option<String>,
    /// With --break: show every step, not only those around the mistake
    #[arg(long = "all", requires = "mistake", help_heading = "Lesson")]
    pub every_step: bool,
    /// Language: en or zh [default: that of LC_ALL, LC_MESSAGES or LANG, else en]
    #[arg(long, value_name = "LANG", value_parser = Language::ALL.map(Language::code), hide_possible_values = true, help_heading = "Lesson")]
    pub lang: Option<String>,
    /// Print a long lesson without $PAGER (or less -FRX)
    #[arg(long, help_heading = "Lesson")]
    pub no_pager: bool,
    /// Path MTU [default: the smaller of both ports' MTUs]
    #[arg(short, long, value_name = "BYTES", help_heading = "Device")]
    pub mtu: Option<Mtu>,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

fn mistakes() -> PossibleValuesParser {
    let values = Mistake::ALL
        .iter()
        .map(|mistake| PossibleValue::new(mistake.name()).aliases(mistake.other_name()));
    PossibleValuesParser::new(values)
}

const COMPLETIONS_AFTER_HELP: &str = "\
Examples:
  rocebench completions bash > /etc/bash_completion.d/rocebench
  rocebench completions zsh > ~/.zfunc/_rocebench
  rocebench completions fish > ~/.config/fish/completions/rocebench.fish";

const MAN_AFTER_HELP: &str = "\
Examples:
  rocebench man | man -l -                        read the page of rocebench
  rocebench man compare | man -l -                read the page of a command
  rocebench man --out /usr/local/share/man/man1   install the pages";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_AFTER_HELP)]
pub struct CompletionsArgs {
    /// Shell for which to complete commands and options
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = MAN_AFTER_HELP)]
pub struct ManArgs {
    /// Print the page of this command, instead of that of rocebench
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
    /// Write the pages of all commands to this folder, which is created if needed
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub out: Option<PathBuf>,
}
