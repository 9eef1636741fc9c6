//! `scripts/on-hardware` on the embedded device, which shows nothing of hardware, but that the list is completed and
//! what is sent back is whole.

use std::time::Duration;

use testing::process::{Call, run};
use testing::program::{apart, rocebench};

/// What the embedded device, or the machine that runs the tests, may lack.
const MAY_FAIL: [&str; 6] = ["speed", "perftest", "udp-sport", "dscp", "transparent", "huge"];

/// What all of it takes.
const LIST: Duration = Duration::from_secs(60);

const SECRET: &str = "what-both-ends-know";

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

    let built = rocebench().parent().unwrap().display();
    let ended = Call::new(apart(script), "-d soft0 --quick")
        // It is to find the program of this test, not another build.
        .env("CARGO_TARGET_DIR", "none")
        .env("PATH", &format!("{built}:{}", std::env::var("PATH").unwrap()))
        .env("ROCEBENCH_TOKEN", SECRET)
        .start()
        .wait_for(LIST)
        .exits(0);
    let output = &ended.stdout;

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
    let archive = ended.folder().join(archive);
    let tar = |how| run(&format!("tar {how} {}", archive.display()));
    let files = tar("-tzf");
    for name in items {
        let file = format!("-{name}/output.txt");
        assert!(files.contains(&file), "{file} is not in {files}");
    }
    let texts = tar("-xzOf");
    assert!(texts.contains("$ rocebench -d soft0 "), "{texts}");
    assert!(!texts.contains(SECRET), "the secret was sent back");
}
