//! `--against perftest` on a device of the kernel's, server and client each with their own perftest.

use testing::check;
use testing::network::LOST_ITS_CLOCK;
use testing::program::Server;

/// Of perftest's runs only those may not count in which it says that it does not know its clock's rate.
#[test]
fn perftest_beside_rocebench_on_soft_roce() {
    let server = Server::with("--allow-perftest");
    let ended = server.call(
        "--op write -s 4K -q 2 -t 16 -n 50 --against perftest --pairs 2 --max-pairs 2 --perftest-limit 5m -m 1024 \
         --warmup 0 --timeout 18",
    ).run();
    let result = check::complete(&ended);
    let comparison = result.cases[0].comparison.as_ref().unwrap();
    assert_eq!(comparison.rounds.len(), 2);
    let mut counting = 0;
    for round in &comparison.rounds {
        let output = round.output.as_deref().unwrap_or_default();
        match &round.failure {
            None => {
                assert!(round.new[0] > Some(0.0) && round.base[0] > Some(0.0));
                counting += 1;
            }
            Some(why) => assert!(output.contains(LOST_ITS_CLOCK), "{why}: {output}"),
        }
    }
    let line = comparison.base_command.join(" ");
    for words in ["-x 1 ", "-m 1024", "-d rxe0"] {
        assert!(line.contains(words), "{line}");
    }
    // A comparison without a pair that counts fails the sweep.
    ended.exits(i32::from(counting == 0));
    server.end();
}
