//! `rocebench completions` and `rocebench man`: files made from the definition of the command line.

use std::io;
use std::path::Path;

use crate::cli::args::{self, CompletionsArgs, ManArgs};
use crate::cli::terminal::errors::Failure;
use crate::cli::terminal::stdout::print;

/// Prints the completions of a shell.
///
/// # Errors
/// Stdout cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "rocebench", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes the manual's pages to a folder, or prints the first.
///
/// # Errors
/// The folder, a file in it or stdout cannot be written.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let command = args::command().disable_help_subcommand(true);
    match &args.out {
        Some(folder) => write_pages(command, folder).map_err(|error| {
            Failure::failed(format!("writing the manual to {}: {error}", folder.display()))
                .with_hint("name a folder in which you may write")
        }),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(Failure::failed)?;
            print(&String::from_utf8_lossy(&page))
        }
    }
}

fn write_pages(command: clap::Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command, folder)
}
