//! What can be written on the command line: its commands, and its help.

mod commands;
mod results;
mod run;

use clap::{CommandFactory as _, Parser, Subcommand};

pub use commands::{
    CompletionsArgs, DevicesArgs, DoctorArgs, ExplainArgs, ManArgs, SendArgs, ServeArgs,
};
pub use results::{CompareArgs, GateArgs, PlotArgs, Strict, Switch, UnclearArgs, WhatArgs};
pub use run::{
    AgainstArgs, ConnectionArgs, DEFAULT_PORT, EndpointArgs, FaultsOfDevices, MeshArgs, OutputArgs,
    RunArgs, SearchArgs, SpeechArgs, SweepArgs, TokenArgs,
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
  rocebench -s 64,64K --against perftest         compare with ib_send_bw, in turns
  rocebench -d soft0 --faults drop=1%,seed=7     the embedded device loses packets
  rocebench compare results/base results/new     has anything regressed?
  rocebench gate --base lib=OLD --new lib=NEW    is that driver slower?
  rocebench send FILE HOST                       a file over many QPs, to `serve --receive DIR`
  rocebench doctor HOST                          find problems and their remedies
  rocebench explain --op write                   one transfer, step by step

Exit status: 0 done, 1 a run failed, 2 bad input.";

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
    /// Report whether results regressed against a baseline
    Compare(CompareArgs),
    /// Launch two builds, libraries, drivers or environments in turns until it is clear whether the new one is slower
    Gate(GateArgs),
    /// Draw results: one page with figures and tables, and SVG files
    Plot(PlotArgs),
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

/// The whole command line, as clap knows it.
pub fn command() -> clap::Command {
    Cli::command()
}
