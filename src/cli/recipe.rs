//! `rocebench recipe`: commands for one question that the program carries are listed, shown, or run one after the other, with
//! an answer in one sentence at the end.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Duration,
};

use clap::{ArgMatches, FromArgMatches as _, error::ErrorKind};

use crate::cli::{
    args::{self, Cli, Command, DoctorArgs, RecipeAction, RecipeArgs, RecipeRunArgs},
    doctor, options_of,
    signals::stop_flag_or_unread,
    sweep::{
        command_line, execute,
        plan::{DefaultNodes, RunPlan},
    },
    terminal::{Failure, print, screen, start_logging},
};
use plan::{
    Devices,
    recipes::{Recipe, RecipeStage},
};
use report::{judge::recipes::answer, observe::format::counted};
use results::{
    load::load,
    model::{ResultFile, utc_now},
    numbers::for_people,
    text::wrapped,
};

/// Options of `recipe run` that are not those of its stages.
const OWN_OPTIONS: [&str; 6] = ["name", "host", "stages", "out", "dry-run", "device"];

/// Options that replace a stage's own, by the words of both.
const REPLACED: [(&str, &str); 2] = [("-D", "--duration="), ("--nodes", "--nodes=")];

/// Lists recipes, shows one or runs it.
///
/// # Errors
/// Bad input, an interrupt, or stages that failed.
pub fn run(args: RecipeArgs, matches: &ArgMatches) -> Result<(), Failure> {
    match args.action {
        None | Some(RecipeAction::List) => print(&list()),
        Some(RecipeAction::Show { name }) => print(&show(&recipe(&name)?)),
        Some(RecipeAction::Run(args)) => {
            let own =
                matches.subcommand_matches("recipe").and_then(|it| it.subcommand_matches("run"));
            let options = args::command()
                .find_subcommand("recipe")
                .and_then(|it| it.find_subcommand("run"))
                .zip(own)
                .map_or_else(Vec::new, |(run, own)| options_of(run, own, &OWN_OPTIONS, &[]));
            let request = Request { recipe: recipe(&args.name)?, options, args: *args };
            request.run()
        }
    }
}

fn recipe(name: &str) -> Result<Recipe, Failure> {
    let names: Vec<&str> = Recipe::names().collect();
    Recipe::from_name(name).ok_or_else(|| {
        Failure::bad_input(format!("there is no recipe `{name}`"))
            .with_hint(format!("there are {}", names.join(", ")))
    })
}

fn list() -> String {
    let width = screen(&std::io::stdout()).columns;
    let mut text = String::new();
    for recipe in Recipe::carried() {
        let time = minutes(recipe.takes());
        let lines = wrapped(&recipe.title, width.saturating_sub(24).max(30));
        for (number, line) in lines.iter().enumerate() {
            let (name, time) = if number == 0 { (recipe.name, &*time) } else { ("", "") };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:<14}{time:>8}  {line}");
        }
    }
    text + "\nTo run one: rocebench recipe run NAME [HOST]. Times are those of the embedded device.\n"
}

fn show(recipe: &Recipe) -> String {
    let mut text = format!(
        "{}\n\nModelled on {}.\nTakes about {}.\n",
        recipe.title,
        recipe.source,
        minutes(recipe.takes())
    );
    for stage in &recipe.stages {
        let only = if stage.rails { ", with several devices" } else { "" };
        let _ = write!(text, "\n{} ({}{only})\n", stage.name, for_people(stage.takes()));
        let _ = writeln!(text, "  rocebench {}", stage.run);
        for line in stage.config.iter().flat_map(|config| config.trim().lines()) {
            let _ = writeln!(text, "    {line}");
        }
    }
    let _ = writeln!(text, "\nHow to read it:\n{}", recipe.meaning.trim());
    text
}

/// Whole minutes, or seconds below one.
fn minutes(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// A recipe that is to run.
struct Request {
    recipe: Recipe,
    /// Options for all stages, as `--flag=value`.
    options: Vec<String>,
    args: RecipeRunArgs,
}

impl Request {
    fn run(&self) -> Result<(), Failure> {
        let stages = self.stages()?;
        let mut jobs = Vec::new();
        for (stage, words) in &stages {
            let job = StageJob::new(words)
                .map_err(|failure| failure.without_hint(&format!("stage {}", stage.name)))?;
            jobs.push(job);
        }
        if self.args.dry_run {
            return print(&self.dry_run(&stages));
        }
        start_logging(self.args.speech.verbose, self.args.speech.quiet);
        let stop = stop_flag_or_unread().map_err(Failure::failed)?;
        let begun = utc_now();
        let (mut files, mut failed) = (Vec::new(), Vec::new());
        for (index, ((stage, words), job)) in stages.iter().zip(jobs).enumerate() {
            let left = self.left(&stages[index..]);
            let (number, count, name) = (index + 1, stages.len(), &stage.name);
            let command = command_line(words.iter().cloned()).join(" ");
            print(&format!("\nStage {number} of {count}{left}: {name}\n$ {command}\n"))?;
            if let Err(failure) = job.run() {
                failure.print();
                failed.push(name.as_str());
            }
            files.extend(newest(&self.folder(stage), &begun));
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::failed(format!(
                    "interrupted in stage {number} of {count}; the results so far are kept"
                )));
            }
        }
        let width = screen(&std::io::stdout()).columns;
        let sentence = answer(self.recipe.name, &files.iter().collect::<Vec<_>>());
        let lines = wrapped(&format!("Answer: {sentence}"), width);
        print(&format!("\n{}\n", lines.join("\n")))?;
        if failed.is_empty() {
            return Ok(());
        }
        let count = counted(stages.len(), "stage");
        let text = format!("{} of {count} failed: {}", failed.len(), failed.join(", "));
        Err(Failure::failed(text).with_hint("each is explained above"))
    }

    /// The stages that are to run, with their commands. Those that the nodes or devices are too few for are left out.
    fn stages(&self) -> Result<Vec<(&RecipeStage, Vec<String>)>, Failure> {
        let (named, recipe) = (&self.args.stages, &self.recipe);
        if let Some(name) =
            named.iter().find(|name| !recipe.stages.iter().any(|it| it.name == **name))
        {
            let names: Vec<&str> = recipe.stages.iter().map(|stage| &*stage.name).collect();
            return Err(Failure::bad_input(format!("{} has no stage `{name}`", recipe.name))
                .with_hint(format!("there are {}", names.join(", "))));
        }
        let has_rails = self.args.endpoint.device.as_ref().is_some_and(|it| it.only().is_none());
        let is_between_two = self.args.host.is_some();
        let stages: Vec<_> = (recipe.stages.iter())
            .filter(|stage| named.is_empty() || named.contains(&stage.name))
            .filter(|stage| has_rails || !stage.rails)
            .filter(|stage| !(is_between_two && stage.needs_nodes()))
            .map(|stage| (stage, self.words(stage)))
            .collect();
        if stages.is_empty() {
            return Err(Failure::bad_input("no stage can run between these nodes and devices")
                .with_hint("give --nodes in place of HOST, or several devices with --device"));
        }
        Ok(stages)
    }

    /// The command of a stage.
    fn words(&self, stage: &RecipeStage) -> Vec<String> {
        let device = match (&self.args.endpoint.device, stage.rails) {
            (Some(Devices::Named(names)), false) => names.first().cloned(),
            (Some(Devices::Named(names)), true) => Some(names.join(",")),
            (Some(Devices::All), true) => Some("all".to_owned()),
            (Some(Devices::All) | None, _) => None,
        };
        let mut options = self.options.clone();
        options.extend(device.map(|name| format!("--device={name}")));
        options.push(format!("--out={}", self.folder(stage).display()));
        let program = args::command();
        let first = stage.run.split_whitespace().next().unwrap_or_default();
        let command = program.find_subcommand(first).unwrap_or(&program);
        // Nodes of this process are not compared.
        let is_doctor = command.get_name() == "doctor";
        options.retain(|option| {
            let flag = option.trim_start_matches('-').split('=').next();
            command.get_arguments().any(|argument| argument.get_long() == flag)
                && !(is_doctor && option.starts_with("--nodes=local:"))
        });
        let mut words = vec!["rocebench".to_owned()];
        let mut own = stage.run.split_whitespace();
        while let Some(word) = own.next() {
            let is_replaced = REPLACED.iter().any(|(short, long)| {
                word == *short && options.iter().any(|option| option.starts_with(long))
            });
            if is_replaced {
                own.next();
            } else {
                words.push(word.to_owned());
            }
        }
        words.extend(options);
        words.extend(self.args.host.iter().map(ToString::to_string));
        words
    }

    fn folder(&self, stage: &RecipeStage) -> PathBuf {
        self.args.out.join(self.recipe.name).join(&stage.name)
    }

    /// How long these stages still take, unless other windows were asked for.
    fn left(&self, stages: &[(&RecipeStage, Vec<String>)]) -> String {
        if self.args.duration.is_some() {
            return String::new();
        }
        let left: Duration = stages.iter().map(|(stage, _)| stage.takes()).sum();
        format!(", about {} left", minutes(left))
    }

    fn dry_run(&self, stages: &[(&RecipeStage, Vec<String>)]) -> String {
        let mut text = String::new();
        for (stage, words) in stages {
            let command = command_line(words.iter().cloned()).join(" ");
            let _ = writeln!(text, "{:<14} {command}", stage.name);
        }
        for stage in &self.recipe.stages {
            if !stages.iter().any(|(kept, _)| kept.name == stage.name) {
                let _ = writeln!(text, "{:<14} left out", stage.name);
            }
        }
        text
    }
}

fn refused(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    match error.kind() {
        ErrorKind::Io => Failure::failed(first.to_owned()),
        _ => Failure::bad_input(first.trim_start_matches("error: ").to_owned()),
    }
}

/// The command of a stage, ready to run.
enum StageJob {
    Sweep(Box<RunPlan>),
    Doctor(Box<DoctorArgs>),
}

impl StageJob {
    /// Refuses what would be refused when it runs, as far as that is known without devices.
    fn new(words: &[String]) -> Result<StageJob, Failure> {
        let matches = args::command().try_get_matches_from(words);
        let mut cli = matches
            .and_then(|matches| Cli::from_arg_matches(&matches))
            .map_err(|error| refused(&error))?;
        match cli.command {
            None => {
                cli.run.typed = Some(command_line(words.iter().cloned()));
                let plan = RunPlan::new(cli.run, &DefaultNodes::TwoEnds)?;
                Ok(StageJob::Sweep(Box::new(plan)))
            }
            Some(Command::Doctor(args)) => Ok(StageJob::Doctor(Box::new(args))),
            Some(_) => Err(Failure::bad_input("a stage of a recipe is a sweep or `doctor`")),
        }
    }

    fn run(self) -> Result<(), Failure> {
        match self {
            StageJob::Sweep(plan) => execute(*plan),
            StageJob::Doctor(args) => doctor::run(*args),
        }
    }
}

/// The result in a folder that was begun last, at this time or later.
fn newest(folder: &Path, begun: &str) -> Option<ResultFile> {
    if !folder.is_dir() {
        return None;
    }
    let found = load(&[folder]).results.into_iter().map(|it| it.result);
    found
        .filter(|result| result.started_at.as_str() >= begun)
        .max_by(|one, other| one.started_at.cmp(&other.started_at))
}
