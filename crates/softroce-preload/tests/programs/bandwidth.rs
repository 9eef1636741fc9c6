//! perftest's `ib_*_bw`.

use crate::perftest::{all_sizes, figures, some_sizes};

/// Runs a program and checks its rows: their sizes, that they have a rate, and the number of messages if given.
fn measure(program: &str, arguments: &str, sizes: &[f64], messages: Option<f64>) {
    let (pair, rows) = figures(program, arguments);
    let measured: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(measured, sizes, "{}", pair.report());
    for row in &rows {
        let [_, iterations, _, average, rate] = row[..] else {
            panic!("{row:?}\n{}", pair.report());
        };
        assert!(
            messages.is_none_or(|messages| iterations == messages),
            "{}",
            pair.report()
        );
        assert!(rate > 0.0 && average >= 0.0, "{}", pair.report());
        // For small messages on a busy machine the average has too few decimals.
        assert!(average > 0.0 || row[0] < 4096.0, "{}", pair.report());
    }
}

/// 64 KiB, perftest's default.
const SIZE: [f64; 1] = [65_536.0];

fn plain(program: &str) {
    measure(program, "-n 400", &SIZE, Some(400.0));
}

fn many_qps(program: &str) {
    measure(program, "-n 50 -q 16 -t 32", &SIZE, Some(800.0));
}

fn both_ways(program: &str) {
    measure(program, "-n 400 -b", &SIZE, Some(400.0));
    measure(program, "-n 20 -b -q 16 -t 16", &SIZE, Some(320.0));
}

fn sizes(program: &str) {
    for size in some_sizes() {
        let arguments = format!("-n 20 -t 16 -s {size}");
        measure(program, &arguments, &[size.into()], Some(20.0));
    }
}

#[test]
fn send() {
    plain("ib_send_bw");
}

#[test]
fn send_on_many_qps() {
    many_qps("ib_send_bw");
}

#[test]
fn send_both_ways() {
    both_ways("ib_send_bw");
}

#[test]
fn send_of_all_sizes() {
    measure("ib_send_bw", "-n 20 -t 16 -r 16 -a", &all_sizes(), None);
}

#[test]
fn send_with_events() {
    measure("ib_send_bw", "-n 400 -e", &SIZE, Some(400.0));
    measure("ib_send_bw", "-n 20 -e -b -q 16", &SIZE, Some(320.0));
}

#[test]
fn send_on_unreliable_services() {
    // A full socket drops packets, and perftest waits for them for ever; this many fit into the smallest socket.
    measure("ib_send_bw", "-n 16 -c UC -s 8192", &[8192.0], None);
    measure("ib_send_bw", "-n 100 -c UD -s 1024", &[1024.0], None);
}

#[test]
fn send_of_small_messages() {
    measure(
        "ib_send_bw",
        "-n 2000 -s 64 --inline_size 64",
        &[64.0],
        Some(2000.0),
    );
    measure(
        "ib_send_bw",
        "-n 6400 -s 64 -l 32 -r 512",
        &[64.0],
        Some(6400.0),
    );
}

#[test]
fn send_to_a_shared_receive_queue() {
    measure("ib_send_bw", "-n 100 --use-srq -q 4", &SIZE, Some(400.0));
}

#[test]
fn send_for_a_time() {
    measure("ib_send_bw", "-D 1 -x 0 --report_gbits", &SIZE, None);
}

#[test]
fn send_by_the_old_interface() {
    measure(
        "ib_send_bw",
        "-n 400 --use_old_post_send",
        &SIZE,
        Some(400.0),
    );
}

#[test]
fn write() {
    plain("ib_write_bw");
    measure("ib_write_bw", "-n 400 -c UC -m 1024", &SIZE, Some(400.0));
}

#[test]
fn write_on_many_qps() {
    many_qps("ib_write_bw");
    measure(
        "ib_write_bw",
        "-n 640 -q 16 -s 64 -l 32",
        &[64.0],
        Some(10_240.0),
    );
}

#[test]
fn write_both_ways() {
    both_ways("ib_write_bw");
}

#[test]
fn write_of_large_messages() {
    sizes("ib_write_bw");
}

#[test]
fn read() {
    plain("ib_read_bw");
}

#[test]
fn read_on_many_qps() {
    many_qps("ib_read_bw");
}

#[test]
fn read_both_ways() {
    both_ways("ib_read_bw");
}

#[test]
fn read_of_large_messages() {
    sizes("ib_read_bw");
}

#[test]
fn read_with_events() {
    measure("ib_read_bw", "-n 400 -e", &SIZE, Some(400.0));
}

/// Atomics have 8 bytes; perftest accepts no other size, and so no `-a`.
const WORD: [f64; 1] = [8.0];

#[test]
fn atomics() {
    measure(
        "ib_atomic_bw",
        "-n 1000 -A FETCH_AND_ADD",
        &WORD,
        Some(1000.0),
    );
    measure(
        "ib_atomic_bw",
        "-n 1000 -A CMP_AND_SWAP",
        &WORD,
        Some(1000.0),
    );
}

#[test]
fn atomics_on_many_qps() {
    measure("ib_atomic_bw", "-n 100 -q 16", &WORD, Some(1600.0));
}

#[test]
fn atomics_both_ways() {
    measure("ib_atomic_bw", "-n 1000 -b", &WORD, Some(1000.0));
}

#[test]
fn atomics_with_events() {
    measure("ib_atomic_bw", "-n 1000 -e", &WORD, Some(1000.0));
}
