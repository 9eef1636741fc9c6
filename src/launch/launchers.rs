//! The launchers, and what each tells by the variables that it sets. Sources: srun(1) "OUTPUT ENVIRONMENT VARIABLES";
//! mpirun(1) of Open MPI 4.1 and 5.0; PMI-1 as MPICH's hydra speaks it; the Kubernetes documentation of indexed Jobs.

use std::collections::BTreeMap;
use std::fmt;

use plan::node_list::{ListError, MOST_NODES, expand};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    Slurm,
    /// `mpirun` of Open MPI, or `prterun`.
    OpenMpi,
    /// `mpiexec` of MPICH and its relatives.
    Mpich,
    /// An indexed Job.
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

#[derive(Debug)]
pub(super) struct JobInfo {
    pub(super) launcher: Launcher,
    pub(super) rank: u32,
    pub(super) ranks: Option<u32>,
    /// What it calls this host.
    pub(super) host: Option<String>,
    /// All hosts, one for each rank where there are as many.
    pub(super) hosts: Vec<String>,
    /// Names or addresses of rank 0's host.
    pub(super) rank_0: Vec<String>,
    /// `rank_0` follows from where the launcher runs, or from the first host.
    pub(super) is_launchers: bool,
    /// The descriptor of a PMI-1 store.
    pub(super) store: Option<i32>,
    /// The same at all ranks of a job, and at no others.
    pub(super) identity: Option<String>,
}

/// What the launcher tells that has started this process. One may run inside another: in an allocation of Slurm, mpirun
/// and mpiexec have srun start their daemons, whose variables their ranks inherit. So they come first, unless what they
/// set is Slurm's own: srun sets PMIX_ and PMI_ variables too.
pub(super) fn read(variables: &Variables) -> Result<Option<JobInfo>, LaunchError> {
    for reader in [open_mpi, pmix, mpich, slurm, kubernetes] {
        if let Some(told) = reader(&Reader::new(variables))? {
            return Ok(Some(told));
        }
    }
    Ok(None)
}

const LOOPBACK: &str = "127.0.0.1";

/// Open MPI 4.1 and 5.
fn open_mpi(reader: &Reader<'_>) -> Result<Option<JobInfo>, LaunchError> {
    of_open_mpi(reader, "OMPI_COMM_WORLD_RANK")
}

/// PMIx's own variables, as `prterun` sets them.
fn pmix(reader: &Reader<'_>) -> Result<Option<JobInfo>, LaunchError> {
    let namespace = reader.text("PMIX_NAMESPACE");
    if namespace.is_some_and(|it| it.starts_with("slurm.")) {
        return Ok(None);
    }
    of_open_mpi(reader, "PMIX_RANK")
}

fn of_open_mpi(reader: &Reader<'_>, rank: &'static str) -> Result<Option<JobInfo>, LaunchError> {
    let launcher = Launcher::OpenMpi;
    let Some(rank) = reader.number(launcher, rank)? else {
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
    let (server, _) = namespace.rsplit_once('@')?;
    let (server, pid) = server.rsplit_once('-')?;
    let host = server.strip_prefix("prterun-")?;
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
    let ranks = reader.number(launcher, "SLURM_STEP_NUM_TASKS")?;
    let ranks = match ranks {
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

pub type Variables = BTreeMap<String, String>;

pub(super) struct Reader<'a> {
    variables: &'a Variables,
}

impl<'a> Reader<'a> {
    pub(super) fn new(variables: &'a Variables) -> Reader<'a> {
        Reader { variables }
    }

    /// One that is there and not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let text = self.variables.get(name).map(|it| it.trim());
        text.filter(|text| !text.is_empty())
    }

    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    pub(super) fn number(
        &self,
        launcher: Launcher,
        name: &'static str,
    ) -> Result<Option<u32>, LaunchError> {
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
    pub(super) fn slurm_step(&self) -> Option<String> {
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
