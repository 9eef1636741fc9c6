//! Options of `rocebench doctor`.

use clap::Args;

use super::shared::{ConnectionArgs, EndpointArgs, SpeechArgs};
use crate::plan::{HostPort, Nodes};

const AFTER_HELP: &str = "\
Needs no root and changes nothing; it says which facts only root can see. At the end it sends a few
messages of each operation both ways, to HOST or within this machine, and checks every byte.

Examples:
  rocebench doctor
  rocebench doctor HOST                          HOST runs `rocebench serve`
  rocebench doctor -d mlx5_0 -v                  one device; why each check matters
  rocebench doctor --nodes node[01-16]           compare nodes that run `rocebench serve`

Exit status: 0 nothing is broken, 1 something is, 2 bad input.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
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
