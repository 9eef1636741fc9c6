//! Limits that a shell, a batch system or a container sets on the program.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use testing::process::{Call, Ended};
use testing::program::{call_by, program};

const QUICK: &str = "-d soft0 --timeout 18 -n 10 --warmup 0 -s 64";

/// As a full disk: what is measured is shown, and each file that could not be written is told.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_of_all_that_write() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/compare/base.json");
    let limit = "raise the limit of a file's size (`ulimit -f`)";
    for (words, code) in [
        (QUICK.to_owned(), 1),
        (format!("plot {sample} -o plots"), 1),
        (format!("compare {sample} {sample} --json verdict.json"), 2),
        // What was to be shown is, and where its capture ends.
        ("explain -d soft0 --pcap told.pcap".to_owned(), 0),
    ] {
        let ended =
            call_by("prlimit --fsize=100", &words).run().exits(code).says(&["File too large"]);
        if words == QUICK {
            let says = ["append a run: File too large", "measuring goes on", limit];
            ended.says(&says).shows(&["Gb/s"]);
        }
    }
}

#[test]
fn a_limit_of_the_first_threads_stack_is_none_of_the_program() {
    call_by("prlimit --stack=65536", QUICK).is_whole(1);
}

/// The program where at most so many threads may be; of root the limit does not hold, so that it runs as nobody.
fn with_threads(most: u32) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let open = || Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open()).unwrap();
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups"]);
        command.arg("prlimit");
        command
    } else {
        Command::new("prlimit")
    };
    command.arg(format!("--nproc={most}"));
    command.arg(program());
    command.env("ROCEBENCH_CORE_LOCKS", folder.path());
    let words = format!("{QUICK} --workers 2 -q 2");
    let call = Call::new(command, &words);
    std::fs::set_permissions(call.folder(), open()).unwrap();
    call.run()
}

#[test]
fn a_limit_of_threads_is_one_error_with_what_to_raise() {
    let mut failed = 0;
    for most in 1..=24 {
        let ended = with_threads(most);
        if ended.code == Some(0) {
            continue;
        }
        failed += 1;
        let ended = ended.exits(1);
        let stderr = ended.stderr();
        assert!(stderr.contains("`ulimit -u`"), "{most} threads: {stderr}");
    }
    assert!(failed > 0, "nothing needs a thread");
}
