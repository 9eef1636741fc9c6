//! A case for tests of this crate and of those that run cases.

use super::Case;

/// SENDs of 64 bytes on two QPs with a window of 1 µs.
pub fn case() -> Case {
    let options = [
        ("qps", "2"),
        ("size", "64"),
        ("signal-every", "1"),
        ("mtu", "1024"),
        ("duration", "1us"),
        ("warmup", "0"),
    ];
    Case::new("send-shared-q2-64".to_owned(), options.into_iter().collect())
}
