//! perftest's `ib_*_bw` and `ib_*_lat`.

use crate::pair::{Pair, succeed};

pub fn rows(text: &str) -> Vec<Vec<f64>> {
    text.lines()
        .skip_while(|line| !line.starts_with(" #bytes"))
        .filter_map(|line| line.split_whitespace().map(|it| it.parse().ok()).collect())
        .filter(|row: &Vec<f64>| row.len() >= 4)
        .collect()
}

/// Runs both ends and returns the client's rows, of which there must be some.
fn figures(program: &str, arguments: &str) -> (Pair, Vec<Vec<f64>>) {
    // -F: a changing CPU frequency is no error.
    let pair = succeed(program, &format!("-F {arguments}"));
    let rows = rows(&pair.client.stdout);
    assert!(!rows.is_empty(), "no figures\n{pair}");
    (pair, rows)
}

/// Options, the bytes of a message, and how many messages the row has to tell of.
type Case = (&'static str, u32, Option<u32>);

/// Runs a program with each of these, and checks that its table has the row.
fn measure(program: &str, cases: &[Case]) {
    for (options, bytes, messages) in cases {
        let (pair, rows) = figures(program, options);
        let [row] = &rows[..] else {
            panic!("{rows:?}\n{pair}");
        };
        assert_eq!(row[0], f64::from(*bytes), "{pair}");
        if let Some(messages) = messages {
            assert_eq!(row[1], f64::from(*messages), "{pair}");
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
    measure(
        "ib_send_bw",
        &[
            ("-n 50 -q 16 -t 32", SIZE, Some(800)),
            ("-n 20 -b -q 16 -t 16", SIZE, Some(320)),
            ("-n 20 -e -b -q 16", SIZE, Some(320)),
            // A full socket drops packets, and perftest waits for them for ever; this many fit into the smallest socket.
            ("-n 16 -c UC -s 8192", 8192, None),
            ("-n 100 -c UD -s 1024", 1024, None),
            (
                "-n 6400 -s 64 -l 32 -r 512 --inline_size 64",
                64,
                Some(6400),
            ),
            ("-n 100 --use-srq -q 4", SIZE, Some(400)),
            ("-D 1 -x 0 --report_gbits", SIZE, None),
            ("-n 400 --use_old_post_send", SIZE, Some(400)),
            ("-n 20 -t 16 -r 16 -s 4097", ODD, Some(20)),
            ("-n 20 -t 16 -r 16 -s 8388608", LARGEST, Some(20)),
        ],
    );
    measure(
        "ib_write_bw",
        &[
            ("-n 400 -c UC -m 1024", SIZE, Some(400)),
            ("-n 640 -q 16 -s 64 -l 32", 64, Some(10_240)),
            ("-n 20 -b -q 16 -t 16", SIZE, Some(320)),
            ("-n 20 -t 16 -s 8388608", LARGEST, Some(20)),
        ],
    );
    measure(
        "ib_read_bw",
        &[
            ("-n 50 -q 16 -t 32", SIZE, Some(800)),
            ("-n 400 -b", SIZE, Some(400)),
            ("-n 20 -t 16 -s 8388608", LARGEST, Some(20)),
            ("-n 400 -e", SIZE, Some(400)),
        ],
    );
    measure(
        "ib_atomic_bw",
        &[
            ("-n 100 -q 16 -A FETCH_AND_ADD", WORD, Some(1600)),
            ("-n 1000 -b -A CMP_AND_SWAP", WORD, Some(1000)),
            ("-n 1000 -e", WORD, Some(1000)),
        ],
    );
}

#[test]
fn latencies() {
    measure(
        "ib_send_lat",
        &[
            ("-n 500 -c UC", SMALL, Some(500)),
            ("-n 500 -c UD", SMALL, Some(500)),
            ("-n 500 -e", SMALL, Some(500)),
        ],
    );
    measure(
        "ib_write_lat",
        &[
            ("-n 500", SMALL, Some(500)),
            ("-n 10 -s 8388608", LARGEST, Some(10)),
        ],
    );
    measure("ib_read_lat", &[("-n 500 -e", SMALL, Some(500))]);
    measure(
        "ib_atomic_lat",
        &[
            ("-n 500 -A FETCH_AND_ADD", WORD, Some(500)),
            ("-n 500 -e -A CMP_AND_SWAP", WORD, Some(500)),
        ],
    );
}
