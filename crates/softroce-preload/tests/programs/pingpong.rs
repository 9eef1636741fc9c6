//! The four ping-pongs of ibverbs-utils.

use crate::pair::succeed;

/// Runs a ping-pong and checks that it moved all bytes both ways, and that it took too little time for a lost
/// wake-up.
fn play(program: &str, arguments: &str, size: u64, iterations: u64) {
    let arguments = format!("-d soft0 -g 0 -s {size} -n {iterations} {arguments}");
    let pair = succeed(program, &arguments);
    for end in [&pair.server, &pair.client] {
        let word_before = |what: &str| {
            let line = end.stdout.lines().find(|line| line.contains(what));
            let words: Vec<_> = line.unwrap_or_default().split_whitespace().collect();
            let place = words.iter().position(|word| *word == what);
            place.map_or("", |place| words[place - 1]).to_owned()
        };
        assert_eq!(
            word_before("bytes"),
            (size * iterations * 2).to_string(),
            "{}",
            pair.report()
        );
        assert_eq!(
            word_before("iters"),
            iterations.to_string(),
            "{}",
            pair.report()
        );
        let us: f64 = word_before("usec/iter").parse().unwrap();
        assert!(us > 0.0 && us < 20_000.0, "{}", pair.report());
    }
}

#[test]
fn rc_by_polling() {
    play("ibv_rc_pingpong", "-c", 4096, 1000);
}

#[test]
fn rc_with_events() {
    play("ibv_rc_pingpong", "-c -e", 4096, 1000);
}

#[test]
fn rc_with_the_extended_interface() {
    play("ibv_rc_pingpong", "-c -N", 4096, 500);
    play("ibv_rc_pingpong", "-c -N -e", 1, 500);
}

#[test]
fn rc_with_stamps_of_completions() {
    play("ibv_rc_pingpong", "-c -t", 4096, 500);
    play("ibv_rc_pingpong", "-c -t -N", 1, 500);
}

#[test]
fn rc_of_many_sizes() {
    for (size, mtu) in [(1, 1024), (1025, 1024), (100_000, 256), (1 << 20, 4096)] {
        play("ibv_rc_pingpong", &format!("-c -m {mtu}"), size, 100);
    }
}

#[test]
fn srq_by_polling() {
    play("ibv_srq_pingpong", "-c", 4096, 1000);
    play("ibv_srq_pingpong", "-c -q 1", 65_536, 100);
}

#[test]
fn srq_with_events() {
    play("ibv_srq_pingpong", "-c -e", 4096, 1000);
}

#[test]
fn uc_by_polling() {
    play("ibv_uc_pingpong", "-c", 4096, 1000);
}

#[test]
fn uc_with_events() {
    play("ibv_uc_pingpong", "-c -e", 4096, 1000);
}

#[test]
fn ud_by_polling() {
    play("ibv_ud_pingpong", "-c", 2048, 1000);
}

#[test]
fn ud_with_events() {
    play("ibv_ud_pingpong", "-c -e", 2048, 1000);
}
