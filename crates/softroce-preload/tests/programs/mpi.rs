//! Open MPI over UCX: four ranks, of which each has an address of its own, or all the same one.

use crate::child::succeed_alone;

const RANKS: usize = 4;

/// Runs a benchmark of mpi4py, whose ranks pass a message on in a ring and check it.
fn ring(environment: &str) {
    // mpirun refuses root otherwise.
    let any_user = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    // UCX tells which transports it took.
    let ucx = "UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=soft0:1 UCX_LOG_LEVEL=info";
    let program = format!("{environment} {any_user} {ucx} mpirun.openmpi");
    let arguments = format!(
        "--oversubscribe --tag-output -n {RANKS} --mca pml ucx --mca btl self \
         /usr/bin/python3 -m mpi4py.bench ringtest -n 20000 -l 50"
    );
    let ended = succeed_alone(&program, &arguments);
    let figure = format!("({RANKS} processes, 20000 bytes)");
    assert!(ended.stdout.contains(&figure), "{ended}");
    for rank in 0..RANKS {
        let tag = format!("[1,{rank}]");
        let mut own = ended.stdout.lines().filter(|line| line.starts_with(&tag));
        assert!(
            own.any(|line| line.contains("tag(rc_verbs/soft0:1)")),
            "rank {rank}: {ended}"
        );
    }
}

#[test]
fn ranks_at_addresses_of_their_own() {
    ring("");
}

#[test]
fn ranks_at_one_address() {
    ring("SOFTROCE_ADDRESS=127.97.0.1");
}
