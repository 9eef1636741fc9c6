//! A run whose throughput falls within its window is marked in the table and in the files.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{Program, Server, alone};

#[test]
fn a_server_that_becomes_slow_within_the_window_is_told() {
    let _alone = alone();
    let server = Server::start("-d soft0");
    let mut client = Program::new(&format!(
        "127.0.0.1:{} -d soft0 --op write -q 2 -s 4K -D 2s --warmup 500ms --timeout 18 --quiet",
        server.port
    ));
    let child = client.command.stdout(Stdio::piped()).spawn().unwrap();
    server.has_said(", run 1");
    std::thread::sleep(Duration::from_millis(1500));
    let slow = Instant::now();
    while slow.elapsed() < Duration::from_millis(1500) {
        server.stop_for(Duration::from_millis(15));
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let json = client.json();
    let run = &json["cases"][0]["runs"][0];
    let doubts = run["window"]["doubts"].as_array().unwrap();
    let drift = doubts.iter().find(|doubt| doubt["kind"] == "drift");
    let message = drift.map(|doubt| doubt["message"].as_str().unwrap());
    assert!(
        message.is_some_and(|text| text.starts_with("throughput fell by")),
        "{doubts:?}, {}",
        run["timeline"]["messages"]
    );
    let table = String::from_utf8(ended.stdout).unwrap();
    assert!(table.contains("drift"), "{table}");
}
