//! Under Open MPI 4, Open MPI 5 and MPICH.

use std::path::Path;
use std::process::Command;

use testing::process::{Ended, Signal};

use super::job::{
    Job, PROGRAM, SHORT, command, is_a_matrix_of_four, kept_result_or_journal, one_at_a_time,
};

/// mpirun of Debian's Open MPI 4, whose lines begin with the number of the rank.
fn open_mpi_4(ranks: &str) -> Command {
    let mut mpirun = command("mpirun.openmpi");
    as_any_user(&mut mpirun);
    mpirun.args(["--oversubscribe", "--tag-output", "-n", ranks]);
    mpirun
}

/// mpirun of Open MPI 5, which scripts/setup --tests puts beside the build.
fn open_mpi_5(ranks: &str) -> Command {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("openmpi5/bin/mpirun");
    assert!(program.exists(), "{} is missing: run scripts/setup --tests", program.display());
    let mut mpirun = command(program);
    as_any_user(&mut mpirun);
    mpirun.args(["--map-by", ":OVERSUBSCRIBE", "--output", "tag", "-n", ranks]);
    mpirun
}

fn mpich(ranks: &str) -> Command {
    let mut mpiexec = command("mpiexec.hydra");
    mpiexec.args(["-l", "-n", ranks]);
    mpiexec
}

/// They refuse root otherwise.
fn as_any_user(mpirun: &mut Command) {
    for of in ["OMPI", "PRTE"] {
        for variable in ["ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM"] {
            mpirun.env(format!("{of}_{variable}"), "1");
        }
    }
}

#[track_caller]
fn only_rank_0_speaks(ended: &Ended, of_rank_0: &[&str]) {
    let is_of_rank_0 = |line: &&str| of_rank_0.iter().any(|start| line.starts_with(start));
    let mut lines = ended.stdout.lines().filter(|line| !line.trim().is_empty());
    assert!(lines.clone().count() > 2, "{}", ended.stdout);
    assert!(lines.all(|line| is_of_rank_0(&line)), "{}", ended.stdout);
}

#[track_caller]
fn one_rank_is_none(launcher: Command, name: &str) {
    let sentence = format!("{name} started 1 rank, but rocebench mesh needs 2 nodes or more");
    let ended = Job::mesh(launcher, SHORT).ended();
    ended.exits(2).says(&[&sentence]);
}

/// Two programs in one job, with other options.
#[track_caller]
fn other_options_are_told(launcher: Command) {
    let words = [
        PROGRAM, "mesh", "--out", "OUT", "--size", "4K", ":", "-n", "1", PROGRAM, "mesh", "--out",
        "OUT", "--size", "8K",
    ];
    let ended = Job::start(launcher, &words).failed();
    ended.says(&["--size=8K, where rank 0 has --size=4K"]);
}

/// A device is a rank's own, and one that it has not is told with its name.
#[track_caller]
fn a_rank_without_its_device_is_named(launcher: Command) {
    let words = [
        PROGRAM, "mesh", "--out", "OUT", ":", "-n", "1", PROGRAM, "mesh", "--out", "OUT",
        "--device", "none7",
    ];
    let ended = Job::start(launcher, &words).ended().exits(2);
    // Its number, or once all have joined its name.
    let names_the_device = |line: &&str| {
        line.contains("none7") && (line.contains("at rank 2 (") || line.contains(".2: there is no"))
    };
    let stderr = ended.stderr();
    assert!(stderr.lines().any(|line| names_the_device(&line)), "{stderr}");
}

/// mpirun sends SIGTERM, and soon after, or when the first rank ends, SIGKILL.
#[track_caller]
fn ends_by_ctrl_c(launcher: Command) {
    let job = Job::measuring(launcher);
    job.program.signal(Signal::Interrupt);
    kept_result_or_journal(&job.ended(), None);
}

/// A job of four ends well, one by Ctrl-C, and one with a rank that is killed, which is returned; wrong ones say what is
/// wrong.
#[track_caller]
fn runs_and_ends(launcher: fn(&str) -> Command, name: &str, of_rank_0: &[&str]) -> Ended {
    let ended = Job::mesh(launcher("4"), SHORT).ended();
    only_rank_0_speaks(&is_a_matrix_of_four(ended), of_rank_0);
    ends_by_ctrl_c(launcher("4"));
    other_options_are_told(launcher("3"));
    one_rank_is_none(launcher("1"), name);
    let job = Job::measuring(launcher("4"));
    job.kill_rank(2);
    job.failed()
}

#[test]
fn open_mpi_4_runs_and_ends() {
    let _jobs = one_at_a_time();
    let killed = runs_and_ends(open_mpi_4, "mpirun", &["[1,0]<stdout>"]);
    kept_result_or_journal(&killed, Some(".2: "));
}

#[test]
fn open_mpi_5_runs_and_ends() {
    let _jobs = one_at_a_time();
    let lines = ["[1,0]<stdout>", "[prterun", "[0]", "[1,0]"];
    let killed = runs_and_ends(open_mpi_5, "mpirun", &lines);
    kept_result_or_journal(&killed, Some(".2: "));
}

#[test]
fn mpich_runs_and_ends() {
    let _jobs = one_at_a_time();
    let killed = runs_and_ends(mpich, "mpiexec", &["[0]"]);
    kept_result_or_journal(&killed, Some(".2: "));
    a_rank_without_its_device_is_named(mpich("2"));
}

#[test]
fn ranks_have_rails() {
    let _jobs = one_at_a_time();
    let options = format!("{SHORT} --device soft[3-4] --pattern ring");
    let ended = Job::mesh(open_mpi_4("2"), &options).ended().exits(0);
    let run = ended.runs().swap_remove(0);
    let rails: Vec<&str> = run
        .flows
        .iter()
        .map(|flow| flow.name.split_once('@'))
        .map(|name| name.unwrap().1)
        .collect();
    assert_eq!(rails, ["soft3", "soft4", "soft3", "soft4"]);
}

/// Two jobs on a host do not meet.
#[test]
fn two_jobs_at_once_do_not_meet() {
    let _jobs = one_at_a_time();
    for job in [(); 2].map(|()| Job::mesh(open_mpi_4("2"), SHORT)) {
        let ended = job.ended().exits(0);
        assert_eq!(ended.json()["nodes"].as_array().unwrap().len(), 2);
    }
}
