//! Several processes at one address.

use crate::captures::Captures;
use crate::child::{SOON, machine};
use crate::pair::{finish_well, start_pair, start_server, succeed};
use testing::wait::wait_until;

const AT_ONE_ADDRESS: &str = "SOFTROCE_ADDRESS=127.97.0.2";

#[test]
fn both_ends_of_a_transfer() {
    for program in ["ib_write_bw", "ib_read_bw"] {
        succeed(&format!("{AT_ONE_ADDRESS} {program}"), "-F -n 400");
    }
    succeed(
        &format!("{AT_ONE_ADDRESS} ib_send_bw"),
        "-F -n 100 -c UD -s 1024",
    );
    succeed("SOFTROCE_ADDRESS=::1 ib_send_bw", "-F -n 400");
}

#[test]
fn the_death_of_one_does_not_concern_the_others() {
    let _machine = machine();
    let program = format!("{AT_ONE_ADDRESS} ib_write_bw");
    // The first has the first of the address' sockets, and gave the others theirs.
    let (mut first, _) = start_server(&program, "-F", "-p");
    let captures = Captures::new("shared");
    let program = format!("{} {program}", captures.variable());
    let (server, client) = start_pair(&program, "-F -D 2 -x 0");
    wait_until("messages of both ends", SOON, || captures.moves(2));
    assert!(first.runs());
    first.kill();
    finish_well(server, client.end());
}
