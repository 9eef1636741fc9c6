//! A test as a process of its own.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

const PART: &str = "SOFTROCE_TEST_PART";
/// Begins the lines that a child tells its parent; the harness prints others.
const MARK: &str = "told: ";

/// Ends this process by a signal if it hangs: no child takes a tenth of this on an idle machine.
pub fn end_if_it_hangs() {
    const SECONDS: u32 = 60;
    // SAFETY: it has no preconditions.
    unsafe { libc::alarm(SECONDS) };
}

pub fn is_child() -> bool {
    let is_child = env::var_os(PART).is_some();
    if is_child {
        end_if_it_hangs();
    }
    is_child
}

pub fn tell(what: &str) {
    println!("\n{MARK}{what}");
    std::io::stdout().flush().unwrap();
}

pub struct Part {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    /// Starts the test that calls this again.
    pub fn start() -> Part {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", thread::current().name().unwrap(), "--nocapture"])
            .env(PART, "child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Part { child, lines }
    }

    pub fn told(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(|line| line.unwrap());
        let told = lines.find_map(|line| line.strip_prefix(MARK).map(str::to_owned));
        told.expect("the child ended before it told that")
    }

    pub fn write(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}
