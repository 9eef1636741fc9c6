//! perftest's `ib_*_lat`.

use crate::perftest::{figures, some_sizes};

/// Runs a program and checks its rows: their sizes, and that the latencies are in order.
fn measure(program: &str, arguments: &str, sizes: &[f64]) {
    let (pair, rows) = figures(program, arguments);
    let measured: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(measured, sizes, "{}", pair.report());
    for row in &rows {
        // t_max excludes the largest sample, so the average may exceed it.
        let [_, _, min, max, typical, average, ..] = row[..] else {
            panic!("{row:?}\n{}", pair.report());
        };
        let ordered = 0.0 < min && min <= typical && typical <= max;
        assert!(ordered && average >= min, "{}", pair.report());
        // A time-out takes 67 ms or more and must not be typical.
        assert!(typical < 50_000.0, "{}", pair.report());
    }
}

fn sizes(program: &str) {
    for size in some_sizes() {
        measure(program, &format!("-n 10 -s {size}"), &[size.into()]);
    }
}

#[test]
fn send() {
    measure("ib_send_lat", "-n 500", &[2.0]);
    measure("ib_send_lat", "-n 500 -c UC", &[2.0]);
    measure("ib_send_lat", "-n 500 -c UD", &[2.0]);
}

#[test]
fn send_of_large_messages() {
    sizes("ib_send_lat");
}

#[test]
fn send_with_events() {
    measure("ib_send_lat", "-n 500 -e", &[2.0]);
}

#[test]
fn write() {
    measure("ib_write_lat", "-n 500", &[2.0]);
}

#[test]
fn write_of_large_messages() {
    sizes("ib_write_lat");
}

#[test]
fn read() {
    measure("ib_read_lat", "-n 500", &[2.0]);
}

#[test]
fn read_of_large_messages() {
    sizes("ib_read_lat");
}

#[test]
fn read_with_events() {
    measure("ib_read_lat", "-n 500 -e", &[2.0]);
}

#[test]
fn atomics() {
    measure("ib_atomic_lat", "-n 500 -A FETCH_AND_ADD", &[8.0]);
    measure("ib_atomic_lat", "-n 500 -A CMP_AND_SWAP", &[8.0]);
}

#[test]
fn atomics_with_events() {
    measure("ib_atomic_lat", "-n 500 -e", &[8.0]);
}
