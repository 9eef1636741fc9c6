//! `rocebench gate`: launches two sides in turns until it is clear whether one is slower. It must not know how a verdict is
//! found or written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use report::judge::compare::{self, Comparison};
use report::results::file::write_whole;
use report::results::load::load;
use report::show::compare as output;
use report::text;

use super::args::{FormatArg, GateArgs, PlotArgs, SpeechArgs, WhatArgs, WidthArg};
use super::compare::{differing, found, unless_closed, verdict};
use super::errors::{Failure, say};
use super::gate_plan::{Plan, order};
use super::gate_side::Side;
use super::plot::plot_with;
use super::signals::stop_flag;

/// Measures both sides, judges, and writes the verdict.
///
/// # Errors
/// Exit code 1: a regression. 2: not comparable, or bad input. 3: a launch failed or was interrupted.
pub fn run(args: &GateArgs) -> Result<(), Failure> {
    let own = std::env::current_exe().map_err(Failure::undone)?;
    let base = Side::new("base", &args.base, own.clone())?;
    let sides = [base, Side::new("new", &args.new, own)?];
    for side in &sides {
        make_folder(&args.out.join(side.name))?;
    }
    let (comparison, part) = measure(args, &sides).inspect_err(|_| kept(&args.out))?;
    write(&args.out, &comparison)?;
    unless_closed(output::table::write(
        &comparison,
        io::BufWriter::new(io::stdout().lock()),
    ))?;
    // The verdict counts more than its picture.
    if let Err(failure) = draw(args, part) {
        say(&format!("rocebench: warning: no page: {}", failure.text()));
    }
    verdict(None, &comparison)
}

/// Adds rounds until it is clear at a planned look, or nothing more fits into the budget; the part of the chance of error
/// that the look had.
fn measure(args: &GateArgs, sides: &[Side; 2]) -> Result<(Comparison, f64), Failure> {
    let stop = stop_flag().map_err(Failure::undone)?;
    let note = |text: String| {
        if !args.quiet {
            say(&format!("gate: {text}"));
        }
    };
    let words = args.words();
    let (began, mut rounds) = (Instant::now(), 0);
    let mut plan: Option<Plan> = None;
    loop {
        rounds += 1;
        for place in order(rounds) {
            let side = &sides[place];
            let of = plan
                .as_ref()
                .map(|plan| format!(" of at most {}", plan.last));
            note(format!(
                "launch {rounds}{}: {}",
                of.unwrap_or_default(),
                side.title
            ));
            side.launch(&words, &args.out, &stop)?;
        }
        let spent = began.elapsed();
        let seconds = spent.as_secs_f64();
        let plan = match &mut plan {
            Some(plan) => plan,
            none => {
                let comparison = compared(args, sides, 1.0)?;
                if comparison.cases.is_empty() || !differing(&comparison).is_empty() {
                    note("the sides were not measured alike: more launches would not help".into());
                    return Ok((comparison, 1.0));
                }
                let plan = Plan::new(args.budget.into(), spent, args.launches);
                let plan = plan.map_err(|fit| too_small(args, fit, seconds))?;
                note(format!(
                    "the first launches took {seconds:.0} s: at most {} a side, first look after {}",
                    plan.last,
                    plan.looks.first()
                ));
                none.insert(plan)
            }
        };
        let Some(look) = plan.after(rounds, spent) else {
            continue;
        };
        let comparison = compared(args, sides, look.part)?;
        let is_settled = comparison.is_settled();
        if is_settled || look.is_last {
            let why = match is_settled {
                true => "it is clear",
                false => "the budget or the launches are used up, and not every case is clear",
            };
            note(format!("{rounds} launches a side in {seconds:.0} s: {why}"));
            return Ok((comparison, look.part));
        }
    }
}

fn too_small(args: &GateArgs, fit: u32, round_seconds: f64) -> Failure {
    let budget = args.budget;
    Failure::bad_input(format!(
        "--budget {budget} is too small: one launch of each side took {round_seconds:.0} s, so {fit} a side fit into it, and \
         3 are the least"
    ))
    .with_hint(format!(
        "--budget {:.0}s has room for 6, which often settle it; or give a shorter sweep after --",
        (round_seconds * 6.5).ceil()
    ))
}

/// What the results say at a look that has this part of the chance of error.
fn compared(args: &GateArgs, sides: &[Side; 2], part: f64) -> Result<Comparison, Failure> {
    let mut both = Vec::new();
    for side in sides {
        let mut found = found(&args.out.join(side.name))?;
        // A report names what lies in it, wherever it is moved.
        for loaded in &mut found.results {
            if let Ok(path) = loaded.path.strip_prefix(&args.out) {
                loaded.path = path.to_owned();
            }
        }
        both.push((Path::new(&side.title), found));
    }
    let [(base_title, base), (new_title, new)] = &both[..] else {
        return Err(Failure::undone("two sides are compared"));
    };
    let sides = ((*base_title, base), (*new_title, new));
    Ok(compare::compare(sides.0, sides.1, &args.options(part)))
}

/// An empty folder for results.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    let told = |error: io::Error| {
        Failure::bad_input(format!("cannot create {}: {error}", text::path(folder)))
            .with_hint("choose a folder that you may write to with --out")
    };
    fs::create_dir_all(folder).map_err(told)?;
    match fs::read_dir(folder).map_err(told)?.next() {
        None => Ok(()),
        Some(_) => Err(
            Failure::bad_input(format!("{} has files already", text::path(folder)))
                .with_hint("remove the earlier report, or choose another folder with --out"),
        ),
    }
}

/// Says where the results of a gate are that came to no verdict.
fn kept(out: &Path) {
    let sides = ["base", "new"].map(|name| out.join(name));
    if !load(&sides).results.is_empty() {
        let [base, new] = sides.map(|it| text::path(&it));
        say(&format!(
            "gate: what was measured is kept: rocebench compare {base} {new}"
        ));
    }
}

/// A document's name, and how it is written.
type Document = (
    &'static str,
    fn(&Comparison, &mut dyn io::Write) -> io::Result<()>,
);

fn write(out: &Path, comparison: &Comparison) -> Result<(), Failure> {
    let documents: [Document; 4] = [
        ("txt", |it, out| output::table::write(it, out)),
        ("json", |it, out| output::programs::json(it, out)),
        ("md", |it, out| output::markdown::write(it, out)),
        ("xml", |it, out| output::junit::write(it, out)),
    ];
    for (extension, write) in documents {
        let path = out.join(format!("verdict.{extension}"));
        write_whole(&path, |out| write(comparison, out)).map_err(Failure::undone)?;
    }
    Ok(())
}

fn draw(args: &GateArgs, part: f64) -> Result<(), Failure> {
    let folder = |name: &str| -> PathBuf { args.out.join(name) };
    let plot = PlotArgs {
        results: vec![folder("new")],
        out: args.out.clone(),
        base: Some(folder("base")),
        format: vec![FormatArg::Svg],
        width: WidthArg::Page,
        racks: None,
        what: WhatArgs::default(),
        speech: SpeechArgs {
            quiet: args.quiet,
            verbose: 0,
        },
    };
    plot_with(&plot, &args.options(part))
}
