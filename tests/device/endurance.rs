//! A server that has served many clients is as it was: no memory, thread, file or process is left over.

use testing::program::words;
use testing::server::Server;
use testing::wire::{Wire, case};

const SESSION: &str = "-n 20 --warmup 0 -q 4 -s 4K --op send,read";

#[test]
fn many_sessions_leave_nothing() {
    let server = Server::start();
    let mut before = (0, 0, 0);
    for session in 0..16 {
        if session % 4 == 0 {
            server.sweep(&words(SESSION)).exits(0);
        } else {
            let lines = server.program.lines().len();
            // One that dies with the server's objects made.
            let mut wire = Wire::session(&server.name);
            wire.create(&case([("qps", "8")]));
            drop(wire);
            server.says(lines, "closed the connection");
        }
        if session == 5 {
            before = figures(&server);
        }
    }
    server.serves_the_next();
    let after = figures(&server);
    assert!(
        after.0 < before.0 + 16 * 1024,
        "resident KiB: {} then {}",
        before.0,
        after.0
    );
    assert!(
        after.1 <= before.1 + 2,
        "open files: {} then {}",
        before.1,
        after.1
    );
    assert!(
        after.2 <= before.2 + 1,
        "threads: {} then {}",
        before.2,
        after.2
    );
    server.end();
}

fn figures(server: &Server) -> (u64, usize, usize) {
    // The last session's objects are gone when its port answers to the next.
    std::thread::sleep(std::time::Duration::from_millis(500));
    (
        server.program.resident_kib(),
        server.program.count("fd"),
        server.program.count("task"),
    )
}
