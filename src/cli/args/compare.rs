//! Options of `rocebench compare`: two places with results, what to compare, and where the verdicts go.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use report::judge::compare::{Aspect, Margins, Options, aspect_names};
use report::observe::Metric;

fn after_help() -> String {
    format!(
        "\
Launch both sides in turns, at least three times each, better 10 times; otherwise cases are unclear.
Both sides need the case without failed runs, with the same host, device, link, MTU, faults and
settings. The median of a file's runs counts.
Metrics: {}; connections and setup are from --op connect, load is from --slo and --knee.

Examples:
  rocebench compare results/base results/new
  rocebench compare results/base results/new --metrics bandwidth,p99 --margin p99=15%
  rocebench compare old.json new.json            the differences, all unclear
  rocebench compare base new --markdown comment.md --junit report.xml --quiet
  rocebench compare whole slowed --across faults

Exit status: 0 no regression, 1 a regression, 2 not comparable, not launched in turns or bad input.",
        Metric::short_names()
    )
}

fn margin_help() -> String {
    let margins: Vec<String> = Metric::compared()
        .map(|metric| {
            let percent = metric.default_margin() * 100.0;
            format!("{} {percent:.0}%", metric.short_name())
        })
        .collect();
    format!(
        "Ignore changes up to these, such as bandwidth=3%,p99=10% [default: {}]",
        margins.join(", ")
    )
}

fn across_help() -> String {
    format!("Compare even if these differ: {}", aspect_names())
}

#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct CompareArgs {
    /// Result file of the baseline, or a folder of them
    #[arg(value_name = "BASE")]
    pub base: PathBuf,
    /// Result file to compare with it, or a folder of them
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    #[command(flatten)]
    pub what: WhatArgs,
    /// What may not be unclear.
    #[command(flatten, next_help_heading = "What to compare")]
    pub unclear: UnclearArgs,
    /// Write the comparison as JSON; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write it as Markdown, for a pull request
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub markdown: Option<PathBuf>,
    /// Write it as JUnit XML
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub junit: Option<PathBuf>,
    /// Write NEW's figures in Bencher's metric format
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub bmf: Option<PathBuf>,
    /// Write both sides' figures as CSV for Apache Otava
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub otava: Option<PathBuf>,
    /// Write NEW's figures for github-action-benchmark: bigger-is-better.json and smaller-is-better.json in DIR
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub github_action_benchmark: Option<PathBuf>,
    /// Print no table: verdicts go to the files and the exit status, errors to stderr
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,
}

/// What may not be unclear, of this command and of `rocebench gate`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct UnclearArgs {
    /// Exit with status 1 also when NEW lacks a case of BASE, or a verdict is unclear: figures (any figure of a case,
    /// the default), cases (only if all figures of a case are unclear)
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "figures",
        hide_possible_values = true
    )]
    pub strict: Option<Strict>,
}

/// What may not be unclear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Strict {
    /// No figure.
    Figures,
    /// No case as a whole.
    Cases,
}

/// What to compare, of this command and of `rocebench plot --base`.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "What to compare")]
pub struct WhatArgs {
    /// Metrics to compare [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub metrics: Vec<Metric>,
    /// How much does not matter.
    #[arg(long, value_name = "LIST", help = margin_help())]
    pub margin: Option<Margins>,
    /// Differences that do not stand in the way.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = across_help())]
    pub across: Vec<Aspect>,
}

impl WhatArgs {
    /// The same as the comparison takes it.
    pub fn options(&self) -> Options {
        Options {
            metrics: if self.metrics.is_empty() {
                Metric::compared().collect()
            } else {
                self.metrics.clone()
            },
            margins: self.margin.clone().unwrap_or_default(),
            across: self.across.clone(),
            part: 1.0,
        }
    }
}
