//! A test as a process of its own.

use std::env;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Set in a child.
const PART: &str = "SOFTROCE_TEST_PART";
/// Longer than any child takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether this process plays the child's part of the test.
pub fn is_child() -> bool {
    env::var_os(PART).is_some()
}

/// Starts this test again as a child, with its input and output at hand.
pub fn start(test: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(PART, "child")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the child's end; kills it if it hangs.
pub fn end(mut child: Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the child hangs");
        }
        sleep(Duration::from_millis(2));
    }
}
