//! Options of `rocebench completions` and `rocebench man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const COMPLETIONS_AFTER_HELP: &str = "\
Examples:
  rocebench completions bash > /etc/bash_completion.d/rocebench
  rocebench completions zsh > ~/.zfunc/_rocebench
  rocebench completions fish > ~/.config/fish/completions/rocebench.fish";

const MAN_AFTER_HELP: &str = "\
Examples:
  rocebench man | man -l -                        read the page of rocebench
  rocebench man --out /usr/local/share/man/man1   install the pages";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_AFTER_HELP)]
pub struct CompletionsArgs {
    /// Shell for which to complete commands and options
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = MAN_AFTER_HELP)]
pub struct ManArgs {
    /// Write the page of each command to this folder, which is created if needed; without it the main page goes to
    /// stdout
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
