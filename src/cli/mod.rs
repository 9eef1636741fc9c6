//! The command line: flags become plans, plans are executed, outcomes become text and exit codes.

mod accept;
pub mod args;
mod compare;
mod doctor;
mod ends;
mod every;
mod explain;
mod history;
mod mesh;
mod perftest_rows;
mod perftest_words;
mod plot;
mod progress;
mod recipe;
mod send;
mod serve;
mod signals;
mod soak;
mod sweep;
mod terminal;
mod usage;
mod why;

use std::ffi::OsString;

use clap::{ArgMatches, FromArgMatches as _, error::ErrorKind, parser::ValueSource};

use machine::host;

pub use args::Cli;
pub use terminal::{ExitKind, Failure};

use perftest_words::translate;
use sweep::execute;
use sweep::plan::{DefaultNodes, RunPlan};
use terminal::{print, say, start_logging, unless_closed};
use usage::check_host;

/// Reads the command line and does what it says.
///
/// # Errors
/// What went wrong, with its exit code and, where there is one, what to do about it.
#[inline(never)] // what calls it has a small stack
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
        Err(error) => {
            if error.kind() == ErrorKind::DisplayHelp && is_short(&words, &args::command()) {
                return print(args::SHORT_HELP);
            }
            return not_parsed(&error, &words);
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
            serve::run(args, typed.form)
        }
        Some(args::Command::Mesh(args)) => mesh::run(*args, &matches),
        Some(args::Command::Accept(args)) => accept::run(*args, &matches),
        Some(args::Command::Soak(args)) => soak::run(*args, &matches),
        Some(args::Command::Why(args)) => why::run(*args, &matches),
        Some(args::Command::Compare(args)) => compare::compare(&args),
        Some(args::Command::Gate(args)) => compare::gate(&args),
        Some(args::Command::Plot(args)) => {
            start_logging(args.speech.verbose, args.speech.quiet);
            plot::plot(&args)
        }
        Some(args::Command::History(args)) => history::run(args),
        Some(args::Command::Recipe(args)) => recipe::run(args, &matches),
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
            let mut plan = RunPlan::new(cli.run, &DefaultNodes::TwoEnds)?;
            plan.print_as(typed.form);
            start_logging(plan.verbose, plan.quiet);
            for text in typed.without_effect.iter().filter(|_| plan.verbose > 0) {
                say(&format!("rocebench: note: without effect here: {text}"));
            }
            execute(plan)
        }
    }
}

/// Refuses options, by their ids, of a sweep that a command does not take.
fn refuse_foreign(
    matches: &ArgMatches,
    command: &str,
    ids: &str,
    hint: &str,
) -> Result<(), Failure> {
    let own = matches.subcommand_matches(command);
    let is_given =
        |id: &&str| own.and_then(|it| it.value_source(id)) == Some(ValueSource::CommandLine);
    match ids.split(' ').find(is_given) {
        Some(id) => {
            let flag = id.replace('_', "-");
            Err(Failure::bad_input(format!("`{command}` does not take --{flag}")).with_hint(hint))
        }
        None => Ok(()),
    }
}

/// As [`options_of`] of a command by its name.
fn given_options(
    matches: &ArgMatches,
    name: &str,
    flags: &[&str],
    headings: &[&str],
) -> Vec<String> {
    let program = args::command();
    let (command, own) = (program.find_subcommand(name), matches.subcommand_matches(name));
    command
        .zip(own)
        .map_or_else(Vec::new, |(command, own)| options_of(command, own, flags, headings))
}

/// The options of a command that were given, as `--flag=value`, but for some flags and those below some headings.
fn options_of(
    command: &clap::Command,
    matches: &ArgMatches,
    flags: &[&str],
    headings: &[&str],
) -> Vec<String> {
    let mut options = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let flag = argument.get_long().unwrap_or(id);
        let is_given = matches.try_contains_id(id).unwrap_or(false)
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        let is_below = argument.get_help_heading().is_some_and(|it| headings.contains(&it));
        if !is_given || is_below || flags.contains(&flag) {
            continue;
        }
        let values: Vec<_> = matches
            .get_raw(id)
            .into_iter()
            .flatten()
            .map(|value| value.to_string_lossy())
            .collect();
        options.push(if values.is_empty() {
            format!("--{flag}")
        } else {
            format!("--{flag}={}", values.join(","))
        });
    }
    options
}

/// Whether `-h` asks for help, of no command.
fn is_short(words: &[OsString], command: &clap::Command) -> bool {
    let mut commands = command.get_subcommands();
    has(words, "-h") && !has(words, "--help") && !commands.any(|it| has(words, it.get_name()))
}

fn has(words: &[OsString], word: &str) -> bool {
    words.iter().any(|it| it == word)
}

/// `--help`, `--version`, which of a launcher's ranks the first prints, or what is wrong with the command line.
fn not_parsed(error: &clap::Error, words: &[OsString]) -> Result<(), Failure> {
    if error.use_stderr() {
        return Err(usage::failure(error, words));
    }
    if mesh::is_further_rank(std::env::args_os()) {
        return Ok(());
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
