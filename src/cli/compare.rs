//! Whether something is slower: `rocebench compare` compares two places with results, and `rocebench gate` launches both
//! sides in turns until it is clear whether one is slower.

use std::{
    collections::BTreeSet,
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::cli::{
    args::{CompareArgs, GateArgs, PlotArgs, Strict, Switch},
    ends::TOKEN_VARIABLE,
    plot::plot_with,
    signals::stop_flag,
    sweep::plan::{Identity, Sink, apart},
    terminal::{Failure, say, unless_closed},
};
use experiment::{LaunchPlan, Measurer, Round, Stop};
use perftest::{Child, Ended, Launch};
use report::{
    judge::compare::{self, Aspect},
    show::compare as output,
};
use results::{
    load::{Found, load},
    model::{Comparison, PlaceComparison, Verdict},
    text,
    whole_file::write_whole,
};
use settings::{TimeSpan, listed};
use statistics::fewest_a_side;

type Writer<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + 'a;

/// Compares, prints, writes.
///
/// # Errors
/// Something is slower, is not comparable or was not measured so that it tells anything; a named file cannot be used.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    compare_found(args, &found(&args.base)?, &found(&args.new)?)
}

/// The same of what lies at the two paths.
pub(super) fn compare_found(args: &CompareArgs, base: &Found, new: &Found) -> Result<(), Failure> {
    check_places(args, [base, new])?;
    let comparison = compare::compare((&args.base, base), (&args.new, new), &args.what.options());
    write(args, &comparison, [base, new])?;
    let remedy = format!(
        "rocebench gate launches both sides in turns until it is clear; or compare {} nights of each side, with --across time",
        fewest_a_side(1.0)
    );
    verdict(args.unclear.strict, &comparison, &remedy)
}

/// What lies at a path; a file that was named must be usable, of a folder something must be.
pub(super) fn found(path: &Path) -> Result<Found, Failure> {
    let mut found = load(&[path]);
    if found.results.is_empty() {
        for refused in found.refused.iter().skip(1) {
            say(&format!("rocebench: refused: {refused}"));
        }
        return Err(match found.refused.into_iter().next() {
            // Its text holds the system's reason already, and ends with what to do.
            Some(refused) => match refused.to_string().rsplit_once("; ") {
                Some((what, remedy)) => Failure::bad_input(what.to_owned()).with_hint(remedy),
                None => Failure::bad_input(refused),
            },
            None => Failure::bad_input(format!("{} holds no result files", text::path(path)))
                .with_hint(
                    "name a result file, or a folder with *.json files that rocebench wrote",
                ),
        });
    }
    found.results.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// At most one document goes to stdout, no two to one file, and none over a result.
fn check_places(args: &CompareArgs, sides: [&Found; 2]) -> Result<(), Failure> {
    let sinks: Vec<(&str, Sink)> = files(args)
        .into_iter()
        .filter_map(|(flag, path)| Some((flag, Sink::from(path?.to_owned()))))
        .collect();
    let results = sides.into_iter().flat_map(|side| &side.results);
    let read: Vec<&Path> = results.map(|loaded| loaded.path.as_path()).collect();
    apart(&sinks.iter().map(|(flag, sink)| (*flag, sink)).collect::<Vec<_>>(), &read)
}

/// Files of one format each, by their flags.
fn files(args: &CompareArgs) -> [(&'static str, Option<&Path>); 5] {
    [
        ("--json", args.json.as_deref()),
        ("--markdown", args.markdown.as_deref()),
        ("--junit", args.junit.as_deref()),
        ("--bmf", args.bmf.as_deref()),
        ("--otava", args.otava.as_deref()),
    ]
}

fn write(args: &CompareArgs, comparison: &Comparison, sides: [&Found; 2]) -> Result<(), Failure> {
    let paths = files(args).map(|(_, path)| path);
    let formats: [Box<Writer>; 5] = [
        Box::new(|out| output::write_json(comparison, out)),
        Box::new(|out| output::write_markdown(comparison, out)),
        Box::new(|out| output::write_junit(comparison, out)),
        Box::new(|out| output::write_bmf(comparison, out)),
        Box::new(move |out| output::write_otava(comparison, sides, out)),
    ];
    let stdout_is_taken = paths.iter().flatten().any(|path| is_stdout(path));
    if args.quiet {
        for refused in &comparison.refused {
            say(&format!("rocebench: warning: {refused}"));
        }
    } else {
        let table = if stdout_is_taken {
            output::write_table(comparison, io::stderr().lock())
        } else {
            output::write_table(comparison, io::BufWriter::new(io::stdout().lock()))
        };
        unless_closed(table, Failure::bad_input)?;
    }
    for (path, write) in paths.into_iter().zip(formats) {
        match path {
            None => {}
            Some(path) if is_stdout(path) => {
                let written = write(&mut io::BufWriter::new(io::stdout().lock()));
                unless_closed(written, Failure::bad_input)?;
            }
            Some(path) => write_whole(path, |out| write(out)).map_err(Failure::bad_input)?,
        }
    }
    let Some(folder) = &args.github_action_benchmark else {
        return Ok(());
    };
    fs::create_dir_all(folder).map_err(|error| {
        Failure::bad_input(format!("cannot create {}: {error}", folder.display()))
            .with_hint("choose a folder that you may write to with --github-action-benchmark")
    })?;
    for (name, bigger) in [("bigger-is-better.json", true), ("smaller-is-better.json", false)] {
        write_whole(&folder.join(name), |out| output::write_action(comparison, bigger, out))
            .map_err(Failure::bad_input)?;
    }
    Ok(())
}

fn is_stdout(path: &Path) -> bool {
    Sink::from(path.to_owned()) == Sink::Stdout
}

/// The exit status, with a line that says why it is not 0; `remedy` is for figures that tell nothing.
fn verdict(strict: Option<Strict>, comparison: &Comparison, remedy: &str) -> Result<(), Failure> {
    let count = |verdict| comparison.cases_with(verdict);
    let (total, slower) = (comparison.cases.len(), count(Verdict::Slower));
    let slower_metrics = comparison.over_all_with(Verdict::Slower);
    if slower > 0 || !slower_metrics.is_empty() {
        let names: Vec<&str> =
            slower_metrics.iter().map(|figures| figures.metric.short_name()).collect();
        let over_all = if names.is_empty() {
            String::new()
        } else {
            format!("over all cases {} slower; ", names.join(", "))
        };
        return Err(Failure::failed(format!("{over_all}{slower} of {total} cases slower")));
    }
    let places = comparison.nodes.iter().flat_map(|nodes| &nodes.places);
    let slower_places: BTreeSet<String> =
        places.filter(|it| it.verdict == Verdict::Slower).map(PlaceComparison::name).collect();
    if !slower_places.is_empty() {
        return Err(Failure::failed(format!("slower: {}", listed(&Vec::from_iter(slower_places)))));
    }
    if total == 0 && comparison.nodes.is_empty() {
        return Err(Failure::bad_input(output::NONE_IN_COMMON)
            .with_hint("run the same sweep on both sides; cases match by name and settings"));
    }
    let not_comparable = count(Verdict::NotComparable);
    if not_comparable > 0 {
        let text = format!("{not_comparable} of {total} cases are not comparable");
        let differ = differing(comparison).join(",");
        return Err(if differ.is_empty() {
            Failure::undone(text).with_hint(
                "run the sweep again if runs failed or lack figures, or choose other --metrics",
            )
        } else {
            Failure::bad_input(text).with_hint(format!(
                "measure both sides alike, or compare anyway with --across {differ}"
            ))
        });
    }
    let no_verdict = count(Verdict::NoVerdict);
    if no_verdict > 0 {
        let text = format!("{no_verdict} of {total} cases are unclear");
        return Err(Failure::undone(text).with_hint(remedy));
    }
    let Some(strict) = strict else {
        return Ok(());
    };
    let (unclear, over_all) = match strict {
        Strict::Cases => {
            let open = comparison.cases.iter().filter(|case| {
                case.metrics.iter().all(|figures| figures.verdict == Verdict::Unclear)
            });
            (open.count(), 0)
        }
        Strict::Figures => {
            (count(Verdict::Unclear), comparison.over_all_with(Verdict::Unclear).len())
        }
    };
    let missing_nodes: usize = comparison.nodes.iter().map(|nodes| nodes.missing.len()).sum();
    let missing = comparison.only_in_base.len() + missing_nodes;
    if unclear + missing + over_all == 0 {
        return Ok(());
    }
    Err(Failure::undone(format!(
        "--strict: {unclear} of {total} cases are unclear, {missing} are missing in the new results, {over_all} \
         metrics are unclear over all cases"
    ))
    .with_hint("the table says how many runs would settle it"))
}

/// The aspects in which the sides differ and were to be alike.
fn differing(comparison: &Comparison) -> Vec<&'static str> {
    Aspect::ALL
        .iter()
        .map(|aspect| aspect.name())
        .filter(|name| {
            let mark = format!("[{name}]");
            let mut reasons = comparison.cases.iter().flat_map(|case| &case.not_comparable);
            reasons.any(|reason| reason.ends_with(&mark))
        })
        .collect()
}

/// Measures both sides, judges, and writes the verdict.
///
/// # Errors
/// As of [`compare`]; or a launch failed or was interrupted.
pub fn gate(args: &GateArgs) -> Result<(), Failure> {
    let sides =
        [Side { name: "base", switches: &args.base }, Side { name: "new", switches: &args.new }];
    check_sides(&sides)?;
    for side in &sides {
        make_folder(&args.out.join(side.name))?;
    }
    let (comparison, part) = measure(args, &sides).inspect_err(|_| kept(&args.out))?;
    write_verdict(&args.out, &comparison)?;
    let stdout = io::BufWriter::new(io::stdout().lock());
    unless_closed(output::write_table(&comparison, stdout), Failure::bad_input)?;
    let page = PlotArgs {
        results: vec![args.out.join("new")],
        out: args.out.clone(),
        base: Some(args.out.join("base")),
        ..PlotArgs::default()
    };
    // The verdict counts more than its picture.
    if let Err(failure) = plot_with(&page, &args.options(part)) {
        say(&format!("rocebench: warning: no page: {}", failure.text()));
    }
    let remedy = "the table says which runs do not count, and why: measure longer (-D), on an idle machine, with more --budget";
    verdict(args.unclear.strict, &comparison, remedy)
}

/// Sees that something is switched: otherwise the program would be compared with itself.
///
/// # Errors
/// Bad input that names the switch, or says that the sides do not differ.
fn check_sides(sides: &[Side; 2]) -> Result<(), Failure> {
    for side in sides {
        side.check()?;
    }
    let [base, new] = sides;
    let mut variables = sides.iter().flat_map(Side::variables);
    if base.files()? == new.files()?
        && base.values("run").eq(new.values("run"))
        && variables.all(|(name, _)| base.variable(name) == new.variable(name))
    {
        let text = "both sides are the same: their program, libraries, variables and commands do not differ";
        return Err(Failure::bad_input(text).with_hint(
            "switch something on one side: --base program=PATH, lib=DIR, env=VAR=VALUE or run=COMMAND",
        ));
    }
    Ok(())
}

/// Adds rounds until it is clear at a planned look, or nothing more fits into the budget; the part of the chance of error
/// that the look had.
fn measure(args: &GateArgs, sides: &[Side; 2]) -> Result<(Comparison, f64), Failure> {
    let mut launches = Launches {
        args,
        sides,
        sweep: args.words(),
        stop: stop_flag().map_err(Failure::undone)?,
        began: Instant::now(),
        plan: None,
        found: (Comparison::default(), 1.0),
    };
    experiment::run(&mut launches)?;
    Ok(launches.found)
}

/// Launches of both sides of a gate.
struct Launches<'a> {
    args: &'a GateArgs,
    sides: &'a [Side<'a>; 2],
    sweep: Vec<String>,
    stop: Arc<AtomicBool>,
    began: Instant,
    /// Made after the first round.
    plan: Option<LaunchPlan>,
    /// What the last look came to, and its part of the chance of error.
    found: (Comparison, f64),
}

impl Measurer for Launches<'_> {
    type Error = Failure;

    fn measure(&mut self, side: usize, round: u32) -> Result<(), Failure> {
        let side = &self.sides[side];
        note(self.args, &format!("launch {round} of {}: {}", side.name, side.title()));
        let deadline = self.began + Duration::from(self.args.budget);
        let before = side.count_results(&self.args.out);
        if !side.launch(&self.sweep, &self.args.out, &self.stop, deadline)? {
            let (name, budget) = (side.name, self.args.budget);
            let late = format!("a launch of {name} did not end within");
            // Without one round nothing can be said.
            let failure = if self.plan.is_none() {
                Failure::bad_input(format!("--budget {budget} is too small: {late} it"))
            } else {
                Failure::undone(format!("{late} --budget {budget}"))
            };
            return Err(failure.with_hint(
                "give it more time, or a shorter sweep after --; try by itself what may hang",
            ));
        }
        match side.count_results(&self.args.out).saturating_sub(before) {
            1 => Ok(()),
            count => Err(Failure::undone(format!(
                "a launch of {} ended well and left {count} results where one is expected",
                side.name
            ))
            .with_hint("its program has to write one JSON file to the folder that --out names")),
        }
    }

    fn look(&mut self, round: &Round) -> Result<bool, Failure> {
        let (args, seconds) = (self.args, round.spent.as_secs_f64());
        let plan = match self.plan.take() {
            Some(plan) => plan,
            None => {
                let comparison = compared(args, self.sides, 1.0)?;
                let is_empty = comparison.cases.is_empty() && comparison.nodes.is_empty();
                if is_empty || !differing(&comparison).is_empty() {
                    note(args, "the sides were not measured alike: more launches would not help");
                    self.found = (comparison, 1.0);
                    return Ok(true);
                }
                let plan = LaunchPlan::new(args.budget.into(), round.spent, args.launches)
                    .ok_or_else(|| too_small(args.budget, seconds))?;
                let most = plan.most;
                let text = format!("the first launches took {seconds:.0} s: at most {most} a side");
                note(args, &text);
                plan
            }
        };
        let part = plan.look(round);
        self.plan = Some(plan);
        let Some(part) = part else {
            return Ok(false);
        };
        let comparison = compared(args, self.sides, part)?;
        let is_settled = comparison.is_settled();
        self.found = (comparison, part);
        if is_settled || round.is_last {
            let why = if is_settled {
                "it is clear"
            } else {
                "the budget or the launches are used up, and not every case is clear"
            };
            note(args, &format!("{} launches a side in {seconds:.0} s: {why}", round.number));
        }
        Ok(is_settled)
    }

    fn stop(&self) -> Stop {
        let most = self.plan.as_ref().map_or(self.args.launches, |plan| plan.most);
        Stop { most, budget: Some(self.args.budget.into()) }
    }

    fn spent(&self) -> Duration {
        self.began.elapsed()
    }
}

fn note(args: &GateArgs, text: &str) {
    if !args.quiet {
        say(&format!("gate: {text}"));
    }
}

fn too_small(budget: TimeSpan, round_seconds: f64) -> Failure {
    let sentence = format!(
        "--budget {budget} is too small: one launch of each side took {round_seconds:.0} s, and {} a side are the least",
        fewest_a_side(1.0)
    );
    let enough = (round_seconds * 6.5).ceil();
    Failure::bad_input(sentence).with_hint(format!(
        "--budget {enough}s has room for 6, which often settle it; or give a shorter sweep after --"
    ))
}

/// What the results say at a look that has this part of the chance of error.
fn compared(args: &GateArgs, sides: &[Side; 2], part: f64) -> Result<Comparison, Failure> {
    let [base, new] = sides.each_ref().map(|side| found(&args.out.join(side.name)));
    let [base_title, new_title] = sides.each_ref().map(|side| PathBuf::from(side.title()));
    let (base, new) = ((&*base_title, &base?), (&*new_title, &new?));
    Ok(compare::compare(base, new, &args.options(part)))
}

/// An empty folder for results.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    let entries = fs::create_dir_all(folder).and_then(|()| fs::read_dir(folder));
    let reason = match entries.map(|mut entries| entries.next().is_none()) {
        Ok(true) => return Ok(()),
        Ok(false) => "it has files already".to_owned(),
        Err(error) => error.to_string(),
    };
    let sentence = format!("{} cannot be the folder of a side: {reason}", text::path(folder));
    Err(Failure::bad_input(sentence)
        .with_hint("choose another folder with --out, or remove that one"))
}

/// Says where the results of a gate are that came to no verdict.
fn kept(out: &Path) {
    let sides = ["base", "new"].map(|name| out.join(name));
    if !load(&sides).results.is_empty() {
        let [base, new] = sides.map(|it| text::path(&it));
        say(&format!("gate: what was measured is kept: rocebench compare {base} {new}"));
    }
}

/// Writes the verdict in all formats.
fn write_verdict(folder: &Path, comparison: &Comparison) -> Result<(), Failure> {
    type Writer = fn(&Comparison, &mut dyn Write) -> io::Result<()>;
    let writers: [(&str, Writer); 4] = [
        ("txt", |it, out| output::write_table(it, out)),
        ("json", |it, out| output::write_json(it, out)),
        ("md", |it, out| output::write_markdown(it, out)),
        ("xml", |it, out| output::write_junit(it, out)),
    ];
    for (extension, write) in writers {
        let path = folder.join(format!("verdict.{extension}"));
        write_whole(&path, |out| write(comparison, out)).map_err(Failure::undone)?;
    }
    Ok(())
}

/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What a sweep takes at most to end when it is asked to.
const END: Duration = Duration::from_secs(10);

/// Lines and columns of what a failed process printed last that are shown.
const SHOWN: (usize, usize) = (3, 300);

/// Where libraries are looked for first.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// A side of a gate, and what is switched on it.
struct Side<'a> {
    /// `base` or `new`: its name, and its folder's.
    name: &'static str,
    switches: &'a [Switch],
}

impl<'a> Side<'a> {
    fn title(&self) -> String {
        let words: Vec<_> =
            self.switches.iter().map(|it| format!("{}={}", it.key, it.value)).collect();
        if words.is_empty() { "this program".to_owned() } else { words.join(" ") }
    }

    fn values(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.switches.iter().filter(move |it| it.key == key).map(|it| it.value.as_str())
    }

    fn environment(&self) -> Vec<(String, Option<OsString>)> {
        let mut variables: Vec<_> =
            self.variables().map(|(name, value)| (name.to_owned(), Some(value.into()))).collect();
        // Taken from processes of others; a sweep needs it as we do.
        let secret = env::var_os(TOKEN_VARIABLE);
        variables.extend(secret.map(|secret| (TOKEN_VARIABLE.to_owned(), Some(secret))));
        let mut folders: Vec<OsString> = self.values("lib").map(OsString::from).collect();
        if !folders.is_empty() {
            folders.extend(env::var_os(LIBRARIES).filter(|it| !it.is_empty()));
            variables.push((LIBRARIES.to_owned(), Some(folders.join(OsStr::new(":")))));
        }
        variables
    }

    /// Its own variables.
    fn variables(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.values("env").filter_map(|it| it.split_once('='))
    }

    /// The value that a variable has in its launches.
    fn variable(&self, name: &str) -> Option<OsString> {
        let own = self.variables().filter(|(own_name, _)| *own_name == name).last();
        own.map_or_else(|| env::var_os(name), |(_, value)| Some(value.into()))
    }

    fn program(&self) -> Result<PathBuf, Failure> {
        self.values("program")
            .last()
            .map_or_else(|| env::current_exe().map_err(Failure::undone), |path| Ok(path.into()))
    }

    /// Its program, and the folders in which libraries are looked for, in their order.
    fn files(&self) -> Result<Vec<Identity>, Failure> {
        let inherited = env::var_os(LIBRARIES).unwrap_or_default();
        let folders = self.values("lib").map(PathBuf::from).chain(env::split_paths(&inherited));
        let mut files: Vec<Identity> = Identity::new(&self.program()?).into_iter().collect();
        for folder in folders.filter_map(|path| Identity::new(&path)) {
            if !files.contains(&folder) {
                files.push(folder);
            }
        }
        Ok(files)
    }

    /// Sees that each folder of libraries has some.
    ///
    /// # Errors
    /// Bad input that names it.
    fn check(&self) -> Result<(), Failure> {
        for folder in self.values("lib") {
            let entries = fs::read_dir(folder).map(Iterator::flatten);
            let reason = match entries.map(|mut it| it.any(|entry| is_library(&entry))) {
                Ok(true) => continue,
                Ok(false) => "there is no library in this folder",
                Err(_) => "there is no such folder",
            };
            let text = format!("--{} lib={folder}: {reason}", self.name);
            return Err(Failure::bad_input(text)
                .with_hint("name the folder that has libibverbs.so.1 or other libraries itself"));
        }
        Ok(())
    }

    /// How many results its launches have left so far.
    fn count_results(&self, out: &Path) -> usize {
        let entries = fs::read_dir(out.join(self.name)).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension() == Some(OsStr::new("json"))).count()
    }

    /// Runs its commands, and then the sweep, whose results go to the side's folder in `out`; whether they ended before the
    /// deadline.
    ///
    /// # Errors
    /// One of them failed, or the user stopped it.
    fn launch(
        &self,
        sweep: &[String],
        out: &Path,
        stop: &AtomicBool,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        for command in self.values("run") {
            let words = vec!["-c".to_owned(), command.to_owned()];
            if !self.run("/bin/sh".into(), words, command, stop, deadline)? {
                return Ok(false);
            }
        }
        let program = self.program()?;
        let mut words = sweep.to_vec();
        let folder = out.join(self.name).display().to_string();
        words.extend(["--quiet".to_owned(), "--out".to_owned(), folder]);
        let command = format!("{} {}", program.display(), words.join(" "));
        self.run(program, words, &command, stop, deadline)
    }

    fn run(
        &self,
        path: PathBuf,
        arguments: Vec<String>,
        command: &str,
        stop: &AtomicBool,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let launch =
            Launch { path, arguments, environment: self.environment(), ..Launch::default() };
        let name = self.name;
        let reason = match ended(&launch, stop, deadline) {
            _ if stop.load(Ordering::Relaxed) => {
                return Err(Failure::undone(format!("interrupted while {name} ran")));
            }
            Ok(None) => return Ok(false),
            Ok(Some(ended)) if ended.success => return Ok(true),
            Ok(Some(ended)) => format!("{}: {}", ended.status, last_lines(&ended)),
            Err(error) => format!("cannot be started: {error}"),
        };
        let hint = format!("try it by itself: {command}");
        Err(Failure::undone(format!("a launch of {name} failed: {reason}")).with_hint(hint))
    }
}

/// Whether it is named as shared libraries are: `libibverbs.so.1`.
fn is_library(entry: &fs::DirEntry) -> bool {
    let file_name = entry.file_name();
    let name = file_name.to_string_lossy();
    name.starts_with("lib") && (name.ends_with(".so") || name.contains(".so."))
}

/// Waits for a process' end; a wish to stop is passed on. `None` of one that had not ended at the deadline.
fn ended(launch: &Launch, stop: &AtomicBool, deadline: Instant) -> io::Result<Option<Ended>> {
    let mut child = Child::start(launch)?;
    let mut interrupted_at: Option<Instant> = None;
    let mut is_late = false;
    while !child.has_ended() && interrupted_at.is_none_or(|at| at.elapsed() < END) {
        is_late |= Instant::now() >= deadline;
        if interrupted_at.is_none() && (is_late || stop.load(Ordering::Relaxed)) {
            child.interrupt();
            interrupted_at = Some(Instant::now());
        }
        thread::sleep(LOOK);
    }
    let ended = child.finish();
    Ok((!is_late).then_some(ended))
}

/// What a process said last, or from its first error on, without hints: of its errors, else of what it printed.
fn last_lines(ended: &Ended) -> String {
    let streams = [&ended.stderr, &ended.stdout];
    let text = streams.into_iter().find(|it| !it.trim().is_empty());
    let lines: Vec<&str> = text
        .map_or("", |it| it.trim())
        .lines()
        .filter(|line| !line.trim_start().starts_with("hint: "))
        .collect();
    // What follows an error of wrong options is how they are written.
    let error = lines.iter().position(|line| line.contains("error: "));
    let first = error.unwrap_or(lines.len().saturating_sub(SHOWN.0));
    let shown: Vec<&str> = lines.into_iter().skip(first).take(SHOWN.0).collect();
    let last = shown.join(" ");
    if last.is_empty() { "it said nothing".to_owned() } else { text::printable(&last, SHOWN.1) }
}
