//! Workers of one host have cores of their own, whichever processes they are of; and it is said where there are too few.

use machine::threads::{CoreList, CoreLocks, allowed_cores};
use rustix::thread::{CpuSet, sched_setaffinity};

use testing::process::{Call, Ended, Signal};
use testing::program::{Server, call};

const VARIABLE: &str = "ROCEBENCH_CORE_LOCKS";
const SHARED: &str = "polling workers of rocebench share";

struct Host {
    folder: tempfile::TempDir,
    cores: Vec<usize>,
}

/// This machine as if nobody else were on it.
fn host() -> Host {
    let cores = allowed_cores().unwrap();
    assert!(cores.len() > 1, "these tests take cores apart: run them where there are two");
    Host { folder: tempfile::tempdir().unwrap(), cores }
}

impl Host {
    fn path(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    fn locks(&self) -> CoreLocks {
        CoreLocks::within(self.folder.path().to_owned())
    }

    fn server(&self, words: &str) -> Server {
        let serve = call(&format!("serve -p 0 -d soft0 {words}"));
        Server::embedded_by(serve.env(VARIABLE, self.path()))
    }

    fn client(&self, server: &Server, words: &str) -> Call {
        let client = server.call(&format!("-n 50 --warmup 0 --timeout 18 {words}"));
        client.env(VARIABLE, self.path())
    }
}

/// Core of each worker of the client and of the server, with how many have it too.
fn workers(ended: &Ended) -> [Vec<(usize, u32)>; 2] {
    let run = ended.runs().remove(0);
    [0, 1].map(|node| {
        run.nodes[node]
            .workers
            .iter()
            .map(|it| (it.core.unwrap() as usize, it.core_shared_with.unwrap()))
            .collect()
    })
}

#[test]
fn a_server_and_a_client_in_two_terminals_have_cores_of_their_own() {
    let host = host();
    let server = host.server("");
    let ended = host.client(&server, "--op send").passes();
    assert_eq!(workers(&ended), [0, 1].map(|end| vec![(host.cores[end], 0)]));
    assert!(!ended.stderr().contains(SHARED), "{}", ended.stderr());
    assert!(!server.end().contains(SHARED));
    // Both gave theirs back.
    assert!(host.cores.iter().all(|core| host.locks().workers_on(*core) == 0));
}

#[test]
fn the_devices_own_threads_keep_off_the_core_of_the_worker_of_either_process() {
    let host = host();
    let server = host.server("");
    let ended = host.client(&server, "--op write").passes();
    let run = ended.runs().remove(0);
    let free = CoreList(host.cores[1..].to_vec()).to_string();
    for node in &run.nodes {
        assert_eq!(node.engine_cores.as_ref(), Some(&free), "{}", node.name);
    }
}

#[test]
fn cores_that_a_third_process_has_are_left_to_it() {
    let host = host();
    let third = host.locks().take(&host.cores[..1], &[]).unwrap();
    let server = host.server("");
    let ended = host.client(&server, "--op write").passes();
    assert_eq!(workers(&ended)[0], [(host.cores[1], 0)]);
    assert!(!ended.stderr().contains(SHARED), "{}", ended.stderr());
    // A WRITE's target has no worker, and takes no core.
    assert_eq!((third.others(), host.locks().workers_on(host.cores[1])), (0, 0));
}

#[test]
fn too_few_cores_are_said_once_at_each_end_and_the_runs_are_whole() {
    let host = host();
    let core = host.cores[0];
    // A child inherits the affinity of the thread that starts it.
    let (ended, server_stderr) = std::thread::scope(|scope| {
        let on_one_core = scope.spawn(|| {
            let mut set = CpuSet::new();
            set.set(core);
            sched_setaffinity(None, &set).unwrap();
            let server = host.server("");
            let ended = host.client(&server, "--op send --workers 2 -q 2 -s 64,65 --runs 2").run();
            (ended, server.end())
        });
        on_one_core.join().unwrap()
    });
    let ended = ended.exits(0).all_whole(2);
    let note = format!("note: 4 {SHARED} core {core}: rates and latencies depend on the scheduler");
    for stderr in [ended.stderr(), server_stderr.as_str()] {
        assert_eq!(stderr.matches(&note).count(), 1, "{stderr}");
        assert_eq!(stderr.matches(SHARED).count(), 1, "{stderr}");
        assert!(stderr.contains("--poll event"), "{stderr}");
    }
    assert_eq!(workers(&ended), [[(core, 3); 2]; 2]);
}

/// A sweep between three nodes on one core.
fn three_nodes_on_one_core(words: &str) -> Ended {
    let host = host();
    let core = host.cores[0];
    std::thread::scope(|scope| {
        let on_one_core = scope.spawn(|| {
            let mut set = CpuSet::new();
            set.set(core);
            sched_setaffinity(None, &set).unwrap();
            let mesh = call(&format!("mesh --nodes local:3 -d soft0 -n 50 --warmup 0 {words}"));
            mesh.env(VARIABLE, host.path()).passes()
        });
        on_one_core.join().unwrap()
    })
}

#[test]
fn nodes_without_a_core_each_sleep_unless_they_are_to_poll() {
    let says = "3 nodes share 1 core: their workers sleep";
    let poll = |ended: &Ended| ended.json()["cases"][0]["config"]["poll"].clone();
    let sleeping = three_nodes_on_one_core("");
    assert_eq!(poll(&sleeping), "event");
    sleeping.says(&[&format!("note: {says}")]);
    let busy = three_nodes_on_one_core("--poll busy");
    assert_eq!(poll(&busy), "busy");
    assert!(!busy.stderr().contains(says));
    let planned = three_nodes_on_one_core("--dry-run");
    assert!(planned.stdout.contains(says), "{}", planned.stdout);
}

#[test]
fn cores_that_were_asked_for_are_taken_and_the_collision_is_said() {
    let host = host();
    let core = host.cores[1];
    let third = host.locks().take(&[core], &[]).unwrap();
    let server = host.server("");
    let words = format!("--op write --cores {core}");
    let ended = host.client(&server, &words).passes();
    assert_eq!(workers(&ended)[0], [(core, 1)]);
    ended.says(&[&format!("note: 2 {SHARED} core {core}: ")]);
    drop(third);
}

#[test]
fn a_killed_process_leaves_its_cores_to_others() {
    let host = host();
    let program = call("-d soft0 --op send -D 60s --warmup 0 --timeout 18 --quiet")
        .env(VARIABLE, host.path())
        .start();
    let has = |count: u32| {
        let mut cores = host.cores[..2].iter();
        cores.all(|core| host.locks().workers_on(*core) == count)
    };
    program.has_moved(0, "measure", 0);
    assert!(has(1));
    program.signal(Signal::Kill);
    program.wait();
    assert!(has(0));
    let left = std::fs::read_dir(host.folder.path()).unwrap().count();
    assert!(left >= 2, "the files stay, and are reused");
}
