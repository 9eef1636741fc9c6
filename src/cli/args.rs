//! Subcommands and the options that are about this machine: where, on what device, what comes out.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};

use super::compare::CompareArgs;
use super::explain::ExplainArgs;
use super::host::HostPort;
use super::plot::PlotArgs;
use super::send_args::SendArgs;
use super::sweep_args::SweepArgs;
use crate::node::station::Faults;
use crate::plan::{CoreList, MemorySize, TimeSpan};

/// The control connection's port when none is given.
pub const DEFAULT_PORT: u16 = 18_515;

const ABOUT: &str = "\
Multi-QP throughput and latency benchmark for RDMA over Converged Ethernet (RoCEv2)

Runs a sweep against HOST, where `rocebench serve` waits; with no HOST both ends run on this machine.";

const AFTER_HELP: &str = "\
Lists are comma-separated; their product is the matrix of cases. K, M and G are 1024-based in sizes.
A switch that a configuration file turns on is turned off with =false: --verify=false.

Examples:
  rocebench serve                                on one host, and then on the other:
  rocebench HOST -q 1,4,16 --op send,write,read -s 64,4K,64K
  rocebench --dry-run --config bench-configs/qp-scaling.toml -q 1,16
  rocebench HOST --cq shared,per-qp -w 4 --cores 2,4-7 --runs 5 --json result.json
  rocebench -D 1s --verify                       both ends on this machine
  rocebench -s 64,64K --against perftest         beside ib_send_bw, in turns
  rocebench -d soft0 --faults drop=1%,seed=7     the embedded device loses packets
  rocebench compare results/base results/new     has anything regressed?
  rocebench send FILE HOST                       a file over many QPs, to `serve --receive DIR`
  rocebench doctor HOST                          why it does not work, and what mends it
  rocebench explain --op write                   one transfer, step by step

Exit codes: 0 done, 1 a run failed, 2 bad input.";

const SERVE_AFTER_HELP: &str = "\
A server runs what its client asks for, one sweep after another; it needs no option of the sweep.

Examples:
  rocebench serve
  rocebench serve --bind 192.0.2.7 --token-file ~/.rocebench-token
  rocebench serve --device mlx5_0 --cores 8-15 --once
  rocebench serve --receive /srv/incoming        files that `rocebench send` sends";

const DEVICES_AFTER_HELP: &str = "\
Needs no root. What only an opened device tells, such as its MTU, is missing where it may not be opened.";

const DOCTOR_AFTER_HELP: &str = "\
Needs no root and changes nothing; what could not be seen without root is said. It ends with a small
transfer of each operation both ways, every byte checked: with HOST, or within this machine.

Examples:
  rocebench doctor
  rocebench doctor HOST                          `rocebench serve` waits there
  rocebench doctor -d mlx5_0 -v                  one device; why each check matters

Exit codes: 0 nothing is broken, 1 something is, 2 bad input.";

/// The command line of `rocebench`. Help is short for `-h` and `--help` alike, hence no long texts.
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
    /// Options of a sweep.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Everything but running a sweep.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wait for sweeps from other hosts
    Serve(ServeArgs),
    /// Tell whether results regressed against a baseline
    Compare(CompareArgs),
    /// Draw results: one page with figures and tables, and SVG files
    Plot(PlotArgs),
    /// List RDMA devices, ports and GIDs, and which of them would be used
    Devices(DevicesArgs),
    /// Check this machine, and the way to HOST, and say what mends what is broken
    Doctor(DoctorArgs),
    /// Do one transfer step by step, as a lesson; or make a mistake, and see what comes of it
    Explain(ExplainArgs),
    /// Send files over many QPs to HOST, where `rocebench serve --receive DIR` waits
    Send(SendArgs),
}

/// Options of a sweep.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Where `rocebench serve` waits: a name or address, optionally with a port (`host:port`, `[v6]:port`)
    #[arg(value_name = "HOST")]
    pub host: Option<HostPort>,
    /// The sweep.
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// TOML file with a whole sweep; flags override it one by one
    #[arg(long, value_name = "FILE", help_heading = "What to run")]
    pub config: Option<PathBuf>,
    /// Print the cases of the sweep and exit
    #[arg(long, help_heading = "What to run")]
    pub dry_run: bool,
    /// What to compare with.
    #[command(flatten)]
    pub against: AgainstArgs,
    /// Device, port and GID.
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// The control connection.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
    /// How much is said.
    #[command(flatten)]
    pub speech: SpeechArgs,
}

/// Where results go.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Folder for the result files, made if absent
    #[arg(
        short,
        long,
        value_name = "DIR",
        default_value = "results",
        help_heading = "Output"
    )]
    pub out: PathBuf,
    /// Write the result as JSON to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the result as CSV to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Write the buckets of latency and bandwidth as CSV to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub csv_histograms: Option<PathBuf>,
}

/// Options of `rocebench serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_AFTER_HELP)]
pub struct ServeArgs {
    /// Address to listen on [default: all of this machine's]
    #[arg(long, value_name = "ADDR", help_heading = "Connection")]
    pub bind: Option<IpAddr>,
    /// TCP port to listen on
    #[arg(short, long, value_name = "PORT", default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Connection")]
    pub port: u16,
    /// The secret.
    #[command(flatten)]
    pub token: TokenArgs,
    /// Device, port and GID.
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// Exit after one session, with 1 if it ended early
    #[arg(long, help_heading = "Connection")]
    pub once: bool,
    /// Most memory that a client's run may take, such as 8G; in any case no more than there is
    #[arg(long, value_name = "LIMIT", help_heading = "Connection")]
    pub memory: Option<MemorySize>,
    /// Start perftest's servers for clients that run with --against perftest
    #[arg(long, help_heading = "Connection")]
    pub allow_perftest: bool,
    /// Receive files into DIR from clients that run `rocebench send`
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub receive: Option<PathBuf>,
    /// Overwrite no file, even where a sender says --force
    #[arg(long, requires = "receive", help_heading = "Files")]
    pub keep_existing: bool,
    /// How much is said.
    #[command(flatten)]
    pub speech: SpeechArgs,
}

/// What to compare with.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct AgainstArgs {
    /// Run each case in turns with the perftest program that does the same, and say which is faster
    #[arg(long, value_name = "perftest", value_parser = ["perftest"], hide_possible_values = true)]
    pub against: Option<String>,
    /// Pairs of runs of each case that count, at least, an even number; below 8 they decide nothing [default: 8, or --runs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), requires = "against")]
    pub pairs: Option<u32>,
    /// Pairs of each case, at most, an even number, while it is not clear which is faster [default: 3 x --pairs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), requires = "against")]
    pub max_pairs: Option<u32>,
    /// Longest that perftest may take to connect and to end, besides measuring [default: 20s]
    #[arg(long, value_name = "TIME", requires = "against")]
    pub perftest_limit: Option<TimeSpan>,
}

/// Options of `rocebench devices`.
#[derive(Debug, Args)]
#[command(after_help = DEVICES_AFTER_HELP)]
pub struct DevicesArgs {
    /// This device alone; an embedded one is opened, so that its port and GID are shown
    #[arg(short, long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub device: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `rocebench doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_AFTER_HELP)]
pub struct DoctorArgs {
    /// Where `rocebench serve` waits: a name or address, optionally with a port (`host:port`, `[v6]:port`)
    #[arg(value_name = "HOST")]
    pub host: Option<HostPort>,
    /// Device, port and GID.
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// The control connection.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// How much is said.
    #[command(flatten)]
    pub speech: SpeechArgs,
}

/// Which device, and where its threads run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct EndpointArgs {
    /// RDMA device, as `ibv_devices` lists it, or soft0, the embedded one [default: first with an active RoCE v2
    /// port, else soft0]
    #[arg(short, long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub device: Option<String>,
    /// Port of the device, from 1 [default: first active]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub ib_port: Option<u8>,
    /// Index in the port's GID table [default: RoCE v2, of the control connection's address]
    #[arg(short = 'x', long, value_name = "N")]
    pub gid_index: Option<u8>,
    /// Packets go wrong on purpose at this end, on the embedded device: drop=5%,reorder=1%,seed=7
    #[arg(long, value_name = "SPEC")]
    pub faults: Option<Faults>,
    /// Cores for the workers of this end, such as 2,4-7 [default: of the device's NUMA node]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<CoreList>,
}

/// The control connection to a server.
#[derive(Debug, Args)]
pub struct ConnectionArgs {
    /// TCP port of the control connection [default: 18515]
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Connection")]
    pub port: Option<u16>,
    /// The secret.
    #[command(flatten)]
    pub token: TokenArgs,
}

/// The secret that both ends share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct TokenArgs {
    /// Secret that both ends share; never sent. Others on this machine can see it in the process
    /// list: rather use --token-file, or the environment variable ROCEBENCH_TOKEN
    #[arg(long, value_name = "SECRET", conflicts_with = "token_file")]
    pub token: Option<String>,
    /// File with that secret; a line's end after it does not count
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// How much is said on stderr.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct SpeechArgs {
    /// No progress, no notes: results, warnings and errors only
    #[arg(long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say what is done; twice for every step
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The whole command line, as clap knows it.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_key_of_a_file_is_a_flag() {
        let command = command();
        let flags: Vec<&str> = command
            .get_arguments()
            .filter_map(|arg| arg.get_long())
            .collect();
        for key in crate::plan::config::KEYS {
            assert!(flags.contains(key), "{key}");
        }
    }
}
