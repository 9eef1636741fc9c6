//! Options of `rocebench explain`.

use clap::Args;

use super::shared::{ConnectionArgs, EndpointArgs};
use crate::plan::HostPort;
use crate::protocol::mistake::Mistake;
use settings::Mtu;

const AFTER_HELP: &str = "\
Makes every call and shows its result; on the embedded device it shows the packets too.

Examples:
  rocebench explain                              a SEND, both ends on this machine
  rocebench explain HOST --op write              HOST runs `rocebench serve`
  rocebench explain --break rkey                 a wrong remote key: the error and its remedy
  rocebench explain --break rkey --all           with the steps before it
  rocebench explain --op read --lang zh

Exit status: 0 the message arrived, or the expected error came; 1 it did not; 2 bad input.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
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
    /// Make this mistake: gid, rkey, no-recv, qp-count or mtu
    #[arg(long = "break", value_name = "MISTAKE", value_parser = Mistake::ALL.iter().map(|it| it.name()).collect::<Vec<_>>(), hide_possible_values = true, help_heading = "Lesson")]
    pub mistake: Option<String>,
    /// With --break: show every step, not only those around the mistake
    #[arg(long, requires = "mistake", help_heading = "Lesson")]
    pub all: bool,
    /// Language: en or zh
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = ["en", "zh"], hide_possible_values = true, help_heading = "Lesson")]
    pub lang: String,
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
