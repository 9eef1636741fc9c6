//! Words that were meant for a command, ranges, completions and the manual's pages.

use std::process::{Command, Stdio};

use super::input::{program, text};

/// What is said of this command line, which must exit with 2.
fn refused(args: &[&str]) -> String {
    let output = program(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    text(&output.stderr)
}

#[test]
fn a_word_that_was_meant_for_a_command_is_no_host() {
    for (word, meant) in [("list", "devices"), ("sevre", "serve"), ("client", "HOST")] {
        let said = refused(&[word]);
        assert!(
            said.contains(&format!("did you mean `rocebench {meant}`?")),
            "{said}"
        );
    }
}

#[test]
fn a_tip_names_only_what_is_near() {
    assert!(refused(&["--verfy"]).contains("'--verify'"));
    let said = refused(&["--formt"]);
    assert!(!said.contains("tip"), "{said}");
}

#[test]
fn a_range_is_a_list() {
    let cases = |sizes: &str| {
        let output = program(&["--dry-run", "-s", sizes]).output().unwrap();
        assert!(output.status.success());
        text(&output.stdout)
    };
    assert_eq!(cases("64..512"), cases("64,128,256,512"));
    assert!(refused(&["--dry-run", "-s", "4K..64"]).contains("first value is the larger"));
}

#[test]
fn bash_takes_the_completions() {
    let output = program(&["completions", "bash"]).output().unwrap();
    let script = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(script.path(), &output.stdout).unwrap();
    // Completes `rocebench --verif` and `rocebench doc`.
    let ask =
        "source \"$0\"; for word in --verif doc; do COMP_WORDS=(rocebench $word); COMP_CWORD=1
        _rocebench rocebench $word rocebench; echo \"${COMPREPLY[@]}\"; done";
    let bash = Command::new("bash")
        .args(["-c", ask])
        .arg(script.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        text(&bash.stdout),
        "--verify\ndoctor\n",
        "{}",
        text(&bash.stderr)
    );
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("man1");
    let output = program(&["man", "--out", to.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = |name: &str| std::fs::read_to_string(to.join(name)).unwrap();
    for command in rocebench::cli::args::command().get_subcommands() {
        let name = format!("rocebench-{}", command.get_name());
        let title = format!(".TH {name} 1");
        assert!(page(&format!("{name}.1")).contains(&title), "{name}");
    }
    let main = page("rocebench.1");
    for row in settings::ROWS {
        let flag = format!("--{}", row.flag).replace('-', "\\-");
        assert!(main.contains(&format!("{flag}\\fR")), "{flag}");
    }
    let printed = text(&program(&["man"]).output().unwrap().stdout);
    assert!(printed == main, "another page than in the folder");
}
