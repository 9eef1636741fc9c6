//! Options of `rocebench serve`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::shared::{DEFAULT_PORT, EndpointArgs, SpeechArgs, TokenArgs};
use settings::MemorySize;

const AFTER_HELP: &str = "\
A server runs its clients' sweeps one after another, with the clients' settings.

Examples:
  rocebench serve
  rocebench serve --bind 192.0.2.7 --token-file ~/.rocebench-token
  rocebench serve --device mlx5_0 --cores 8-15 --once
  rocebench serve --receive /srv/incoming        files that `rocebench send` sends";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
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
