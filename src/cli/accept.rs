//! `rocebench accept`: from the command line to one sweep with the cases of all stages, after those that measure nothing.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use clap::ArgMatches;

use crate::{
    cli::{
        args::{self, AcceptArgs, Least, NOT_OF_ACCEPT},
        doctor, given_options,
        mesh::among_nodes,
        refuse_foreign,
        sweep::{
            accepted, execute_until,
            plan::{RunPlan, least_window, nodes_here},
            stage_text,
        },
        terminal::{Failure, print, screen},
    },
    coordinator::{
        interface::{PlannedStage, Stages},
        ranks::Ranks,
    },
};
use machine::threads::allowed_cores;
use plan::{
    Nodes,
    stages::{RAILS, STAGES, Stage},
};
use report::judge::{stages::acceptance, threshold::Demands};
use results::{numbers::for_people, text::wrapped};
use settings::Given;

/// Options that a stage's own command does not have.
const OWN_OPTIONS: [&str; 4] = ["stages", "budget", "dry-run", "token"];

/// Runs all stages.
///
/// # Errors
/// Bad input, what stopped it, or that a stage failed or could not be judged.
pub fn run(mut args: AcceptArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let hint = "`rocebench accept --help` lists what it takes; each stage is a sweep of its own (--dry-run)";
    refuse_foreign(matches, "accept", NOT_OF_ACCEPT, hint)?;
    let request = Request {
        least: args.run.output.fail_below.take().unwrap_or_default(),
        given: args.run.sweep.given.clone(),
        asks_for_rails: args.run.rails.is_some(),
        shared: given_options(matches, "accept", &OWN_OPTIONS, &["Output"]),
        stages: args.stages,
        budget: args.budget.into(),
    };
    among_nodes("accept", args.run, args.launch, matches, |plan, stop, ranks| {
        accept(&request, plan, stop, ranks)
    })
}

/// What is asked of an acceptance besides its nodes.
struct Request {
    least: Least,
    given: Given,
    asks_for_rails: bool,
    /// Options of all stages, as they were given.
    shared: Vec<String>,
    stages: Vec<String>,
    budget: Duration,
}

fn accept(
    request: &Request,
    mut plan: RunPlan,
    stop: &AtomicBool,
    ranks: Option<Arc<Ranks>>,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let Request { least, given, shared, .. } = request;
    let nodes = plan.options.sweep.nodes.clone();
    let chosen = chosen(&request.stages, request.asks_for_rails || has_rails(&plan, &nodes))?;
    if let Some((stage, _)) =
        least.of_stages.iter().find(|(stage, _)| !chosen.contains(&stage.name))
    {
        return Err(Failure::bad_input(format!(
            "--fail-below {}=…: this stage is not run",
            stage.name
        ))
        .with_hint("name a stage of --stages that measures"));
    }
    let cores = allowed_cores().map_or(1, |cores| cores.len());
    let window = least_window(cores, nodes_here(&nodes, &plan.options.ends.target) as usize);
    let (mut cases, mut planned) = (Vec::new(), Vec::new());
    for stage in STAGES.iter().filter(|it| it.has_cases() && chosen.contains(&it.name)) {
        let from = cases.len();
        cases.extend(stage.cases(given, &nodes, window)?);
        let words = ["rocebench", "mesh"].map(str::to_owned).into_iter();
        let command = words.chain(shared.clone()).chain(stage.options(given, window)).collect();
        planned.push(PlannedStage {
            stage,
            cases: from..cases.len(),
            demands: demands(least, stage),
            command,
        });
    }
    plan.options.sweep.cases = cases;
    if plan.dry_run {
        return print(&dry_run(&plan, &planned, &chosen, shared));
    }
    let mut done = Vec::new();
    if chosen.contains(&"doctor") {
        done.push(doctor::stage(&plan, ranks.as_deref(), stop)?);
    }
    let is_shown = plan.output.on_stdout().is_none();
    for stage in done.iter().filter(|_| is_shown) {
        print(&stage_text(stage, screen(&std::io::stdout()).columns))?;
    }
    if planned.is_empty() {
        print(&acceptance(&done).map_or_else(String::new, |text| text + "\n"))?;
        return accepted(&done);
    }
    let ends_at = begun + request.budget;
    plan.options.stages = Some(Stages { done, planned, ends_at });
    execute_until(plan, stop, ranks)
}

/// The stages that are to run, in their order: all where none are named, that of rails where nodes have several.
fn chosen(named: &[String], has_rails: bool) -> Result<Vec<&'static str>, Failure> {
    let is_chosen = |stage: &&Stage| match named {
        [] => has_rails || stage.name != RAILS,
        names => names.iter().any(|name| name == stage.name),
    };
    if !has_rails && named.iter().any(|name| name == RAILS) {
        return Err(Failure::bad_input("the nodes have one rail each").with_hint(
            "list several devices: --nodes node[1-8]/mlx5_[0-3], or with local nodes --device",
        ));
    }
    Ok(STAGES.iter().filter(is_chosen).map(|stage| stage.name).collect())
}

/// Whether nodes may have several devices.
fn has_rails(plan: &RunPlan, nodes: &Nodes) -> bool {
    let mut numbers = (0..).zip(nodes.names()).map(|(number, _)| number);
    plan.options.ends.resources.rails.is_some()
        || numbers.any(|node| nodes.devices(node).is_some_and(|it| it.only().is_none()))
}

/// What a stage must keep: what was asked of it, else of all; a ping-pong moves too little for the latter.
fn demands(least: &Least, stage: &Stage) -> Demands {
    let own = least.of_stages.iter().find(|(of, _)| of.name == stage.name);
    let of_all = least.of_all.as_ref().filter(|_| !stage.is_of_latency());
    let below = own.map(|(_, condition)| condition).or(of_all).cloned();
    Demands { below, ..Demands::default() }
}

/// The stages with their questions, times and commands.
fn dry_run(plan: &RunPlan, planned: &[PlannedStage], chosen: &[&str], shared: &[String]) -> String {
    let width = screen(&std::io::stdout()).columns.saturating_add(1);
    let mut text = String::new();
    for stage in STAGES.iter().filter(|stage| chosen.contains(&stage.name)) {
        let measured = planned.iter().find(|it| it.stage.name == stage.name);
        let cases = measured.map_or(&[][..], |it| &plan.options.sweep.cases[it.cases.clone()]);
        let longest = stage.longest(cases).filter(|_| !cases.is_empty());
        let time = longest.map_or(String::new(), |it| format!(" At most {}.", for_people(it)));
        let command = measured.map_or_else(|| doctor_command(shared), |it| it.command.join(" "));
        for line in wrapped(&format!("{:<10} {}{time}", stage.name, stage.question), width) {
            text += &format!("{line}\n");
        }
        text += &format!("           {command}\n");
    }
    text
}

/// Those of these options that `rocebench doctor` has. Nodes of this process are not compared.
fn doctor_command(shared: &[String]) -> String {
    let command = args::command();
    let has = |option: &str| {
        let flag = option.trim_start_matches('-').split('=').next();
        let doctor = command.find_subcommand("doctor");
        doctor.is_some_and(|it| it.get_arguments().any(|argument| argument.get_long() == flag))
    };
    let options = shared.iter().filter(|it| has(it) && !it.starts_with("--nodes=local:"));
    options.fold("rocebench doctor".to_owned(), |text, option| format!("{text} {option}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_chosen_by_name_and_rails_where_there_are_some() {
        let named = |names: &[&str], has_rails| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&names, has_rails).map_err(|failure| failure.text())
        };
        assert_eq!(named(&["mesh", "doctor"], false).unwrap(), ["doctor", "mesh"]);
        assert!(!named(&[], false).unwrap().contains(&RAILS));
        assert_eq!(named(&[], true).unwrap().len(), STAGES.len());
        assert!(named(&[RAILS], false).is_err());
    }

    #[test]
    fn a_limit_is_of_its_stage_or_of_all_that_move_much() {
        let least: Least = "90%link,bisection=50%link".parse().unwrap();
        let of = |name| demands(&least, Stage::of_name(name).unwrap()).to_string();
        assert_eq!(of("bisection"), "--fail-below 50%link");
        assert_eq!((of("mesh"), of("ping-pong")), ("--fail-below 90%link".into(), String::new()));
        assert!("nothing=90%".parse::<Least>().is_err());
        assert!("doctor=90%".parse::<Least>().is_err());
    }
}
