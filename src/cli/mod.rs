//! The command line: flags become plans, plans are executed, outcomes become text and exit codes.

pub mod args;
mod compare;
mod doctor;
mod ends;
mod explain;
mod mesh;
mod perftest_words;
mod plot;
mod progress;
mod send;
mod serve;
mod signals;
mod sweep;
mod terminal;

use std::ffi::OsString;
use std::net::ToSocketAddrs as _;

use clap::{
    ArgMatches, FromArgMatches as _,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use machine::host;
use plan::HostPort;
use settings::{is_near, nearest};

pub use args::Cli;
pub use terminal::{ExitKind, Failure};

use perftest_words::translate;
use sweep::execute;
use sweep::plan::{DefaultNodes, RunPlan};
use terminal::{print, say, start_logging, unless_closed};

/// Reads the command line and does what it says.
///
/// Usage errors end the process here, as clap prints them (2).
///
/// # Errors
/// What went wrong, with its exit code and, where there is one, what to do about it.
pub fn main() -> Result<(), Failure> {
    signals::files_may_not_grow().map_err(Failure::failed)?;
    let command = args::command();
    let typed = translate(std::env::args_os(), &command)?;
    let words = typed.words;
    let parsed = command
        .try_get_matches_from(&words)
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(mut error) => {
            without_far_tips(&mut error);
            if error.kind() == ErrorKind::DisplayHelp && is_short(&words, &args::command()) {
                return print(args::SHORT_HELP);
            }
            return usage(&error);
        }
    };
    options_follow_the_command(&matches)?;
    host::allow_open_files();
    match cli.command {
        Some(args::Command::Serve(args)) => {
            if !typed.left_out.is_empty() && !args.speech.quiet {
                let options = typed.left_out.join(", ");
                say(&format!("rocebench: note: ignored here, the client chooses: {options}"));
            }
            serve::run(args)
        }
        Some(args::Command::Mesh(args)) => mesh::run(*args, &matches),
        Some(args::Command::Compare(args)) => compare::compare(&args),
        Some(args::Command::Gate(args)) => compare::gate(&args),
        Some(args::Command::Plot(args)) => {
            start_logging(args.speech.verbose, args.speech.quiet);
            plot::plot(&args)
        }
        Some(args::Command::Devices(args)) => doctor::devices(&args),
        Some(args::Command::Doctor(args)) => doctor::run(args),
        Some(args::Command::Explain(args)) => explain::run(args),
        Some(args::Command::Send(args)) => send::run(args),
        Some(args::Command::Completions(args)) => explain::completions(&args),
        Some(args::Command::Man(args)) => explain::man(&args),
        None => {
            if let Some(host) = &cli.run.host {
                check_host(host)?;
            }
            let plan = RunPlan::new(cli.run, &DefaultNodes::TwoEnds)?;
            start_logging(plan.verbose, plan.quiet);
            execute(plan)
        }
    }
}

/// Whether `-h` asks for help, of no command.
fn is_short(words: &[OsString], command: &clap::Command) -> bool {
    let mut commands = command.get_subcommands();
    has(words, "-h") && !has(words, "--help") && !commands.any(|it| has(words, it.get_name()))
}

fn has(words: &[OsString], word: &str) -> bool {
    words.iter().any(|it| it == word)
}

/// `--help`, `--version`, or what is wrong with the command line. Of a launcher's ranks the first says it.
fn usage(error: &clap::Error) -> Result<(), Failure> {
    if mesh::is_further_rank(std::env::args_os()) {
        return if error.use_stderr() {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            Err(Failure::bad_input(line.trim_start_matches("error: ").to_owned()))
        } else {
            Ok(())
        };
    }
    if error.use_stderr() {
        if std::env::args_os().any(|word| word.to_string_lossy().contains(char::is_control)) {
            say(error.to_string().trim_end());
            std::process::exit(error.exit_code());
        }
        error.exit();
    }
    unless_closed(error.print(), Failure::failed)
}

/// Options of a sweep, and HOST, do not stand before a command: it has its own, after it.
fn options_follow_the_command(matches: &ArgMatches) -> Result<(), Failure> {
    let Some(command) = matches.subcommand_name() else {
        return Ok(());
    };
    if !matches.ids().any(|id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine))
    {
        return Ok(());
    }
    Err(Failure::bad_input(format!("`{command}` must come first, before options and HOST"))
        .with_hint(format!(
            "write rocebench {command} [OPTIONS]; for a host of that name write `{command}:{}`",
            args::DEFAULT_PORT
        )))
}

/// What other programs call these commands.
const OTHER_NAMES: [(&str, &str); 11] = [
    ("check", "doctor"),
    ("client", "HOST"),
    ("copy", "send"),
    ("daemon", "serve"),
    ("diff", "compare"),
    ("draw", "plot"),
    ("learn", "explain"),
    ("list", "devices"),
    ("listen", "serve"),
    ("run", "[HOST]"),
    ("server", "serve"),
];

/// Checks that HOST is not a mistyped command: its word is near to one, and no host has this name.
fn check_host(host: &HostPort) -> Result<(), Failure> {
    let Some(meant) = meant(&host.host).filter(|_| host.port.is_none()) else {
        return Ok(());
    };
    if (host.host.as_str(), args::DEFAULT_PORT).to_socket_addrs().is_ok() {
        return Ok(());
    }
    let unknown = format!("`{host}` is neither a command nor a known host");
    Err(Failure::bad_input(unknown).with_hint(format!("did you mean `rocebench {meant}`?")))
}

/// What the word was meant for.
fn meant(word: &str) -> Option<String> {
    if let Some((_, command)) = OTHER_NAMES.iter().find(|(name, _)| *name == word) {
        return Some((*command).to_owned());
    }
    let command = args::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    nearest(word, &names).map(str::to_owned)
}

/// Takes suggestions away that have little to do with what was written.
fn without_far_tips(error: &mut clap::Error) {
    for (written, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let (Some(word), Some(tip)) = (error.get(written), error.get(suggested)) else {
            continue;
        };
        let is_far = match (word, tip) {
            (ContextValue::String(word), ContextValue::String(tip)) => {
                !is_near(without_dashes(word), without_dashes(tip))
            }
            (ContextValue::String(word), ContextValue::Strings(tips)) => {
                !tips.iter().any(|near| is_near(without_dashes(word), without_dashes(near)))
            }
            _ => false,
        };
        if is_far {
            error.remove(suggested);
        }
    }
}

fn without_dashes(word: &str) -> &str {
    word.trim_start_matches('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_other_names_are_known_and_hosts_are_not() {
        for (word, command) in [
            ("sevre", "serve"),
            ("plto", "plot"),
            ("list", "devices"),
            ("completion", "completions"),
        ] {
            assert_eq!(meant(word).as_deref(), Some(command), "{word}");
        }
        for host in ["node07", "localhost", "a", "storage", "192.0.2.1"] {
            assert_eq!(meant(host), None, "{host}");
        }
    }

    #[test]
    fn every_other_name_is_of_a_command() {
        let command = args::command();
        for (name, meant) in OTHER_NAMES {
            let is_command = command.find_subcommand(meant).is_some();
            assert!(is_command || meant.contains("HOST"), "{name}");
            assert!(command.find_subcommand(name).is_none(), "{name}");
        }
    }
}
