//! `--op connect`: every connection is counted at every step, and traffic goes on meanwhile. Its deaths are in `deaths`.

use testing::check::connects;
use testing::program::{Ended, Server, call};

fn check_all(ended: &Ended, cases: usize, rounds: u64) {
    let connected = ended.result().cases;
    assert_eq!(connected.len(), cases);
    connected.iter().for_each(|case| connects(case, rounds));
}

#[test]
fn every_connection_is_counted_at_every_step_beside_traffic_and_alone() {
    let ended = call(
        "-d soft0 --op connect -q 1,16 --traffic-qps 0,2 -s 4K -n 5 --warmup 20ms --timeout 18 --quiet",
    ).passes();
    check_all(&ended, 4, 5);
    let ids: Vec<_> = ended.cases().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "connect-q1-T0",
            "connect-shared-q1-4KiB-T2",
            "connect-q16-T0",
            "connect-shared-q16-4KiB-T2",
        ]
    );
    ended.shows(&["qps traffic connections/s rounds"]);
    let steps = ended.stdout.matches("    create    a QP").count();
    assert_eq!(steps, 4, "{}", ended.stdout);
}

#[test]
fn thousands_of_queue_pairs_in_two_processes() {
    let server = Server::embedded("-d soft0");
    let ended =
        server.call("--op connect -q 2048 -s 4K -n 2 --warmup 0 --timeout 18 --quiet").passes();
    check_all(&ended, 1, 2);
    server.is_idle();
    assert!(!server.end().contains("ended early"));
}

#[test]
fn its_results_are_compared_and_drawn() {
    let ended = call(
        "-d soft0 --op write,connect -q 1,4 -s 4K -n 100 --runs 2 --warmup 20ms --timeout 18 --quiet",
    ).passes();
    let cases = ended.result().cases;
    assert_eq!(cases.len(), 4);
    cases[2..].iter().for_each(|case| connects(case, 100));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.json");
    std::fs::write(&file, ended.file(".json")).unwrap();
    let path = file.to_str().unwrap();
    let comparison = call(&format!("compare {path} {path} --json -")).run().document();
    let connect = &comparison["cases"][3];
    assert_eq!(connect["id"], "connect-shared-q4-4KiB");
    let metrics = connect["metrics"].as_array().unwrap();
    let metric = |name: &str| metrics.iter().find(|it| it["metric"] == name);
    let rate = metric("connections_per_s").unwrap();
    assert_eq!(rate["ratio"], 1.0);
    assert_eq!(rate["higher_is_better"], true);
    // 100 rounds tell no p99.
    assert!(metric("setup_p99_ns").is_none());
    let writes = comparison["cases"][0]["metrics"].as_array().unwrap();
    assert!(writes.iter().all(|it| it["metric"] != "connections_per_s"));
    let plots = folder.path().join("plots");
    call(&format!("plot {path} -o {}", plots.display())).passes();
    let page = std::fs::read_to_string(plots.join("index.html")).unwrap();
    for words in ["connect-shared-q4-4KiB", "connections/s", "Steps of set-up"] {
        assert!(page.contains(words), "no {words:?}");
    }
    assert!(plots.join("set-up-by-qps.svg").exists());
}
