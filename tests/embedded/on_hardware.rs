//! `scripts/on-hardware` on the embedded device, which shows nothing of hardware, but that the list is completed and
//! what is sent back is whole.

use std::process::Command;

use testing::program::{on_this_machine, rocebench};

/// What the embedded device, or the machine that runs the tests, may lack.
const MAY_FAIL: [&str; 6] = ["speed", "perftest", "udp-sport", "dscp", "transparent", "huge"];

const SECRET: &str = "what-both-ends-know";

#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_item_of_the_list_is_in_the_table_and_the_archive_has_no_secret() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/on-hardware");
    let source = std::fs::read_to_string(script).unwrap();
    let (_, table) = source.split_once("<<'ITEMS'\n").unwrap();
    let items: Vec<&str> = table
        .lines()
        .take_while(|it| *it != "ITEMS")
        .filter_map(|it| it.split(' ').next())
        .collect();
    assert!(items.len() > 20, "{items:?}");

    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(script);
    for (name, value) in on_this_machine().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let built = rocebench().parent().unwrap().display();
    command
        .args(["-d", "soft0", "--quick"])
        .current_dir(&folder)
        // It is to find the program of this test, not another build.
        .env("CARGO_TARGET_DIR", folder.path().join("none"))
        .env("PATH", format!("{built}:{}", std::env::var("PATH").unwrap()))
        .env("ROCEBENCH_TOKEN", SECRET);
    let output = printed(&mut command);

    let (_, rows) = output.split_once("\nitem        found\n").unwrap();
    let rows: Vec<(&str, &str)> = rows.lines().map_while(|it| it.split_once(' ')).collect();
    let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
    assert_eq!(names, items, "{output}");
    for (name, found) in rows {
        let has_failed = found.trim().is_empty() || found.contains("failed: ");
        assert!(!has_failed || MAY_FAIL.contains(&name), "{name}: {found}");
    }

    let (_, line) = output.split_once("\nSend back ").unwrap();
    let archive = line.split_inclusive(".tar.gz").next().unwrap();
    let tar = |how| printed(Command::new("tar").args([how, archive]));
    let files = tar("-tzf");
    for name in items {
        let file = format!("-{name}/output.txt");
        assert!(files.contains(&file), "{file} is not in {files}");
    }
    let texts = tar("-xzOf");
    assert!(texts.contains("$ rocebench -d soft0 "), "{texts}");
    assert!(!texts.contains(SECRET), "the secret was sent back");
}
