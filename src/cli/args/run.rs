//! Options of a sweep, and of this machine in it.

use std::path::PathBuf;

use clap::Args;

use super::shared::{ConnectionArgs, EndpointArgs, SpeechArgs};
use super::sweep::SweepArgs;
use crate::plan::{Factor, HostPort, Nodes, Slo};
use report::judge::threshold::Condition;
use report::observe::Metric;
use settings::TimeSpan;

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Host that runs `rocebench serve`: a name or address, optionally with a port (`host:port`, `[v6]:port`)
    #[arg(value_name = "HOST")]
    pub host: Option<HostPort>,
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Nodes, in place of HOST: two servers or more, such as a,b:18516, or local:N for N nodes in this process
    #[arg(long, value_name = "LIST", help_heading = "What to run", conflicts_with = "host")]
    pub nodes: Option<Nodes>,
    /// With several devices (--device), pairs of rails: same (first to first, second to second), all (each to each);
    /// each pair has --qps QPs [default: same]
    #[arg(long, value_name = "same|all", value_parser = ["same", "all"], hide_possible_values = true, help_heading = "What to run")]
    pub rails: Option<String>,
    /// Refuse to run when a rail is down; without this it is left out
    #[arg(long, value_name = "all", value_parser = ["all"], hide_possible_values = true, help_heading = "What to run")]
    pub rails_up: Option<String>,
    /// Find the slow node, cable or path: --pattern pairs -q 4 -D 200ms --warmup 200ms, and again what looks slow
    #[arg(long, help_heading = "What to run", conflicts_with_all = ["host", "against", "beside", "slo", "knee"])]
    pub quick: bool,
    /// TOML file of a sweep and its flows; each flag overrides the key with its name
    #[arg(long, value_name = "FILE", help_heading = "What to run")]
    pub config: Option<PathBuf>,
    /// Print the cases of the sweep and exit
    #[arg(long, help_heading = "What to run")]
    pub dry_run: bool,
    /// Which loads to search for.
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub against: AgainstArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub speech: SpeechArgs,
}

#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Folder for the result files, created if needed
    #[arg(long, value_name = "DIR", default_value = "results", help_heading = "Output")]
    pub out: PathBuf,
    /// Write the result as JSON to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write one row for each case, run and flow as CSV to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Write one row for each QP as CSV to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub csv_qps: Option<PathBuf>,
    /// Write the buckets of latency and bandwidth as CSV to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub csv_histograms: Option<PathBuf>,
    /// Write flows and runs as tests, in JUnit XML, to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub junit: Option<PathBuf>,
    /// More columns for the table: min, mean, stddev, max, p90, p95, p99.99, or another figure that --fail-if takes
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = metric, help_heading = "Output")]
    pub columns: Vec<Metric>,
    /// Print only problems, and exit with status 1 if there are any
    #[arg(long, help_heading = "Output")]
    pub only_problems: bool,
    /// Exit with status 1 when a flow is slower than 90% (of all flows' median), 90%link (of its link's limit) or
    /// 40Gb, or could not be measured
    #[arg(long, value_name = "LEAST", value_parser = Condition::below, help_heading = "Output")]
    pub fail_below: Option<Condition>,
    /// Exit with status 1 when a flow meets this condition or could not be measured: gbit<90, p99>20us, jain<0.98; may
    /// be given several times
    #[arg(long, value_name = "CONDITION", help_heading = "Output")]
    pub fail_if: Vec<Condition>,
    /// Exit with status 1 when an attacker (--beside) surely makes the victim's throughput or p99 more than this many
    /// times worse, such as 1.5x, or the harm could not be measured
    #[arg(long, value_name = "TIMES", value_parser = times, requires = "beside", help_heading = "Output")]
    pub fail_victim: Option<f64>,
}

/// `1.5x` as a number.
fn times(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').and_then(|number| number.parse().ok());
    number
        .filter(|it| (1.0..=1e6).contains(it))
        .ok_or_else(|| format!("`{text}` is not how many times: write 1.5x"))
}

/// A metric by what a person types.
fn metric(name: &str) -> Result<Metric, String> {
    Metric::from_name(name)
        .filter(|metric| !metric.is_of_search())
        .ok_or_else(|| format!("there is no such figure; there are {}", Condition::metrics()))
}

/// Which loads to search for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct SearchArgs {
    /// Find the highest rate within these latency limits: p99<20us, or p99<20us,p99.9<100us; each trial takes 1s, or -D
    #[arg(long, value_name = "LIMITS", conflicts_with_all = ["against", "beside"])]
    pub slo: Option<Slo>,
    /// Find the highest rate with a p99 of at most K times the p99 at 10% of the closed loop's maximum [default: 3]
    #[arg(
        long,
        value_name = "K",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "3",
        conflicts_with_all = ["against", "beside"]
    )]
    pub knee: Option<Factor>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct AgainstArgs {
    /// Run each case in turns with the matching perftest program, and say which is faster
    #[arg(long, value_name = "perftest", value_parser = ["perftest"], hide_possible_values = true, group = "turns")]
    pub against: Option<String>,
    /// Run the case alone and beside each attacker in turns, and say which attackers harm it: bandwidth, packets,
    /// qp-cache, mr-cache, reads, writes-and-reads, all (of these), a flow of the file by its name, or a file of flows
    #[arg(long, value_name = "LIST", value_delimiter = ',', group = "turns")]
    pub beside: Vec<String>,
    /// Valid pairs of runs (with --beside: rounds) that each case needs, an even number; below 8 the verdict is unclear [default:
    /// 8, or --runs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), requires = "turns")]
    pub pairs: Option<u32>,
    /// Stop after this many pairs or rounds even if the verdict is unclear; an even number [default: 3 x --pairs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), requires = "turns")]
    pub max_pairs: Option<u32>,
    /// Time limit for perftest to connect and to end, besides measuring [default: 20s]
    #[arg(long, value_name = "TIME", requires = "against")]
    pub perftest_limit: Option<TimeSpan>,
}
