//! `--against perftest` on a device of the kernel's, server and client each with their own perftest.

use testing::check;
use testing::program::words;
use testing::server::Server;

#[test]
fn perftest_beside_rocebench_on_soft_roce() {
    let server = Server::with(&["--allow-perftest"]);
    let ended = server.sweep(&words(
        "--op send,write,read -s 4K -q 2 -t 16 -r 64 -n 200 --against perftest --pairs 2 --max-pairs 2 \
         --perftest-limit 60s -m 1024 --warmup 0 --timeout 18",
    ));
    let result = check::complete(&ended.exits(0));
    assert_eq!(result.cases.len(), 3);
    for case in &result.cases {
        let comparison = case.perftest.as_ref().unwrap();
        let pair = &comparison.pairs[0];
        assert_eq!(pair.failure, None, "{:?}", pair.output);
        assert!(pair.perftest > Some(0.0) && pair.rocebench > Some(0.0));
        let line = comparison.arguments.join(" ");
        assert!(line.contains("-x 1 ") && line.contains("-m 1024"), "{line}");
        assert!(line.contains("-d rxe0"), "{line}");
    }
    server.end();
}
