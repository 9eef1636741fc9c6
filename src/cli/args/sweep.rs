//! Options of a sweep, of `rocebench mesh`, and those that several commands have: the device, the control connection, how
//! much is said. The settings of a sweep are flags made from their table; a configuration file has the same names.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueEnum,
    builder::{PossibleValue, TypedValueParser},
};

use machine::threads::CoreList;
use node::resources::{Faults, FaultsError};
use plan::{
    Devices, Factor, HostPort, Nodes, Slo,
    stages::{STAGES, Stage},
};
use plan::{check::CheckRequest, nodes::expand};
use protocol::handshake::Approach;
use report::{judge::threshold::Condition, observe::Metric};
use settings::{CrossRail, Given, GivenError, ROWS, Row, Takes, TimeSpan, nearest};

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
    #[arg(long, help_heading = "What to run", conflicts_with_all = ["host", "against", "beside", "slo", "knee", "loss_search"])]
    pub quick: bool,
    /// Then find out what limits the slowest case, or the slow node or path, within 60 s (`rocebench why` explains one case)
    #[arg(long, help_heading = "What to run", conflicts_with_all = ["against", "beside", "slo", "knee", "loss_search"])]
    pub why: bool,
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
    /// Of `mesh --check`.
    #[arg(skip)]
    pub check: Option<CheckRequest>,
    /// The command of a recipe's stage, in place of the process's own.
    #[arg(skip)]
    pub typed: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Folder for the result files, created if needed
    #[arg(long, value_name = "DIR", default_value = "results", help_heading = "Output")]
    pub out: PathBuf,
    /// Write the result as JSON to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the table as CSV to FILE too; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Write the table's rows with all settings and figures as CSV to FILE; `-` is stdout, and the table moves to stderr
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub csv_all: Option<PathBuf>,
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
    /// Print a line on stderr each TIME while a run measures: rate, p99 and path events; then the run's worst second
    #[arg(long, value_name = "TIME", conflicts_with_all = ["quiet", "only_problems"], help_heading = "Output")]
    pub every: Option<TimeSpan>,
    /// Print only problems, and exit with status 1 if there are any
    #[arg(long, help_heading = "Output")]
    pub only_problems: bool,
    /// Exit with status 1 when a flow is slower than 90% (of all flows' median), 90%link (of its link's limit) or
    /// 40Gb, or could not be measured; with `accept` also of a stage: 90%,bisection=50%link
    #[arg(long, value_name = "LEAST", help_heading = "Output")]
    pub fail_below: Option<Least>,
    /// Exit with status 1 when a flow meets this condition or could not be measured: gbit<90, p99>20us, jain<0.98; may
    /// be given several times
    #[arg(long, value_name = "CONDITION", help_heading = "Output")]
    pub fail_if: Vec<Condition>,
    /// Exit with status 1 when an attacker (--beside) surely makes the victim's throughput or p99 more than this many
    /// times worse, such as 1.5x, or the harm could not be measured
    #[arg(long, value_name = "TIMES", value_parser = times, requires = "beside", help_heading = "Output")]
    pub fail_victim: Option<f64>,
}

/// How many times, which is written `1.5x`.
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
    /// Find the highest rate at which nothing is lost or sent again, and no backlog grows
    #[arg(long, conflicts_with_all = ["against", "beside"])]
    pub loss_search: bool,
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

const MESH_AFTER_HELP: &str = "\
Start the same command at all ranks. Each rank is a node; rank 0 also leads, prints and writes.
Without --pattern it measures pairs: each node to each other, one flow at a time per node.

Examples:
  srun -N64 rocebench mesh --quick               find the slow node, cable or path
  srun -N64 rocebench mesh --check               does each rail reach each other one?
  srun -N8 rocebench mesh -D 2s                  eight nodes of Slurm
  mpirun -n 8 --map-by node rocebench mesh --pattern incast --fan-in 1,2,4
  mpiexec -n 8 -ppn 1 rocebench mesh --pattern ring
  rocebench mesh --nodes node[01-16]             each node runs `rocebench serve`
  rocebench mesh --nodes local:4 -D 1s           four nodes in this process";

/// How ranks of a launcher meet.
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// Host of rank 0, optionally with a port, for launchers that do not provide it; the same at all ranks
    #[arg(long, value_name = "HOST", conflicts_with_all = ["host", "nodes"], help_heading = "Connection")]
    pub rank_0: Option<HostPort>,
    /// Number of ranks, for launchers that do not provide it; the same at all ranks
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["host", "nodes"],
        help_heading = "Connection"
    )]
    pub ranks: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = MESH_AFTER_HELP)]
pub struct MeshArgs {
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// Check that each rail of each node reaches that of the same number of all others, both ways; exit with status 1
    /// where one does not or is slow
    #[arg(
        long,
        help_heading = "What to run",
        conflicts_with_all = ["host", "quick", "why", "against", "beside", "slo", "knee", "loss_search", "rails", "rails_up", "fail_below", "fail_if"]
    )]
    pub check: bool,
    /// With --check, paths from one rail to another: required (they must work), forbidden (they must not), ignore
    /// [default: ignore]
    #[arg(long, value_name = "WORD", requires = "check", help_heading = "What to run")]
    pub cross_rail: Option<CrossRail>,
    /// With --check, a path is slow below this part of the median [default: 50%]
    #[arg(long, value_name = "SHARE", value_parser = percent, requires = "check", help_heading = "What to run")]
    pub slow_below: Option<u32>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// A whole number of percent, as `50%`.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
    number
        .filter(|it| (0..=100).contains(it))
        .ok_or_else(|| format!("`{text}` is not a share of the median: write 50%"))
}

impl MeshArgs {
    /// What `--check` asks for.
    pub fn check_request(&self) -> Option<CheckRequest> {
        let usual = CheckRequest::default();
        self.check.then(|| CheckRequest {
            cross_rail: self.cross_rail.unwrap_or(usual.cross_rail),
            slow_below_percent: self.slow_below.unwrap_or(usual.slow_below_percent),
        })
    }
}

const ACCEPT_AFTER_HELP: &str = "\
Answers one question after the other, each with a sweep of its own, and names the first failure:
--dry-run lists the stages with their questions, times and commands. Settings hold for all stages.

Examples:
  rocebench accept --nodes node[01-64]           each node runs `rocebench serve`
  rocebench accept --nodes node[01-64]/mlx5_[0-3] --junit fabric.xml
  srun -N64 rocebench accept                     the ranks of a launcher, without servers
  rocebench accept --nodes @racks.txt --stages mesh,bisection --fail-below 90%,bisection=50%link";

/// Options of a sweep that an acceptance does not take, by their ids: its stages have patterns and runs of their own.
pub const NOT_OF_ACCEPT: &str = "host config quick why against beside pairs max_pairs perftest_limit slo knee loss_search rails_up columns \
                                 only_problems fail_if fail_victim pattern fan-in fan-out lock-step split compute bidirectional ping-pong runs rate";

#[derive(Debug, Args)]
#[command(after_help = ACCEPT_AFTER_HELP)]
pub struct AcceptArgs {
    /// Stages to run: doctor, preflight, mesh, rails, bisection, incast, ping-pong [default: all; rails where nodes have several
    /// devices]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = STAGES.iter().map(|it| it.name).collect::<Vec<_>>(), hide_possible_values = true, help_heading = "Accept")]
    pub stages: Vec<String>,
    /// Begin no stage that might not end within this time
    #[arg(long, value_name = "TIME", default_value = "10m", help_heading = "Accept")]
    pub budget: TimeSpan,
    #[command(flatten)]
    pub launch: LaunchArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

const SOAK_AFTER_HELP: &str = "\
Measures one case on the same QPs until Ctrl-C, one window after the other, and goes on when a node
was away. DIR gets a file of results an hour and alerts.ndjson. Exit status 1 when an alert still
stands at the end.

Examples:
  rocebench soak HOST --op write -q 16 --fail-below 90%link --on-alert 'logger -t rocebench'
  rocebench soak HOST --for 24h --fail-if 'p99>50us' --openmetrics /var/lib/node_exporter/soak.prom
  rocebench history trend --folder results/soak  what stepped, and when";

/// Options of a sweep that a soak does not take, by their ids: it has one case, no end of its own, and files of its own.
pub const NOT_OF_SOAK: &str = "every against beside pairs max_pairs perftest_limit slo knee loss_search quick why runs iters duration json csv csv_all \
                               csv_qps csv_histograms junit columns only_problems fail_victim";

#[derive(Debug, Args)]
#[command(after_help = SOAK_AFTER_HELP)]
pub struct SoakArgs {
    /// Window of a sample
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Soak")]
    pub sample: TimeSpan,
    /// End after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", help_heading = "Soak")]
    pub ends_after: Option<TimeSpan>,
    /// Shell command for each alert, which it reads as JSON; it is killed after 30 s
    #[arg(long, value_name = "COMMAND", help_heading = "Soak")]
    pub on_alert: Option<String>,
    /// Write figures as OpenMetrics to FILE after each sample; node_exporter's textfile collector reads names that end in .prom
    #[arg(long, value_name = "FILE", help_heading = "Soak")]
    pub openmetrics: Option<PathBuf>,
    /// Files of results to keep, one an hour; older ones of this soak are removed
    #[arg(long, value_name = "N", default_value_t = 168, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Soak")]
    pub keep: u32,
    #[command(flatten)]
    pub run: RunArgs,
}

const WHY_AFTER_HELP: &str = "\
Measures one case, changes one thing at a time, and looks what that does: each change in turns with
the case, and those first that tell most. Says what limits the case, how sure that is, and what to do.

Examples:
  rocebench why HOST -q 4 -s 64K                 what limits this case?
  rocebench why HOST -q 4 -s 64K --dry-run       what would be tried
  rocebench HOST -q 1,4,16 --why                 a sweep, then its slowest case
  rocebench mesh --nodes node[01-16] --quick --why";

/// Options of a sweep that `rocebench why` does not take, by their ids: it has one case, and runs of its own.
pub const NOT_OF_WHY: &str = "against beside pairs max_pairs perftest_limit slo knee loss_search quick why runs iters only_problems fail_below \
                              fail_if fail_victim";

#[derive(Debug, Args)]
#[command(after_help = WHY_AFTER_HELP)]
pub struct WhyArgs {
    /// Begin no experiment that would not end within this time
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Why")]
    pub budget: TimeSpan,
    /// Try changes that ask for more than the case does, such as twice its --rate
    #[arg(long, help_heading = "Why")]
    pub may_load_more: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// `--fail-below`: what each flow must reach, and with `rocebench accept` those of a stage: `90%,bisection=50%link`.
#[derive(Clone, Debug, Default)]
pub struct Least {
    pub of_all: Option<Condition>,
    pub of_stages: Vec<(&'static Stage, Condition)>,
}

impl FromStr for Least {
    type Err = String;

    fn from_str(text: &str) -> Result<Least, String> {
        let mut least = Least::default();
        for item in text.split(',') {
            match item.split_once('=') {
                None => least.of_all = Some(Condition::below(item).map_err(|it| it.to_string())?),
                Some((name, limit)) => {
                    let stage = Stage::of_name(name)
                        .filter(|stage| stage.has_cases())
                        .ok_or_else(|| format!("`{name}` is no stage that measures"))?;
                    let condition = Condition::below(limit).map_err(|it| it.to_string())?;
                    least.of_stages.push((stage, condition));
                }
            }
        }
        Ok(least)
    }
}

/// What to run, on how many queues, over what transport. Switches take `=false` too, to turn off what
/// a configuration file turns on.
#[derive(Clone, Debug, Default)]
pub struct SweepArgs {
    pub given: Given,
}

/// The flag of a setting.
fn flag(row: &'static Row) -> Arg {
    let flag = Arg::new(row.flag)
        .long(row.flag)
        .help(row.full_help())
        .help_heading(row.heading)
        .value_name(row.takes.value_name())
        .hide_possible_values(true)
        .value_parser(SettingParser(row));
    let flag = match row.short {
        Some(letter) => flag.short(letter),
        None => flag,
    };
    let flag = match row.alias {
        "" => flag,
        name => flag.visible_alias(name),
    };
    match row.takes {
        Takes::Switch => flag.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Takes::List | Takes::One(_) => flag,
    }
}

/// Checks the text of a setting; shells complete its words.
#[derive(Clone)]
struct SettingParser(&'static Row);

impl TypedValueParser for SettingParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        let row = self.0;
        let read = move |text: &str| -> Result<String, GivenError> {
            Given::default().set(row, text)?;
            Ok(text.to_owned())
        };
        read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        let words = (self.0.words)();
        let are_there = !words.is_empty();
        are_there.then(|| Box::new(words.into_iter().map(PossibleValue::new)) as Box<_>)
    }
}

impl Args for SweepArgs {
    fn augment_args(command: Command) -> Command {
        command.args(ROWS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SweepArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = SweepArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for row in ROWS {
            if let Some(text) = matches.get_one::<String>(row.flag) {
                self.given
                    .set(row, text)
                    .map_err(|error| Error::raw(clap::error::ErrorKind::ValueValidation, error))?;
            }
        }
        Ok(())
    }
}

/// The control connection's port when none is given.
pub const DEFAULT_PORT: u16 = 18_515;

/// Which device, and where its threads run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device")]
pub struct EndpointArgs {
    /// RDMA device from `ibv_devices`, or soft0 (embedded); several, such as mlx5_[0-3] or all, are rails: each flow
    /// uses them all at once [default: first with an active RoCE v2 port, else soft0]
    #[arg(short, long, value_name = "NAME")]
    pub device: Option<Devices>,
    /// Port of the device, from 1 [default: first active]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub ib_port: Option<u8>,
    /// Index in the port's GID table [default: the RoCE v2 GID with the control connection's address]
    #[arg(short = 'x', long, value_name = "N")]
    pub gid_index: Option<u8>,
    /// Index in the port's table of P_Keys, for QPs that --connect tcp connects [default: 0]
    #[arg(long, value_name = "N")]
    pub pkey_index: Option<u16>,
    /// Faults for this end's packets, on the embedded device: drop=5%,reorder=1%,seed=7; for one of several devices:
    /// soft1:rate=1G; for nodes of this process: node[0-5]:rate=40M;node3/soft1:drop=1%
    #[arg(long, value_name = "SPEC")]
    pub faults: Option<FaultsOfDevices>,
    /// Capture this end's packets for Wireshark, on the embedded device; the file's name gets the device's address
    /// added
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// How packets go between embedded devices: auto goes through memory where both ends are in this process; memory
    /// refuses others; udp uses the kernel's sockets, as between processes
    #[arg(
        long,
        value_name = "WAY",
        value_enum,
        default_value_t,
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub wire: Wire,
    /// Cores for this end's workers, such as 2,4-7 [default: those of the device's NUMA node]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<CoreList>,
}

/// How packets go between embedded devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Wire {
    /// Through memory within a process, else by sockets.
    #[default]
    Auto,
    /// Through memory alone.
    Memory,
    /// By sockets alone.
    Udp,
}

/// The control connection to a server.
#[derive(Debug, Args)]
pub struct ConnectionArgs {
    /// TCP port of the control connection [default: 18515]
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Connection")]
    pub port: Option<u16>,
    /// Connect from this address [default: that of the route]
    #[arg(long, value_name = "ADDR", help_heading = "Connection")]
    pub bind: Option<IpAddr>,
    /// Wait so long for servers that do not listen yet
    #[arg(long, value_name = "TIME", help_heading = "Connection")]
    pub wait_for_server: Option<TimeSpan>,
    #[command(flatten)]
    pub token: TokenArgs,
}

impl ConnectionArgs {
    /// How servers are reached.
    pub fn approach(&self) -> Approach {
        let wait = self.wait_for_server.map_or(Duration::ZERO, Duration::from);
        Approach { from: self.bind, wait }
    }
}

/// The secret that both ends share.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct TokenArgs {
    /// Secret that both ends share; never sent. The process list shows it to others on this machine: better use
    /// --token-file or the environment variable ROCEBENCH_TOKEN
    #[arg(long, value_name = "SECRET", conflicts_with = "token_file")]
    pub token: Option<String>,
    /// File with that secret; a line end after it is ignored
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// How much is said on stderr.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct SpeechArgs {
    /// Print only results, warnings and errors, no progress and no notes
    #[arg(long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more messages; -vv prints every step
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// Faults of `--faults`, of all devices of this end or at one place: `rate=1G;soft1:drop=1%;node3:rate=40M`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultsOfDevices {
    /// Of all devices of this end without faults of their own.
    pub default: Option<Faults>,
    /// At places: a device of this end, a node of this process, or `NODE/DEVICE`.
    pub of: Vec<(String, Faults)>,
}

impl FromStr for FaultsOfDevices {
    type Err = String;

    fn from_str(text: &str) -> Result<FaultsOfDevices, String> {
        let mut faults = FaultsOfDevices::default();
        for part in text.split(';') {
            // The value of `peer` may be an IPv6 address.
            match part.split_once(':').filter(|(name, _)| !name.contains('=')) {
                Some((places, of)) => {
                    let of_each = faults_of(of)?;
                    let expanded = expand(places.trim()).map_err(|error| error.to_string())?;
                    faults.of.extend(expanded.into_iter().map(|place| (place, of_each)));
                }
                None => faults.default = Some(faults_of(part)?),
            }
        }
        Ok(faults)
    }
}

/// The faults of one device; where a name is not known, with the name that it is near to.
fn faults_of(text: &str) -> Result<Faults, String> {
    text.parse().map_err(|error: FaultsError| {
        let meant = match &error {
            FaultsError::Unknown { name, .. } => nearest(name, &Faults::NAMES),
            FaultsError::Invalid { .. } => None,
        };
        meant.map_or_else(|| error.to_string(), |meant| format!("{error}; did you mean `{meant}`?"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_of_all_devices_or_of_those_that_are_named() {
        let of = |text: &str| text.parse::<FaultsOfDevices>().unwrap();
        let [drop, rate] = ["drop=1%", "rate=1G"].map(|text| text.parse::<Faults>().unwrap());
        assert_eq!(of("drop=1%").default, Some(drop));
        let both = of("drop=1%;soft1:rate=1G");
        assert_eq!((both.default, &both.of[..]), (Some(drop), &[("soft1".to_owned(), rate)][..]));
        assert_eq!(of("soft1:rate=1G").default, None);
        let many = of("node[0-1]/soft[2-3]:rate=1G;node1:drop=1%");
        let places: Vec<&str> = many.of.iter().map(|(place, _)| &**place).collect();
        assert_eq!(places, ["node0/soft2", "node0/soft3", "node1/soft2", "node1/soft3", "node1"]);
        assert!(of("drop=1%,peer=fd00::1").of.is_empty());
        assert!("soft1:nothing=1".parse::<FaultsOfDevices>().is_err());
    }
}
