//! Options of the commands about results: `rocebench compare`, `gate`, `plot` and `history`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{
    Args, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser as _},
};

use super::sweep::SpeechArgs;
use report::{
    judge::compare::{Aspect, GATE_MARGIN, GATE_METRICS, Margins, Options, aspect_names},
    observe::Metric,
    show::plot::draw::Width,
};
use settings::TimeSpan;
use statistics::fewest_a_side;

fn compare_after_help() -> String {
    format!(
        "\
Launch both sides in turns, at least {} times each, better 10 times; otherwise cases are unclear.
With --across time nights are compared with nights, an hour or more apart.
Both sides need the case without failed runs, with the same host, device, link, MTU, faults and
settings. The median of a file's runs counts.
Metrics: {}; connections and setup are from --op connect, load is from --slo, --knee and --loss-search, bus and step are
from --lock-step.

Examples:
  rocebench compare results/base results/new
  rocebench compare results/base results/new --metrics bandwidth,p99 --margin p99=15%
  rocebench compare old.json new.json            the differences, all unclear
  rocebench compare base new --markdown comment.md --junit report.xml --quiet
  rocebench compare whole slowed --across faults",
        fewest_a_side(1.0),
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

#[derive(Debug, Default, Args)]
#[command(after_help = compare_after_help())]
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
    /// Exit with status 3 when NEW lacks a case of BASE, or a verdict is unclear: figures (any figure of a case,
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

/// The sweep where none is given: three operations, one and many QPs, small and large messages.
const USUAL_SWEEP: &str =
    "--op send,write,read --qps 1,16 --size 64,64K --duration 300ms --warmup 200ms --runs 3";

fn gate_after_help() -> String {
    format!(
        "\
Both sides run the sweep in turns, A B B A, until every case is clear (slower, faster, or equal \
within the margin), something is slower, or the budget is used up. Looks are planned after the first \
round, so that looking does not make false alarms likely. DIR then has base/ and new/ (result files), \
verdict.txt, .json, .md and .xml (JUnit), and a page, index.html.

A SIDE is one of:
  program=PATH     another rocebench, such as the build of another checkout, or a script around it
  lib=DIR          libraries: DIR stands first in LD_LIBRARY_PATH
  env=VAR=VALUE    a variable
  run=COMMAND      a shell command before each launch of the side: loads a driver, sets firmware
Without a sweep: {USUAL_SWEEP}

Examples:
  rocebench gate --base program=../old/target/release/rocebench
  rocebench gate --base lib=/opt/50/lib --new lib=/opt/60/lib -- HOST -q 1,16
  rocebench gate --base run='./load 5.8' --new run='./load 24.10' --budget 30m -- HOST --runs 3"
    )
}

/// Launches a side with which a gate can find anything.
fn fewest_launches() -> i64 {
    i64::try_from(fewest_a_side(1.0)).unwrap_or(i64::MAX)
}

fn metrics_help() -> String {
    let names = GATE_METRICS.map(Metric::short_name).join(",");
    format!("What to compare, and what must be clear [default: {names}]")
}

#[derive(Debug, Args)]
#[command(after_help = gate_after_help(), group = clap::ArgGroup::new("sides").required(true).multiple(true))]
pub struct GateArgs {
    /// What to switch on the base; may be repeated [default: this program as it is]
    #[arg(long, value_name = "SIDE", group = "sides")]
    pub base: Vec<Switch>,
    /// What to switch on the new side; may be repeated [default: this program as it is]
    #[arg(long, value_name = "SIDE", group = "sides")]
    pub new: Vec<Switch>,
    /// RDMA device of both sides, as of a sweep
    #[arg(short, long, value_name = "NAME")]
    pub device: Option<String>,
    /// Time that all launches may take together
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub budget: TimeSpan,
    /// Launches a side, at most
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(fewest_launches()..=1000))]
    pub launches: u32,
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = metrics_help())]
    pub metrics: Vec<Metric>,
    /// Largest changes that do not matter, such as bandwidth=3%,p99=10% [default: those of compare, at least 5%]
    #[arg(long, value_name = "LIST")]
    pub margin: Option<Margins>,
    /// Compare although these differ, as for compare [default: device,host where a side has lib or run]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub across: Vec<Aspect>,
    /// What may not be unclear.
    #[command(flatten)]
    pub unclear: UnclearArgs,
    /// Folder for results and verdicts, created if needed; it must have no results of an earlier gate
    #[arg(long, value_name = "DIR", default_value = "gate")]
    pub out: PathBuf,
    /// Print no progress: only the table, warnings and errors
    #[arg(long)]
    pub quiet: bool,
    /// HOST and options of the sweep, the same on both sides
    #[arg(value_name = "SWEEP", last = true)]
    pub sweep: Vec<String>,
}

impl GateArgs {
    /// How results are compared at a look that has this part of the chance of error.
    pub fn options(&self, part: f64) -> Options {
        let metrics =
            if self.metrics.is_empty() { GATE_METRICS.to_vec() } else { self.metrics.clone() };
        let margins = self.margin.clone().unwrap_or_default();
        let machines_differ =
            self.base.iter().chain(&self.new).any(|it| ["lib", "run"].contains(&it.key));
        let mut across = self.across.clone();
        if across.is_empty() && machines_differ {
            across = vec![Aspect::Device, Aspect::Host];
        }
        Options { metrics, margins: margins.or_at_least(GATE_MARGIN), across, part }
    }

    /// The words of the sweep.
    pub fn words(&self) -> Vec<String> {
        let mut words = if self.sweep.is_empty() {
            USUAL_SWEEP.split(' ').map(str::to_owned).collect()
        } else {
            self.sweep.clone()
        };
        if let Some(name) = &self.device {
            words.splice(..0, ["--device".to_owned(), name.clone()]);
        }
        words
    }
}

/// Something that is switched on a side: its key, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    pub key: &'static str,
    pub value: String,
}

const SWITCHES: [&str; 4] = ["program", "lib", "env", "run"];

impl FromStr for Switch {
    type Err = String;

    fn from_str(word: &str) -> Result<Switch, String> {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let names_no_variable = key == "env" && value.find('=').unwrap_or(0) == 0;
        SWITCHES
            .into_iter()
            .find(|it| *it == key)
            .filter(|_| !value.trim().is_empty() && !names_no_variable)
            .map(|key| Switch { key, value: value.to_owned() })
            .ok_or_else(|| "it is program=PATH, lib=DIR, env=VAR=VALUE or run=COMMAND".to_owned())
    }
}

const PLOT_AFTER_HELP: &str = "\
Writes index.html to DIR, one page with all figures and tables that needs no network, and each
figure as an SVG file, with --format also as PDF or PNG. Does not touch other files in DIR.

Examples:
  rocebench plot results -o plots
  rocebench plot results/rocebench-20261121T031008Z.json -o plots
  rocebench plot results --base results/before.json -o plots
  rocebench plot results --width column --format pdf -o paper";

#[derive(Debug, Default, Args)]
#[command(after_help = PLOT_AFTER_HELP)]
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

const HISTORY_AFTER_HELP: &str = "\
The folder has a result file for each, named by its time; all commands read it as any folder of results.

Examples:
  rocebench history add results/rocebench-20261124T020000Z.json
  rocebench history list --folder /srv/history
  rocebench history trend --page plots           what stepped, and a page that begins with it
  rocebench history compare last --across time --margin bandwidth=10%";

#[derive(Debug, Args)]
#[command(after_help = HISTORY_AFTER_HELP)]
pub struct HistoryArgs {
    #[command(subcommand)]
    pub action: HistoryAction,
}

/// Where the history is.
#[derive(Debug, Args)]
pub struct FolderArgs {
    /// Folder of the history; the first `add` makes it
    #[arg(long, value_name = "DIR", default_value = "history")]
    pub folder: PathBuf,
}

/// What to do with a history.
#[derive(Debug, Subcommand)]
pub enum HistoryAction {
    /// Copy results into the folder
    Add {
        /// Result files, or folders of them
        #[arg(value_name = "RESULT", required = true)]
        results: Vec<PathBuf>,
        #[command(flatten)]
        to: FolderArgs,
    },
    /// List the results by time: revision, nodes, cases, and runs that do not count
    List(FolderArgs),
    /// Say which figures of cases and nodes stepped, when, and by how much
    Trend {
        /// Draw a page that begins with the trend, into this folder
        #[arg(long, value_name = "DIR")]
        page: Option<PathBuf>,
        #[command(flatten)]
        of: FolderArgs,
    },
    /// Compare the last result with those before it, as `rocebench compare` does
    Compare(HistoryCompareArgs),
}

#[derive(Debug, Args)]
pub struct HistoryCompareArgs {
    /// Which result: last
    #[arg(value_name = "last", value_parser = ["last"], hide_possible_values = true)]
    pub which: String,
    #[command(flatten)]
    pub of: FolderArgs,
    #[command(flatten)]
    pub what: WhatArgs,
    /// What may not be unclear.
    #[command(flatten, next_help_heading = "What to compare")]
    pub unclear: UnclearArgs,
    /// Write it as Markdown; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub markdown: Option<PathBuf>,
    /// Write it as JUnit XML
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub junit: Option<PathBuf>,
}

#[allow(clippy::needless_pass_by_value)] // as clap calls it
fn width(name: String) -> Width {
    match &*name {
        "column" => Width::Column,
        _ => Width::Page,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::cli::args::{Cli, Command};

    use super::*;

    #[test]
    fn sides_are_keys_and_values() {
        for (key, value) in [("program", "a=b"), ("lib", "/x"), ("env", "A="), ("run", "a -b")] {
            let value = value.to_owned();
            assert_eq!(format!("{key}={value}").parse(), Ok(Switch { key, value }));
        }
        for word in "|program|program=|env=A|env==b|run= |RUN=x|x=y".split('|') {
            assert!(word.parse::<Switch>().is_err(), "{word}");
        }
    }

    #[test]
    fn what_is_switched_in_the_machine_may_differ() {
        let args = |words: &str| {
            let words = ["rocebench", "gate"].into_iter().chain(words.split(' '));
            match Cli::try_parse_from(words).unwrap().command {
                Some(Command::Gate(args)) => args,
                other => panic!("{other:?}"),
            }
        };
        let across = |words| args(words).options(1.0).across;
        assert_eq!(across("--new env=A=1"), []);
        assert_eq!(across("--new run=x"), [Aspect::Device, Aspect::Host]);
        assert_eq!(across("--new lib=x --across mtu"), [Aspect::Mtu]);
        let own = args("--new lib=b --margin p50=3% -d x -- host -q 4");
        assert_eq!(own.words().join(" "), "--device x host -q 4");
        let margins = own.options(1.0).margins;
        let both = [Metric::P50Ns, Metric::GbitPerS].map(|it| margins.of(it));
        assert_eq!(both, [0.03, GATE_MARGIN]);
    }
}
