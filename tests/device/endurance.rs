//! A server that has served many clients is as it was: no object of the kernel's, no thread and no file is left over.

use testing::program::Server;
use testing::sessions::{Wire, case};

use crate::session::{await_freed, both_hold};

#[test]
fn many_sessions_leave_nothing() {
    let server = Server::start();
    let whole = || server.call("-n 20 --warmup 0 -q 4 -s 4K --op send,read");
    whole().passes();
    let before = both_hold();
    let figures = || ["fd", "task"].map(|folder| server.program.count(folder));
    let figures_before = figures();
    for _ in 0..4 {
        whole().passes();
        for _ in 0..3 {
            // One that dies with the server's objects made.
            let lines = server.program.lines().len();
            let mut wire = Wire::session(&server.name);
            wire.create(&case([("qps", "8")]));
            drop(wire);
            server.says(lines, "closed the connection");
        }
        await_freed(&before);
    }
    // A thread may be kept for the next session.
    for (at_first, after) in figures_before.into_iter().zip(figures()) {
        assert!(after <= at_first + 2, "{at_first} files or threads, then {after}");
    }
    server.serves_the_next();
    server.end();
}
