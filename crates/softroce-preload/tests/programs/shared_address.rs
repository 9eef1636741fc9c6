//! Several processes at one address.

use std::time::{Duration, Instant};

use crate::child::machine;
use crate::pair::{finish, start_pair, start_server, succeed};

const AT_ONE_ADDRESS: &str = "SOFTROCE_ADDRESS=127.97.0.2";

#[test]
fn both_ends_of_a_transfer() {
    for program in ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat"] {
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
    let (server, mut client) = start_pair(&program, "-F -n 5000");
    client.works_for(0.1);
    assert!(first.runs() && client.runs());
    first.kill();
    let ended = first.end(Instant::now() + Duration::from_secs(5));
    assert!(!ended.succeeded());
    let pair = finish(server, client);
    assert!(
        pair.server.succeeded() && pair.client.succeeded(),
        "{}",
        pair.report()
    );
}
