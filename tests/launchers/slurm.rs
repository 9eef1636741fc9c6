//! Under real Slurm.

use std::process::Command;

use nix::sys::signal::Signal;

use super::cluster::{Cluster, name};
use super::job::{Job, LONG, PROGRAM, SHORT, one_at_a_time};

/// One cluster for all of them: starting it takes as long as they do.
#[test]
fn slurm() {
    let _jobs = one_at_a_time();
    let cluster = Cluster::start();
    all_pairs(&cluster);
    cancelled(&cluster);
    interrupted(&cluster);
    interrupted_twice(&cluster);
    a_rank_is_killed(&cluster);
    rank_0_is_killed(&cluster);
    other_options(&cluster);
    one_rank(&cluster);
    bad_input(&cluster);
    dry_run(&cluster);
}

fn all_pairs(cluster: &Cluster) {
    let ended = Job::mesh(cluster.srun(&["-N4"]), SHORT).ended();
    ended.is_a_matrix_of_four();
    let result = ended.result();
    let names: Vec<_> = result["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, [&name(1), &name(2), &name(3), &name(4)]);
    assert!(ended.stdout.lines().count() > 2, "{}", ended.stdout);
    for said in [&ended.stdout, &ended.stderr] {
        assert!(said.lines().all(|line| line.starts_with("0:")), "{said}");
    }
}

fn cancelled(cluster: &Cluster) {
    let mut job = Job::mesh(cluster.srun(&["-N4"]), LONG);
    job.until_measuring();
    let scancel = cluster.command("scancel").args(cluster.jobs()).status();
    assert!(scancel.unwrap().success());
    let ended = job.ended();
    assert_ne!(ended.code, Some(0));
    ended.kept_what_was_measured(None);
    assert!(
        ended.stderr.contains("all figures so far are kept"),
        "{}",
        ended.stderr
    );
}

/// With -X srun passes Ctrl-C on at once.
fn interrupted(cluster: &Cluster) {
    let mut job = Job::mesh(cluster.srun(&["-N4", "-X"]), LONG);
    job.until_measuring();
    job.signal(Signal::SIGINT);
    let ended = job.ended();
    assert_ne!(ended.code, Some(0));
    ended.kept_what_was_measured(None);
}

/// Without it srun asks for a second one, and then kills all ranks, so that rank 0 may have no time to write its results.
fn interrupted_twice(cluster: &Cluster) {
    let mut job = Job::mesh(cluster.srun(&["-N4"]), LONG);
    job.until_measuring();
    job.signal(Signal::SIGINT);
    // It takes the second for the first where that is long ago, and asks again.
    let mut answered = 0;
    let ended = job.ended_by(|job| {
        let asked = job.stderr().matches("one more within").count();
        if asked > answered {
            answered = asked;
            job.signal(Signal::SIGINT);
        }
    });
    assert_ne!(ended.code, Some(0));
    ended.kept_result_or_journal(None);
}

fn a_rank_is_killed(cluster: &Cluster) {
    let mut job = Job::mesh(cluster.srun(&["-N4"]), LONG);
    job.until_measuring();
    job.kill_rank(2);
    let ended = job.ended();
    assert_ne!(ended.code, Some(0));
    ended.kept_what_was_measured(Some(&name(3)));
    let told = format!("rank 2 ({}) did not come back", name(3));
    // Rank 0 says it with a hint, the two others in a line each.
    assert_eq!(ended.stderr.matches(&told).count(), 3, "{}", ended.stderr);
}

fn rank_0_is_killed(cluster: &Cluster) {
    let mut job = Job::mesh(cluster.srun(&["-N4"]), LONG);
    job.until_measuring();
    job.kill_rank(0);
    let ended = job.ended();
    assert_ne!(ended.code, Some(0));
    ended.kept_its_journal();
}

fn other_options(cluster: &Cluster) {
    let script = "exec \"$0\" mesh --out \"$1\" --qps $((1 + SLURM_PROCID / 3))";
    let ended = Job::start(
        cluster.srun(&["-N4"]),
        &["sh", "-c", script, PROGRAM, "OUT"],
    )
    .ended();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let told = format!(
        "rank 3 ({}) was started with other options than rank 0 ({}): --qps=2, where rank 0 has --qps=1",
        name(4),
        name(1)
    );
    assert_eq!(ended.stderr.matches(&told).count(), 4, "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

fn one_rank(cluster: &Cluster) {
    let ended = Job::mesh(cluster.srun(&["-N1"]), SHORT).ended();
    let told = "srun started 1 rank, and a mesh needs 2 nodes";
    ended.refused(2, &[told, "srun -N8 rocebench mesh"]);
}

/// What all ranks have wrong is told once in full, and in a line by the others.
fn bad_input(cluster: &Cluster) {
    for (options, words) in [
        ("--no-such-option", "'--no-such-option'"),
        ("--pattern incast --fan-in 9", "9"),
        ("--nodes a,b", "srun started 4 ranks"),
        ("--ranks 3", "--ranks is 3, but srun started 4"),
    ] {
        let ended = Job::mesh(cluster.srun(&["-N4"]), options).ended();
        ended.refused(2, &[words]);
        assert_eq!(ended.stdout, "", "{options:?}");
    }
}

fn dry_run(cluster: &Cluster) {
    let ended = Job::mesh(cluster.srun(&["-N4"]), "--dry-run").ended();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("pairs"), "{}", ended.stdout);
    assert!(
        ended.stdout.lines().all(|line| line.starts_with("0:")),
        "{}",
        ended.stdout
    );
}

/// A batch script runs once, on the first node: it is no rank.
#[test]
fn without_a_launcher_one_is_told_how() {
    let mut command: Command = super::job::command(PROGRAM);
    let variables = [
        ("SLURM_JOB_ID", "7"),
        ("SLURM_PROCID", "0"),
        ("SLURM_NTASKS", "8"),
    ];
    let told = command.arg("mesh").envs(variables).output().unwrap();
    assert_eq!(told.status.code(), Some(2));
    let text = String::from_utf8(told.stderr).unwrap();
    assert!(
        text.contains("no launcher has started this process"),
        "{text}"
    );
    assert!(text.contains("srun -N8 rocebench mesh"), "{text}");
}
