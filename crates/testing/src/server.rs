//! A `rocebench serve` for one test, on a free port.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::namespace::End;
use crate::program::{
    Call, Program, STEP, Signal, bare, built_beside, patient, program, rocebench,
};

/// Where it was built, with nothing of this machine's environment that it reads, and apart from others who take cores.
pub fn on_this_machine() -> Command {
    let mut command = Command::new(rocebench());
    for name in [
        "ROCEBENCH_TOKEN",
        "ROCEBENCH_LOG",
        "SOFTROCE_FAULTS",
        "SOFTROCE_ADDRESS",
        "SOFTROCE_LIBRARY",
        "SOFTROCE_PCAP",
    ] {
        command.env_remove(name);
    }
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
pub fn call_by(other: &str, words: &str) -> Call {
    let own = on_this_machine();
    let mut parts = other.split_whitespace();
    let mut command = Command::new(parts.next().unwrap());
    command.args(parts).arg(own.get_program());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Call::new(command, words)
}

/// Where servers of one-guest tests listen: the address of `rxe1`.
pub const SERVER_ADDRESS: &str = "192.0.2.2";

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

    fn on_rxe(call: Call) -> Server {
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

    /// At an end of the wire between the kernel's device and the embedded one.
    pub fn at(end: End, port: u16) -> Server {
        let words = format!("serve --bind {} -p {port} -d {}", end.v4, end.device);
        Server::on_rxe(Call::new(end.command(program()), &words))
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
            let begun = lines.iter().filter(|it| it.ends_with(": session begins"));
            let ended = lines.iter().filter(|it| it.contains(": session end"));
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
        self.program.signal(Signal::Kill);
        self.program.wait();
    }
}
