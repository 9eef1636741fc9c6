//! The command line: flags become plans, plans are executed, outcomes become text and exit codes. It
//! must not know verbs or the wire.

mod against;
pub mod args;
pub mod compare;
pub mod devices;
pub mod doctor;
pub mod dry_run;
pub mod errors;
pub mod execute;
pub mod explain;
mod format;
pub mod host;
pub mod logging;
mod output;
pub mod plot;
pub mod progress;
pub mod run;
pub mod send;
pub mod send_args;
mod send_progress;
pub mod serve;
mod server_log;
pub mod signals;
pub mod sweep_args;
pub mod token;

use clap::FromArgMatches as _;

pub use args::Cli;
pub use errors::{ExitKind, Failure};

/// Reads the command line and does what it says.
///
/// Usage errors end the process here, as clap prints them (2).
///
/// # Errors
/// What went wrong, with its exit code and, where there is one, what to do about it.
pub fn main() -> Result<(), Failure> {
    let parsed = args::command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(told) => return usage(&told),
    };
    match cli.command {
        Some(args::Command::Serve(args)) => {
            let plan = serve::ServePlan::new(args)?;
            logging::start(plan.verbose, plan.quiet);
            execute::serve(plan)
        }
        Some(args::Command::Compare(args)) => compare::compare(&args),
        Some(args::Command::Plot(args)) => {
            logging::start(args.speech.verbose, args.speech.quiet);
            plot::plot(&args)
        }
        Some(args::Command::Devices(args)) => devices::run(&args),
        Some(args::Command::Doctor(args)) => doctor::run(args),
        Some(args::Command::Explain(args)) => explain::run(args),
        Some(args::Command::Send(args)) => send::run(args),
        None => {
            let plan = run::RunPlan::new(cli.run)?;
            logging::start(plan.verbose, plan.quiet);
            if plan.dry_run {
                return dry_run::print(&plan, &mut std::io::stdout().lock());
            }
            execute::execute(plan)
        }
    }
}

/// `--help`, `--version`, or what is wrong with the command line.
fn usage(told: &clap::Error) -> Result<(), Failure> {
    if told.use_stderr() {
        told.exit();
    }
    devices::unless_closed(told.print())
}
