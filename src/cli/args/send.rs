//! Options of `rocebench send`.

use std::ffi::OsString;

use clap::Args;

use super::shared::{ConnectionArgs, EndpointArgs, SpeechArgs};
use settings::{Mtu, Size};

const AFTER_HELP: &str = "\
HOST stores each FILE under its name without folders: whole, checked and synced to disk, or not at all.
Each end takes QPs x window x chunk of memory, whatever the size of the files.

Examples:
  rocebench serve --receive /srv/incoming        on one host, and then on the other:
  rocebench send disk.img HOST
  rocebench send *.tar HOST -q 64 --chunk 1M --force
  rocebench send disk.img HOST --against tcp     compare with plain TCP

Exit status: 0 all files arrived, 1 a transfer failed, 2 bad input.";

#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
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
