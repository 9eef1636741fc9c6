//! The distributions of latency and bandwidth, in all files of a sweep.

use std::collections::{BTreeMap, BTreeSet};

use testing::server::call;

#[test]
fn both_distributions_are_in_every_file() {
    let ended = call(
        "-d soft0 --op write -b -q 3 -s 4K -D 300ms --warmup 20ms --timeout 18 --quiet --csv-histograms -",
    ).passes();
    let run = &ended.first_run();
    let bandwidth = &run["flows"][0]["bandwidth_gbit_per_s"];
    let intervals = run["flows"][0]["timeline"]["messages"].as_array().unwrap();
    assert_eq!(bandwidth["count"], intervals.len());
    assert_eq!(
        bandwidth["interval_seconds"],
        run["flows"][0]["timeline"]["interval_seconds"]
    );
    let figure = |name: &str| bandwidth[name].as_f64().unwrap();
    let told = run["flows"][0]["totals"]["gbit_per_s"].as_f64().unwrap();
    assert!(figure("min") <= figure("p50") && figure("p50") <= figure("max"));
    assert!(
        figure("min") < told * 1.02 && told * 0.98 < figure("max"),
        "{bandwidth}, {told}"
    );

    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut reader = csv::Reader::from_reader(ended.stdout.as_bytes());
    for row in reader.records().map(Result::unwrap) {
        assert_eq!(
            (&row[0], &row[4]),
            (ended.cases()[0]["id"].as_str().unwrap(), "1")
        );
        *counts
            .entry((row[5].to_owned(), row[8].to_owned()))
            .or_default() += row[11].parse::<u64>().unwrap();
    }
    let back = &run["flows"][1]["bandwidth_gbit_per_s"]["count"];
    let wanted = [
        ("reverse", "bandwidth_kbit_per_s", back),
        ("forward", "bandwidth_kbit_per_s", &bandwidth["count"]),
        (
            "forward",
            "latency_ns",
            &run["flows"][0]["latency_ns"]["count"],
        ),
        (
            "reverse",
            "latency_ns",
            &run["flows"][1]["latency_ns"]["count"],
        ),
    ];
    let wanted = wanted
        .map(|(flow, kind, count)| ((flow.to_owned(), kind.to_owned()), count.as_u64().unwrap()));
    assert_eq!(counts, BTreeMap::from(wanted));
    let names = ended.results();
    let endings = names.iter().map(|name| {
        let last_digit = name.rfind(|it: char| it.is_ascii_digit()).unwrap();
        &name[last_digit + 1..]
    });
    assert_eq!(
        endings.collect::<BTreeSet<_>>(),
        BTreeSet::from([".json", ".csv", "-qps.csv", "-histograms.csv"])
    );
    assert_eq!(names.len(), 4, "{names:?}");
}
