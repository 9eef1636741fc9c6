//! From flags and a configuration file to what is to be run: everything that can be wrong with them is
//! found here, before a device or a peer is touched.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    cli::{
        args::{AgainstArgs, Least, OutputArgs, RunArgs, SearchArgs, Wire},
        ends::{check_has_own_node, ends, servers},
        terminal::Failure,
    },
    coordinator::interface::{Against, Rounds, SweepOptions, Target, WhyRequest},
};
use machine::threads::{CoreList, allowed_cores};
use perftest::{LONGEST_LIMIT, fits};
use plan::{
    ConfigFile, FlowTable, Goal, Nodes, PlanError, RailsAsked, Searches, Sweep, check, quick,
    recipes,
};
use protocol::handshake::Approach;
use report::{
    judge::{
        findings::Findings,
        threshold::{Condition, Demands},
    },
    observe::{Metric, format::counted},
    show::{csv, json, junit, perftest::Form},
};
use results::model::ResultFile;
use settings::{Given, PollMode, Settings, Stop};
use statistics::FEWEST_PAIRS;
use verbs::WireRequest;

/// What the command line asks for: a sweep, and what becomes of its figures.
pub struct RunPlan {
    pub options: SweepOptions,
    pub output: OutputOptions,
    pub dry_run: bool,
    /// No progress and no notes.
    pub quiet: bool,
    /// 0, or how many times `-v` was given.
    pub verbose: u8,
    /// The command, where it is not the process's own.
    pub typed: Option<Vec<String>>,
    /// A way of polling was asked for.
    polls_as_asked: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OutputOptions {
    /// Folder for the files of every sweep.
    pub out_dir: PathBuf,
    pub further: Vec<(Format, Sink)>,
    /// Metrics of which the table has columns besides.
    pub columns: Vec<Metric>,
    /// How often a run that measures prints a line.
    pub every: Option<Duration>,
    /// Problems alone are printed, and are a failure.
    pub only_problems: bool,
    /// What is demanded of each flow.
    pub demands: Demands,
    /// How many times worse a victim may be beside an attacker.
    pub fail_victim: Option<f64>,
    /// stdout has what a program of perftest would print.
    pub perftest: Option<Form>,
    /// The time of each of its rows, of a run without an end.
    pub period: Option<Duration>,
}

impl OutputOptions {
    /// The document that stdout carries: the table then belongs on stderr.
    pub fn on_stdout(&self) -> Option<Format> {
        let on_stdout = self.further.iter().find(|(_, sink)| *sink == Sink::Stdout);
        on_stdout.map(|(format, _)| *format)
    }
}

impl RunPlan {
    /// The plan that the command line asks for. Reads the configuration and token files, nothing else.
    ///
    /// # Errors
    /// Always bad input.
    pub fn new(args: RunArgs, defaults: &DefaultNodes) -> Result<RunPlan, Failure> {
        let (sweep, searches, polls_as_asked) = sweep(&args, defaults)?;
        if args.quick {
            quick::check(&sweep)?;
        }
        if args.check.is_some() {
            check::check(&sweep)?;
        }
        let (sweep, beside) = beside(&args.against, sweep)?;
        let token_file = &args.connection.token.token_file;
        let read: Vec<&Path> =
            [&args.config, token_file].into_iter().flatten().map(PathBuf::as_path).collect();
        let output = output(args.output, &read)?;
        conditions_apply(&output.demands.fail_if, &sweep)?;
        let against = against(&args.against, &sweep)?;
        let servers = servers(&sweep.nodes, args.connection.port)?;
        check_has_own_node(&sweep.nodes, &args.endpoint)?;
        if let Some(CoreList(cores)) = &args.endpoint.cores {
            let workers = sweep.max_workers();
            if u32::try_from(cores.len()).is_ok_and(|cores| cores < workers) {
                return Err(Failure::bad_input(format!(
                    "--cores lists {} cores for {workers} workers",
                    cores.len()
                ))
                .with_hint("list one core for each worker, or lower --workers"));
            }
        }
        if against.is_some() && args.endpoint.wire == Wire::Memory {
            return Err(Failure::bad_input("perftest's packets cannot go through memory")
                .with_hint("leave --wire out, or --against"));
        }
        let mut ends = ends(args.host, args.connection, args.endpoint, &sweep.nodes)?;
        if against.is_some() && ends.resources.request.wire == WireRequest::Auto {
            // Perftest's ends are two processes: ours go the same way.
            ends.resources.request.wire = WireRequest::BetweenProcesses;
        }
        let has_server = !servers.is_empty() || ends.target != Target::Local;
        if ends.approach != Approach::default() && !has_server {
            return Err(Failure::bad_input("--wait-for-server or --bind is given, but no server")
                .with_hint(
                    "name HOST or servers (--nodes); ranks of a launcher wait 60 s for each other",
                ));
        }
        if let Ok(cores) = allowed_cores() {
            let windows = sweep.cases.iter().filter_map(|case| case.window_ns());
            let nodes = nodes_here(&sweep.nodes, &ends.target) as usize;
            // A check asks what works, not how fast it is.
            let shortest = windows.min().filter(|_| args.check.is_none());
            fit_on(cores.len(), nodes, shortest)?;
        }
        let options = SweepOptions {
            servers,
            against,
            beside,
            searches,
            quick: args.quick,
            check: args.check,
            why: args.why.then(|| WhyRequest::within(USUAL_BUDGET)),
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
            typed: args.typed,
            polls_as_asked,
        })
    }

    /// Has stdout carry what a program of perftest would print; one without an end is measured until it is stopped.
    pub fn print_as(&mut self, form: Option<Form>) {
        let cases = &mut self.options.sweep.cases;
        for case in cases.iter_mut().filter(|_| form.as_ref().is_some_and(|it| it.is_endless)) {
            if let Stop::DurationNs(ns) = case.stop() {
                self.output.period = Some(Duration::from_nanos(ns));
            }
            case.set_stop(Stop::DurationNs(u64::MAX));
            case.flows.iter_mut().for_each(|flow| flow.set_stop(Stop::DurationNs(u64::MAX)));
        }
        self.output.perftest = form;
    }

    /// Has workers sleep where this process has more nodes than `cores`, unless a way of polling was asked for: a node that
    /// polls without a core of its own keeps the others from working. Returns what a person should know of it.
    pub fn fit_to(&mut self, cores: usize) -> Option<String> {
        let nodes = nodes_here(&self.options.sweep.nodes, &self.options.ends.target) as usize;
        if nodes <= cores || self.polls_as_asked {
            return None;
        }
        let mut has_changed = false;
        for case in &mut self.options.sweep.cases {
            let mut sleeping = case.clone();
            sleeping.poll = PollMode::Event;
            for flow in &mut sleeping.flows {
                flow.poll = PollMode::Event;
            }
            if Sweep::check(&sleeping).is_ok() {
                *case = sleeping;
                has_changed = true;
            }
        }
        has_changed.then(|| {
            format!(
                "{nodes} nodes share {}: their workers sleep until a completion comes (--poll event), and latency includes \
                 the waking; --poll busy has them poll",
                counted(cores, "core")
            )
        })
    }
}

/// How long `--why` may take behind a sweep.
const USUAL_BUDGET: Duration = Duration::from_secs(60);

/// The nodes that run in this process.
pub fn nodes_here(nodes: &Nodes, target: &Target) -> u32 {
    match (nodes, target) {
        (Nodes::TwoEnds, Target::Local) => 2,
        (Nodes::TwoEnds, _) => 1,
        (Nodes::Local(count), _) => *count,
        (Nodes::Hosts(_) | Nodes::Ranks(_), _) => 0,
    }
}

/// Nodes that a core can have without each run taking many times as long as it is to measure.
const MOST_NODES_OF_A_CORE: usize = 16;

/// How much longer a window has to be for each further node of a core. A node keeps a thread busy, its worker or its
/// device's. At an edge of the window a worker waits for a turn of each other node, up to 3 ms (Linux' base slice), and with
/// 1 % of the window the edge is missed.
const WINDOW_OF_A_NODE_NS: u64 = 300_000_000;

/// The shortest window of so many nodes in this process that [`fit_on`] does not refuse.
pub fn least_window(cores: usize, nodes: usize) -> Duration {
    let further = nodes.div_ceil(cores.max(1)).saturating_sub(1);
    Duration::from_nanos(WINDOW_OF_A_NODE_NS.saturating_mul(further as u64))
}

/// Refuses so many nodes in this process that nobody would wait for their end, or that no run would count whose window is so
/// short; `None` where messages are counted.
fn fit_on(cores: usize, nodes: usize, window_ns: Option<u64>) -> Result<(), Failure> {
    let of_window = window_ns.map_or(u64::MAX, |ns| 1 + ns / WINDOW_OF_A_NODE_NS);
    let of_a_core =
        usize::try_from(of_window).map_or(usize::MAX, |it| it.min(MOST_NODES_OF_A_CORE));
    // Two ends are what each command has.
    let most = cores.saturating_mul(of_a_core).max(2);
    if nodes <= most {
        return Ok(());
    }
    let further = nodes.div_ceil(cores.max(1)).saturating_sub(1);
    let longer = if further < MOST_NODES_OF_A_CORE {
        format!("measure longer (-D {}ms), ", least_window(cores, nodes).as_millis())
    } else {
        String::new()
    };
    let text = format!("{nodes} nodes in this process are too many for {}", counted(cores, "core"));
    Err(Failure::bad_input(text).with_hint(format!(
        "give --nodes local:{most} or fewer, {longer}or `rocebench serve` on more machines (--nodes HOST,…)"
    )))
}

/// What loads are searched for.
fn goals(args: &SearchArgs) -> Vec<Goal> {
    let slo = args.slo.clone().map(Goal::Slo);
    let knee = args.knee.map(Goal::Knee);
    let zero_loss = args.loss_search.then_some(Goal::ZeroLoss);
    slo.into_iter().chain(knee).chain(zero_loss).collect()
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
    /// `rocebench`: this end, and the one at HOST or in this process.
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

/// The sweep of flags over file, and whether they say how to poll. An error about what only the file says is placed in the
/// file.
fn sweep(
    args: &RunArgs,
    defaults: &DefaultNodes,
) -> Result<(Sweep, Option<Searches>, bool), Failure> {
    let flags = &args.sweep.given;
    let goals = goals(&args.search);
    let Some(path) = &args.config else {
        let given = with_usual(args, defaults, flags.clone(), &[])?;
        let nodes = defaults.nodes(args.nodes.clone());
        let (sweep, searches) = cases(goals, &given, &[], nodes)?;
        return Ok((sweep, searches, given.has("poll")));
    };
    let command = crate::cli::args::command();
    let machine_flags: Vec<&str> = command
        .get_arguments()
        .map(|argument| argument.get_long().unwrap_or(argument.get_id().as_str()))
        .filter(|flag| Settings::row(flag).is_none())
        .collect();
    let file = match recipes::config_of(path) {
        Some(text) => {
            let mut file = ConfigFile::parse(&text, path, &machine_flags)?;
            if let Some(nodes) = &args.nodes {
                recipes::place_nodes(&mut file, nodes);
            }
            file
        }
        None => ConfigFile::read(path, &machine_flags)?,
    };
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
    let made = cases(goals, &given, &file.flows, nodes);
    let (sweep, searches) =
        made.map_err(|error| match file.place_of(&error, flags_give(args, &error)) {
            Some(place) => {
                let hint = error.hint();
                Failure::bad_input(format!("{}:{place}: {error}", path.display())).with_hint(hint)
            }
            None => error.into(),
        })?;
    Ok((sweep, searches, given.has("poll")))
}

fn with_usual(
    args: &RunArgs,
    defaults: &DefaultNodes,
    given: Given,
    flows: &[FlowTable],
) -> Result<Given, Failure> {
    if args.check.is_some() && flows.is_empty() {
        Ok(check::with_usual(given))
    } else if args.quick && flows.is_empty() {
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

fn output(args: OutputArgs, read: &[&Path]) -> Result<OutputOptions, Failure> {
    let paths = [
        (Format::Json, args.json),
        (Format::Cases, args.csv),
        (Format::CasesInFull, args.csv_all),
        (Format::Qps, args.csv_qps),
        (Format::Histograms, args.csv_histograms),
        (Format::Junit, args.junit),
    ];
    let further: Vec<(Format, Sink)> =
        paths.into_iter().filter_map(|(format, path)| Some((format, path?.into()))).collect();
    let sinks: Vec<_> = further.iter().map(|(it, sink)| (it.option(), sink)).collect();
    apart(&sinks, read)?;
    let Least { of_all: below, of_stages } = args.fail_below.unwrap_or_default();
    if let Some((stage, _)) = of_stages.first() {
        let text = format!("--fail-below {}=…: only `rocebench accept` has stages", stage.name);
        return Err(Failure::bad_input(text).with_hint("give --fail-below one limit"));
    }
    let fail_if = args.fail_if;
    Ok(OutputOptions {
        out_dir: args.out,
        further,
        columns: args.columns,
        every: args.every.map(Duration::from),
        only_problems: args.only_problems,
        demands: Demands { below, fail_if },
        fail_victim: args.fail_victim,
        perftest: None,
        period: None,
    })
}

/// A document of a sweep: how it is asked for, named and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    /// The table.
    Cases,
    /// All settings and figures of each case.
    CasesInFull,
    /// The figures of each QP.
    Qps,
    Histograms,
    /// Flows and runs as tests.
    Junit,
}

impl Format {
    /// Those of which every sweep has a file.
    pub const OF_SWEEP: [Format; 4] =
        [Format::Json, Format::Cases, Format::Qps, Format::Histograms];

    /// The option that asks for a further one.
    pub fn option(self) -> &'static str {
        match self {
            Format::Json => "--json",
            Format::Cases => "--csv",
            Format::CasesInFull => "--csv-all",
            Format::Qps => "--csv-qps",
            Format::Histograms => "--csv-histograms",
            Format::Junit => "--junit",
        }
    }

    /// How the name of a sweep's file ends.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Json => ".json",
            Format::Cases => ".csv",
            Format::CasesInFull => "-all.csv",
            Format::Qps => "-qps.csv",
            Format::Histograms => "-histograms.csv",
            Format::Junit => ".xml",
        }
    }

    /// Writes the document to a stream; `findings` is what the result says, and tests of flows are for
    /// what is demanded of each.
    pub fn write_to(
        self,
        result: &ResultFile,
        findings: &Findings,
        demands: &Demands,
        out: impl Write,
    ) -> io::Result<()> {
        match self {
            Format::Json => json::write_to(result, findings, out),
            Format::Cases => csv::cases(result, out),
            Format::CasesInFull => csv::cases_in_full(result, out),
            Format::Qps => csv::qps(result, out),
            Format::Histograms => csv::histograms(result, out),
            Format::Junit => junit::write(result, findings, demands, out),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Standard output, which then carries nothing else.
    Stdout,
    File(PathBuf),
}

impl From<PathBuf> for Sink {
    fn from(path: PathBuf) -> Sink {
        if path == Path::new("-") { Sink::Stdout } else { Sink::File(path) }
    }
}

/// A file by what the system knows it by (device and inode), or one to come by its directory and its name there.
#[derive(PartialEq, Eq)]
pub enum Identity {
    There(u64, u64),
    ToCome(u64, u64, OsString),
}

impl Identity {
    /// `None` where there is no such directory: writing there will say so.
    pub fn new(path: &Path) -> Option<Identity> {
        if let Ok(facts) = path.metadata() {
            return Some(Identity::There(facts.dev(), facts.ino()));
        }
        let directory = match path.parent()? {
            parent if parent.as_os_str().is_empty() => Path::new("."),
            parent => parent,
        };
        let facts = directory.metadata().ok()?;
        let name = path.file_name()?.to_owned();
        Some(Identity::ToCome(facts.dev(), facts.ino(), name))
    }
}

impl Sink {
    /// Whether a document there would take the place of one at `other`, however the two are spelled.
    fn is(&self, other: &Sink) -> bool {
        self == other || self.identity().is_some_and(|one| Some(one) == other.identity())
    }

    fn identity(&self) -> Option<Identity> {
        match self {
            Sink::Stdout => None,
            Sink::File(path) => Identity::new(path),
        }
    }
}

/// Checks that no two options send their documents to one place, and none over a file that is `read`.
pub(in crate::cli) fn apart(sinks: &[(&str, &Sink)], read: &[&Path]) -> Result<(), Failure> {
    for (index, (two, sink)) in sinks.iter().enumerate() {
        let mut inputs =
            read.iter().filter(|path| path.metadata().is_ok_and(|facts| facts.is_file()));
        if let Some(input) = inputs.find(|path| sink.is(&Sink::File(path.to_path_buf()))) {
            let text = format!("{two} would replace {}, which this command reads", input.display());
            return Err(Failure::bad_input(text).with_hint("give it a file of its own"));
        }
        if let Some((one, _)) = sinks[..index].iter().find(|(_, other)| sink.is(other)) {
            let place = match sink {
                Sink::File(path) => path.display().to_string(),
                Sink::Stdout => "stdout".to_owned(),
            };
            return Err(Failure::bad_input(format!("{one} and {two} both go to {place}"))
                .with_hint("give one of them a file of its own"));
        }
    }
    Ok(())
}

/// Without a limit given: time for many QPs on a slow machine.
const DEFAULT_LIMIT: Duration = Duration::from_secs(20);

/// Most pairs for each of the least.
const MOST_FACTOR: u32 = 3;

/// What the options ask for; `None` without `--against`. More `--runs` than pairs are pairs too.
///
/// # Errors
/// Bad input: numbers that are odd or contradict each other, or a case that perftest cannot run.
fn against(args: &AgainstArgs, sweep: &Sweep) -> Result<Option<Against>, Failure> {
    if args.against.is_none() {
        return Ok(None);
    }
    if sweep.nodes != Nodes::TwoEnds {
        return Err(Failure::bad_input("--against perftest compares two ends, not --nodes")
            .with_hint("give one server as HOST"));
    }
    if sweep.cases.iter().any(|case| case.pattern.is_some()) {
        return Err(Failure::bad_input("--against perftest compares one flow, not --pattern")
            .with_hint("leave one of them out"));
    }
    let (pairs, max_pairs) = pairs(args, sweep)?;
    let limit = match args.perftest_limit {
        Some(span) => Duration::from_nanos(span.ns()),
        None => DEFAULT_LIMIT,
    };
    if limit < Duration::from_millis(1) || limit > LONGEST_LIMIT {
        return Err(Failure::bad_input("--perftest-limit is out of range: it must be 1ms to 1h")
            .with_hint("20s is enough for hundreds of QPs"));
    }
    for case in &sweep.cases {
        fits(case).map_err(|misfit| {
            let hint = misfit.hint.clone();
            Failure::bad_input(misfit).with_hint(hint)
        })?;
    }
    Ok(Some(Against { pairs, max_pairs, limit }))
}

/// Least and most pairs, or rounds.
fn pairs(args: &AgainstArgs, sweep: &Sweep) -> Result<(u32, u32), Failure> {
    for (option, number) in [("--pairs", args.pairs), ("--max-pairs", args.max_pairs)] {
        if let Some(number) = number.filter(|number| number % 2 == 1) {
            return Err(Failure::bad_input(format!(
                "{option} {number} is odd, but each side begins half of the pairs"
            ))
            .with_hint(format!("give {option} {}", number + 1)));
        }
    }
    let pairs = args.pairs.unwrap_or(FEWEST_PAIRS).max(sweep.runs().next_multiple_of(2));
    let max_pairs = args.max_pairs.unwrap_or(pairs.saturating_mul(MOST_FACTOR));
    if max_pairs < pairs {
        return Err(Failure::bad_input(format!(
            "--max-pairs {max_pairs} is less than the {pairs} pairs of --pairs or --runs"
        ))
        .with_hint(format!("give --max-pairs at least {pairs}, or lower --pairs")));
    }
    Ok((pairs, max_pairs))
}

/// The sweep as it was asked for, or with `--beside` the cases of its only one alone and beside each attacker, and the rounds
/// of them.
///
/// # Errors
/// Bad input: no victim, no attacker, or numbers that are odd or contradict each other.
fn beside(args: &AgainstArgs, sweep: Sweep) -> Result<(Sweep, Option<Rounds>), Failure> {
    if args.beside.is_empty() {
        return Ok((sweep, None));
    }
    if matches!(sweep.nodes, Nodes::Ranks(_)) {
        let text = "--beside cannot be used with a launcher's ranks";
        return Err(Failure::bad_input(text).with_hint("run `rocebench HOST`, or give --nodes"));
    }
    let (least, most) = pairs(args, &sweep)?;
    let made = plan::beside::beside(sweep, &args.beside);
    let (in_rounds, attackers) = made.map_err(|why| {
        Failure::bad_input(format!("--beside: {why}"))
            .with_hint("name an attacker that `rocebench --help` lists, or a file with one case")
    })?;
    Ok((in_rounds, Some(Rounds { attackers, least, most })))
}

/// `--fail-if`: refuses a condition about something that no case of the sweep measures.
fn conditions_apply(conditions: &[Condition], sweep: &Sweep) -> Result<(), Failure> {
    let cases = &sweep.cases;
    for condition in conditions {
        let metric = condition.metric;
        let of_latency = metric.unit() == "ns" && !metric.is_of_run();
        let mut flows = cases.iter().flat_map(|case| &case.flows);
        let (why, hint) = if metric.is_of_setup() {
            if cases.iter().any(|case| case.is_set_up()) {
                continue;
            }
            ("is about set-up, but no case measures it", "add --op connect")
        } else if metric.is_of_steps() {
            if cases.iter().any(|case| case.lock_step) {
                continue;
            }
            ("is about steps, but no case has them", "add --lock-step")
        } else if cases.iter().all(|case| case.flows.is_empty()) {
            ("is about traffic, but --traffic-qps 0 has none", "raise --traffic-qps")
        } else if of_latency && flows.all(|flow| flow.no_latency) {
            ("is about latency, but --no-latency records none", "leave --no-latency out")
        } else if metric == Metric::Fairness && flows.all(|flow| flow.qps < 2) {
            ("is about fairness between QPs, but every flow has only one", "give more QPs (-q)")
        } else {
            continue;
        };
        return Err(Failure::bad_input(format!("--fail-if {condition} {why}"))
            .with_hint(format!("{hint}, or leave the condition out")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use results::sample::{from_words, has};

    use super::*;

    fn pairs_for(
        pairs: Option<u32>,
        max_pairs: Option<u32>,
        runs: u32,
    ) -> Result<(u32, u32), String> {
        let args = AgainstArgs {
            against: Some("perftest".into()),
            pairs,
            max_pairs,
            perftest_limit: None,
            beside: Vec::new(),
        };
        let mut sweep = Sweep::new(&Given::default()).unwrap();
        sweep.cases[0].runs = runs;
        let against = against(&args, &sweep).map_err(|failure| failure.text())?;
        Ok(against.map(|it| (it.pairs, it.max_pairs)).unwrap())
    }

    #[test]
    fn pairs_are_even_and_at_most_three_times_as_many() {
        assert_eq!(pairs_for(None, None, 1), Ok((8, 24)));
        assert_eq!(pairs_for(Some(2), None, 1), Ok((2, 6)));
        assert_eq!(pairs_for(None, Some(14), 1), Ok((8, 14)));
        assert_eq!(pairs_for(None, None, 9), Ok((10, 30)), "runs are pairs");
        for (pairs, max_pairs, words) in [
            (Some(5), None, ["odd", "--pairs 6"]),
            (None, Some(15), ["odd", "--max-pairs 16"]),
            (Some(6), Some(4), ["--max-pairs 4", "hint"]),
        ] {
            has(pairs_for(pairs, max_pairs, 1).unwrap_err(), words);
        }
    }

    #[test]
    fn nodes_whose_runs_would_not_count_or_not_end_are_refused_with_what_fits() {
        let ms = |count: u64| Some(count * 1_000_000);
        for (cores, nodes, window_ns) in [
            (2, 32, None),
            (0, 0, None),
            (2, 2, ms(200)),
            (1, 2, ms(200)),
            (2, 4, ms(300)),
            (2, 8, ms(1000)),
            (2, 32, ms(5000)),
        ] {
            assert_eq!(fit_on(cores, nodes, window_ns).map_err(|it| it.text()), Ok(()));
        }
        has(fit_on(2, 33, None).unwrap_err().text(), ["33 nodes", "local:32 or fewer, or `"]);
        has(
            fit_on(2, 33, ms(9000)).unwrap_err().text(),
            ["for 2 cores", "local:32 or fewer, or `"],
        );
        has(fit_on(2, 3, ms(200)).unwrap_err().text(), ["local:2 or fewer, measure", "-D 300ms"]);
        has(fit_on(2, 32, ms(1000)).unwrap_err().text(), ["local:8 or", "-D 4500ms"]);
    }

    #[test]
    fn conditions_about_nothing_are_refused() {
        let refused = |condition: &str, flags: &str| {
            let sweep = Sweep::new(&from_words(flags)).unwrap();
            conditions_apply(&[condition.parse().unwrap()], &sweep).map_err(|it| it.text())
        };
        let none = "op=connect traffic-qps=0";
        let of_set_up = "--fail-if connections<100 is about set-up";
        let quiet = ("no-latency=true", "--no-latency records none");
        for (condition, flags, words) in [
            ("connections<100", "", of_set_up),
            ("step>1ms", "", "--fail-if step>1ms is about steps"),
            ("gbit<1", none, "--fail-if gbit<1 is about traffic"),
            ("p99>20us", quiet.0, quiet.1),
            ("jain<0.9", "qps=1", "every flow has only one"),
        ] {
            has(refused(condition, flags).unwrap_err(), [words]);
        }
        assert_eq!(refused("setup>1ms", none), Ok(()));
        assert_eq!(refused("gbit<1", "op=connect"), Ok(()));
        assert_eq!(refused("p99>20us", ""), Ok(()));
        assert_eq!(refused("jain<0.9", "qps=1,2"), Ok(()));
    }
}
