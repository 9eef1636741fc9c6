//! `--against perftest` on a device of the kernel's, server and client each with their own perftest.

use testing::check;
use testing::perftest::LOST_ITS_CLOCK;
use testing::program::words;
use testing::server::Server;

/// Of perftest's runs only those may not count in which it says that it does not know its clock's rate.
#[test]
fn perftest_beside_rocebench_on_soft_roce() {
    let server = Server::with(&["--allow-perftest"]);
    let ended = server.sweep(&words(
        "--op send,write,read -s 4K -q 2 -t 16 -r 64 -n 200 --against perftest --pairs 2 --max-pairs 2 \
         --perftest-limit 60s -m 1024 --warmup 0 --timeout 18",
    ));
    let result = check::complete(&ended);
    assert_eq!(result.cases.len(), 3);
    let mut empty = 0;
    for case in &result.cases {
        let comparison = case.perftest.as_ref().unwrap();
        assert_eq!(comparison.pairs.len(), 2);
        let mut counting = 0;
        for pair in &comparison.pairs {
            let said = pair.output.as_deref().unwrap_or_default();
            match &pair.failure {
                None => {
                    assert!(pair.rocebench > Some(0.0) && pair.perftest > Some(0.0));
                    counting += 1;
                }
                Some(why) => assert!(said.contains(LOST_ITS_CLOCK), "{why}: {said}"),
            }
        }
        empty += i32::from(counting == 0);
        let line = comparison.arguments.join(" ");
        for words in ["-x 1 ", "-m 1024", "-d rxe0"] {
            assert!(line.contains(words), "{line}");
        }
    }
    // A comparison without a pair that counts fails the sweep.
    ended.exits(i32::from(empty > 0));
    server.end();
}
