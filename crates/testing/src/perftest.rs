//! A pair of perftest's programs, one end on the kernel's Soft-RoCE and one on the embedded device, and what
//! their result says.

use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::namespace::{End, RXE, SOFT, counted, preload};

/// No pair takes nearly as long.
const HANGS: Duration = Duration::from_secs(60);
/// Where the server listens: 18515 as /proc has it.
const LISTENS: &str = ":4853 ";
/// State of a socket that listens, as /proc has it.
const LISTENING: &str = " 0A ";

/// The GIDs that packets are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// A line of a result.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub bytes: u64,
    pub messages: u64,
    pub millions_per_s: f64,
}

struct Running {
    what: String,
    child: Child,
    output: tempfile::NamedTempFile,
}

fn start(end: End, family: Family, words: &str) -> Running {
    let (program, arguments) = words.split_once(' ').unwrap();
    let (address, gid_index) = match family {
        Family::V4 => (end.v4, "1"),
        Family::V6 => (end.v6, "2"),
    };
    let output = tempfile::NamedTempFile::new().unwrap();
    let mut command = if end == SOFT {
        // `env`, for `ip` itself is not to have the library.
        let mut command = end.command_at("env", address);
        command.arg(format!("LD_PRELOAD={}", preload().display()));
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    command.args(arguments.split_whitespace());
    if end == RXE {
        command.args(["-d", RXE.device, "-x", gid_index]);
    }
    let child = command
        .stdin(Stdio::null())
        .stdout(output.as_file().try_clone().unwrap())
        .stderr(output.as_file().try_clone().unwrap())
        .spawn()
        .unwrap();
    Running {
        what: format!("{words} on {}", end.device),
        child,
        output,
    }
}

impl Running {
    fn said(&self) -> String {
        fs::read_to_string(self.output.path()).unwrap()
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    fn await_listening(&mut self) {
        let started = Instant::now();
        let pid = self.child.id();
        loop {
            let listens = ["tcp", "tcp6"].iter().any(|family| {
                let sockets = fs::read_to_string(format!("/proc/{pid}/net/{family}"));
                let sockets = sockets.unwrap_or_default();
                let mut lines = sockets.lines();
                lines.any(|line| line.contains(LISTENS) && line.contains(LISTENING))
            });
            if listens {
                return;
            }
            let ended = self.ended();
            assert!(
                ended.is_none() && started.elapsed() < HANGS,
                "{} does not listen ({ended:?}): {}",
                self.what,
                self.said()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What it printed when it ended well; `None` when it could not calibrate its clock. Otherwise how it ended.
    fn finish(&mut self) -> Result<Option<String>, String> {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            if started.elapsed() > HANGS {
                return Err(format!("{} hangs", self.what));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let said = self.said();
        // It fits a line to two clocks, and gives up where the host takes the guest's CPU meanwhile.
        if said.contains("Correlation coefficient") {
            return Ok(None);
        }
        match status.success() {
            true => Ok(Some(said)),
            false => Err(format!("{}: {status}", self.what)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program and its options, the server at the other end than `client`; both must end well. Returns the
/// client's result.
pub fn pair(client: End, family: Family, words: &str) -> Row {
    const TRIES: usize = 5;
    for _ in 0..TRIES {
        let mut server = start(client.other(), family, words);
        server.await_listening();
        let mut client = start(client, family, &format!("{words} {}", client.other().v4));
        let ended = client
            .finish()
            .and_then(|said| Ok((said, server.finish()?)));
        let why = match ended {
            Ok((Some(said), Some(_))) => match row(&said) {
                Some(row) => return row,
                None => format!("{} printed no result", client.what),
            },
            Ok(_) => continue,
            Err(why) => why,
        };
        let (client, server) = (client.said(), server.said());
        panic!(
            "{why}\nclient: {client}\nserver: {server}\nrxe: {:?}",
            counted()
        );
    }
    panic!("perftest could not calibrate its clock in {TRIES} tries: {words}");
}

/// The row behind the line of headings.
fn row(said: &str) -> Option<Row> {
    let mut lines = said.lines().skip_while(|line| !line.starts_with(" #bytes"));
    let mut words = lines.nth(1)?.split_whitespace();
    Some(Row {
        bytes: words.next()?.parse().ok()?,
        messages: words.next()?.parse().ok()?,
        millions_per_s: words.nth(2)?.parse().ok()?,
    })
}
