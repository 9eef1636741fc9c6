//! Records packets. While it does not record, it costs a load and a branch per GSO batch.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clock::Clock;
use crate::lock::Lock;

const MOST: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// Time, in nanoseconds of the device's clock.
    pub at_ns: u64,
    /// Whether it was sent (recorded before faults); else it was received (recorded after faults).
    pub outwards: bool,
    pub peer: IpAddr,
    /// From the base transport header to the CRC.
    pub bytes: Vec<u8>,
    /// Whether its invariant CRC is right; always true for a sent packet.
    pub icrc_ok: bool,
}

#[derive(Debug, Default)]
pub struct Tap {
    clock: Clock,
    on: AtomicBool,
    passed: Lock<Vec<RecordedPacket>>,
}

impl Tap {
    pub(super) fn new(clock: Clock) -> Tap {
        Tap { clock, ..Tap::default() }
    }

    /// Starts to record, up to the first thousand packets.
    pub fn open(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    /// Stops recording; returns the packets.
    pub fn close(&self) -> Vec<RecordedPacket> {
        self.on.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.passed.lock())
    }

    pub(super) fn recording(&self) -> Option<&Tap> {
        self.on.load(Ordering::Relaxed).then_some(self)
    }

    #[cold]
    pub(super) fn sent(&self, peer: IpAddr, packets: impl Iterator<Item = Vec<u8>>) {
        let at_ns = self.clock.now_ns();
        for bytes in packets {
            self.keep(RecordedPacket { at_ns, outwards: true, peer, bytes, icrc_ok: true });
        }
    }

    #[cold]
    pub(super) fn received(&self, peer: IpAddr, bytes: &[u8], icrc_ok: bool) {
        self.keep(RecordedPacket {
            at_ns: self.clock.now_ns(),
            outwards: false,
            peer,
            bytes: bytes.to_vec(),
            icrc_ok,
        });
    }

    fn keep(&self, packet: RecordedPacket) {
        let mut passed = self.passed.lock();
        if passed.len() < MOST {
            passed.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen while it is open: `net::tests`.
    #[test]
    fn it_records_not_for_ever_and_nothing_while_closed() {
        let tap = Tap::default();
        assert!(tap.recording().is_none());
        tap.open();
        let peer = IpAddr::from([127, 0, 0, 1]);
        tap.sent(peer, std::iter::repeat_n(vec![0], MOST + 1));
        assert_eq!(tap.close().len(), MOST);
        assert!(tap.recording().is_none() && tap.close().is_empty());
    }
}
