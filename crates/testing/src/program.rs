//! `rocebench` as a child process and what it left; and a `rocebench serve` for one test, on a free port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use results::model::{ResultFile, Run};
use serde_json::Value;

use crate::process::{Call, Ended, Program, STEP, Signal, copied, without_variables, words};

/// How the variables begin that it reads.
const VARIABLES: &[&str] = &["ROCEBENCH_", "SOFTROCE_", "LC_", "LANG"];

/// The program under test, which cargo builds before a test of its package runs.
pub fn rocebench() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built_beside("rocebench"))
}

/// What was built where the test programs were: they are in `deps` below that folder.
pub fn built_beside(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    built.join(name)
}

/// The program, copied into the guest's own memory: pages that come from the host's files while a test runs
/// take seconds on a busy machine.
pub fn program() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| copied(rocebench()))
}

/// The program with exactly these words, where it is in the guest's own memory.
pub fn bare(line: &str) -> Call {
    Call::new(without_variables(program(), VARIABLES), line)
}

pub fn sweep(line: &str) -> Call {
    bare(&patient(line))
}

/// The words of a sweep with, unless they say otherwise, an ACK timeout of 1 s: in an emulated guest an ACK can take longer
/// than the default of 67 ms, and what Soft-RoCE retransmits without need it may refuse as invalid. Without acknowledgements
/// there is no time-out.
pub fn patient(line: &str) -> String {
    if words(line).iter().any(|word| ["--timeout", "--service"].contains(word)) {
        line.to_owned()
    } else {
        format!("{line} --timeout 18")
    }
}

impl Ended {
    /// Names of the files in its results folder.
    pub fn results(&self) -> Vec<String> {
        std::fs::read_dir(self.folder().join("results"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// The text of the file in the results folder whose name has this after the time and the number: `.json`, `.csv`,
    /// `-qps.csv` or `-histograms.csv`.
    #[track_caller]
    pub fn file(&self, ending: &str) -> String {
        let files: Vec<String> = self
            .results()
            .into_iter()
            .filter(|name| {
                let stem = name.strip_suffix(ending);
                stem.is_some_and(|stem| {
                    stem.ends_with(|last: char| last == 'Z' || last.is_ascii_digit())
                })
            })
            .collect();
        assert_eq!(files.len(), 1, "{files:?}; stderr: {}", self.stderr());
        std::fs::read_to_string(self.folder().join("results").join(&files[0])).unwrap()
    }

    /// Its result; null where nothing ran.
    #[track_caller]
    pub fn json(&self) -> &Value {
        self.json.get_or_init(|| {
            if self.results().is_empty() {
                Value::Null
            } else {
                serde_json::from_str(&self.file(".json")).unwrap()
            }
        })
    }

    #[track_caller]
    pub fn result(&self) -> ResultFile {
        serde_json::from_str(&self.file(".json")).unwrap()
    }

    /// The cases of its result.
    #[track_caller]
    pub fn cases(&self) -> &[Value] {
        let cases = self.json()["cases"].as_array();
        cases.unwrap_or_else(|| panic!("no result: {}", self.stderr()))
    }

    /// The first run of the first case.
    #[track_caller]
    pub fn first_run(&self) -> &Value {
        &self.cases()[0]["runs"][0]
    }

    /// The first flow of that.
    #[track_caller]
    pub fn first_flow(&self) -> &Value {
        &self.first_run()["flows"][0]
    }

    /// All runs of the sweep, in order.
    #[track_caller]
    pub fn runs(&self) -> Vec<Run> {
        let cases = self.result().cases;
        cases.into_iter().flat_map(|case| case.runs).collect()
    }
}

/// Where it was built, with nothing of this machine's environment that it reads, and apart from others who take cores.
pub fn on_this_machine() -> Command {
    apart(rocebench())
}

/// Another program that starts it.
pub fn apart(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = without_variables(program, VARIABLES);
    let locks = built_beside("core-locks");
    std::fs::create_dir_all(&locks).unwrap();
    command.env("ROCEBENCH_CORE_LOCKS", locks);
    command
}

/// The program on this machine with these words.
pub fn call(words: &str) -> Call {
    Call::new(on_this_machine(), words)
}

/// The same, started by another program, such as `nohup` or `prlimit --fsize=0`.
pub fn call_by(other: &str, line: &str) -> Call {
    let parts = words(other);
    let mut command = apart(parts[0]);
    command.args(&parts[1..]).arg(rocebench());
    Call::new(command, line)
}

/// Where servers of one-guest tests listen: the address of `rxe1`.
pub const SERVER_ADDRESS: &str = "192.0.2.2";

/// A `rocebench serve` for one test, on a free port.
pub struct Server {
    /// The device of clients, and how the program is run there.
    client: (&'static str, fn() -> Command),
    pub program: Program,
    pub port: u16,
    pub name: String,
}

impl Server {
    pub fn start() -> Server {
        Server::with("")
    }

    pub fn with(words: &str) -> Server {
        Server::on(SERVER_ADDRESS, "rxe1", words)
    }

    /// On a device of the kernel's.
    pub fn on(address: &str, device: &str, words: &str) -> Server {
        Server::on_rxe(bare(&format!("serve --bind {address} -p 0 -d {device} {words}")))
    }

    pub(crate) fn on_rxe(call: Call) -> Server {
        let client: (_, fn() -> Command) = ("rxe0", || Command::new(program()));
        Server::that_serves(client, call.start())
    }

    /// On this machine's embedded device, at all addresses.
    pub fn embedded(words: &str) -> Server {
        Server::embedded_by(call(&format!("serve -p 0 {words}")))
    }

    /// The same with a command line, and perhaps an environment, of its own.
    pub fn embedded_by(call: Call) -> Server {
        Server::that_serves(("soft0", on_this_machine), call.start())
    }

    fn that_serves(client: (&'static str, fn() -> Command), program: Program) -> Server {
        const SAYS: &str = "serving on ";
        program.await_line(0, SAYS, Duration::from_secs(10));
        let address: SocketAddr = program
            .lines()
            .iter()
            .find_map(|line| line.split_once(SAYS))
            .unwrap()
            .1
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let name = if address.ip().is_unspecified() {
            format!("127.0.0.1:{}", address.port())
        } else {
            address.to_string()
        };
        Server { client, port: address.port(), name, program }
    }

    /// A client of it with these words, on the clients' device.
    pub fn call(&self, words: &str) -> Call {
        let (device, command) = self.client;
        let words = format!("{} -d {device} {words}", self.name);
        Call::new(command(), &patient(&words))
    }

    /// It serves a next client.
    #[track_caller]
    pub fn serves_the_next(&self) {
        let ended = self.call("-s 64 -n 50 --warmup 0").passes();
        assert_eq!(ended.runs()[0].flows[0].totals.messages, 50);
    }

    /// Waits for a line that was not there when `from` lines were.
    #[track_caller]
    pub fn says(&self, from: usize, text: &str) {
        self.program.await_line(from, text, STEP);
    }

    /// Waits until it has told the end of every session that it has told the beginning of.
    #[track_caller]
    pub fn is_idle(&self) {
        let what = "the end of all sessions";
        self.program.await_lines(STEP, what, |lines| {
            let begun = lines.iter().filter(|line| line.ends_with(": session begins"));
            let ended = lines.iter().filter(|line| line.contains(": session end"));
            begun.count() == ended.count()
        });
    }

    /// Ends it as a person would; it must end well. What it said.
    #[track_caller]
    pub fn end(self) -> String {
        self.program.signal(Signal::Interrupt);
        self.program.wait().exits(0).stderr().to_owned()
    }

    pub fn kill(self) {
        self.program.kill();
    }
}
