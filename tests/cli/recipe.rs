//! `rocebench recipe`: what is listed and shown, and that the stages of each recipe are commands that the program takes. No
//! device.

use results::sample::has;

use crate::run;

/// The names in the list.
fn names() -> Vec<String> {
    let list = run(&["recipe"]).exits(0).stdout;
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| !line.starts_with(' '));
    names.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

#[test]
fn each_stage_of_each_recipe_is_a_command_that_is_taken() {
    let names = names();
    assert!(names.len() >= 6, "{names:?}");
    for name in &names {
        let planned = run(&["recipe", "run", name, "--dry-run"]).exits(0).stdout;
        let shown = run(&["recipe", "show", name]).exits(0).stdout;
        has(shown, ["Modelled on", "https://", "How to read it:"]);
        for line in planned.lines().filter(|line| !line.ends_with("left out")) {
            let (_, command) = line.split_once("rocebench ").unwrap();
            let words: Vec<&str> = command.split(' ').collect();
            if words[0] != "doctor" {
                run(&[&words[..], &["--dry-run"]].concat()).exits(0);
            }
        }
    }
}

#[test]
fn options_go_to_the_stages_that_have_them() {
    let planned =
        |words: &[&str]| run(&[&["recipe", "run"], words, &["--dry-run"]].concat()).exits(0).stdout;
    let rails = planned(&["first-day", "h", "-d", "soft[0-1]", "-D", "2s", "--token", "secret"]);
    has(
        &rails,
        [
            "rocebench doctor --token=*** --device=soft0 h\n",
            "--device=soft0,soft1",
            "--duration=2s",
            "results/first-day/rails",
        ],
    );
    assert!(!rails.contains("secret") && !rails.contains("-D "), "{rails}");
    let nodes = planned(&["kv-cache", "--nodes", "a,b,c,d"]);
    assert!(nodes.contains("--nodes=a,b,c,d") && !nodes.contains("local"), "{nodes}");
    has(planned(&["kv-cache", "h"]), ["many-to-one    left out"]);
}

#[test]
fn what_no_recipe_is_or_can_be_is_refused() {
    for (words, reasons) in [
        (&["show", "nothing"][..], ["no recipe `nothing`", "kv-cache"]),
        (&["run", "incast", "h"], ["no stage can run", "--nodes"]),
        (&["run", "incast", "--stages", "x"], ["no stage `x`", "small, large"]),
        (&["run", "incast", "-D", "20ms"], ["stage small", "too many"]),
        (&["run", "kv-cache", "h", "--nodes", "a,b"], ["cannot be used with", ""]),
    ] {
        has(run(&[&["recipe"], words].concat()).exits(2).stderr(), reasons);
    }
}
