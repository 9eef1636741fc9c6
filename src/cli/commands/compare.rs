//! `rocebench compare`: compares two places with results, and writes the verdicts where they are asked for.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::cli::args::{CompareArgs, Strict};
use crate::cli::sweep::sink::{Sink, apart};
use crate::cli::terminal::errors::{Failure, say};
use crate::cli::terminal::stdout::unless_closed;
use report::judge::compare::{self, Aspect, Comparison, Verdict};
use report::show::compare as output;
use results::load::{self, Found};
use results::text;
use results::whole_file::write_whole;

type Writer<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + 'a;

/// Compares, prints, writes.
///
/// # Errors
/// Exit code 1: a regression. 2: not comparable, a named file that cannot be used, or nothing to compare.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    one_stdout(args)?;
    let (base, new) = (found(&args.base)?, found(&args.new)?);
    let comparison = compare::compare((&args.base, &base), (&args.new, &new), &args.what.options());
    write(args, &comparison, [&base, &new])?;
    verdict(args.unclear.strict, &comparison)
}

/// What lies at a path; a file that was named must be usable, of a folder something must be.
pub(super) fn found(path: &Path) -> Result<Found, Failure> {
    let mut found = load::load(&[path]);
    if found.results.is_empty() {
        for refused in found.refused.iter().skip(1) {
            say(&format!("rocebench: refused: {refused}"));
        }
        return Err(match found.refused.into_iter().next() {
            // Its text holds the system's reason already.
            Some(refused) => Failure::bad_input(refused.to_string()),
            None => Failure::bad_input(format!("{} holds no result files", text::path(path)))
                .with_hint(
                    "name a result file, or a folder with *.json files that rocebench wrote",
                ),
        });
    }
    found.results.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// At most one document goes to stdout, and no two to one file.
fn one_stdout(args: &CompareArgs) -> Result<(), Failure> {
    let sinks: Vec<(&str, Sink)> = files(args)
        .into_iter()
        .filter_map(|(flag, path)| Some((flag, Sink::from(path?.to_owned()))))
        .collect();
    apart(&sinks.iter().map(|(flag, sink)| (*flag, sink)).collect::<Vec<_>>())
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

/// The exit code, with a line that says why it is not 0.
pub(super) fn verdict(strict: Option<Strict>, comparison: &Comparison) -> Result<(), Failure> {
    let (regressed, not_comparable) =
        (comparison.cases_with(Verdict::Regressed), comparison.cases_with(Verdict::NotComparable));
    let of = comparison.cases.len();
    let over_all = comparison.over_all_with(Verdict::Regressed);
    if regressed > 0 || !over_all.is_empty() {
        let names: Vec<&str> = over_all.iter().map(|figures| figures.metric.short_name()).collect();
        let over_all = if names.is_empty() {
            String::new()
        } else {
            format!("over all cases {} regressed; ", names.join(", "))
        };
        return Err(Failure::failed(format!("{over_all}{regressed} of {of} cases regressed")));
    }
    if of == 0 {
        return Err(Failure::bad_input("no case is on both sides")
            .with_hint("run the same sweep on both sides; cases match by name and settings"));
    }
    if not_comparable > 0 {
        return Err(Failure::bad_input(format!(
            "{not_comparable} of {of} cases are not comparable"
        ))
        .with_hint(hint(comparison)));
    }
    let no_verdict = comparison.cases_with(Verdict::NoVerdict);
    if no_verdict > 0 {
        return Err(Failure::bad_input(format!("{no_verdict} of {of} cases are unclear"))
            .with_hint(
                "launch both sides in turns, 10 times each; or judge anyway with --across time",
            ));
    }
    if let Some(strict) = strict {
        let whole = comparison
            .cases
            .iter()
            .filter(|case| {
                let mut metrics = case.metrics.iter();
                metrics.all(|it| it.verdict == Verdict::Unclear)
            })
            .count();
        let missing = comparison.only_in_base.len();
        let (unclear, over_all) = match strict {
            Strict::Cases => (whole, 0),
            Strict::Figures => (
                comparison.cases_with(Verdict::Unclear),
                comparison.over_all_with(Verdict::Unclear).len(),
            ),
        };
        if unclear + missing + over_all > 0 {
            return Err(Failure::failed(format!(
                "--strict: {unclear} of {of} cases are unclear, {missing} are missing in the new results, {over_all} \
                 metrics are unclear over all cases"
            ))
            .with_hint("the table says how many runs would settle it"));
        }
    }
    Ok(())
}

/// The aspects in which the sides differ and were to be alike.
pub(super) fn differing(comparison: &Comparison) -> Vec<&'static str> {
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

/// What helps with cases that are not comparable: measure alike, or compare across what differs.
fn hint(comparison: &Comparison) -> String {
    let differ = differing(comparison);
    if differ.is_empty() {
        "run the sweep again if runs failed or lack figures, or choose other --metrics".to_owned()
    } else {
        let aspects = differ.join(",");
        format!("measure both sides alike, or compare anyway with --across {aspects}")
    }
}
