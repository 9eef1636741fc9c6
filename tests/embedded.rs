//! The program on the embedded device, end to end, on any Linux machine: no root, no RDMA, no lab.
//!
//! Workers poll, and a machine that runs tests is busy: where packets are not lost on purpose, `--timeout 18`
//! waits a second for an answer before it takes a packet for lost.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// What the issue asks the device to survive.
const FAULTS: &str = "drop=5%,duplicate=1%,reorder=1%,corrupt=0.1%";

/// Workers poll: two sweeps at once would wait for each other's cores.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program with nothing of this machine's environment that it reads, in a folder that goes away.
struct Program {
    command: Command,
    folder: tempfile::TempDir,
}

impl Program {
    fn new(words: &str) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rocebench"));
        command.args(words.split_whitespace()).current_dir(&folder);
        for name in [
            "ROCEBENCH_TOKEN",
            "ROCEBENCH_LOG",
            "SOFTROCE_FAULTS",
            "SOFTROCE_ADDRESS",
        ] {
            command.env_remove(name);
        }
        Program { command, folder }
    }

    fn env(mut self, name: &str, value: &str) -> Program {
        self.command.env(name, value);
        self
    }

    fn run(mut self) -> Ended {
        let output = self.command.output().unwrap();
        Ended {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            json: self.json(),
        }
    }

    fn json(&self) -> Value {
        let files = std::fs::read_dir(self.folder.path().join("results"))
            .into_iter()
            .flatten();
        let path = files
            .map(|file| file.unwrap().path())
            .find(|path| path.extension().is_some_and(|end| end == "json"));
        path.map_or(Value::Null, |path| {
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        })
    }
}

/// What a program left behind.
struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    json: Value,
}

impl Ended {
    fn exits(self, code: i32) -> Ended {
        assert_eq!(
            self.status.code(),
            Some(code),
            "{}{}",
            self.stdout,
            self.stderr
        );
        self
    }

    fn says(self, words: &[&str]) -> Ended {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {}", self.stderr);
        }
        self
    }

    fn cases(&self) -> &[Value] {
        self.json["cases"].as_array().unwrap()
    }

    /// All runs are whole: every message counted in every direction, none failed.
    fn is_whole(self, cases: usize) -> Ended {
        assert_eq!(self.cases().len(), cases);
        for case in self.cases() {
            let config = &case["config"];
            let wanted =
                config["qps"].as_u64().unwrap() * config["iterations_per_qp"].as_u64().unwrap();
            for run in case["runs"].as_array().unwrap() {
                assert_eq!(run["complete"], true, "{case}");
                for direction in [Some(run), run.get("reverse").filter(|it| !it.is_null())]
                    .iter()
                    .flatten()
                {
                    assert_eq!(direction["totals"]["messages"], wanted, "{}", case["id"]);
                    assert_eq!(direction["totals"]["errors"], 0, "{}", case["id"]);
                    assert!(
                        direction["limits"].is_null(),
                        "there is no link: {}",
                        direction["limits"]
                    );
                }
            }
        }
        self
    }
}

/// `rocebench serve` on loopback, killed when dropped.
struct Server {
    child: Child,
    port: u16,
    lines: Option<JoinHandle<String>>,
    _program: Program,
}

impl Server {
    fn start(words: &str) -> Server {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut program = Program::new(&format!("serve --port {port} {words}"));
        let mut child = program.command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("serving on") {
            assert_ne!(
                stderr.read_line(&mut said).unwrap(),
                0,
                "the server ended: {said}"
            );
        }
        let lines = std::thread::spawn(move || {
            stderr.read_to_string(&mut said).unwrap();
            said
        });
        Server {
            child,
            port,
            lines: Some(lines),
            _program: program,
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it; what it said.
    fn end(mut self) -> String {
        self.kill();
        self.lines.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn kernel_has_a_device() -> bool {
    std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some())
}

#[test]
fn every_operation_and_cq_mode_arrives_whole() {
    let _alone = alone();
    Program::new(
        "-d soft0 --op send,write,read --cq shared,per-worker,per-qp -q 1,5 -w 2 -s 1,4096,10000 -n 60 -t 16 \
         --timeout 18 --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0)
    .is_whole(54);
}

#[test]
fn both_directions_lists_and_inline() {
    let _alone = alone();
    let ended = Program::new(
        "-d soft0 -b --op send,write,read --cq shared,per-qp -q 3 -s 64,9000 -l 4 -Q 2 -I 64 -t 32 -n 200 \
         --mtu 1024 --timeout 18 --warmup 0 --verify --quiet",
    )
    .run()
    .exits(0)
    .is_whole(12);
    assert!(
        ended
            .cases()
            .iter()
            .all(|case| case["config"]["mtu"] == 1024)
    );
}

#[test]
fn without_a_device_the_embedded_one_is_taken_and_says_so() {
    let _alone = alone();
    let ended = Program::new("-n 20 --timeout 18 --warmup 0").run().exits(0);
    if kernel_has_a_device() {
        assert_eq!(ended.json["host"]["device"]["library"], "libibverbs");
        return;
    }
    let ended = ended.says(&[
        "no RDMA device on this machine: taking soft0, the embedded software device",
        "nothing about a network adapter",
    ]);
    let notes = ended
        .stderr
        .lines()
        .filter(|line| line.contains("embedded"));
    assert_eq!(notes.count(), 1, "{}", ended.stderr);
}

#[test]
fn results_are_marked() {
    let _alone = alone();
    let ended = Program::new("--device soft0 -n 20 --timeout 18 --warmup 0 --csv -")
        .run()
        .exits(0)
        .says(&[
            "soft0 is the embedded software device: figures show",
            "no figure here is a network adapter's",
        ])
        .is_whole(1);
    let device = &ended.json["host"]["device"];
    assert_eq!(device["name"], "soft0");
    assert_eq!(device["library"], "embedded");
    assert_eq!(device["software"], true);
    assert_eq!(device["link_gbit_per_s"], Value::Null);
    assert_eq!(device["faults"], Value::Null);
    assert!(
        device["gid"].as_str().unwrap().starts_with("::ffff:127."),
        "{device}"
    );
    let counters = &ended.json["cases"][0]["runs"][0]["device_counters"];
    assert!(counters["packets_sent"].as_u64().unwrap() > 0, "{counters}");
    let row = ended.stdout.lines().nth(1).unwrap();
    assert!(row.ends_with(",embedded,,,"), "{row}");
}

#[test]
fn two_processes_take_an_address_each() {
    let _alone = alone();
    let server = Server::start("-d soft0");
    let port = server.port;
    // Over an address of the network both ends are still on this machine.
    let own = softroce::verbs::devices().unwrap();
    let own = own
        .iter()
        .filter_map(|device| device.address.filter(|it| it.is_ipv4()));
    for host in ["127.0.0.1".to_owned()]
        .into_iter()
        .chain(own.map(|it| it.to_string()))
    {
        let ended = Program::new(&format!(
            "{host}:{port} -d soft0 --op send,write,read -q 2 -n 50 --timeout 18 --warmup 0 --verify --quiet"
        ))
        .run()
        .exits(0)
        .is_whole(3);
        let gid = |end: &str| {
            ended.json[end]["device"]["gid"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(ended.json["peer"]["device"]["library"], "embedded");
        assert_ne!(gid("host"), gid("peer"));
        assert!(
            ended
                .stdout
                .contains("at the other end soft0 is the embedded"),
            "{}",
            ended.stdout
        );
    }
    assert!(!server.end().contains("ended early"));
}

#[test]
fn both_ends_may_share_one_address() {
    let _alone = alone();
    let ended = Program::new(&format!("-d soft0 --faults {FAULTS},seed=5 --op send,write,read -n 60 --timeout 14 --warmup 0 --verify --quiet"))
        .env("SOFTROCE_ADDRESS", "127.77.1.1")
        .run()
        .exits(0)
        .is_whole(3);
    assert_eq!(ended.json["host"]["device"]["gid"], "::ffff:127.77.1.1");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let _alone = alone();
    let _taken = UdpSocket::bind("127.77.2.1:4791").unwrap();
    Program::new("-d soft0 -n 1 --quiet")
        .env("SOFTROCE_ADDRESS", "127.77.2.1")
        .run()
        .exits(1)
        .says(&[
            "soft0 (UDP port 4791 of 127.77.2.1)",
            "in use",
            "hint: another program has that port",
        ]);
}

#[test]
fn faults_lose_and_spoil_nothing() {
    let _alone = alone();
    for seed in 1..=4 {
        let ended = Program::new(&format!(
            "-d soft0 --faults {FAULTS},seed={seed} --op send,write,read -q 3 --cq shared,per-qp -s 100,20000 -n 40 -t 16 \
             --timeout 14 --warmup 0 --verify --quiet"
        ))
        .run()
        .exits(0)
        .is_whole(12);
        let runs = || {
            ended
                .cases()
                .iter()
                .map(|case| &case["runs"][0]["device_counters"])
        };
        let dropped: u64 = runs()
            .filter_map(|counters| counters["fault_tx_dropped"].as_u64())
            .sum();
        assert!(dropped > 10, "{dropped} dropped");
        let recorded = ended.json["host"]["device"]["faults"].as_str().unwrap();
        assert!(
            recorded.starts_with(&format!("seed={seed},drop=0.05")),
            "{recorded}"
        );
    }
}

#[test]
fn a_server_has_faults_of_its_own() {
    let _alone = alone();
    let server = Server::start(&format!("-d soft0 --faults {FAULTS},seed=9"));
    let ended = Program::new(&format!("127.0.0.1:{} -d soft0 -b --op send,write,read -q 2 -n 60 -s 5000 --timeout 14 --warmup 0 --verify --quiet", server.port))
        .run()
        .exits(0)
        .is_whole(3);
    assert_eq!(ended.json["host"]["device"]["faults"], Value::Null);
    let recorded = ended.json["peer"]["device"]["faults"].as_str().unwrap();
    assert!(recorded.starts_with("seed=9,"), "{recorded}");
}

#[test]
fn faults_that_are_none_are_bad_input() {
    for (words, says) in [
        ("--faults drop=5", "from 0% to 100%"),
        (
            "--faults dorp=5%",
            "`dorp=5%` is no fault: there are seed, drop",
        ),
        ("serve --faults delay=5", "`delay=5` is no time"),
    ] {
        Program::new(words).run().exits(2).says(&["--faults", says]);
    }
    Program::new("-n 1")
        .env("SOFTROCE_FAULTS", "drop=x")
        .run()
        .exits(2)
        .says(&["SOFTROCE_FAULTS", "`drop=x` is no probability"]);
}

#[test]
fn a_device_that_is_not_there_is_answered_with_the_embedded_ones() {
    Program::new("-d soft999 -n 1").run().exits(2).says(&[
        "no RDMA device \"soft999\"",
        "soft0 (embedded, loopback)",
        "hint: name one of them",
    ]);
}

#[test]
fn a_network_that_swallows_all_ends_the_run() {
    let _alone = alone();
    let started = Instant::now();
    Program::new(
        "-d soft0 --faults tx.drop=100% --op write -n 10 --timeout 12 --retry-cnt 3 --warmup 0",
    )
    .run()
    .exits(1)
    .says(&["RETRY_EXC_ERR (12)", "hint: check the link"]);
    // 4 x 17 ms, and what connecting takes.
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_servers_death_is_noticed() {
    let _alone = alone();
    for op in ["send", "write", "read"] {
        let mut server = Server::start("-d soft0");
        let mut client = Program::new(&format!(
            "127.0.0.1:{} -d soft0 --op {op} -q 4 -D 60 --timeout 18 --warmup 0",
            server.port
        ));
        let mut child = client
            .command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(700));
        server.kill();
        let killed = Instant::now();
        let status = child.wait().unwrap();
        // Notice within 2 s, and a try to connect again.
        assert!(
            killed.elapsed() < Duration::from_secs(4),
            "{:?}",
            killed.elapsed()
        );
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(
            said.contains("its process ended or died") && said.contains("hint:"),
            "{said}"
        );
        let run = &client.json()["cases"][0]["runs"][0];
        assert_eq!(run["complete"], false);
        assert!(run["totals"]["messages"].as_u64().unwrap() > 0, "{run}");
    }
}

#[test]
fn a_server_outlives_its_client() {
    let _alone = alone();
    let server = Server::start("-d soft0");
    let sweep = |words: &str| {
        Program::new(&format!(
            "127.0.0.1:{} -d soft0 --timeout 18 --warmup 0 {words}",
            server.port
        ))
    };
    let mut killed = sweep("-q 4 -D 60");
    let mut child = killed
        .command
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    child.kill().unwrap();
    child.wait().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    sweep("-q 2 -n 50 --verify --quiet")
        .run()
        .exits(0)
        .is_whole(1);
    let said = server.end();
    assert!(said.contains("session ended early"), "{said}");
}
