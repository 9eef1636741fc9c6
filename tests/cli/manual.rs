//! Ranges, completions and the manual's pages.

use std::process::Command;

use testing::process::Call;
use testing::program::rocebench;

use crate::run;

#[test]
fn a_range_is_a_list() {
    let cases = |sizes: &str| run(&["--dry-run", "-s", sizes]).exits(0).stdout;
    assert_eq!(cases("64..512"), cases("64,128,256,512"));
}

/// Packages have the program alone, which has all its sentences inside.
#[test]
fn no_sentence_names_a_script_of_the_checkout() {
    let program = std::fs::read(rocebench()).unwrap();
    let name = b"scripts/";
    let at = program.windows(name.len()).position(|it| it == name);
    let sentence = at.map(|at| String::from_utf8_lossy(&program[at - 60..at + 60]).into_owned());
    assert_eq!(sentence, None);
}

#[test]
fn bash_takes_the_completions() {
    let script = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(script.path(), run(&["completions", "bash"]).stdout).unwrap();
    // Options, commands, and the values of settings and of others.
    let ask = "source \"$0\"
        completes() { COMP_WORDS=(rocebench \"$@\"); COMP_CWORD=$#
            _rocebench rocebench \"${@: -1}\" \"${COMP_WORDS[$# - 1]}\"; echo \"${COMPREPLY[@]}\"; }
        completes --verif; completes doc; completes --cq per-w; completes --mtu 1; completes explain --lang z";
    let bash = Call::new(Command::new("bash"), "-c");
    let words = "--verify\ndoctor\nper-worker\n1024\nzh\n";
    assert_eq!(bash.arg(ask).arg(script.path()).passes().stdout, words);
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("man1");
    run(&["man", "--out", to.to_str().unwrap()]).exits(0);
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
    assert!(run(&["man"]).stdout == main, "another page than in the folder");
    let of_compare = run(&["man", "compare"]).stdout;
    assert!(of_compare == page("rocebench-compare.1"), "another page than in the folder");
}
