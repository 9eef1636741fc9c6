//! The distributions of latency and bandwidth, in all files of a sweep.

use std::collections::BTreeSet;

use testing::program::call;

/// What each file has of them, its own tests state.
#[test]
fn both_distributions_are_in_every_file() {
    let ended = call(
        "-d soft0 --op write -b -q 3 -s 4K -D 300ms --warmup 20ms --timeout 18 --quiet --csv-histograms -",
    ).is_whole(1);
    for flow in &ended.runs()[0].flows {
        let bandwidth = flow.bandwidth_gbit_per_s.as_ref().unwrap();
        let timeline = flow.timeline.as_ref().unwrap();
        assert_eq!(bandwidth.count, timeline.messages.len() as u64);
        assert_eq!(bandwidth.interval_seconds, timeline.interval_seconds);
        let (min, max) = (bandwidth.min, bandwidth.max);
        assert!(bandwidth.p50.is_none_or(|p50| min <= p50 && p50 <= max));
        let mean = flow.totals.gbit_per_s.unwrap();
        assert!(min < mean * 1.02 && mean * 0.98 < max, "{bandwidth:?}, {mean}");
    }
    let rows = ended.file("-histograms.csv");
    assert_eq!(ended.stdout.trim_end(), rows.trim_end());
    for kind in ["latency_ns", "bandwidth_kbit_per_s"] {
        for flow in ["forward", "reverse"] {
            assert!(rows.lines().any(|row| row.contains(kind) && row.contains(flow)));
        }
    }
    let names = ended.results();
    let endings = names.iter().map(|name| name.split_once('Z').unwrap().1);
    assert_eq!(
        endings.collect::<BTreeSet<_>>(),
        BTreeSet::from([".json", ".csv", "-qps.csv", "-histograms.csv"])
    );
    assert_eq!(names.len(), 4, "{names:?}");
}
