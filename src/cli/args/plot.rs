//! Options of `rocebench plot`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};

use report::show::plot::draw::Width;

use super::compare::WhatArgs;
use super::shared::SpeechArgs;

const AFTER_HELP: &str = "\
Writes index.html to DIR, one page with all figures and tables that needs no network, and each
figure as an SVG file, with --format also as PDF or PNG. Does not touch other files in DIR.

Examples:
  rocebench plot results -o plots
  rocebench plot results/rocebench-20261121T031008Z.json -o plots
  rocebench plot results --base results/before.json -o plots
  rocebench plot results --width column --format pdf -o paper

Exit status: 0 drawn, 1 not written (a full disk) or not converted, 2 bad input (the other files are
drawn) or no rsvg-convert (nothing is drawn).";

#[derive(Debug, Default, Args)]
#[command(after_help = AFTER_HELP)]
pub struct PlotArgs {
    /// Result files, or folders of them
    #[arg(value_name = "RESULT", required = true)]
    pub results: Vec<PathBuf>,
    /// Folder for the page and the figures, created if needed
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,
    /// Result file or folder to compare with
    #[arg(long, value_name = "RESULT")]
    pub base: Option<PathBuf>,
    /// Formats of figure files: svg (always written), pdf, png (300 dpi); pdf and png need rsvg-convert
    #[arg(
        long,
        value_name = "LIST",
        value_parser = ["svg", "pdf", "png"],
        value_delimiter = ',',
        default_value = "svg",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub format: Vec<String>,
    /// Width of figure files: page (7.5 in, both columns of a paper), or column (3.75 in)
    #[arg(
        long,
        value_name = "WIDTH",
        value_parser = PossibleValuesParser::new(["page", "column"]).map(width),
        default_value = "page",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub width: Width,
    /// Order nodes in figures by rack: file with lines NODE RACK, such as node[01-16] rack1
    #[arg(long, value_name = "FILE")]
    pub racks: Option<PathBuf>,
    #[command(flatten)]
    pub what: WhatArgs,
    #[command(flatten)]
    pub speech: SpeechArgs,
}

#[allow(clippy::needless_pass_by_value)] // as clap calls it
fn width(name: String) -> Width {
    match &*name {
        "column" => Width::Column,
        _ => Width::Page,
    }
}
