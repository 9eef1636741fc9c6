//! Options of `rocebench devices`.

use clap::Args;

const AFTER_HELP: &str = "\
Needs no root. What only an opened device tells, such as its MTU, is missing where it may not be opened.";

/// Options of `rocebench devices`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DevicesArgs {
    /// This device alone; an embedded one is opened, so that its port and GID are shown
    #[arg(short, long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub device: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
