use std::collections::HashSet;

use super::*;

use results::sample::has;

fn variables(text: &str) -> Variables {
    text.split_whitespace()
        .filter_map(|it| it.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn found(text: &str) -> Launched {
    find(&variables(text), &Options::default()).unwrap().unwrap()
}

fn options(rank_0: Option<&str>, ranks: Option<u32>, port: Option<u16>) -> Options {
    Options { rank_0: rank_0.map(|it| it.parse().unwrap()), ranks, port }
}

fn at(launched: &Launched) -> (Vec<&str>, u16) {
    match &launched.rank_0 {
        Rank0::At { hosts, port, .. } => (hosts.iter().map(String::as_str).collect(), *port),
        Rank0::Store { .. } => panic!("{launched:?}"),
    }
}

const SLURM: &str = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=4 \
                     SLURM_STEP_NODELIST=node[1-3],gpu7 SLURMD_NODENAME=node3";
const OPEN_MPI_4: &str = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=1 \
                          PMIX_NAMESPACE=1122893825 PMIX_HOSTNAME=a \
                          OMPI_MCA_orte_hnp_uri=1122893824.0;tcp://192.0.2.2,198.51.100.3:38755;tcp6://[fd00::2]:35265";
const OPEN_MPI_5: &str = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=3 \
                          PMIX_NAMESPACE=prterun-login-1-12699@1 PMIX_HOSTNAME=node2";
const MPICH: &str =
    "PMI_RANK=1 PMI_SIZE=2 PMI_FD=8 MPI_LOCALNRANKS=2 MPIR_CVAR_CH3_INTERFACE_HOSTNAME=10.0.0.2";

#[test]
fn slurm_tells_all() {
    let launched = found(SLURM);
    assert_eq!(launched.launcher, Launcher::Slurm);
    assert_eq!((launched.rank, launched.ranks), (2, 4));
    assert_eq!(launched.host.as_deref(), Some("node3"));
    assert_eq!(launched.hosts, ["node1", "node2", "node3", "gpu7"]);
    let (hosts, port) = at(&launched);
    assert_eq!(hosts, ["node1"]);
    assert!((20_000..30_000).contains(&port));
    assert_eq!(at(&found(&SLURM.replace("PROCID=2", "PROCID=0"))).1, port);
    assert_ne!(at(&found(&SLURM.replace("STEP_ID=0", "STEP_ID=1"))).1, port);
    let two_on_each = found(&SLURM.replace("NUM_TASKS=4", "NUM_TASKS=8"));
    assert_eq!((two_on_each.ranks, two_on_each.hosts.len()), (8, 0));
}

#[test]
fn open_mpi_4_tells_where_mpirun_is() {
    let launched = found(OPEN_MPI_4);
    assert_eq!(launched.launcher, Launcher::OpenMpi);
    assert_eq!((launched.rank, launched.ranks), (1, 4));
    assert_eq!(at(&launched).0, ["192.0.2.2", "198.51.100.3", "fd00::2"]);
    let all_here = found(&OPEN_MPI_4.replace("LOCAL_SIZE=2", "LOCAL_SIZE=4"));
    assert_eq!(at(&all_here).0, ["127.0.0.1"]);
    assert_eq!(at(&all_here).1, at(&launched).1);
}

#[test]
fn open_mpi_5_tells_the_host_of_mpirun_by_its_namespace() {
    assert_eq!(at(&found(OPEN_MPI_5)).0, ["login-1"]);
    let pmix_alone = variables("PMIX_RANK=1 PMIX_NAMESPACE=prterun-a-1@1");
    let untold = LaunchError::NumberUntold(Launcher::OpenMpi);
    assert_eq!(find(&pmix_alone, &Options::default()), Err(untold));
    let launched = find(&pmix_alone, &options(None, Some(2), None)).unwrap().unwrap();
    assert_eq!((launched.ranks, at(&launched).0), (2, vec!["a"]));
}

#[test]
fn mpich_has_a_store() {
    let launched = found(MPICH);
    assert_eq!(launched.launcher, Launcher::Mpich);
    assert_eq!((launched.rank, launched.ranks), (1, 2));
    assert_eq!(launched.host.as_deref(), Some("10.0.0.2"));
    let store = Rank0::Store { descriptor: 8, port: None };
    assert_eq!(launched.rank_0, store);
    let placed = find(&variables(MPICH), &options(Some("h:7"), None, None)).unwrap().unwrap();
    assert_eq!(at(&placed), (vec!["h"], 7));
}

#[test]
fn kubernetes_tells_the_index_alone() {
    let job = variables("JOB_COMPLETION_INDEX=1 NODE_NAME=worker-3");
    let find = |rank_0, ranks, port| find(&job, &options(rank_0, ranks, port));
    let (first, kubernetes) = (Some("j-0.j"), Launcher::Kubernetes);
    let two_ports = LaunchError::TwoPorts { written: 8, flag: 9 };
    let outside = LaunchError::RankOutside { rank: 1, ranks: 1 };
    for (rank_0, ranks, port, error) in [
        (first, None, None, LaunchError::NumberUntold(kubernetes)),
        (None, Some(4), None, LaunchError::Rank0Untold(kubernetes)),
        (Some("j-0.j:8"), Some(4), Some(9), two_ports),
        (first, Some(1), None, outside),
        (first, Some(5_000), None, LaunchError::TooMany(5_000)),
    ] {
        assert_eq!(find(rank_0, ranks, port), Err(error));
    }
    let launched = find(first, Some(4), None).unwrap().unwrap();
    assert_eq!(at(&launched), (vec!["j-0.j"], 18_515));
    assert_eq!(launched.host.as_deref(), Some("worker-3"));
    let at_port = find(first, Some(4), Some(9)).unwrap().unwrap();
    assert_eq!(at(&at_port).1, 9);
}

/// In an allocation of Slurm the ranks of mpirun and mpiexec have the variables of the step that started their daemon.
#[test]
fn the_inner_launcher_is_the_one() {
    // srun --mpi=pmi2 and --mpi=pmix.
    let pmi2 = "PMI_RANK=2 PMI_SIZE=4 PMI_FD=9 PMI_JOBID=7.0";
    let pmix = "PMIX_RANK=2 PMIX_NAMESPACE=slurm.pmix.7.0";
    for (inner, launcher, rank) in [
        (OPEN_MPI_4, Launcher::OpenMpi, 1),
        (OPEN_MPI_5, Launcher::OpenMpi, 3),
        (MPICH, Launcher::Mpich, 1),
        (pmi2, Launcher::Slurm, 2),
        (pmix, Launcher::Slurm, 2),
    ] {
        let launched = found(&format!("{SLURM} {inner}"));
        let inner_one = (launched.launcher, launched.rank);
        assert_eq!(inner_one, (launcher, rank), "{inner}");
    }
}

#[test]
fn without_a_launcher_there_is_nothing() {
    // The second is a batch script.
    let batch = "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=8";
    for text in ["", batch, "PMIX_NAMESPACE=x"] {
        let found = find(&variables(text), &Options::default());
        assert_eq!(found, Ok(None), "{text}");
    }
}

#[test]
fn what_contradicts_itself_is_an_error() {
    let unknown = "does not provide the address of rank 0";
    let not_a_list = "SLURM_STEP_NODELIST of srun is not a list";
    let (procid, two) = ("PROCID=2", "SLURM_PROCID of srun is `two`");
    for (text, from, to, words) in [
        (SLURM, procid, "PROCID=two", two),
        (SLURM, procid, "PROCID=-1", "not a number"),
        (SLURM, procid, "PROCID=4", "rank 4, but there are only 4"),
        (SLURM, "[1-3]", "[1-3", not_a_list),
        (OPEN_MPI_5, "prterun-login", "x", unknown),
    ] {
        let variables = variables(&text.replace(from, to));
        let error = find(&variables, &Options::default()).unwrap_err();
        has(error.to_string(), [words]);
        assert!(!error.hint().is_empty());
    }
    let error = find(&variables(SLURM), &options(None, Some(8), None)).unwrap_err().to_string();
    assert_eq!(error, "--ranks is 8, but srun started 4");
}

#[test]
fn rank_0_knows_whether_it_will_be_found() {
    let check = |text: &str, is_here: bool| found(text).check_place("here", |_| is_here);
    let slurm_0 = SLURM.replace("SLURMD_NODENAME=node3", "SLURMD_NODENAME=node1");
    assert_eq!(check(&slurm_0, true), Ok(()));
    let error = check(SLURM, true).unwrap_err().to_string();
    has(error, ["runs on node3", "to node1"]);
    assert_eq!(check(OPEN_MPI_4, true), Ok(()));
    assert!(check(OPEN_MPI_4, false).is_err());
    assert!(check(OPEN_MPI_5, true).is_err());
    let at_login = OPEN_MPI_5.replace("=node2", "=login-1");
    assert_eq!(check(&at_login, true), Ok(()));
    assert_eq!(check(MPICH, false), Ok(()));
}

#[test]
fn jobs_have_ports_of_their_own() {
    let port = |step| port_of_job(Some(&format!("4711.{step}")));
    let ports: HashSet<u16> = (0..100).map(port).collect();
    assert!(ports.iter().all(|it| (20_000..30_000).contains(it)));
    assert!(ports.len() > 95, "{} of 100 differ", ports.len());
    assert_eq!(port_of_job(Some("4711.0")), port_of_job(Some("4711.0")));
    assert_eq!(port_of_job(None), 18_515);
}
