//! Options of `rocebench gate`: what is switched on each side, how long it may take, and the sweep.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use report::judge::compare::{Aspect, GATE_MARGIN, GATE_METRICS, Margins, Options, aspect_names};
use report::observe::Metric;
use settings::TimeSpan;

/// The sweep where none is given: three operations, one and many QPs, small and large messages.
const USUAL_SWEEP: &str =
    "--op send,write,read --qps 1,16 --size 64,64K --duration 300ms --warmup 200ms --runs 3";

fn after_help() -> String {
    format!(
        "\
Both sides run the sweep in turns, A B B A, until every case is clear (slower, faster, or equal
within the margin), something is slower, or the budget is used up. When to look is planned after the
first round, so that looking does not make false alarms likely. DIR then has base/ and new/ (result
files), verdict.txt, .json, .md and .xml (JUnit), and a page, index.html.

A SIDE is one of:
  program=PATH     another rocebench, such as the build of another checkout, or a script around it
  lib=DIR          libraries: DIR stands first in LD_LIBRARY_PATH
  env=VAR=VALUE    a variable
  run=COMMAND      a shell command before each launch of the side: loads a driver, sets firmware

Without a sweep: {USUAL_SWEEP}

Examples:
  rocebench gate --base program=../old/target/release/rocebench
  rocebench gate --base lib=/opt/rdma-core-50/lib --new lib=/opt/rdma-core-60/lib -- HOST -q 1,16
  rocebench gate --base run='./load 5.8' --new run='./load 24.10' --budget 30m -- HOST --runs 3
  rocebench gate --new env=MLX5_SINGLE_THREADED=1 --metrics bandwidth,p99 -- -d mlx5_0

Exit status: 0 no regression, 1 a regression, 2 not comparable or bad input, 3 a launch failed."
    )
}

fn across_help() -> String {
    format!(
        "Compare although these differ: {} [default: device,host where a side has lib or run]",
        aspect_names()
    )
}

fn metrics_help() -> String {
    let names = GATE_METRICS.map(Metric::short_name).join(",");
    format!("What to compare, and what must be clear [default: {names}]")
}

/// Options of `rocebench gate`.
#[derive(Debug, Args)]
#[command(after_help = after_help(), group = clap::ArgGroup::new("sides").required(true).multiple(true))]
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
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub launches: u32,
    /// What to compare.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = metrics_help(), help_heading = "What to compare")]
    pub metrics: Vec<Metric>,
    /// Largest changes that do not matter, such as bandwidth=3%,p99=10% [default: those of compare, at least 5%]
    #[arg(long, value_name = "LIST", help_heading = "What to compare")]
    pub margin: Option<Margins>,
    /// Differences that do not stand in the way.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = across_help(), help_heading = "What to compare")]
    pub across: Vec<Aspect>,
    /// Folder for results and verdicts, created if needed; it must have no results of an earlier gate
    #[arg(
        long,
        value_name = "DIR",
        default_value = "gate",
        help_heading = "Output"
    )]
    pub out: PathBuf,
    /// Print no progress: only the table, warnings and errors
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,
    /// HOST and options of the sweep, the same on both sides
    #[arg(value_name = "SWEEP", last = true)]
    pub sweep: Vec<String>,
}

impl GateArgs {
    /// How results are compared at a look that has this part of the chance of error.
    pub fn options(&self, part: f64) -> Options {
        let metrics = match self.metrics.is_empty() {
            true => GATE_METRICS.to_vec(),
            false => self.metrics.clone(),
        };
        let is_of_machine = |it: &Switch| matches!(it, Switch::Lib(_) | Switch::Run(_));
        let machines_differ = self.base.iter().chain(&self.new).any(is_of_machine);
        let mut across = self.across.clone();
        if across.is_empty() && machines_differ {
            across = vec![Aspect::Device, Aspect::Host];
        }
        Options {
            metrics,
            margins: self
                .margin
                .clone()
                .unwrap_or_default()
                .or_at_least(GATE_MARGIN),
            across,
            part,
        }
    }

    /// The words of the sweep.
    pub fn words(&self) -> Vec<String> {
        let device = self.device.as_ref();
        let device = device.map(|name| ["--device".to_owned(), name.clone()]);
        let sweep = match self.sweep.is_empty() {
            true => USUAL_SWEEP.split(' ').map(str::to_owned).collect(),
            false => self.sweep.clone(),
        };
        device.into_iter().flatten().chain(sweep).collect()
    }
}

/// Something that is switched on a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Another program.
    Program(PathBuf),
    /// A folder that stands first in the search for libraries.
    Lib(String),
    /// A variable and its value.
    Env(String, String),
    /// A shell command before each launch.
    Run(String),
}

/// A word that switches nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not program=PATH, lib=DIR, env=VAR=VALUE or run=COMMAND")]
pub struct SwitchError(String);

impl FromStr for Switch {
    type Err = SwitchError;

    fn from_str(word: &str) -> Result<Switch, SwitchError> {
        let error = || SwitchError(word.to_owned());
        let (key, value) = word.split_once('=').ok_or_else(error)?;
        let text = value.to_owned();
        match key {
            _ if value.trim().is_empty() => Err(error()),
            "program" => Ok(Switch::Program(text.into())),
            "lib" => Ok(Switch::Lib(text)),
            "run" => Ok(Switch::Run(text)),
            "env" => match value.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    Ok(Switch::Env(name.to_owned(), value.to_owned()))
                }
                _ => Err(error()),
            },
            _ => Err(error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Cli, Command};

    #[test]
    fn sides_are_keys_and_values() {
        for (word, switch) in [
            ("program=a=b", Switch::Program("a=b".into())),
            ("lib=/opt/x", Switch::Lib("/opt/x".into())),
            ("env=A=", Switch::Env("A".into(), String::new())),
            ("env=A=b=c", Switch::Env("A".into(), "b=c".into())),
            ("run=modprobe -r x", Switch::Run("modprobe -r x".into())),
        ] {
            assert_eq!(word.parse(), Ok(switch));
        }
        for word in [
            "",
            "program",
            "program=",
            "env=A",
            "env==b",
            "run= ",
            "PROGRAM=x",
            "x=y",
        ] {
            assert_eq!(word.parse::<Switch>(), Err(SwitchError(word.to_owned())));
        }
    }

    fn args(words: &str) -> GateArgs {
        let words = ["rocebench", "gate"].into_iter().chain(words.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Some(Command::Gate(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_switched_in_the_machine_may_differ() {
        let across = |words| args(words).options(1.0).across;
        assert_eq!(across("--new env=A=1"), []);
        assert_eq!(across("--new run=x"), [Aspect::Device, Aspect::Host]);
        assert_eq!(across("--new lib=x --across mtu"), [Aspect::Mtu]);
        let own = args("--base lib=a --new lib=b --margin p50=3% -d x -- host -q 4");
        assert_eq!(own.words(), ["--device", "x", "host", "-q", "4"]);
        let margins = own.options(1.0).margins;
        let both = [Metric::P50Ns, Metric::GbitPerS].map(|it| margins.of(it));
        assert_eq!(both, [0.03, GATE_MARGIN]);
        assert!(Cli::try_parse_from(["rocebench", "gate"]).is_err());
    }
}
