//! `--against perftest` with the real perftest, over the preload library.

use serde_json::Value;

use testing::preload::place_beside_the_program;
use testing::program::{Call, Ended};
use testing::server::{Server, call};

/// The comparison of each case, whose pairs must all count.
pub fn comparisons(ended: &Ended, pairs: usize) -> Vec<&Value> {
    let all: Vec<_> = ended.cases().iter().map(|it| &it["perftest"]).collect();
    for comparison in &all {
        let told = comparison["pairs"].as_array().unwrap();
        assert_eq!(told.len(), pairs, "{comparison}");
        for pair in told {
            assert_eq!(pair["failure"], Value::Null, "{pair}");
            for side in ["rocebench", "perftest"] {
                assert!(pair[side].as_f64().unwrap() > 0.0, "{pair}");
            }
        }
        let ratio = comparison["ratio"].as_f64().unwrap();
        let figure = |pair: &Value, side: &str| pair[side].as_f64().unwrap();
        let ratios = told.iter();
        let ratios = ratios.map(|pair| figure(pair, "rocebench") / figure(pair, "perftest"));
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        let bounds = ratios[0] - 1e-9..=ratios[pairs - 1] + 1e-9;
        assert!(bounds.contains(&ratio), "{comparison}");
        // Two pairs have no interval.
        for end in ["ratio_low", "ratio_high"] {
            assert_eq!(comparison[end].is_null(), pairs == 2, "{comparison}");
        }
    }
    all
}

/// A comparison of two pairs with each case.
fn sweep(call: impl Fn(&str) -> Call, words: &str) -> Ended {
    let how = "--warmup 0 --timeout 18 --against perftest --pairs 2 --max-pairs 2";
    call(&format!("{how} {words}")).passes()
}

fn arguments(comparison: &Value) -> String {
    let words = comparison["arguments"].as_array().unwrap();
    let words: Vec<_> = words.iter().map(|word| word.as_str().unwrap()).collect();
    words.join(" ")
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
        let ended = sweep(
            call,
            &format!("-d soft0 --op {op} -s 4K -t 32 -r 64 -q 2 {stop}"),
        );
        let comparison = comparisons(&ended, 2)[0];
        assert_eq!(comparison["program"], program);
        assert_eq!(comparison["metric"], "mmsg_per_s");
        assert_eq!(comparison["verdict"], "unclear", "two pairs tell nothing");
        let version = comparison["version"].as_str().unwrap();
        assert!(version.starts_with(|c: char| c.is_ascii_digit()));
        let line = arguments(comparison);
        for word in ["-s 4096", "-q 2", "-t 32", "-Q ", its_stop, "-u 18"] {
            assert!(line.contains(word), "no {word} in {line}");
        }
        assert!(line.contains("-d soft0"), "{line}");
        ended.shows(&["rocebench is", "unclear (1)", "fewer than 8 pairs"]);
    }
}

#[test]
fn two_processes_both_directions_and_a_latency_sweep() {
    place_beside_the_program();
    let server = Server::embedded("-d soft0 --allow-perftest");
    let sweep = |words: &str| sweep(|all| server.call(all), words);
    let both = sweep("--op write -s 20000 -b -q 3 -l 4 -Q 2 -n 400");
    let both = comparisons(&both, 2)[0];
    assert_eq!(both["metric"], "gbit_per_s");
    assert_eq!(both["pairs"][0]["first"], "rocebench");
    assert_eq!(both["pairs"][1]["first"], "perftest");
    let line = arguments(both);
    assert!(
        line.contains("-l 4 -n 400") && line.contains(" -b "),
        "{line}"
    );
    // That of READ alone: `ib_write_lat` spins on its memory, and takes for ever where cores are short.
    let latency = sweep("--op read -s 64 -t 1 -Q 1 -n 500");
    let latency = comparisons(&latency, 2)[0];
    assert_eq!(latency["program"], "ib_read_lat");
    assert_eq!(latency["metric"], "latency_ns");
    server.is_idle();
    let said = server.end();
    assert!(
        said.contains("ib_write_bw") && !said.contains("ended early"),
        "{said}"
    );
}
