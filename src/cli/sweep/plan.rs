//! From flags and a configuration file to what is to be run: everything that can be wrong with them is
//! found here, before a device or a peer is touched.

use std::path::PathBuf;

use crate::coordinator::interface::SweepOptions;
use plan::{ConfigFile, FlowTable, Goal, Nodes, PlanError, RailsAsked, Searches, Sweep, quick};
use report::judge::threshold::Demands;
use report::observe::Metric;
use settings::{Given, Settings};

use crate::cli::args::{OutputArgs, RunArgs, SearchArgs};
use crate::cli::ends::{check_has_own_node, ends, servers};
use crate::cli::sweep::against::{against, beside};
use crate::cli::sweep::fail_if::conditions_apply;
use crate::cli::sweep::format::Format;
use crate::cli::sweep::sink::{Sink, apart};
use crate::cli::terminal::errors::Failure;

/// What the command line asks for: a sweep, and what becomes of its figures.
pub struct RunPlan {
    pub options: SweepOptions,
    pub output: OutputOptions,
    pub dry_run: bool,
    /// No progress and no notes.
    pub quiet: bool,
    /// 0, or how many times `-v` was given.
    pub verbose: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OutputOptions {
    /// Folder for the files of every sweep.
    pub out_dir: PathBuf,
    pub further: Vec<(Format, Sink)>,
    /// Metrics of which the table has columns besides.
    pub columns: Vec<Metric>,
    /// Problems alone are printed, and are a failure.
    pub only_problems: bool,
    /// What is demanded of each flow.
    pub demands: Demands,
    /// How many times worse a victim may be beside an attacker.
    pub fail_victim: Option<f64>,
}

impl OutputOptions {
    /// The document that stdout carries: the table then belongs on stderr.
    pub fn on_stdout(&self) -> Option<Format> {
        let on_stdout = self.further.iter().find(|(_, sink)| *sink == Sink::Stdout);
        on_stdout.map(|(format, _)| *format)
    }
}

/// What loads are searched for.
fn goals(args: &SearchArgs) -> Vec<Goal> {
    let slo = args.slo.clone().map(Goal::Slo);
    let knee = args.knee.map(Goal::Knee);
    slo.into_iter().chain(knee).collect()
}

/// The cases of settings, and the searches over them.
fn cases(
    goals: Vec<Goal>,
    given: &Given,
    flows: &[FlowTable],
    nodes: Nodes,
) -> Result<(Sweep, Option<Searches>), PlanError> {
    if goals.is_empty() {
        return Ok((Sweep::with_flows(given, flows, nodes)?, None));
    }
    let (sweep, searches) = Searches::new(goals, given, flows, nodes)?;
    Ok((sweep, Some(searches)))
}

/// What a sweep's nodes are by the command, where neither options nor a file say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultNodes {
    /// `rocebench`: the two ends.
    TwoEnds,
    /// `rocebench mesh`: each pair of nodes, unless another pattern is asked for.
    Pairs,
    /// The same between the ranks of a launcher, by name, and no others.
    Ranks(Vec<String>),
}

impl DefaultNodes {
    /// The settings with the pattern of this command, where there are no flows and none was asked for.
    fn over(&self, mut given: Given, flows: &[FlowTable]) -> Result<Given, Failure> {
        if *self != DefaultNodes::TwoEnds
            && flows.is_empty()
            && !given.has("pattern")
            && let Some(row) = Settings::row("pattern")
        {
            given.set(row, "pairs").map_err(Failure::bad_input)?;
        }
        Ok(given)
    }

    fn nodes(&self, given: Option<Nodes>) -> Nodes {
        match self {
            DefaultNodes::Ranks(names) => Nodes::Ranks(names.clone()),
            DefaultNodes::TwoEnds | DefaultNodes::Pairs => given.unwrap_or_default(),
        }
    }
}

/// The sweep of flags over file. An error about what only the file says is placed in the file.
fn sweep(args: &RunArgs, defaults: &DefaultNodes) -> Result<(Sweep, Option<Searches>), Failure> {
    let flags = &args.sweep.given;
    let goals = goals(&args.search);
    let Some(path) = &args.config else {
        let given = with_usual(args, defaults, flags.clone(), &[])?;
        let nodes = defaults.nodes(args.nodes.clone());
        return Ok(cases(goals, &given, &[], nodes)?);
    };
    let command = crate::cli::args::command();
    let machine_flags: Vec<&str> = command
        .get_arguments()
        .map(|argument| argument.get_long().unwrap_or(argument.get_id().as_str()))
        .filter(|flag| Settings::row(flag).is_none())
        .collect();
    let file = ConfigFile::read(path, &machine_flags)?;
    if let (Some(host), Some(_)) = (&args.host, &file.nodes) {
        return Err(Failure::bad_input(format!(
            "{} names nodes, and HOST is {host}: they exclude each other",
            path.display()
        ))
        .with_hint("leave HOST out, or take `nodes` out of the file"));
    }
    if let (DefaultNodes::Ranks(_), Some(_)) = (defaults, &file.nodes) {
        return Err(Failure::bad_input(format!(
            "{} names nodes, and the ranks of the launcher are the nodes",
            path.display()
        ))
        .with_hint("take `nodes` out of the file, or run it without the launcher"));
    }
    let given = with_usual(args, defaults, flags.clone().over(file.given.clone()), &file.flows)?;
    let nodes = defaults.nodes(args.nodes.clone().or_else(|| file.nodes.clone()));
    let cases = cases(goals, &given, &file.flows, nodes);
    cases.map_err(|error| match file.place_of(&error, flags_give(args, &error)) {
        Some(place) => {
            let hint = error.hint();
            Failure::bad_input(format!("{}:{place}: {error}", path.display())).with_hint(hint)
        }
        None => error.into(),
    })
}

fn with_usual(
    args: &RunArgs,
    defaults: &DefaultNodes,
    given: Given,
    flows: &[FlowTable],
) -> Result<Given, Failure> {
    if args.quick && flows.is_empty() {
        Ok(quick::with_usual(given))
    } else {
        defaults.over(given, flows)
    }
}

/// Whether what the error is about was given as a flag: without it, the file's stands.
fn flags_give(args: &RunArgs, error: &PlanError) -> bool {
    let (flags, flag) = (&args.sweep.given, error.flag());
    flags.has(flag)
        || flag == "duration" && flags.has("iters")
        || flag == "nodes" && args.nodes.is_some()
}

fn output(args: OutputArgs) -> Result<OutputOptions, Failure> {
    let paths = [
        (Format::Json, args.json),
        (Format::Cases, args.csv),
        (Format::Qps, args.csv_qps),
        (Format::Histograms, args.csv_histograms),
        (Format::Junit, args.junit),
    ];
    let further: Vec<(Format, Sink)> =
        paths.into_iter().filter_map(|(format, path)| Some((format, path?.into()))).collect();
    let sinks: Vec<_> = further.iter().map(|(it, sink)| (it.option(), sink)).collect();
    apart(&sinks)?;
    let (below, fail_if) = (args.fail_below, args.fail_if);
    Ok(OutputOptions {
        out_dir: args.out,
        further,
        columns: args.columns,
        only_problems: args.only_problems,
        demands: Demands { below, fail_if },
        fail_victim: args.fail_victim,
    })
}

impl RunPlan {
    /// The plan that the command line asks for. Reads the configuration and token files, nothing else.
    ///
    /// # Errors
    /// Always bad input.
    pub fn new(args: RunArgs, defaults: &DefaultNodes) -> Result<RunPlan, Failure> {
        let (sweep, searches) = sweep(&args, defaults)?;
        if args.quick {
            quick::check(&sweep)?;
        }
        let (sweep, beside) = beside(&args.against, sweep)?;
        let output = output(args.output)?;
        conditions_apply(&output.demands.fail_if, &sweep)?;
        let against = against(&args.against, &sweep)?;
        let servers = servers(&sweep.nodes, args.connection.port)?;
        check_has_own_node(&sweep.nodes, &args.endpoint)?;
        let ends = ends(args.host, args.connection, args.endpoint)?;
        if let Some(cores) = &ends.resources.cores {
            let workers = sweep.max_workers();
            if u32::try_from(cores.len()).is_ok_and(|cores| cores < workers) {
                return Err(Failure::bad_input(format!(
                    "--cores lists {} cores for {workers} workers",
                    cores.len()
                ))
                .with_hint("list one core for each worker, or lower --workers"));
            }
        }
        let options = SweepOptions {
            servers,
            against,
            beside,
            searches,
            quick: args.quick,
            rails: RailsAsked {
                each_to_each: args.rails.as_deref() == Some("all"),
                all_up: args.rails_up.is_some(),
            },
            ..SweepOptions::new(sweep, ends)
        };
        Ok(RunPlan {
            options,
            output,
            dry_run: args.dry_run,
            quiet: args.speech.quiet,
            verbose: args.speech.verbose,
        })
    }
}
