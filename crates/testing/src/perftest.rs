//! A pair of perftest's programs, one end on the kernel's Soft-RoCE and one on the embedded device, and what
//! their result says.

use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::namespace::{End, RXE, SOFT, counted, preload};
use crate::wait::wait_or_tell;

/// A pair takes less on an idle machine.
const USUAL: Duration = Duration::from_secs(10);
/// Where the server listens: 18515 as /proc has it.
const LISTENS: &str = ":4853 ";
/// State of a socket that listens, as /proc has it.
const LISTENING: &str = " 0A ";

/// What perftest says where it cannot tell how fast its CPU's counter runs: it fits a line to two clocks, and does not
/// manage where the host takes the guest's CPU between two looks at them. It has no rates then.
pub const LOST_ITS_CLOCK: &str = "Correlation coefficient";

/// The GIDs that packets are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

struct Running {
    what: String,
    child: Child,
    output: tempfile::NamedTempFile,
}

/// With `-F` perftest goes on to its result, and ends well, where it [lost its clock](LOST_ITS_CLOCK).
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
    command.arg("-F").args(arguments.split_whitespace());
    if end == RXE {
        command.args(["-d", RXE.device, "-x", gid_index]);
    }
    let child = command
        .stdin(Stdio::null())
        .stdout(output.as_file().try_clone().unwrap())
        .stderr(output.as_file().try_clone().unwrap())
        .spawn()
        .unwrap();
    Running { what: format!("{words} on {}", end.device), child, output }
}

impl Running {
    fn text(&self) -> String {
        fs::read_to_string(self.output.path()).unwrap()
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    fn await_listening(&mut self) {
        let pid = self.child.id();
        let listens = |family: &str| {
            let sockets =
                fs::read_to_string(format!("/proc/{pid}/net/{family}")).unwrap_or_default();
            let mut lines = sockets.lines();
            lines.any(|line| line.contains(LISTENS) && line.contains(LISTENING))
        };
        let output = self.output.path().to_owned();
        let what = &mut self.child;
        let ended = wait_or_tell(
            USUAL,
            || {
                let ended = what.try_wait().unwrap();
                let listens = ["tcp", "tcp6"].into_iter().any(listens);
                (listens || ended.is_some()).then_some(ended)
            },
            || format!("{} to listen: {:?}", self.what, fs::read_to_string(output)),
        );
        assert!(ended.is_none(), "{}: {ended:?}: {}", self.what, self.text());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program and its options, the server at the other end than `client`; both must end well. Returns bytes and
/// messages of the client's result.
pub fn pair(client: End, family: Family, words: &str) -> (u64, u64) {
    let mut server = start(client.other(), family, words);
    server.await_listening();
    let mut client = start(client, family, &format!("{words} {}", client.other().v4));
    let mut ended = [None, None];
    let output = [&client, &server].map(|it| it.output.path().to_owned());
    let texts = || output.each_ref().map(fs::read_to_string);
    let statuses = wait_or_tell(
        USUAL,
        || {
            for (ended, end) in ended.iter_mut().zip([&mut client, &mut server]) {
                *ended = ended.or_else(|| end.ended());
            }
            let [client, server] = ended;
            Some([client?, server?])
        },
        || format!("{words} to end: {:?}; rxe: {:?}", texts(), counted()),
    );
    let is_well = statuses.iter().all(ExitStatus::success);
    assert!(is_well, "{words}: {statuses:?}: {:?}; rxe: {:?}", texts(), counted());
    row(&client.text()).unwrap_or_else(|| panic!("{words} printed no result: {:?}", texts()))
}

/// Bytes and messages in the row behind the line of headings.
fn row(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(" #bytes"));
    let mut words = lines.nth(1)?.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}
