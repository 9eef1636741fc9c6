//! A peer killed during a run: the other end gets a completion error instead of waiting for ever. RC reports a dead peer
//! only to who has sent it something, so both send all the time.

use crate::captures::Captures;
use crate::child::{SOON, machine};
use crate::pair::start_pair;
use testing::wait::wait_until;

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
        let (victim, survivor) = match kill_server {
            true => (server, client),
            false => (client, server),
        };
        victim.kill();
        let survivor = survivor.end();
        let report = survivor.to_string();
        assert!(!survivor.succeeded(), "{report}");
        // IBV_WC_RETRY_EXC_ERR, or where perftest looks at its receives first, that of their flush.
        let statuses = ["Failed status 12", "Failed status 5"];
        assert!(
            statuses.iter().any(|status| report.contains(status)),
            "{report}"
        );
    }
}
