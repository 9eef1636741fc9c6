//! Options that several commands have: the device, the control connection, how much is said.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::plan::Devices;

use super::faults::FaultsOfDevices;
use machine::core_list::CoreList;

/// The control connection's port when none is given.
pub const DEFAULT_PORT: u16 = 18_515;

/// Which device, and where its threads run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct EndpointArgs {
    /// RDMA device from `ibv_devices`, or soft0 (embedded); several, such as mlx5_[0-3] or all, are rails: each flow
    /// uses them all at once [default: first with an active RoCE v2 port, else soft0]
    #[arg(short, long, value_name = "NAME")]
    pub device: Option<Devices>,
    /// Port of the device, from 1 [default: first active]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub ib_port: Option<u8>,
    /// Index in the port's GID table [default: the RoCE v2 GID with the control connection's address]
    #[arg(short = 'x', long, value_name = "N")]
    pub gid_index: Option<u8>,
    /// Index in the port's table of P_Keys, for QPs that --connect tcp connects [default: 0]
    #[arg(long, value_name = "N")]
    pub pkey_index: Option<u16>,
    /// Faults for this end's packets, on the embedded device: drop=5%,reorder=1%,seed=7; for one of several devices:
    /// soft1:rate=1G
    #[arg(long, value_name = "SPEC")]
    pub faults: Option<FaultsOfDevices>,
    /// Capture this end's packets for Wireshark, on the embedded device; the file's name gets the device's address
    /// added
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Cores for this end's workers, such as 2,4-7 [default: those of the device's NUMA node]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<CoreList>,
}

/// The control connection to a server.
#[derive(Debug, Args)]
pub struct ConnectionArgs {
    /// TCP port of the control connection [default: 18515]
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Connection")]
    pub port: Option<u16>,
    #[command(flatten)]
    pub token: TokenArgs,
}

/// The secret that both ends share.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct TokenArgs {
    /// Secret that both ends share; never sent. The process list shows it to others on this machine: better use
    /// --token-file or the environment variable ROCEBENCH_TOKEN
    #[arg(long, value_name = "SECRET", conflicts_with = "token_file")]
    pub token: Option<String>,
    /// File with that secret; a line end after it is ignored
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// How much is said on stderr.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct SpeechArgs {
    /// Print only results, warnings and errors, no progress and no notes
    #[arg(long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more messages; -vv prints every step
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}
