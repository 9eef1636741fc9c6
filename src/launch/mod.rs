//! What a launcher tells the processes that it starts: which rank this one is, of how many, and where rank 0 is. All of
//! it follows from variables of the environment, but for PMI-1's store (`pmi`). Sources: srun(1) "OUTPUT ENVIRONMENT
//! VARIABLES"; mpirun(1) of Open MPI 4.1 and 5.0; PMI-1 as MPICH's hydra speaks it; the Kubernetes documentation of indexed
//! Jobs.

pub mod pmi;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use plan::HostPort;
use plan::nodes::{ListError, MOST_NODES, expand};
use sha2::{Digest as _, Sha256};

/// Where a job has no identity: the port of `rocebench serve`.
const WITHOUT_IDENTITY: u16 = 18_515;

/// Below the ports that systems give to outgoing connections (Linux from 32768).
const FIRST: u16 = 20_000;
const PORTS: u64 = 10_000;

const LOOPBACK: &str = "127.0.0.1";

/// Variables of the environment, by name.
pub type Variables = BTreeMap<String, String>;

/// What the command line says besides.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where rank 0 is (`--rank-0`).
    pub rank_0: Option<HostPort>,
    /// The number of ranks (`--ranks`).
    pub ranks: Option<u32>,
    /// Rank 0's TCP port (`--port`).
    pub port: Option<u16>,
}

/// One of the processes that a launcher has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    pub launcher: Launcher,
    /// The number of this process, from 0.
    pub rank: u32,
    pub ranks: u32,
    /// What the launcher calls this host, if it has a name of its own for it.
    pub host: Option<String>,
    /// The hosts of all ranks, in their order, where the launcher tells.
    pub hosts: Vec<String>,
    pub rank_0: Rank0,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rank0 {
    At {
        /// Names or addresses of its host.
        hosts: Vec<String>,
        port: u16,
        /// The hosts are where the launcher is, and rank 0 need not be.
        is_launchers: bool,
    },
    /// It tells by the store of this descriptor, which speaks PMI-1; at this port, or any free one.
    Store {
        /// A descriptor that this process has inherited.
        descriptor: i32,
        /// The TCP port that was asked for.
        port: Option<u16>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    Slurm,
    /// `mpirun` of Open MPI, or `prterun`.
    OpenMpi,
    /// `mpiexec` of MPICH and its relatives.
    Mpich,
    /// An indexed Job of Kubernetes, whose ranks are indices.
    Kubernetes,
}

impl Launcher {
    /// How it is told to start eight.
    pub fn example(self) -> &'static str {
        match self {
            Launcher::Slurm => "srun -N8 rocebench mesh",
            Launcher::OpenMpi => "mpirun -n 8 --map-by node rocebench mesh",
            Launcher::Mpich => "mpiexec -n 8 -ppn 1 rocebench mesh",
            Launcher::Kubernetes => {
                "completions: 8 and parallelism: 8, with rocebench mesh --ranks 8"
            }
        }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::Slurm => "srun",
            Launcher::OpenMpi => "mpirun",
            Launcher::Mpich => "mpiexec",
            Launcher::Kubernetes => "the Kubernetes Job",
        })
    }
}

/// What the environment and the command line tell of this process; `None` where no launcher has started it.
///
/// # Errors
/// A launcher has, and something is missing or contradicts itself.
pub fn find(variables: &Variables, given: &Options) -> Result<Option<Launched>, LaunchError> {
    let Some(found) = job_info(variables)? else {
        return Ok(None);
    };
    let launcher = found.launcher;
    let ranks = match (found.ranks, given.ranks) {
        (Some(started), Some(given)) if started != given => {
            return Err(LaunchError::OtherNumber { launcher, started, given });
        }
        (Some(ranks), _) | (None, Some(ranks)) => ranks,
        (None, None) => return Err(LaunchError::NumberUntold(launcher)),
    };
    if ranks > MOST_NODES {
        return Err(LaunchError::TooMany(ranks));
    }
    let rank = found.rank;
    if rank >= ranks {
        return Err(LaunchError::RankOutside { rank, ranks });
    }
    let port = match given.rank_0.as_ref().and_then(|it| it.port) {
        Some(written) => match given.port {
            Some(flag) if flag != written => return Err(LaunchError::TwoPorts { written, flag }),
            _ => Some(written),
        },
        None => given.port,
    };
    let port_of_rank_0 = port.unwrap_or_else(|| port_of_job(found.identity.as_deref()));
    let rank_0 = match (&given.rank_0, found.store) {
        (Some(given), _) => {
            Rank0::At { hosts: vec![given.host.clone()], port: port_of_rank_0, is_launchers: false }
        }
        (None, Some(descriptor)) => Rank0::Store { descriptor, port },
        (None, None) if found.rank_0.is_empty() => return Err(LaunchError::Rank0Untold(launcher)),
        (None, None) => Rank0::At {
            hosts: found.rank_0,
            port: port_of_rank_0,
            is_launchers: found.is_launchers,
        },
    };
    let hosts = if found.hosts.len() == ranks as usize { found.hosts } else { Vec::new() };
    Ok(Some(Launched { launcher, rank, ranks, host: found.host, hosts, rank_0 }))
}

/// The rank of this process, whatever else is missing; `None` without a launcher.
pub fn rank(variables: &Variables) -> Option<u32> {
    let found = job_info(variables).ok()??;
    Some(found.rank)
}

impl Launched {
    /// Checks at rank 0, on the host `here`, that the others will look for it there; `is_here` tells whether an address is
    /// one of this machine's.
    pub fn check_place(
        &self,
        here: &str,
        is_here: impl Fn(IpAddr) -> bool,
    ) -> Result<(), LaunchError> {
        let Rank0::At { hosts, is_launchers: true, .. } = &self.rank_0 else {
            return Ok(());
        };
        let names_this_host = hosts.iter().any(|host| match host.parse::<IpAddr>() {
            Ok(address) => is_here(address),
            Err(_) => host == here || self.host.as_ref().is_none_or(|own| own == host),
        });
        if names_this_host {
            Ok(())
        } else {
            Err(LaunchError::Rank0Elsewhere {
                launcher: self.launcher,
                here: self.host.as_deref().unwrap_or(here).to_owned(),
                hosts: hosts.join(" or "),
            })
        }
    }
}

/// The TCP port of the job with this identity. All ranks find it by themselves, and two jobs on a host hardly ever share it.
fn port_of_job(identity: Option<&str>) -> u16 {
    let Some(identity) = identity else {
        return WITHOUT_IDENTITY;
    };
    let hash = Sha256::digest(identity.as_bytes());
    let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    FIRST + u16::try_from(number % PORTS).unwrap_or(0)
}

#[derive(Debug)]
struct JobInfo {
    launcher: Launcher,
    rank: u32,
    ranks: Option<u32>,
    /// What it calls this host.
    host: Option<String>,
    /// All hosts, one for each rank where there are as many.
    hosts: Vec<String>,
    /// Names or addresses of rank 0's host.
    rank_0: Vec<String>,
    /// `rank_0` follows from where the launcher runs, or from the first host.
    is_launchers: bool,
    /// The descriptor of a PMI-1 store.
    store: Option<i32>,
    /// The same at all ranks of a job, and at no others.
    identity: Option<String>,
}

/// What the launcher tells that has started this process. One may run inside another: in an allocation of Slurm, mpirun
/// and mpiexec have srun start their daemons, whose variables their ranks inherit. So they come first, unless what they
/// set is Slurm's own: srun sets PMIX_ and PMI_ variables too.
fn job_info(variables: &Variables) -> Result<Option<JobInfo>, LaunchError> {
    for reader in [open_mpi, pmix, mpich, slurm, kubernetes] {
        if let Some(job) = reader(&Reader::new(variables))? {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// Open MPI 4.1 and 5.
fn open_mpi(reader: &Reader<'_>) -> Result<Option<JobInfo>, LaunchError> {
    open_mpi_job(reader, "OMPI_COMM_WORLD_RANK")
}

/// PMIx's own variables, as `prterun` sets them.
fn pmix(reader: &Reader<'_>) -> Result<Option<JobInfo>, LaunchError> {
    let namespace = reader.text("PMIX_NAMESPACE");
    if namespace.is_some_and(|it| it.starts_with("slurm.")) {
        return Ok(None);
    }
    open_mpi_job(reader, "PMIX_RANK")
}

fn open_mpi_job(
    reader: &Reader<'_>,
    rank_name: &'static str,
) -> Result<Option<JobInfo>, LaunchError> {
    let launcher = Launcher::OpenMpi;
    let Some(rank) = reader.number(launcher, rank_name)? else {
        return Ok(None);
    };
    let ranks = reader.number(launcher, "OMPI_COMM_WORLD_SIZE")?;
    let here = reader.number(launcher, "OMPI_COMM_WORLD_LOCAL_SIZE")?;
    let namespace = reader.text("PMIX_NAMESPACE");
    let (rank_0, is_launchers) = match reader.text("OMPI_MCA_orte_hnp_uri") {
        // All ranks are on one host.
        _ if here.is_some() && here == ranks => (vec![LOOPBACK.to_owned()], false),
        Some(uri) => (hosts_of_uri(uri), true),
        None => (namespace.and_then(host_of_namespace).into_iter().collect(), true),
    };
    Ok(Some(JobInfo {
        launcher,
        rank,
        ranks,
        host: reader.owned("PMIX_HOSTNAME"),
        hosts: Vec::new(),
        rank_0,
        is_launchers,
        store: None,
        identity: namespace.map(str::to_owned),
    }))
}

/// The addresses in `JOB.0;tcp://A,B:PORT;tcp6://[C]:PORT`, where mpirun of Open MPI 4 listens.
fn hosts_of_uri(uri: &str) -> Vec<String> {
    uri.split(';')
        .filter_map(|part| part.split_once("://"))
        .filter(|(name, _)| name.starts_with("tcp"))
        .filter_map(|(_, place)| place.rsplit_once(':'))
        .flat_map(|(addresses, _)| addresses.split(','))
        .map(|it| it.trim_matches(['[', ']']).to_owned())
        .filter(|it| !it.is_empty())
        .collect()
}

/// The host in `prterun-HOST-PID@JOB`, where mpirun of Open MPI 5 runs.
fn host_of_namespace(namespace: &str) -> Option<String> {
    let (server, _job) = namespace.rsplit_once('@')?;
    let (name, pid) = server.rsplit_once('-')?;
    let host = name.strip_prefix("prterun-")?;
    let is_pid = !pid.is_empty() && pid.bytes().all(|it| it.is_ascii_digit());
    (is_pid && !host.is_empty()).then(|| host.to_owned())
}

fn mpich(reader: &Reader<'_>) -> Result<Option<JobInfo>, LaunchError> {
    let launcher = Launcher::Mpich;
    // srun's plugin for PMI-2 sets these too.
    let is_slurms = reader.text("PMI_JOBID").is_some()
        && reader.text("PMI_JOBID") == reader.slurm_step().as_deref();
    if is_slurms {
        return Ok(None);
    }
    let (Some(rank), Some(ranks)) =
        (reader.number(launcher, "PMI_RANK")?, reader.number(launcher, "PMI_SIZE")?)
    else {
        return Ok(None);
    };
    let store = reader.number(launcher, "PMI_FD")?;
    // The name by which the others reach this host.
    let host = reader
        .owned("MPIR_CVAR_CH3_INTERFACE_HOSTNAME")
        .or_else(|| reader.owned("MPICH_INTERFACE_HOSTNAME"));
    Ok(Some(JobInfo {
        launcher,
        rank,
        ranks: Some(ranks),
        host,
        hosts: Vec::new(),
        rank_0: Vec::new(),
        is_launchers: false,
        store: store.and_then(|it| i32::try_from(it).ok()),
        identity: None,
    }))
}

/// A step of Slurm. A batch script has SLURM_PROCID without one, and is no rank.
fn slurm(reader: &Reader<'_>) -> Result<Option<JobInfo>, LaunchError> {
    let launcher = Launcher::Slurm;
    let list = "SLURM_STEP_NODELIST";
    let (Some(identity), Some(rank), Some(nodes)) =
        (reader.slurm_step(), reader.number(launcher, "SLURM_PROCID")?, reader.text(list))
    else {
        return Ok(None);
    };
    let hosts =
        expand(nodes).map_err(|source| LaunchError::NoList { launcher, name: list, source })?;
    let ranks = match reader.number(launcher, "SLURM_STEP_NUM_TASKS")? {
        Some(ranks) => Some(ranks),
        None => reader.number(launcher, "SLURM_NTASKS")?,
    };
    Ok(Some(JobInfo {
        launcher,
        rank,
        ranks,
        host: reader.owned("SLURMD_NODENAME"),
        rank_0: hosts.first().cloned().into_iter().collect(),
        hosts,
        is_launchers: true,
        store: None,
        identity: Some(identity),
    }))
}

/// An indexed Job; the manifest sets NODE_NAME.
fn kubernetes(reader: &Reader<'_>) -> Result<Option<JobInfo>, LaunchError> {
    let launcher = Launcher::Kubernetes;
    let Some(rank) = reader.number(launcher, "JOB_COMPLETION_INDEX")? else {
        return Ok(None);
    };
    Ok(Some(JobInfo {
        launcher,
        rank,
        ranks: None,
        host: reader.owned("NODE_NAME"),
        hosts: Vec::new(),
        rank_0: Vec::new(),
        is_launchers: false,
        store: None,
        identity: None,
    }))
}

struct Reader<'a> {
    variables: &'a Variables,
}

impl<'a> Reader<'a> {
    fn new(variables: &'a Variables) -> Reader<'a> {
        Reader { variables }
    }

    /// One that is there and not empty.
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.variables.get(name).map(|it| it.trim());
        text.filter(|text| !text.is_empty())
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    fn number(&self, launcher: Launcher, name: &'static str) -> Result<Option<u32>, LaunchError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().map_err(|_| LaunchError::NoNumber {
            launcher,
            name,
            value: results::text::printable(text, 40),
        })?;
        Ok(Some(number))
    }

    /// The job and step of Slurm that this process is in.
    fn slurm_step(&self) -> Option<String> {
        let job = self.text("SLURM_JOB_ID")?;
        let step = self.text("SLURM_STEP_ID")?;
        Some(format!("{job}.{step}"))
    }
}

/// Why the place of this process among the ranks is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum LaunchError {
    #[error("the variable {name} of {launcher} is `{value}`, which is not a number")]
    NoNumber { launcher: Launcher, name: &'static str, value: String },
    #[error("the variable {name} of {launcher} is not a list of nodes: {source}")]
    NoList { launcher: Launcher, name: &'static str, source: ListError },
    #[error("{0} does not provide the number of ranks")]
    NumberUntold(Launcher),
    #[error("{0} does not provide the address of rank 0")]
    Rank0Untold(Launcher),
    #[error("--ranks is {given}, but {launcher} started {started}")]
    OtherNumber { launcher: Launcher, started: u32, given: u32 },
    #[error("this is rank {rank}, but there are only {ranks}, counted from 0")]
    RankOutside { rank: u32, ranks: u32 },
    #[error("a job has at most {MOST_NODES} ranks, not {0}")]
    TooMany(u32),
    #[error("--rank-0 has port {written}, --port is {flag}")]
    TwoPorts { written: u16, flag: u16 },
    #[error("rank 0 runs on {here}, but {launcher} sends the other ranks to {hosts}")]
    Rank0Elsewhere { launcher: Launcher, here: String, hosts: String },
}

impl LaunchError {
    pub fn hint(&self) -> &'static str {
        match self {
            LaunchError::NumberUntold(_) | LaunchError::RankOutside { .. } => {
                "give all ranks the same --ranks N"
            }
            LaunchError::TooMany(_) => "start fewer, or several jobs",
            LaunchError::Rank0Untold(_) | LaunchError::Rank0Elsewhere { .. } => {
                "give all ranks the same --rank-0 HOST"
            }
            LaunchError::OtherNumber { .. } | LaunchError::TwoPorts { .. } => {
                "leave one of them out"
            }
            LaunchError::NoNumber { .. } | LaunchError::NoList { .. } => {
                "start the ranks again with the launcher, or name the nodes with --nodes and unset its variables"
            }
        }
    }
}

#[cfg(test)]
mod tests;
