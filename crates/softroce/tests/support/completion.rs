//! Waiting for a completion.

use std::time::{Duration, Instant};

use softroce::transport::Completion;

use crate::end::End;

/// The next completion.
pub fn completion(end: &End) -> Completion {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut found = None;
    while found.is_none() {
        let each = |completion: &Completion| found = Some(*completion);
        end.cq.poll(1, each).unwrap();
        assert!(Instant::now() < deadline, "{:?}", end.nic.counters());
    }
    found.unwrap()
}
