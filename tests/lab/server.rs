//! A `rocebench serve` for one test, on a free port of `rxe1`'s address.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::namespace::End;
use super::program::{Ended, Program, Signal, program};

/// Where servers of one-guest tests listen: the address of `rxe1`.
pub const SERVER_ADDRESS: &str = "192.0.2.2";

pub struct Server {
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
        Server::on(SERVER_ADDRESS, "rxe1", arguments)
    }

    pub fn on(address: &str, device: &str, arguments: &[&str]) -> Server {
        let mut all = vec!["serve", "--bind", address, "-p", "0", "-d", device];
        all.extend(arguments);
        Server::that_serves(Program::bare(&all))
    }

    /// Once it says where.
    fn that_serves(program: Program) -> Server {
        const SAYS: &str = "serving on ";
        program.await_line(0, SAYS, Duration::from_secs(30));
        let lines = program.lines();
        let address = lines.iter().find_map(|(_, line)| line.split_once(SAYS));
        let name = address.unwrap().1.split(' ').next().unwrap();
        Server {
            port: name.parse::<SocketAddr>().unwrap().port(),
            name: name.to_owned(),
            program,
        }
    }

    /// At an end of the wire between the kernel's device and the embedded one.
    pub fn at(end: End, port: u16) -> Server {
        let port_text = port.to_string();
        let arguments = [
            "serve", "--bind", end.v4, "-p", &port_text, "-d", end.device,
        ];
        Server::that_serves(Program::bare_of(end.command(program()), &arguments))
    }

    /// Runs a sweep from `rxe0` against it.
    pub fn sweep(&self, arguments: &[&str]) -> Ended {
        self.client(arguments).wait()
    }

    /// Starts a sweep from `rxe0` against it.
    pub fn client(&self, arguments: &[&str]) -> Program {
        let all: Vec<&str> = [self.name.as_str(), "-d", "rxe0"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        Program::sweep(&all)
    }

    /// It serves a next client, at once.
    #[track_caller]
    pub fn serves_the_next(&self) {
        let asked = Instant::now();
        let ended = self
            .sweep(&["-s", "64", "-n", "50", "--warmup", "0"])
            .exits(0);
        assert_eq!(ended.runs()[0].flows[0].totals.messages, 50);
        // Most of it is the client's start on an emulated CPU.
        assert!(
            asked.elapsed() < Duration::from_secs(8),
            "{:?}",
            asked.elapsed()
        );
    }

    /// Waits for a line that was not there when `from` lines were.
    #[track_caller]
    pub fn says(&self, from: usize, text: &str) -> Instant {
        self.program.await_line(from, text, Duration::from_secs(10))
    }

    /// Ends it as a person would; it must end well.
    pub fn end(self) {
        self.program.signal(Signal::Interrupt);
        self.program.wait().exits(0);
    }
}
