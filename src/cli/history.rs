//! `rocebench history`: results over time in one folder. How they lie there is said in `results::history`, what they say in
//! `report`.

use std::{fmt::Write as _, path::Path};

use crate::cli::{
    args::{CompareArgs, HistoryAction, HistoryArgs, HistoryCompareArgs, PlotArgs},
    compare::{compare_found, found},
    plot::plot,
    terminal::{Failure, print, say},
};
use report::{
    observe::{
        format::counted,
        standing::{self, LeftOut},
    },
    show::plot::steps,
};
use results::{
    history::{self, Added},
    load::{Found, Loaded, load},
    model::ResultFile,
    text,
};

/// Adds to a history, lists it, says what stepped in it, or compares its last result.
///
/// # Errors
/// Bad input, among it a result that is there already; a folder that cannot be written; what a comparison came to.
pub fn run(args: HistoryArgs) -> Result<(), Failure> {
    match args.action {
        HistoryAction::Add { results, to } => add(&to.folder, &load(&results)),
        HistoryAction::List(of) => print(&list(&by_time(&of.folder)?)),
        HistoryAction::Trend { page: None, of } => print(&trend(&by_time(&of.folder)?.results)),
        HistoryAction::Trend { page: Some(out), of } => {
            plot(&PlotArgs { results: vec![of.folder], out, ..PlotArgs::default() })
        }
        HistoryAction::Compare(compared) => compare_last(compared),
    }
}

fn add(folder: &Path, found: &Found) -> Result<(), Failure> {
    let mut refused: Vec<String> = found.refused.iter().map(ToString::to_string).collect();
    let mut names = String::new();
    for Loaded { path, result } in &found.results {
        let file = text::path(path);
        match history::add(folder, result) {
            Ok(Added::New(name)) => {
                let nodes = counted(result.nodes.len(), "node");
                let cases = counted(result.cases.len(), "case");
                let stored = text::path(&folder.join(name));
                // Writing to a String cannot fail.
                let _ = writeln!(names, "{stored}: {file}, {nodes}, {cases}");
            }
            Ok(Added::Known(name)) => refused.push(format!("{file} is there already, as {name}")),
            Ok(Added::Undated) => refused.push(format!("{file} does not say when it was begun")),
            Err(error) => {
                print(&names)?;
                return Err(Failure::new(error.to_string(), error.is_bad_input(), None));
            }
        }
    }
    print(&names)?;
    for reason in &refused {
        say(&format!("rocebench: not added: {reason}"));
    }
    let count = found.results.len() + found.refused.len();
    match (count, refused.len()) {
        (0, _) => Err(Failure::bad_input("no result is there to add")
            .with_hint("name the JSON files that rocebench wrote, or a folder with them")),
        (_, 0) => Ok(()),
        (_, left) => Err(Failure::bad_input(format!("{left} of {count} results were not added"))
            .with_hint("the lines above say why; the others are in the history")),
    }
}

/// The results of a history, the earliest first; of what cannot be read it is said why.
fn by_time(folder: &Path) -> Result<Found, Failure> {
    let mut history = found(folder)?;
    history.results.sort_by(|a, b| a.result.started_at.cmp(&b.result.started_at));
    for reason in &history.refused {
        say(&format!("rocebench: warning: {reason}"));
    }
    Ok(history)
}

fn list(history: &Found) -> String {
    let mut lines = format!(
        "{:<20}  {:<16}  {:>5}  {:>5}  {:>6}  {:>8}  file\n",
        "begun", "revision", "nodes", "cases", "runs", "doubtful"
    );
    for Loaded { path, result } in &history.results {
        let begun: String = result.started_at.chars().take(19).collect();
        let revision = text::printable(result.tool.git.as_deref().unwrap_or("-"), 16);
        let (runs, nodes, cases) = (runs(result), result.nodes.len(), result.cases.len());
        let name = path.file_name().map_or_else(String::new, |name| text::path(name.as_ref()));
        let (of, left_out) = (runs.runs, runs.count());
        let _ = writeln!(
            lines,
            "{:<20}  {revision:<16}  {nodes:>5}  {cases:>5}  {of:>6}  {left_out:>8}  {name}",
            text::printable(&begun, 19)
        );
    }
    lines
}

/// Its runs, and how many of them do not count.
fn runs(result: &ResultFile) -> LeftOut {
    LeftOut::new(result.cases.iter().flat_map(|case| &case.runs).map(standing::of_run))
}

fn trend(results: &[Loaded]) -> String {
    let sentences = steps(results);
    if sentences.is_empty() {
        let count = counted(results.len(), "result");
        return format!("{count}: too few for a trend. Add those of other days or revisions.\n");
    }
    sentences.iter().map(|sentence| format!("{sentence}\n")).collect()
}

fn compare_last(args: HistoryCompareArgs) -> Result<(), Failure> {
    let mut history = by_time(&args.of.folder)?;
    let last = history.results.pop();
    let (Some(last), false) = (last, history.results.is_empty()) else {
        return Err(Failure::bad_input("the history has one result, and none before it")
            .with_hint("add the good ones with `rocebench history add RESULT...`"));
    };
    let compared = CompareArgs {
        base: args.of.folder,
        new: last.path.clone(),
        what: args.what,
        unclear: args.unclear,
        markdown: args.markdown,
        junit: args.junit,
        ..CompareArgs::default()
    };
    compare_found(&compared, &history, &Found { results: vec![last], refused: Vec::new() })
}
