//! A `rocebench serve` for one test, on a free port.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::namespace::End;
use crate::program::{Call, Ended, Program, STEP, Signal, built_beside, program, rocebench};
use crate::wait::wait_or_tell;

/// Where the two ends of a test are.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub client_address: &'static str,
    pub client_device: &'static str,
    pub server_address: &'static str,
    pub server_device: &'static str,
    /// Makes the command that runs the program there.
    pub command: fn() -> Command,
}

/// On the kernel's devices of a guest.
pub const RXE: Ends = Ends {
    client_address: "192.0.2.1",
    client_device: "rxe0",
    server_address: SERVER_ADDRESS,
    server_device: "rxe1",
    command: || Command::new(program()),
};

/// On the embedded device.
pub const EMBEDDED: Ends = Ends {
    client_address: "127.0.0.1",
    client_device: "soft0",
    server_address: "127.0.0.1",
    server_device: "soft0",
    command: on_this_machine,
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
    Call::of(on_this_machine(), words)
}

/// Where servers of one-guest tests listen: the address of `rxe1`.
pub const SERVER_ADDRESS: &str = "192.0.2.2";

pub struct Server {
    ends: Ends,
    pub program: Program,
    pub port: u16,
    pub name: String,
}

impl Server {
    pub fn start() -> Server {
        Server::with(&[])
    }

    /// With further arguments.
    pub fn with(arguments: &[&str]) -> Server {
        Server::of(RXE, arguments)
    }

    pub fn of(ends: Ends, arguments: &[&str]) -> Server {
        let (address, device) = (ends.server_address, ends.server_device);
        let mut all = vec!["serve", "--bind", address, "-p", "0", "-d", device];
        all.extend(arguments);
        Server::that_serves(ends, Program::bare_of((ends.command)(), &all))
    }

    pub fn on(address: &'static str, device: &'static str, arguments: &[&str]) -> Server {
        let ends = Ends {
            server_address: address,
            server_device: device,
            ..RXE
        };
        Server::of(ends, arguments)
    }

    /// On this machine's embedded device, at all addresses.
    pub fn embedded(words: &str) -> Server {
        Server::embedded_by(call(&format!("serve -p 0 {words}")))
    }

    /// The same with a command line, and perhaps an environment, of its own.
    pub fn embedded_by(call: Call) -> Server {
        Server::that_serves(EMBEDDED, call.start())
    }

    /// Once it says where.
    fn that_serves(ends: Ends, program: Program) -> Server {
        const SAYS: &str = "serving on ";
        program.await_line(0, SAYS, Duration::from_secs(10));
        let lines = program.lines();
        let address = lines.iter().find_map(|line| line.split_once(SAYS));
        let address = address.unwrap().1.split(' ').next().unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let name = match address.ip().is_unspecified() {
            true => format!("127.0.0.1:{}", address.port()),
            false => address.to_string(),
        };
        Server {
            ends,
            port: address.port(),
            name,
            program,
        }
    }

    /// At an end of the wire between the kernel's device and the embedded one.
    pub fn at(end: End, port: u16) -> Server {
        let port_text = port.to_string();
        let arguments = [
            "serve", "--bind", end.v4, "-p", &port_text, "-d", end.device,
        ];
        Server::that_serves(RXE, Program::bare_of(end.command(program()), &arguments))
    }

    /// Runs a sweep from the client's device against it.
    pub fn sweep(&self, arguments: &[&str]) -> Ended {
        self.client(arguments).wait()
    }

    /// Starts a sweep from the client's device against it.
    pub fn client(&self, arguments: &[&str]) -> Program {
        let all: Vec<&str> = [self.name.as_str(), "-d", self.ends.client_device]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        Program::sweep_of((self.ends.command)(), &all)
    }

    /// A client of it with these words, on this machine's embedded device.
    pub fn call(&self, words: &str) -> Call {
        call(&format!("{} -d soft0 {words}", self.name))
    }

    /// It serves a next client.
    #[track_caller]
    pub fn serves_the_next(&self) {
        let ended = self
            .sweep(&["-s", "64", "-n", "50", "--warmup", "0"])
            .exits(0);
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
        let over = || {
            let lines = self.program.lines();
            let begun = lines.iter().filter(|it| it.ends_with(": session begins"));
            let ended = lines.iter().filter(|it| it.contains(": session end"));
            (begun.count() == ended.count()).then_some(())
        };
        wait_or_tell(STEP, over, || {
            format!(
                "the end of all sessions; stderr: {:#?}",
                self.program.lines()
            )
        });
    }

    /// Ends it as a person would; it must end well. What it said.
    #[track_caller]
    pub fn end(self) -> String {
        self.program.signal(Signal::Interrupt);
        self.program.wait().exits(0).stderr().to_owned()
    }

    /// Kills it.
    pub fn kill(self) {
        self.program.signal(Signal::Kill);
        self.program.wait();
    }
}
