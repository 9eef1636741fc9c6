//! rocebench between two hosts, in guests of the lab: `scripts/device-tests` runs it in the client's guest, while
//! `rocebench serve` runs in the server's. Anywhere else everything here fails.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use results::model::ResultFile;
use settings::ConnectMode;
use testing::network::Loss;
use testing::process::{Signal, run};
use testing::program::{rocebench, sweep};
use testing::sessions::{LONG, Way};
use testing::wait::{wait_or_tell, wait_until};

/// The other guest's name.
const SERVER: &str = "server";

/// What another guest takes to start a program or to notice what happened.
const SOON: Duration = Duration::from_secs(10);

/// Packets lost on the other guest's way out, until dropped. Its commands do not go over the wire.
struct PeerLoss;

impl PeerLoss {
    fn of_all(percent: &str) -> PeerLoss {
        run(&format!("lab-peer tc qdisc replace dev eth0 root netem limit 100000 loss {percent}"));
        PeerLoss
    }
}

impl Drop for PeerLoss {
    fn drop(&mut self) {
        let arguments = "tc qdisc del dev eth0 root".split(' ');
        let _ = Command::new("lab-peer").args(arguments).status();
    }
}

/// A server needs a moment after its start.
fn await_listener(port: u16) {
    let what = format!("the server on port {port}");
    wait_until(&what, SOON, || TcpStream::connect((SERVER, port)).is_ok());
}

/// The result of a sweep of which all is complete and right.
fn whole(line: &str, cases: usize) -> ResultFile {
    await_listener(18515);
    sweep(line).is_whole(cases).result()
}

fn serves_on() {
    whole(&format!("{SERVER} -n 20 --warmup 0 -s 64"), 1);
}

/// By a proxy in this guest.
fn way(port: u16) -> Way<'static> {
    await_listener(port);
    let mut addresses = (SERVER, port).to_socket_addrs().unwrap();
    Way { proxy: "10.77.0.2", server: addresses.find(std::net::SocketAddr::is_ipv4).unwrap() }
}

/// What the other guest's server writes from now on; its stderr is a file in the folder that the guests share.
struct ServerLog {
    file: PathBuf,
    before: usize,
}

impl ServerLog {
    fn from_now() -> ServerLog {
        let folder = PathBuf::from(std::env::var("LAB_OUT").unwrap());
        let mut log = ServerLog { file: folder.join("serve-server.log"), before: 0 };
        log.before = log.text().len();
        log
    }

    fn text(&self) -> String {
        let text = std::fs::read_to_string(&self.file).unwrap();
        text[self.before..].to_owned()
    }

    fn await_words(&self, words: &str) {
        wait_or_tell(
            SOON,
            || self.text().contains(words).then_some(()),
            || format!("{words:?} of the server, which said {}", self.text()),
        );
    }
}

#[test]
fn all_operations() {
    let how = "-q 4 -s 64,64K -n 9 -t 4 -r 8 --workers 2 --verify --warmup 0";
    let result = whole(&format!("{SERVER} --op send,write,read {how}"), 6);
    let names = result.nodes.iter().map(|node| &*node.host.hostname);
    assert_eq!(names.collect::<Vec<_>>(), ["client", SERVER]);
}

/// By time: the two have clocks of their own.
#[test]
fn both_directions_over_ipv6() {
    let how = "-b -q 3 -s 4K -D 500ms --warmup 100ms -t 8 --verify";
    let result = whole(&format!("server6 --op send,write,read {how}"), 3);
    let gid = result.nodes[0].devices[0].gid.as_ref().unwrap();
    assert!(gid.starts_with("fd77:"), "{gid}");
}

#[test]
fn connected_by_rdma_cm() {
    let short = "--connect cm -n 15 -t 4 -r 8 -s 4K --verify --warmup 0";
    let over_ipv4 = whole(&format!("{SERVER} {short} --op send,write,read -q 1,16"), 6);
    let over_ipv6 = whole(&format!("server6 -b -q 3 {short}"), 1);
    for case in over_ipv4.cases.iter().chain(&over_ipv6.cases) {
        assert_eq!(case.config.connect, ConnectMode::Cm);
    }
    let gid = over_ipv6.nodes[0].devices[0].gid.as_ref().unwrap();
    assert!(gid.starts_with("fd77:"), "{gid}");
}

#[test]
fn one_percent_of_loss() {
    let (here, there) = (Loss::of_all("eth0", "1%"), PeerLoss::of_all("1%"));
    let how = "-q 2 -s 16K -t 4 -r 8 -n 100 --verify --warmup 0 --timeout 17";
    whole(&format!("{SERVER} --op send,write,read {how}"), 3);
    assert!(here.dropped() > 0, "nothing was lost, so nothing was tested");
    drop((here, there));
}

/// The wire is cut one way at a time: the end that hears nothing any more says that the other one is silent.
#[test]
fn a_wire_that_is_cut() {
    for server_hears in [false, true] {
        let way = way(18515);
        let log = ServerLog::from_now();
        let client = way.client_in_the_window(&format!("{LONG} --timeout 20"));
        if server_hears {
            let loss = PeerLoss::of_all("100%");
            client.await_line(0, "silent", SOON);
            drop(loss);
        } else {
            let loss = Loss::of_all("eth0", "100%");
            log.await_words("silent");
            drop(loss);
        }
        let run = client.wait().exits(1).runs().remove(0);
        assert!(!run.complete && run.flows[0].totals.messages > 0);
        serves_on();
    }
}

#[test]
fn a_server_killed_over_there() {
    let serve = format!("{} serve -p 19000", rocebench().display());
    // It ends with the guest.
    let mut server = Command::new("lab-peer")
        .args(serve.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = way(19000).client_in_the_window(LONG);
    run("lab-peer pkill -KILL -f serve.-p.19000");
    let ended = client.wait().exits(1).says(&["closed the connection"]);
    assert!(ended.runs()[0].flows[0].totals.messages > 0);
    assert!(!server.wait().unwrap().success());
    serves_on();
}

#[test]
fn a_client_killed_over_here() {
    let way = way(18515);
    let log = ServerLog::from_now();
    let client = way.client_in_the_window(LONG);
    client.signal(Signal::Kill);
    log.await_words("closed the connection");
    drop(client.wait());
    serves_on();
}
