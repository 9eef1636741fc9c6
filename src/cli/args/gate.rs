//! Options of `rocebench gate`: what is switched on each side, how long it may take, and the sweep.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use report::judge::compare::{Aspect, GATE_MARGIN, GATE_METRICS, Margins, Options};
use report::observe::Metric;
use settings::TimeSpan;

use super::UnclearArgs;

/// The sweep where none is given: three operations, one and many QPs, small and large messages.
const USUAL_SWEEP: &str =
    "--op send,write,read --qps 1,16 --size 64,64K --duration 300ms --warmup 200ms --runs 3";

fn after_help() -> String {
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
  rocebench gate --base run='./load 5.8' --new run='./load 24.10' --budget 30m -- HOST --runs 3

Exit status: 0 no regression, 1 a regression (with --strict also unclear), 2 not comparable or bad input, 3 a launch failed."
    )
}

fn metrics_help() -> String {
    let names = GATE_METRICS.map(Metric::short_name).join(",");
    format!("What to compare, and what must be clear [default: {names}]")
}

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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Cli, Command};

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
