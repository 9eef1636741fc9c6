//! perftest's `ib_*_bw` and `ib_*_lat`.

use crate::pair::succeed;

pub fn rows(text: &str) -> Vec<Vec<f64>> {
    text.lines()
        .skip_while(|line| !line.starts_with(" #bytes"))
        .filter_map(|line| line.split_whitespace().map(|it| it.parse().ok()).collect())
        .filter(|row: &Vec<f64>| row.len() >= 4)
        .collect()
}

/// A program, its options, the bytes of a message, and how many messages the row has to tell of; 0 where it is open.
type Case = (&'static str, &'static str, u32, u32);

fn measure(cases: &[Case]) {
    for (program, options, bytes, messages) in cases {
        // -F: a changing CPU frequency is no error.
        let pair = succeed(program, &format!("-F {options}"));
        let rows = rows(&pair.client.stdout);
        assert_eq!(rows.len(), 1, "{rows:?}\n{pair}");
        assert_eq!(rows[0][0], f64::from(*bytes), "{pair}");
        if *messages > 0 {
            assert_eq!(rows[0][1], f64::from(*messages), "{pair}");
        }
    }
}

/// 64 KiB, the default of bandwidths.
const SIZE: u32 = 65_536;
/// The default of latencies.
const SMALL: u32 = 2;
/// Atomics have 8 bytes; perftest accepts no other size, and so no `-a`.
const WORD: u32 = 8;
/// A byte more than a packet, and the largest of `-a`.
const ODD: u32 = 4097;
const LARGEST: u32 = 1 << 23;

#[test]
fn bandwidths() {
    const LISTS: &str = "-n 6400 -s 64 -l 32 -r 512 --inline_size 64";
    measure(&[
        ("ib_send_bw", "-n 50 -q 16 -t 32", SIZE, 800),
        ("ib_send_bw", "-n 20 -b -q 16 -t 16", SIZE, 320),
        ("ib_send_bw", "-n 20 -e -b -q 16", SIZE, 320),
        // A full socket drops packets, and perftest waits for them for ever; this many fit into the smallest socket.
        ("ib_send_bw", "-n 16 -c UC -s 8192", 8192, 0),
        ("ib_send_bw", "-n 100 -c UD -s 1024", 1024, 0),
        ("ib_send_bw", LISTS, 64, 6400),
        ("ib_send_bw", "-n 100 --use-srq -q 4", SIZE, 400),
        ("ib_send_bw", "-D 1 -x 0 --report_gbits", SIZE, 0),
        ("ib_send_bw", "-n 400 --use_old_post_send", SIZE, 400),
        ("ib_send_bw", "-n 20 -t 16 -r 16 -s 4097", ODD, 20),
        ("ib_send_bw", "-n 20 -t 16 -r 16 -s 8388608", LARGEST, 20),
        ("ib_write_bw", "-n 400 -c UC -m 1024", SIZE, 400),
        ("ib_write_bw", "-n 640 -q 16 -s 64 -l 32", 64, 10_240),
        ("ib_write_bw", "-n 20 -b -q 16 -t 16", SIZE, 320),
        ("ib_write_bw", "-n 20 -t 16 -s 8388608", LARGEST, 20),
        ("ib_read_bw", "-n 50 -q 16 -t 32", SIZE, 800),
        ("ib_read_bw", "-n 400 -b", SIZE, 400),
        ("ib_read_bw", "-n 20 -t 16 -s 8388608", LARGEST, 20),
        ("ib_read_bw", "-n 400 -e", SIZE, 400),
        ("ib_atomic_bw", "-n 100 -q 16 -A FETCH_AND_ADD", WORD, 1600),
        ("ib_atomic_bw", "-n 1000 -b -A CMP_AND_SWAP", WORD, 1000),
        ("ib_atomic_bw", "-n 1000 -e", WORD, 1000),
    ]);
}

#[test]
fn latencies() {
    measure(&[
        ("ib_send_lat", "-n 500 -c UC", SMALL, 500),
        ("ib_send_lat", "-n 500 -c UD", SMALL, 500),
        ("ib_send_lat", "-n 500 -e", SMALL, 500),
        ("ib_write_lat", "-n 500", SMALL, 500),
        ("ib_write_lat", "-n 10 -s 8388608", LARGEST, 10),
        ("ib_read_lat", "-n 500 -e", SMALL, 500),
        ("ib_atomic_lat", "-n 500 -A FETCH_AND_ADD", WORD, 500),
        ("ib_atomic_lat", "-n 500 -e -A CMP_AND_SWAP", WORD, 500),
    ]);
}
