//! Several processes at one address, and processes that are killed.

use std::fs;
use std::path::PathBuf;

use crate::child::{SOON, machine};
use crate::pair::{finish_well, start_pair, start_server, succeed};
use testing::wait::wait_until;

/// A folder to which `SOFTROCE_PCAP` leads: each process writes a file of its own there.
struct Captures(PathBuf);

impl Captures {
    fn new(name: &str) -> Captures {
        let name = format!("softroce-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Captures(folder)
    }

    fn variable(&self) -> String {
        format!("SOFTROCE_PCAP={}", self.0.join("run.pcap").display())
    }

    /// Whether so many ends have packets that carry messages, not only those that connect them.
    fn moves(&self, ends: usize) -> bool {
        fs::read_dir(&self.0)
            .unwrap()
            .map(|file| file.unwrap())
            .map(|file| file.metadata().map_or(0, |it| it.len()))
            .filter(|bytes| *bytes > 200_000)
            .count()
            >= ends
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const AT_ONE_ADDRESS: &str = "SOFTROCE_ADDRESS=127.97.0.2";

#[test]
fn both_ends_of_a_transfer() {
    for program in ["ib_write_bw", "ib_read_bw"] {
        succeed(&format!("{AT_ONE_ADDRESS} {program}"), "-F -n 400");
    }
    let program = format!("{AT_ONE_ADDRESS} ib_send_bw");
    succeed(&program, "-F -n 100 -c UD -s 1024");
    succeed("SOFTROCE_ADDRESS=::1 ib_send_bw", "-F -n 400");
}

#[test]
fn the_death_of_one_does_not_concern_the_others() {
    let _machine = machine();
    let program = format!("{AT_ONE_ADDRESS} ib_write_bw");
    // The first has the first of the address' sockets, and gave the others theirs.
    let (mut first, _) = start_server(&program, "-F");
    let captures = Captures::new("shared");
    let program = format!("{} {program}", captures.variable());
    let (server, client) = start_pair(&program, "-F -D 2 -x 0");
    wait_until("messages of both ends", SOON, || captures.moves(2));
    assert!(first.runs());
    first.kill();
    finish_well(server, client.wait());
}

/// A peer killed during a run: the other end gets a completion error instead of waiting for ever. RC reports a dead peer
/// only to who has sent it something, so both send all the time.
#[test]
fn the_end_that_survives_sees_the_other_go() {
    let _machine = machine();
    for (program, arguments, kill_server) in [
        ("ib_send_bw", "-n 1000000 -e", true),
        ("ib_send_bw", "-D 60 -b", false),
        ("ib_write_bw", "-D 60 -q 4", true),
        ("ib_read_bw", "-D 60", true),
    ] {
        let captures = Captures::new("vanished");
        let program = format!("{} {program}", captures.variable());
        let (server, client) = start_pair(&program, &format!("-F {arguments}"));
        wait_until("messages of both ends", SOON, || captures.moves(2));
        let (victim, survivor) = if kill_server { (server, client) } else { (client, server) };
        victim.kill();
        let survivor = survivor.wait();
        let report = survivor.output();
        // IBV_WC_RETRY_EXC_ERR, or where perftest looks at its receives first, that of their flush.
        let mut statuses = ["Failed status 12", "Failed status 5"].into_iter();
        let is_told = statuses.any(|status| report.contains(status));
        assert!(is_told && survivor.code != Some(0), "{report}");
    }
}
