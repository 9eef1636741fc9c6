//! docs/learn.md's boxes do what they say: all of them in order, as a reader would run them, with shorter runs.

use std::path::Path;
use std::process::Command;

use testing::program::rocebench;

/// What stands between ```` ```sh ```` and the end of the box, of all boxes.
fn boxes(page: &str) -> Vec<String> {
    page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Instead of a second. Messages are counted: beside other tests, a window may pass while a worker waits for its core.
fn how_long(script: &str) -> &'static str {
    if script.contains("--op connect") { "-D 400ms --warmup 0" } else { "-n 300 --warmup 0" }
}

#[test]
fn every_box_of_the_lesson_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/learn.md");
    let boxes = boxes(&std::fs::read_to_string(page).unwrap());
    assert_eq!(boxes.len(), 13);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let path = format!("{}:/usr/bin:/bin", rocebench().parent().unwrap().display());
    let folder = tempfile::tempdir().unwrap();
    for script in boxes {
        let script = script
            .replace("-D 1s", how_long(&script))
            .replace("--receive inbox", &format!("--receive inbox -p {port}"))
            .replace("serve -d soft0 &", &format!("serve -d soft0 -p {port} &"))
            .replace("127.0.0.1", &format!("127.0.0.1:{port}"));
        let ended = Command::new("bash")
            .args(["-eu", "-c", &script])
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", &path)
            .output()
            .unwrap();
        let (out, error) =
            (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        // `doctor` finds something to say on many a machine.
        let may_warn = script.contains("rocebench doctor") && ended.status.code() == Some(1);
        assert!(ended.status.success() || may_warn, "{script}\n{:?}\n{out}\n{error}", ended.status);
        assert!(out.lines().count() > 1, "{script}\n{out}\n{error}");
    }
}
