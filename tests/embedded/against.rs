//! `--against perftest` with the real perftest, over the preload library.

use results::model::PerftestComparison;
use testing::embedded_device::place_beside_the_program;
use testing::program::{Call, Ended, Server, call};

/// The comparison of the first case, whose two pairs have figures. They count unless the machine was too busy for a window.
fn comparison(ended: &Ended) -> PerftestComparison {
    let comparison = ended.result().cases.remove(0).perftest.unwrap();
    assert_eq!(comparison.pairs.len(), 2);
    let mut ratios = Vec::new();
    for pair in &comparison.pairs {
        assert_eq!(pair.failure, None);
        let [own, other] = [pair.rocebench, pair.perftest].map(Option::unwrap);
        assert!(own > 0.0 && other > 0.0, "{pair:?}");
        assert_eq!(pair.counted().is_some(), pair.doubt.is_none());
        ratios.extend(pair.counted().map(|(ours, theirs)| ours / theirs));
    }
    ratios.sort_by(f64::total_cmp);
    assert_eq!(comparison.ratio.is_some(), !ratios.is_empty(), "{comparison:?}");
    if let Some(ratio) = comparison.ratio {
        let bounds = ratios[0] - 1e-9..=ratios[ratios.len() - 1] + 1e-9;
        assert!(bounds.contains(&ratio), "{comparison:?}");
    }
    // Two pairs have no interval.
    assert_eq!((comparison.ratio_low, comparison.ratio_high), (None, None));
    comparison
}

/// A comparison of two pairs with each case.
fn sweep(call: impl Fn(&str) -> Call, words: &str) -> Ended {
    let how = "--warmup 0 --timeout 18 --against perftest --pairs 2 --max-pairs 2";
    call(&format!("{how} {words}")).passes()
}

#[test]
fn every_operation_beside_its_program() {
    place_beside_the_program();
    // A run of perftest's by time takes two seconds.
    for (op, program, stop, its_stop) in [
        ("send", "ib_send_bw", "-D 200ms", "-D 1 -f 0"),
        ("write", "ib_write_bw", "-n 500", "-n 500"),
        ("read", "ib_read_bw", "-n 500", "-n 500"),
    ] {
        let ended = sweep(call, &format!("-d soft0 --op {op} -s 4K -t 32 -r 64 -q 2 {stop}"));
        let pairs = comparison(&ended);
        // Two pairs tell nothing.
        let words = [&pairs.program, &pairs.metric, &pairs.verdict];
        assert_eq!(words, [program, "mmsg_per_s", "unclear"]);
        let version = pairs.version.unwrap();
        assert!(version.starts_with(|c: char| c.is_ascii_digit()));
        let line = pairs.arguments.join(" ");
        for word in ["-s 4096", "-q 2", "-t 32", "-Q ", its_stop, "-u 18"] {
            assert!(line.contains(word), "no {word} in {line}");
        }
        assert!(line.contains("-d soft0"), "{line}");
        ended.shows(&["rocebench is", "unclear (1)", "at least 8 pairs"]);
    }
}

#[test]
fn two_processes_both_directions_and_a_latency_sweep() {
    place_beside_the_program();
    let server = Server::embedded("-d soft0 --allow-perftest");
    let sweep = |words: &str| sweep(|words| server.call(words), words);
    let both = sweep("--op write -s 20000 -b -q 3 -l 4 -Q 2 -n 400");
    let both = comparison(&both);
    assert_eq!(both.metric, "gbit_per_s");
    let first = [0, 1].map(|pair| &*both.pairs[pair].first);
    assert_eq!(first, ["rocebench", "perftest"]);
    let line = both.arguments.join(" ");
    assert!(line.contains("-l 4 -n 400") && line.contains(" -b "), "{line}");
    // That of READ alone: `ib_write_lat` spins on its memory, and takes for ever where cores are short.
    let latency = sweep("--op read -s 64 --ping-pong -n 500");
    let latency = comparison(&latency);
    let measured = [&*latency.program, &*latency.metric];
    assert_eq!(measured, ["ib_read_lat", "latency_ns"]);
    server.is_idle();
    let log = server.end();
    assert!(log.contains("ib_write_bw") && !log.contains("ended early"), "{log}");
}
