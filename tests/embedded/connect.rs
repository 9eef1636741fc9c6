//! Results of `--op connect`, compared and drawn.

use testing::check::connects;
use testing::program::call;

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
