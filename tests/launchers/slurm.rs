//! Under real Slurm.

use std::path::Path;

use testing::process::{Call, Signal};
use testing::wait::wait_until;

use super::cluster::{Cluster, name};
use super::job::{
    EXPECTED, Job, PROGRAM, SHORT, is_a_matrix_of_four, kept_its_journal, kept_result_or_journal,
    kept_what_was_measured, one_at_a_time,
};

/// One cluster for all of them: starting it takes as long as they do.
#[test]
fn slurm() {
    let _jobs = one_at_a_time();
    let cluster = Cluster::start();
    all_pairs(&cluster);
    stages(&cluster);
    cancelled(&cluster);
    interrupted(&cluster);
    interrupted_twice(&cluster);
    a_rank_is_killed(&cluster);
    rank_0_is_killed(&cluster);
    other_options(&cluster);
    one_rank(&cluster);
    bad_input(&cluster);
    dry_run(&cluster);
    batch_script(&cluster);
}

fn all_pairs(cluster: &Cluster) {
    let ended = is_a_matrix_of_four(Job::mesh(cluster.srun(&["-N4"]), SHORT).ended());
    let names: Vec<_> =
        ended.json()["nodes"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, [&name(1), &name(2), &name(3), &name(4)]);
    assert!(ended.stdout.lines().count() > 2, "{}", ended.stdout);
    for text in [&*ended.stdout, ended.stderr()] {
        assert!(text.lines().all(|line| line.starts_with("0:")), "{text}");
    }
}

/// Whether this machine is well, and no path slow, is not asked.
fn stages(cluster: &Cluster) {
    let words = [PROGRAM, "accept", "--out", "OUT", "--stages", "doctor,preflight"];
    let words: Vec<&str> = words.into_iter().chain(SHORT.split_whitespace()).collect();
    let ended = Job::start(cluster.srun(&["-N4"]), &words).ended();
    ended.shows(&["0: doctor", "6 of 6 paths between 4 nodes work"]);
    assert!(ended.stdout.lines().all(|line| line.starts_with("0:")), "{}", ended.stdout);
    let stages = ended.result().stages;
    assert_eq!(
        stages.iter().map(|stage| &*stage.name).collect::<Vec<_>>(),
        ["doctor", "preflight"]
    );
    assert!(ended.runs().iter().all(|run| run.complete));
}

fn cancelled(cluster: &Cluster) {
    let job = Job::measuring(cluster.srun(&["-N4"]));
    let scancel = cluster.command("scancel").args(cluster.jobs()).status();
    assert!(scancel.unwrap().success());
    let ended = job.failed();
    kept_what_was_measured(&ended, None);
    ended.says(&["the results so far are kept"]);
}

/// With -X srun passes Ctrl-C on at once.
fn interrupted(cluster: &Cluster) {
    let job = Job::measuring(cluster.srun(&["-N4", "-X"]));
    job.program.signal(Signal::Interrupt);
    let ended = job.failed();
    kept_what_was_measured(&ended, None);
}

/// Without it srun asks for a second one, and then kills all ranks, so that rank 0 may have no time to write its results.
fn interrupted_twice(cluster: &Cluster) {
    let job = Job::measuring(cluster.srun(&["-N4"]));
    job.program.signal(Signal::Interrupt);
    // It takes the second for the first where that is long ago, and asks again.
    let mut answered = 0;
    wait_until("the ranks' end", EXPECTED, || {
        let times_asked = job.program.times_said("one more within");
        if times_asked > answered {
            answered = times_asked;
            job.program.signal(Signal::Interrupt);
        }
        !job.has_ranks()
    });
    let ended = job.failed();
    kept_result_or_journal(&ended, None);
}

fn a_rank_is_killed(cluster: &Cluster) {
    let job = Job::measuring(cluster.srun(&["-N4"]));
    job.kill_rank(2);
    let ended = job.failed();
    kept_what_was_measured(&ended, Some(&name(3)));
    let sentence = format!("rank 2 ({}) did not come back", name(3));
    // Rank 0 says it with a hint, the two others in a line each.
    let stderr = ended.stderr();
    assert_eq!(stderr.matches(&sentence).count(), 3, "{stderr}");
}

fn rank_0_is_killed(cluster: &Cluster) {
    let job = Job::measuring(cluster.srun(&["-N4"]));
    job.kill_rank(0);
    let ended = job.failed();
    kept_its_journal(&ended);
}

fn other_options(cluster: &Cluster) {
    let script = "exec \"$0\" mesh --out \"$1\" --qps $((1 + SLURM_PROCID / 3))";
    let words = ["sh", "-c", script, PROGRAM, "OUT"];
    let ended = Job::start(cluster.srun(&["-N4"]), &words).ended().exits(2);
    let sentence = format!(
        "rank 3 ({}) was started with other options than rank 0 ({}): --qps=2, where rank 0 has --qps=1",
        name(4),
        name(1)
    );
    let stderr = ended.stderr();
    assert_eq!(stderr.matches(&sentence).count(), 4, "{stderr}");
    assert_eq!(ended.stdout, "");
}

fn one_rank(cluster: &Cluster) {
    let ended = Job::mesh(cluster.srun(&["-N1"]), SHORT).ended();
    let sentence = "srun started 1 rank, but rocebench mesh needs 2 nodes";
    ended.exits(2).says(&[sentence, "srun -N8 rocebench mesh"]);
}

/// What all ranks have wrong is told once in full, and in a line by the others.
fn bad_input(cluster: &Cluster) {
    for (options, words) in [
        ("--no-such-option", "'--no-such-option'"),
        ("--pattern incast --fan-in 9", "9"),
        ("--nodes a,b", "srun started 4 ranks"),
        ("--ranks 3", "--ranks is 3, but srun started 4"),
    ] {
        let ended = Job::mesh(cluster.srun(&["-N4"]), options).ended().exits(2).says(&[words]);
        assert_eq!(ended.stdout, "", "{options:?}");
    }
}

fn dry_run(cluster: &Cluster) {
    let ended = Job::mesh(cluster.srun(&["-N4"]), "--dry-run").ended().exits(0);
    ended.shows(&["pairs"]);
    let mut lines = ended.stdout.lines();
    assert!(lines.all(|line| line.starts_with("0:")), "{}", ended.stdout);
}

/// `scripts/slurm/mesh.sbatch`: with its own options, which are only planned; a job that passes, and one that fails.
fn batch_script(cluster: &Cluster) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/slurm/mesh.sbatch");
    let built = Path::new(PROGRAM).parent().unwrap().display();
    let path = format!("{built}:{}", std::env::var("PATH").unwrap());
    let submit = |options: &str| {
        let mut sbatch = cluster.command("sbatch");
        sbatch.args(["--wait", "--nodes=4"]).env("PATH", &path);
        sbatch.env("ROCEBENCH_OPTIONS", options);
        Job::start(sbatch, &["--output=log", "--export=ALL,ROCEBENCH_RESULTS=OUT", script]).ended()
    };
    let text = std::fs::read_to_string(script).unwrap();
    let (_, own) = text.split_once("{ROCEBENCH_OPTIONS:-").unwrap();
    let (own, _) = own.split_once('}').unwrap();
    submit(&format!("{own} --dry-run")).exits(0);
    let passed = is_a_matrix_of_four(submit(SHORT));
    let failed = submit(&format!("{SHORT} --fail-if gbit>0.000001"));
    // Flows so short are open together or not: where no round counts, none of them can be judged.
    assert!(matches!(failed.code, Some(1 | 3)), "{:?}", failed.code);
    for (job, is_limited) in [(passed, false), (failed, true)] {
        let file = |name: &str| std::fs::read_to_string(job.folder().join(name)).unwrap();
        // Twelve flows and six runs.
        assert_eq!(file("network.xml").matches("<testcase").count(), 18);
        assert_eq!(file("log").contains("error: --fail-if"), is_limited);
    }
}

/// A batch script runs once, on the first node: it is no rank.
#[test]
fn without_a_launcher_one_is_told_how() {
    let mut command = super::job::command(PROGRAM);
    command.envs([("SLURM_JOB_ID", "7"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]);
    let says = "no launcher has started this process";
    Call::new(command, "mesh").is_refused(&[says, "srun -N8 rocebench mesh"]);
}
