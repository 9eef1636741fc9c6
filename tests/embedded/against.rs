//! `--against perftest` with the real perftest, over the preload library.

use results::Metric;
use results::model::{CaseComparison, Verdict};
use testing::embedded_device::place_beside_the_program;
use testing::process::{Call, Ended};
use testing::program::{Server, call};

/// The comparison of the first case, whose two rounds have figures. They count unless the machine was too busy for a window.
fn comparison(ended: &Ended) -> CaseComparison {
    let comparison = ended.result().cases.remove(0).comparison.unwrap();
    assert_eq!(comparison.rounds.len(), 2);
    let mut ratios = Vec::new();
    for round in &comparison.rounds {
        assert_eq!(round.failure, None);
        let [own, other] = [&round.new, &round.base].map(|side| side[0].unwrap());
        assert!(own > 0.0 && other > 0.0, "{round:?}");
        ratios.extend(round.counts().then_some(own / other));
    }
    ratios.sort_by(f64::total_cmp);
    assert_eq!(comparison.base_count, ratios.len());
    let figures = &comparison.metrics[0];
    assert_eq!(figures.ratio.is_some(), !ratios.is_empty(), "{comparison:?}");
    if let Some(ratio) = figures.ratio {
        let bounds = ratios[0] - 1e-9..=ratios[ratios.len() - 1] + 1e-9;
        assert!(bounds.contains(&ratio), "{comparison:?}");
    }
    // Two rounds have no interval, and tell nothing.
    assert_eq!((figures.low, figures.high), (None, None));
    assert_eq!(comparison.verdict(), Verdict::Unclear);
    comparison
}

/// A comparison of two rounds with each case.
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
        let turns = comparison(&ended);
        assert_eq!(turns.metrics[0].metric, Metric::MmsgPerS);
        assert_eq!((&*turns.base_command[0], &*turns.sides[1]), (program, "rocebench"));
        let version = turns.sides[0].strip_prefix("perftest ").unwrap();
        assert!(version.starts_with(|c: char| c.is_ascii_digit()));
        let line = turns.base_command.join(" ");
        for word in ["-s 4096", "-q 2", "-t 32", "-Q ", its_stop, "-u 18"] {
            assert!(line.contains(word), "no {word} in {line}");
        }
        assert!(line.contains("-d soft0"), "{line}");
        ended.shows(&["new  rocebench", "unclear, ~8 rounds"]);
    }
}

#[test]
fn two_processes_both_directions_and_a_latency_sweep() {
    place_beside_the_program();
    let server = Server::embedded("-d soft0 --allow-perftest");
    let sweep = |words: &str| sweep(|words| server.call(words), words);
    let both = sweep("--op write -s 20000 -b -q 3 -l 4 -Q 2 -n 400");
    let both = comparison(&both);
    assert_eq!(both.metrics[0].metric, Metric::GbitPerS);
    let first = [0, 1].map(|round| &both.rounds[round].first);
    assert_eq!(first, [&both.sides[1], &both.sides[0]]);
    let line = both.base_command.join(" ");
    assert!(line.contains("-l 4 -n 400") && line.contains(" -b "), "{line}");
    // That of READ alone: `ib_write_lat` spins on its memory, and takes for ever where cores are short.
    let latency = sweep("--op read -s 64 --ping-pong -n 500");
    let latency = comparison(&latency);
    let measured = (&*latency.base_command[0], latency.metrics[0].metric);
    assert_eq!(measured, ("ib_read_lat", Metric::P50Ns));
    server.is_idle();
    let log = server.end();
    assert!(log.contains("ib_write_bw") && !log.contains("ended early"), "{log}");
}
