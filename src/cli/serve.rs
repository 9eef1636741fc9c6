//! What `rocebench serve` is asked for.

use std::net::IpAddr;
use std::path::PathBuf;

use settings::MemorySize;

use super::args::ServeArgs;
use super::errors::Failure;
use super::run::EndpointOptions;
use super::token::Token;

/// Everything that serving needs to know.
#[derive(Clone, Debug)]
pub struct ServePlan {
    /// Address to listen on; `None` is all, of both families.
    pub bind: Option<IpAddr>,
    /// TCP port to listen on.
    pub port: u16,
    /// This end's device and cores.
    pub endpoint: EndpointOptions,
    /// The secret that clients must share.
    pub token: Option<Token>,
    /// Exit after one sweep.
    pub once: bool,
    /// Most memory that a client's run may take.
    pub memory: Option<MemorySize>,
    /// Start perftest's programs for clients.
    pub allow_perftest: bool,
    /// Receive files into this folder.
    pub receive: Option<PathBuf>,
    /// Overwrite none, whatever a sender asks for.
    pub keep_existing: bool,
    /// No progress and no notes.
    pub quiet: bool,
    /// 0, or how many times `-v` was given.
    pub verbose: u8,
}

impl ServePlan {
    /// The plan that the command line asks for.
    ///
    /// # Errors
    /// When the token cannot be read, or the faults of the environment are none.
    pub fn new(args: ServeArgs) -> Result<ServePlan, Failure> {
        Ok(ServePlan {
            bind: args.bind,
            port: args.port,
            endpoint: EndpointOptions::new(args.endpoint)?,
            token: Token::find(args.token)?,
            once: args.once,
            memory: args.memory,
            allow_perftest: args.allow_perftest,
            receive: args.receive,
            keep_existing: args.keep_existing,
            quiet: args.speech.quiet,
            verbose: args.speech.verbose,
        })
    }
}
