//! How long a peer has been silent, as the thread that listens can honestly judge it.

use std::time::Duration;

/// Adds up the time spent in reads that ended with nothing to read. A read that was cut short by the
/// scheduler, not by the peer, counts for little: while this host is overloaded or suspended its clock
/// runs on, but nobody listens, and a peer on the same host cannot speak either.
#[derive(Debug)]
pub(crate) struct Silence {
    cap_per_read: Duration,
    total: Duration,
}

impl Silence {
    /// `read_timeout` is what a read waits; one that took longer counts for at most twice as much.
    pub(crate) fn new(read_timeout: Duration) -> Self {
        Silence { cap_per_read: read_timeout * 2, total: Duration::ZERO }
    }

    /// Bytes came.
    pub(crate) fn heard(&mut self) {
        self.total = Duration::ZERO;
    }

    /// A read ended with nothing to read after this time; returns the silence so far.
    pub(crate) fn nothing_for(&mut self, elapsed: Duration) -> Duration {
        self.total += elapsed.min(self.cap_per_read);
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    #[test]
    fn empty_reads_add_up_and_bytes_start_afresh() {
        let mut silence = Silence::new(TICK);
        silence.nothing_for(TICK);
        assert_eq!(silence.nothing_for(TICK), TICK * 2);
        silence.heard();
        assert_eq!(silence.nothing_for(TICK), TICK);
    }

    #[test]
    fn a_suspended_listener_is_no_silent_peer() {
        let mut silence = Silence::new(TICK);
        assert_eq!(silence.nothing_for(Duration::from_secs(60)), TICK * 2);
    }
}
