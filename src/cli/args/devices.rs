//! Options of `rocebench devices`.

use clap::Args;

const AFTER_HELP: &str = "\
Needs no root. If this user has no permission to open a device, facts such as its MTU are missing.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DevicesArgs {
    /// List only this device; an embedded one is opened to show its port and GID
    #[arg(short, long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub device: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
