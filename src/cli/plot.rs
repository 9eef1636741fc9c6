//! `rocebench plot`: what it is asked for, and how it went. It must not know how a figure is drawn.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use super::args::SpeechArgs;
use super::errors::{Failure, say};
use crate::plot::folder::{self, FolderError};
use crate::plot::page::Page;
use crate::plot::sections;
use crate::results::load::{Found, Loaded, load};

/// Reading that takes longer is worth a word.
const LONG: Duration = Duration::from_secs(2);

/// Examples below the help.
pub const AFTER_HELP: &str = "\
DIR then has index.html, one page with all figures and tables that needs no network, and each figure as an
SVG file. Files there that are not rocebench's are left alone.

Examples:
  rocebench plot results -o plots
  rocebench plot results/rocebench-20261121T031008Z-30327.json -o plots
  rocebench plot results --base results/before.json -o plots

Exit codes: 0 drawn, 1 DIR cannot be written, 2 bad input; when only some files are, the others are drawn.";

/// Options of `rocebench plot`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct PlotArgs {
    /// Result files, and folders of them
    #[arg(value_name = "RESULT", required = true)]
    pub results: Vec<PathBuf>,
    /// Folder for the page and the figures, made if absent
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,
    /// Result file or folder to compare with
    #[arg(long, value_name = "RESULT")]
    pub base: Option<PathBuf>,
    /// How much is said.
    #[command(flatten)]
    pub speech: SpeechArgs,
}

/// Draws.
///
/// # Errors
/// Bad input where a file was refused or there is nothing to draw; failed where the folder cannot be written.
pub fn plot(args: &PlotArgs) -> Result<(), Failure> {
    let began = Instant::now();
    let (results, mut refused) = read(&args.results);
    let (base, refused_base) = match &args.base {
        Some(path) => read(std::slice::from_ref(path)),
        None => (Vec::new(), Vec::new()),
    };
    let base_is_missing = args.base.is_some() && base.is_empty();
    refused.extend(refused_base);
    for reason in &refused {
        say(&format!("rocebench: warning: {reason}"));
    }
    if results.is_empty() || base_is_missing {
        let what = if base_is_missing {
            "no base"
        } else {
            "no result"
        };
        return Err(
            Failure::bad_input(format!("{what} could be read, nothing is drawn"))
                .with_hint("name the JSON files that rocebench wrote, or a folder with them"),
        );
    }
    let cases: usize = results.iter().map(|loaded| loaded.result.cases.len()).sum();
    if began.elapsed() > LONG && !args.speech.quiet {
        say(&format!("{cases} cases read, drawing"));
    }

    let sections = sections::sections(&results, &base);
    let figures = || sections.iter().flat_map(|section| &section.figures);
    if figures().next().is_none() {
        return Err(Failure::bad_input(format!(
            "nothing to draw: none of the {cases} cases has a complete run with figures"
        ))
        .with_hint("run the sweep again; the failures are in its JSON file"));
    }
    let page = Page {
        results: &results,
        sections: &sections,
        refused: &refused,
        left_out: &sections::left_out(&results),
    };
    let path = folder::write(&args.out, &page.html(), figures()).map_err(unwritten)?;
    report(&path, figures().count(), cases);
    match refused.len() {
        0 => Ok(()),
        count => Err(Failure::bad_input(format!(
            "{count} of {} files refused, named above and on the page; the others are drawn",
            results.len() + base.len() + count
        ))
        .with_hint("leave them out, or name only what is to be drawn")),
    }
}

fn unwritten(error: FolderError) -> Failure {
    match error {
        FolderError::Foreign { .. } => Failure::bad_input(error),
        FolderError::Make { .. } | FolderError::Write(_) => Failure::failed(error),
    }
}

/// Results, each file once, and why others are none.
fn read(paths: &[PathBuf]) -> (Vec<Loaded>, Vec<String>) {
    let mut seen = HashSet::new();
    let mut results = Vec::new();
    let mut refused = Vec::new();
    for path in paths {
        let Found {
            results: found,
            refused: unusable,
        } = load(&[path]);
        if found.is_empty() && unusable.is_empty() {
            refused.push(format!("{}: no *.json in this folder", path.display()));
        }
        refused.extend(unusable.iter().map(ToString::to_string));
        results.extend(
            found
                .into_iter()
                .filter(|loaded| seen.insert(real(&loaded.path))),
        );
    }
    (results, refused)
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Says where the page is; when stdout is closed, nobody wants to know.
fn report(page: &Path, figures: usize, cases: usize) {
    let _ = writeln!(
        std::io::stdout(),
        "{}: {figures} figures of {cases} cases",
        page.display()
    );
}
