//! `rocebench why`: from the command line to one case that is explained, and what would be tried. The coordinator runs the
//! experiments, and the crate `why` says what they mean.

use std::time::Duration;

use clap::ArgMatches;

use crate::{
    cli::{
        args::{NOT_OF_WHY, WhyArgs},
        refuse_foreign,
        signals::stop_flag_or_unread,
        sweep::{
            execute_until,
            plan::{DefaultNodes, RunPlan},
        },
        terminal::{Failure, print, screen, start_logging},
    },
    coordinator::interface::{Target, WhyRequest},
};
use plan::{Case, Devices, Sweep};
use report::observe::format::counted;
use results::{numbers::for_people, text::wrapped};
use settings::Stop;
use why::{CHANGES, Evidence, Port, Situation, changed_options};

/// Explains one case.
///
/// # Errors
/// Bad input, why it could not begin, or that nothing could be measured.
pub fn run(args: WhyArgs, matches: &ArgMatches) -> Result<(), Failure> {
    refuse_foreign(matches, "why", NOT_OF_WHY, "`rocebench why --help` lists what it takes")?;
    let given = ["duration", "warmup"].map(|flag| args.run.sweep.given.has(flag));
    let mut plan = RunPlan::new(args.run, &DefaultNodes::TwoEnds)?;
    let case = match plan.options.sweep.cases.as_mut_slice() {
        [case] if !case.is_set_up() => case,
        cases => {
            let text = format!(
                "why explains one case that moves messages; this is {}",
                counted(cases.len(), "case")
            );
            return Err(Failure::bad_input(text)
                .with_hint("give one value of each setting; `rocebench … --why` explains the slowest case of a sweep"));
        }
    };
    let usual = WhyRequest::within(args.budget.into());
    let window = match (given, case.stop()) {
        ([true, _], Stop::DurationNs(ns)) => Duration::from_nanos(ns),
        _ => usual.window,
    };
    let warmup = if given[1] { case.warmup.longest() } else { usual.warmup };
    let request =
        WhyRequest { is_alone: true, may_load_more: args.may_load_more, window, warmup, ..usual };
    let least = request.to_request().least_budget();
    if request.budget < least {
        let seconds = least.as_secs_f64().ceil();
        return Err(Failure::bad_input(format!(
            "--budget {} is too short for one experiment",
            args.budget
        ))
        .with_hint(format!("give --budget {seconds}s or more, or shorter windows (-D)")));
    }
    *case = request.timed(case);
    plan.options.why = Some(request);
    start_logging(plan.verbose, plan.quiet);
    let stop = stop_flag_or_unread().map_err(Failure::failed)?;
    if !plan.dry_run {
        return execute_until(plan, &stop, None);
    }
    let changes = changes_text(&plan, request, screen(&std::io::stdout()).columns);
    execute_until(plan, &stop, None)?;
    print(&changes)
}

/// What would be tried, as far as that is known without devices and figures.
fn changes_text(plan: &RunPlan, request: WhyRequest, columns: usize) -> String {
    let width = columns.saturating_add(1);
    let each = request.to_request().run;
    let head = format!(
        "Then these changes, in turns with the case: those first that tell most, three at a time, 8 to 12 rounds with {} \
         each, until it is clear or {} are over. Changes that need figures of the case, or limits of the devices, come \
         besides.",
        for_people(each),
        for_people(request.budget)
    );
    let mut text = String::from("\n");
    for line in wrapped(&head, width) {
        text += &line;
        text.push('\n');
    }
    let case = &plan.options.sweep.cases[0];
    let situation = situation(plan, request);
    let evidence = Evidence::new(case, &situation, &[]);
    for change in CHANGES {
        let changed = change.apply(&evidence).filter(|changed| Sweep::check(changed).is_ok());
        if let Some(changed) = changed {
            let options = options_text(case, &changed);
            text += &format!("  {}{options}\n", change.words());
        }
    }
    text
}

fn options_text(case: &Case, changed: &Case) -> String {
    match changed_options(case, changed) {
        options if options.is_empty() => options,
        options => format!(": {options}"),
    }
}

/// What is known before a device is opened.
fn situation(plan: &RunPlan, request: WhyRequest) -> Situation {
    let resources = &plan.options.ends.resources;
    let first = match &resources.rails {
        Some(Devices::Named(names)) => names.first(),
        _ => resources.request.device.as_ref(),
    };
    let is_embedded = first.is_some_and(|name| name.starts_with("soft"));
    let names = plan.options.sweep.nodes.names();
    Situation {
        ports: names.iter().map(|_| Port { is_embedded, ..Port::default() }).collect(),
        names,
        is_one_machine: plan.options.ends.target == Target::Local,
        may_load_more: request.may_load_more,
    }
}
