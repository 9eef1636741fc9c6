//! Help, every kind of wrong input, exit codes, pipes.

use std::io::{Read as _, pipe};

use results::sample::has;
use testing::process::{Call, Ended, words};
use testing::program::{apart, rocebench};
use testing::table::holds;

use crate::{program, run, run_in};

/// Runs the commands of a snapshot: what the program says of each, and nothing else, must be what stands there. A command is
/// added as a line of the snapshot, and `INSTA_UPDATE=always` adds what is said of it.
fn says(snapshot: &str, code: i32) {
    let file =
        format!("{}/tests/cli/snapshots/cli__input__{snapshot}.snap", env!("CARGO_MANIFEST_DIR"));
    let kept = std::fs::read_to_string(file).unwrap();
    let mut said = String::new();
    for line in kept.lines().filter_map(|line| line.strip_prefix("$ rocebench ")) {
        let args: Vec<&str> = words(line).into_iter().map(|word| word.trim_matches('\'')).collect();
        let ran = run(&args).exits(code);
        let is_error = ran.stderr().contains("error: ") && ran.stderr().contains("\n  hint: ");
        let is_alone =
            if code == 0 { ran.stderr().is_empty() } else { is_error && ran.stdout.is_empty() };
        assert!(is_alone, "{line}: {}{}", ran.stdout, ran.stderr());
        said += &format!("$ rocebench {line}\n{}{}\n", ran.stdout, ran.stderr());
    }
    insta::assert_snapshot!(snapshot, said);
}

/// The program with such a file.
fn with_file(content: &str, args: &[&str]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sweep.toml"), content).unwrap();
    run_in(&folder, &[&["--config", "sweep.toml"], args].concat())
}

#[test]
fn an_empty_word_is_told_as_what_a_shell_makes_of_an_unset_variable() {
    for words in [&[""][..], &["doctor", ""], &["send", ""], &["send", "", "host"]] {
        run(words).exits(2).says(&["is a variable of the shell empty?"]);
    }
}

#[test]
fn help() {
    let help = run(&["--help"]).exits(0).stdout;
    let short = run(&["-h"]).stdout;
    assert_eq!(run(&["-q", "4", "-h"]).stdout, short);
    assert!(short.lines().count() <= 25);
    assert!(short.lines().all(|line| line.chars().count() <= 80));
    for option in short.split_whitespace().filter(|word| word.starts_with("--")) {
        let option = option.trim_end_matches([',', ';']);
        assert!(help.contains(&format!(" {option}")), "{option}");
    }
    assert_ne!(run(&["serve", "-h"]).stdout, short);
    insta::assert_snapshot!("help", help);
    for command in
        ["serve", "compare", "gate", "plot", "history", "devices", "doctor", "explain", "send"]
    {
        let of_command = run(&[command, "--help"]).exits(0).stdout;
        insta::assert_snapshot!(format!("{command}_help"), of_command);
    }
}

#[test]
fn version() {
    let version = format!("rocebench {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]).exits(0).stdout, version);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    for snapshot in [
        "values_that_do_not_parse",
        "values_that_make_no_sense",
        "what_does_not_go_together",
        "files_that_are_no_results",
    ] {
        says(snapshot, 2);
    }
}

#[test]
fn too_many_cases() {
    let list: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let list = list.join(",");
    insta::assert_snapshot!(run(&["--qps", &list, "--workers", &list]).exits(2).stderr());
}

#[test]
fn files_that_are_wrong_have_line_and_column() {
    let mut refusals = String::new();
    let second = "[[flow]]\n\n[[flow]]\nname = 'b'\ntx-depth = 4\npost-list = 8\n";
    for (content, flags) in [
        ("qpps = 4\n", &[][..]),
        ("# sweep\nqps = [1, 'many']\n", &[]),
        ("qps = [1, 4\nsize = 64\n", &[]),
        ("duration = '5s'\niters = 10\n", &[]),
        ("op = 'send'\ntx-depth = 0\n", &[]),
        ("op = 'send'\ntx-depth = 0\n", &["--tx-depth", "70000"]),
        ("out = 'results'\n", &[]),
        ("qps = 4\n\n[[flow]]\nqps = [1, 2]\n", &[]),
        ("[[flow]]\nworkers = 2\n", &[]),
        (second, &[]),
        ("[[flow]]\npost-list = 256\n", &["--tx-depth", "64"]),
        ("[[flow]]\nsize = 64\n", &["--size", "4K"]),
        ("[[flow]]\nto = 'node1'\n", &[]),
        ("[[flow]]\nto = 'node7'\n", &["--nodes", "local:4"]),
        ("nodes = 'local:3'\n", &[]),
        ("nodes = 'local:2'\n", &["host"]),
        ("op = ['connect', 'send']\n[[flow]]\n", &[]),
        ("[[flow]]\n[[flow]]\n", &["--against", "perftest"]),
    ] {
        refusals += &format!("{content}{}\n", with_file(content, flags).exits(2).stderr());
    }
    insta::assert_snapshot!(refusals);
}

#[test]
fn every_flag_in_a_file_is_a_setting_or_belongs_on_the_command_line() {
    let help = run(&["--help"]).stdout;
    let flags = help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'))
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
        .map(|word| word[2..].split(['[', '=', '.']).next().unwrap())
        .filter(|flag| !["help", "version"].contains(flag));
    let mut elsewhere = Vec::new();
    for flag in flags.chain(["host"]) {
        let ran = with_file(&format!("{flag} = '\u{2603}'\n"), &[]);
        let stderr = ran.exits(2).stderr().to_owned();
        assert!(!stderr.contains("unknown key"), "{flag}: {stderr}");
        if stderr.contains("give it on the command line") {
            elsewhere.push(flag);
        }
    }
    for flag in ["faults", "device", "host", "perftest-limit", "slo", "knee"] {
        assert!(elsewhere.contains(&flag), "{elsewhere:?}");
    }
    assert!(!elsewhere.contains(&"qps"), "{elsewhere:?}");
}

#[test]
fn words_that_are_taken_and_others() {
    holds("tests/cli/tables/input.txt");
    holds("tests/cli/tables/compare.txt");
}

#[test]
fn a_dry_run_prints_the_cases_and_what_searches_do() {
    says("dry_runs", 0);
}

#[test]
fn a_dry_run_shows_each_flow_in_80_columns() {
    let file = "\
qps = 4
poll = 'event'
post-list = [1, 4]

[[flow]]
name = 'small'
op = 'write'
qps = 12
size = 64

[[flow]]
name = 'bulk'
op = 'read'
size = '1M'
tx-depth = 16
from = 'node2.example.org:18516'
to = 'node1'
from-device = 'mlx5_0'
from-ib-port = 2
bidirectional = true
traffic-class = 104
";
    let nodes = "node1,node2.example.org:18516,node3";
    let ran = with_file(file, &["--dry-run", "--nodes", nodes]);
    let stdout = ran.exits(0).stdout;
    let (cases, _) = stdout.split_once("\n\n").unwrap();
    assert!(cases.lines().all(|line| line.len() <= 80), "{cases}");
    insta::assert_snapshot!(stdout);
    // One flow the usual way is a line of the table.
    let of_flow = with_file("[[flow]]\nname = 'x'\nqps = 3\n", &["--dry-run"]).stdout;
    let alike = "send · CQ shared · 64 KiB · 3 QPs · 1 worker · ";
    assert!(of_flow.starts_with(alike), "{of_flow}");
    has(&of_flow, ["\ncase\nx\n"]);
}

#[test]
fn a_dry_run_of_many_cases_does_not_take_the_square_of_their_number() {
    let list = |count: u32| (1..=count).map(|it| it.to_string()).collect::<Vec<_>>();
    let (qps, sizes) = (list(220).join(","), list(227).join(","));
    // It takes some 8 s of CPU time, as tests are built; what takes the square of the cases, the system ends.
    let limited = ["-c", "ulimit -t 40; exec \"$0\" \"$@\""];
    let words = ["--dry-run", "-q", &qps, "-s", &sizes];
    let ran = Call::new(apart("sh"), "").args(&limited).arg(rocebench()).args(&words).passes();
    has(&ran.stdout, ["\n49940 cases, "]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let list: Vec<String> = (1..=4000).map(|n| n.to_string()).collect();
    let (mut reader, writer) = pipe().unwrap();
    let printing = program(&["--dry-run", "--qps", &list.join(",")]).start_to(writer);
    // The pipe closes with most of the table (about 300 KB, more than a pipe holds) still to come.
    reader.read_exact(&mut [0; 10]).unwrap();
    drop(reader);
    assert_eq!(printing.wait().exits(0).stderr(), "");
}

#[test]
fn a_token_in_the_environment_is_checked_at_both_ends_and_gives_way_to_a_flag() {
    let too_long = "x".repeat(5000);
    for (words, token, code) in [
        (&["--dry-run"][..], "", 2),
        (&["serve", "--once"], "", 2),
        (&["--dry-run"], &too_long, 2),
        (&["--dry-run", "--token", "t"], &too_long, 0),
    ] {
        let ran = program(words).env("ROCEBENCH_TOKEN", token).run().exits(code);
        let names_it = ran.stderr().contains("ROCEBENCH_TOKEN");
        assert_eq!(names_it, code == 2, "{}", ran.stderr());
    }
}
