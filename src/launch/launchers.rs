//! The launchers, each by the variables that it sets. Sources: srun(1) "OUTPUT ENVIRONMENT VARIABLES"; mpirun(1) of Open
//! MPI 4.1 and 5.0; PMI-1 as MPICH's hydra speaks it; the Kubernetes documentation of indexed Jobs.

use crate::plan::node_list::expand;

use super::error::LaunchError;
use super::launcher::Launcher;
use super::reader::{Reader, Variables};

#[derive(Debug)]
pub(super) struct Told {
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
pub(super) fn read(variables: &Variables) -> Result<Option<Told>, LaunchError> {
    for reader in [open_mpi, pmix, mpich, slurm, kubernetes] {
        if let Some(told) = reader(&Reader::new(variables))? {
            return Ok(Some(told));
        }
    }
    Ok(None)
}

const LOOPBACK: &str = "127.0.0.1";

/// Open MPI 4.1 and 5.
fn open_mpi(reader: &Reader<'_>) -> Result<Option<Told>, LaunchError> {
    of_open_mpi(reader, "OMPI_COMM_WORLD_RANK")
}

/// PMIx's own variables, as `prterun` sets them.
fn pmix(reader: &Reader<'_>) -> Result<Option<Told>, LaunchError> {
    let namespace = reader.text("PMIX_NAMESPACE");
    if namespace.is_some_and(|it| it.starts_with("slurm.")) {
        return Ok(None);
    }
    of_open_mpi(reader, "PMIX_RANK")
}

fn of_open_mpi(reader: &Reader<'_>, rank: &'static str) -> Result<Option<Told>, LaunchError> {
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
    Ok(Some(Told {
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

fn mpich(reader: &Reader<'_>) -> Result<Option<Told>, LaunchError> {
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
    Ok(Some(Told {
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
fn slurm(reader: &Reader<'_>) -> Result<Option<Told>, LaunchError> {
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
    Ok(Some(Told {
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
fn kubernetes(reader: &Reader<'_>) -> Result<Option<Told>, LaunchError> {
    let launcher = Launcher::Kubernetes;
    let Some(rank) = reader.number(launcher, "JOB_COMPLETION_INDEX")? else {
        return Ok(None);
    };
    Ok(Some(Told {
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
