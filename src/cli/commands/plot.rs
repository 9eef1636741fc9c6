//! `rocebench plot`: what it is asked for, and how it went.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cli::args::{PlotArgs, WhatArgs};
use crate::cli::commands::{pictures, racks};
use crate::cli::terminal::errors::{Failure, say};
use crate::cli::terminal::stdout::print;
use report::judge::compare::{Comparison, Options, compare};
use report::judge::findings::{Finding, ProblemKind, findings};
use report::observe::Observed;
use report::show::page::folder::{self, FolderError, Format, Written};
use report::show::page::{Page, summary};
use report::show::plot::figures::nodes::Racks;
use report::show::plot::rows::{Sides, of_patterns};
use report::show::plot::{cap, left_out, sections};
use report::show::sentences::sentence;
use results::load::{Found, Loaded, load};
use results::model::ResultFile;
use results::text;

/// Reading that takes longer is worth a word.
const LONG: Duration = Duration::from_secs(2);

/// What was found under the paths of one side.
#[derive(Default)]
struct Input {
    results: Vec<Loaded>,
    /// Why files could not be used.
    refused: Vec<String>,
    /// How many of these were named themselves.
    named: usize,
}

/// Draws.
///
/// # Errors
/// Bad input where a file that was named was refused, there is nothing to draw, or the program for a format is missing; failed
/// where the folder cannot be written.
pub fn plot(args: &PlotArgs) -> Result<(), Failure> {
    plot_with(args, &args.what.options())
}

/// The same, with a base compared in this way.
pub(super) fn plot_with(args: &PlotArgs, options: &Options) -> Result<(), Failure> {
    if args.base.is_none() && args.what != WhatArgs::default() {
        return Err(Failure::bad_input(
            "--metrics, --margin and --across need a base to compare with",
        )
        .with_hint("add --base RESULT, or leave them out"));
    }
    let formats = formats_of(&args.format);
    pictures::check(&formats)?;
    let began = Instant::now();
    let input = read(&args.results);
    let base = args.base.as_ref().map(|path| read(std::slice::from_ref(path)));
    let refused: Vec<String> = std::iter::once(&input)
        .chain(&base)
        .flat_map(|input| input.refused.iter().cloned())
        .collect();
    let named = input.named + base.as_ref().map_or(0, |base| base.named);
    for reason in &refused {
        say(&format!("rocebench: warning: {reason}"));
    }
    both_have_results(&input, base.as_ref())?;
    let results = input.results;
    let racks = racks_of(args, &results)?;
    let cases = summary::cases(&results);
    if began.elapsed() > LONG && !args.speech.quiet {
        say(&format!("{cases} cases read, drawing"));
    }

    let base_results = base.map_or_else(Vec::new, |base| base.results);
    let comparison = (args.base.as_deref())
        .map(|path| compare_with(path, base_results.clone(), &results, options));
    let (sums, base_sums) = (of_patterns(&results), of_patterns(&base_results));
    let sides = Sides { new: &sums, base: &base_sums };
    let mut sections = sections(&results, sides, comparison.as_ref(), &racks);
    let mut left_out = left_out(&results, comparison.as_ref());
    left_out.extend(cap(&mut sections));
    let files: Vec<&ResultFile> = results.iter().map(|loaded| &loaded.result).collect();
    let headlines = headlines(&files);
    let figures: Vec<_> = sections.iter().flat_map(|section| &section.figures).collect();
    if figures.is_empty() {
        return Err(nothing_to_draw(&files, cases));
    }
    let page = Page {
        results: &results,
        sums: &sums,
        comparison: comparison.as_ref(),
        sections: &sections,
        refused: &refused,
        headlines: &headlines,
        left_out: &left_out,
    };
    let how = Written { width: args.width, formats: &formats, convert: &pictures::convert };
    let path = folder::write(&args.out, &page.html(), figures.iter().copied(), how)
        .map_err(|error| unwritten(&error))?;
    report(&path, figures.len(), cases)?;
    match named {
        0 => Ok(()),
        _ => Err(refused_by_name(named)),
    }
}

fn both_have_results(input: &Input, base: Option<&Input>) -> Result<(), Failure> {
    let sides = [("result", Some(input)), ("base", base)];
    let empty = sides.iter().find(|(_, input)| input.is_some_and(|input| input.results.is_empty()));
    empty.map_or(Ok(()), |(side, _)| {
        Err(Failure::bad_input(format!("no {side} could be read, nothing is drawn"))
            .with_hint("name the JSON files that rocebench wrote, or a folder with them"))
    })
}

/// Sentences above the figures. The tiles have the best and what does not count, the section of nodes which of them are
/// slow.
fn headlines(files: &[&ResultFile]) -> Vec<String> {
    findings(files)
        .into_iter()
        .filter(|finding| match finding {
            Finding::Scaling { .. } | Finding::SlowRail(_) | Finding::RailsDiffer(_) => true,
            Finding::Wrong(problem) => problem.kind != ProblemKind::Unreliable,
            _ => false,
        })
        .map(|finding| sentence(&finding))
        .collect()
}

fn nothing_to_draw(files: &[&ResultFile], cases: usize) -> Failure {
    if files.iter().any(|file| Observed::of_file(file).any(|it| it.counted().next().is_some())) {
        let text = "nothing to draw: no figure shows a single case of this kind";
        let hint = "measure it with several values of a setting, such as --qps 1,4,16";
        return Failure::bad_input(text).with_hint(hint);
    }
    let text = format!("nothing to draw: none of the {cases} cases has a valid run with figures");
    Failure::bad_input(text).with_hint("run the sweep again; the failures are in its JSON file")
}

fn refused_by_name(named: usize) -> Failure {
    let files = match named {
        1 => "file that was",
        _ => "files that were",
    };
    let text = format!("{named} {files} named refused, see above; the others are drawn");
    Failure::bad_input(text).with_hint("name only files that can be drawn")
}

/// The formats besides SVG, each once.
fn formats_of(names: &[String]) -> Vec<Format> {
    Format::ALL
        .into_iter()
        .filter(|format| names.iter().any(|it| it == format.extension()))
        .collect()
}

/// Which rack each node is in, by the file that was named.
fn racks_of(args: &PlotArgs, results: &[Loaded]) -> Result<Racks, Failure> {
    let Some(path) = &args.racks else {
        return Ok(Racks::default());
    };
    let racks: Racks = racks::read(path).map_err(Failure::bad_input)?.into_iter().collect();
    let mut nodes = results
        .iter()
        .map(|loaded| &loaded.result)
        .flat_map(|file| file.nodes.iter().map(move |node| (file, node)));
    if nodes.any(|(file, node)| racks.rack(file, &node.name).is_some()) {
        return Ok(racks);
    }
    let example = results
        .iter()
        .flat_map(|loaded| &loaded.result.nodes)
        .next()
        .map_or_else(String::new, |node| format!(", such as {}", text::printable(&node.name, 60)));
    let file = text::path(path);
    Err(Failure::bad_input(format!("{file} names none of the results' nodes{example}")).with_hint(
        "write lines NODE RACK, with the nodes' names in the results or their host names",
    ))
}

fn compare_with(
    path: &Path,
    base: Vec<Loaded>,
    results: &[Loaded],
    options: &Options,
) -> Comparison {
    let of_base = Found { results: base, refused: Vec::new() };
    let own = Found { results: results.to_vec(), refused: Vec::new() };
    compare((path, &of_base), (Path::new("the results"), &own), options)
}

fn unwritten(error: &FolderError) -> Failure {
    let is_bad_input = match error {
        FolderError::Foreign { .. } => true,
        FolderError::Unconverted { .. } => false,
        FolderError::Write(error) => error.is_bad_input(),
    };
    Failure::new(error.to_string(), is_bad_input, None)
}

/// Results, each file once, and why others are none.
fn read(paths: &[PathBuf]) -> Input {
    let mut seen = HashSet::new();
    let mut input = Input::default();
    for path in paths {
        let Found { results, refused } = load(&[path]);
        let before = input.refused.len();
        if results.is_empty() && refused.is_empty() {
            input.refused.push(format!("{} holds no result files", text::path(path)));
        }
        input.refused.extend(refused.iter().map(ToString::to_string));
        if results.is_empty() || !path.is_dir() {
            input.named += input.refused.len() - before;
        }
        let new = results.into_iter().filter(|loaded| seen.insert(real(&loaded.path)));
        input.results.extend(new);
    }
    input
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Says where the page is.
fn report(page: &Path, figures: usize, cases: usize) -> Result<(), Failure> {
    let page = text::path(page);
    print(&format!("{page}: {figures} figures of {cases} cases\n"))
}
