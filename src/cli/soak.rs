//! `rocebench soak`: from the command line to one case, and what it comes to. `soak` has what becomes of the samples.

use std::time::Duration;

use clap::ArgMatches;
use time::OffsetDateTime;

use crate::{
    cli::{
        args::{NOT_OF_SOAK, SoakArgs},
        refuse_foreign,
        signals::stop_flag_or_unread,
        sweep::{
            command_line, execute_until,
            plan::{DefaultNodes, RunPlan},
            refused,
        },
        terminal::{Failure, print, say, start_logging},
    },
    coordinator::{interface::Observer, soak::Soak},
    soak::{Options, Screen, run as soak},
};
use machine::threads::allowed_cores;
use plan::Case;
use report::observe::format::counted;
use results::whole_file::{prepare, prepare_directory};
use settings::Settings;

/// How long the user's command may take.
const ALERT_LIMIT: Duration = Duration::from_secs(30);

/// Measures one case until the user or `--for` ends it.
///
/// # Errors
/// Bad input, why it could not begin, or what is wrong at the end.
pub fn run(mut args: SoakArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let hint = "`rocebench soak --help` lists what it takes; --sample is its window";
    refuse_foreign(matches, "soak", NOT_OF_SOAK, hint)?;
    if let Some(row) = Settings::row("duration") {
        let text = args.sample.to_string();
        args.run.sweep.given.set(row, &text).map_err(Failure::bad_input)?;
    }
    let mut plan = RunPlan::new(args.run, &DefaultNodes::TwoEnds)?;
    let cases = &plan.options.sweep.cases;
    if cases.iter().any(Case::has_shares) {
        return Err(Failure::bad_input("a soak has no closed loop of which --rate can be a share")
            .with_hint("give --rate in messages or bits a second, such as 200k or 10Gb"));
    }
    if cases.len() > 1 || plan.options.sweep.runs() > 1 || cases.iter().any(|case| case.is_set_up())
    {
        let text =
            format!("a soak moves messages in one case; this is {}", counted(cases.len(), "case"));
        return Err(Failure::bad_input(text)
            .with_hint("give one value of each setting, without --runs and --op connect"));
    }
    start_logging(plan.verbose, plan.quiet);
    let stop = stop_flag_or_unread().map_err(Failure::failed)?;
    if plan.dry_run {
        return execute_until(plan, &stop, None);
    }
    let mut screen = Lines { is_quiet: plan.quiet };
    let note = allowed_cores().ok().and_then(|cores| plan.fit_to(cores.len()));
    note.iter().for_each(|text| screen.note(text));
    prepare_directory(&plan.output.out_dir).map_err(refused("--out"))?;
    if let Some(path) = &args.openmetrics {
        prepare(path).map_err(refused("--openmetrics"))?;
        if path.extension().is_none_or(|ending| ending != "prom") {
            screen.note("--openmetrics: node_exporter reads only names that end in .prom");
        }
    }
    plan.options.command_line =
        command_line(std::env::args_os().map(|word| word.to_string_lossy().into_owned()));
    let options = Options {
        folder: plan.output.out_dir,
        keep: args.keep as usize,
        open_metrics: args.openmetrics,
        on_alert: args.on_alert.map(|shell| (shell, ALERT_LIMIT)),
        demands: plan.output.demands,
        ends_at: args.ends_after.map(|span| OffsetDateTime::now_utc() + Duration::from(span)),
    };
    let mut notes = Lines { is_quiet: plan.quiet };
    let mut samples = Soak::begin(&plan.options, &stop, &mut notes)?;
    let standing = soak(&mut samples, options, &OffsetDateTime::now_utc, &mut screen)
        .map_err(Failure::failed)?;
    if standing.is_empty() {
        return Ok(());
    }
    let texts: Vec<&str> = standing.iter().map(|finding| &*finding.text).collect();
    let count = counted(texts.len(), "alert");
    Err(Failure::failed(format!("not over at the end, {count}: {}", texts.join("; "))))
}

/// Samples on stdout; alerts, and notes of the coordinator, on stderr.
struct Lines {
    is_quiet: bool,
}

impl Screen for Lines {
    fn sample(&mut self, line: &str) {
        if !self.is_quiet {
            // Where nobody reads on, the signal for that ends the soak.
            let _ = print(&format!("{line}\n"));
        }
    }

    fn alert(&mut self, line: &str) {
        say(line);
    }
}

impl Observer for Lines {
    fn note(&mut self, text: &str) {
        if !self.is_quiet {
            say(&format!("rocebench: note: {text}"));
        }
    }
}
