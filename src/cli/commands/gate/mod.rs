//! `rocebench gate`: launches two sides in turns until it is clear whether one is slower.

mod plan;
mod side;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use report::judge::compare::{self, Comparison};
use report::show::compare as output;
use results::load::load;
use results::text;
use results::whole_file::write_whole;
use settings::TimeSpan;

use crate::cli::args::{GateArgs, PlotArgs};
use crate::cli::commands::compare::{differing, found, verdict};
use crate::cli::commands::plot::plot_with;
use crate::cli::signals::stop_flag;
use crate::cli::terminal::errors::{Failure, say};
use crate::cli::terminal::stdout::unless_closed;
use plan::{Plan, order};
use side::Side;

/// Measures both sides, judges, and writes the verdict.
///
/// # Errors
/// Exit code 1: a regression. 2: not comparable, or bad input. 3: a launch failed or was interrupted.
pub fn run(args: &GateArgs) -> Result<(), Failure> {
    let sides =
        [Side { name: "base", switches: &args.base }, Side { name: "new", switches: &args.new }];
    for side in &sides {
        make_folder(&args.out.join(side.name))?;
    }
    let (comparison, part) = measure(args, &sides).inspect_err(|_| kept(&args.out))?;
    write(&args.out, &comparison)?;
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
    verdict(args.unclear.strict, &comparison)
}

/// Adds rounds until it is clear at a planned look, or nothing more fits into the budget; the part of the chance of error
/// that the look had.
fn measure(args: &GateArgs, sides: &[Side; 2]) -> Result<(Comparison, f64), Failure> {
    let stop = stop_flag().map_err(Failure::undone)?;
    let words = args.words();
    let (began, mut rounds) = (Instant::now(), 0);
    let mut plan: Option<Plan> = None;
    loop {
        rounds += 1;
        for place in order(rounds) {
            let side = &sides[place];
            note(args, &format!("launch {rounds} of {}: {}", side.name, side.title()));
            side.launch(&words, &args.out, &stop)?;
        }
        let spent = began.elapsed();
        let seconds = spent.as_secs_f64();
        if plan.is_none() {
            let comparison = compared(args, sides, 1.0)?;
            if comparison.cases.is_empty() || !differing(&comparison).is_empty() {
                note(args, "the sides were not measured alike: more launches would not help");
                return Ok((comparison, 1.0));
            }
            let first = Plan::new(args.budget.into(), spent, args.launches)
                .ok_or_else(|| too_small(args.budget, seconds))?;
            let last = first.last;
            note(args, &format!("the first launches took {seconds:.0} s: at most {last} a side"));
            plan = Some(first);
        }
        let Some((part, is_last)) = plan.as_mut().and_then(|plan| plan.after(rounds, spent)) else {
            continue;
        };
        let comparison = compared(args, sides, part)?;
        let is_settled = comparison.is_settled();
        if is_settled || is_last {
            let why = if is_settled {
                "it is clear"
            } else {
                "the budget or the launches are used up, and not every case is clear"
            };
            note(args, &format!("{rounds} launches a side in {seconds:.0} s: {why}"));
            return Ok((comparison, part));
        }
    }
}

fn note(args: &GateArgs, text: &str) {
    if !args.quiet {
        say(&format!("gate: {text}"));
    }
}

fn too_small(budget: TimeSpan, round_seconds: f64) -> Failure {
    let sentence = format!(
        "--budget {budget} is too small: one launch of each side took {round_seconds:.0} s, and 3 a side are the least"
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
fn write(out: &Path, comparison: &Comparison) -> Result<(), Failure> {
    type Writer = fn(&Comparison, &mut dyn io::Write) -> io::Result<()>;
    let writers: [(&str, Writer); 4] = [
        ("txt", |it, out| output::write_table(it, out)),
        ("json", |it, out| output::write_json(it, out)),
        ("md", |it, out| output::write_markdown(it, out)),
        ("xml", |it, out| output::write_junit(it, out)),
    ];
    for (extension, write) in writers {
        let path = out.join(format!("verdict.{extension}"));
        write_whole(&path, |out| write(comparison, out)).map_err(Failure::undone)?;
    }
    Ok(())
}
