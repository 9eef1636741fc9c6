//! Messages from somebody who has seen those of two managers: their connections come and go as if there were none.

use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;
use testing::embedded_device::rounds;

use super::*;
use crate::wire::cm::MAD_BYTES;

/// Where the attribute of a message lies, the numbers of both ends, and most of what is looked at.
const ATTRIBUTE: Range<usize> = 16..18;
const COMMS: Range<usize> = 24..32;
const NUMBERS: Range<usize> = 24..64;

struct Fuzzed {
    pair: Pair,
    connection: (u32, u32),
    forger: Arc<Nic>,
    /// Of the end of one connection and the beginning of the next.
    seen: Vec<[u8; MAD_BYTES]>,
    /// Connections and QPs that the forger has asked for.
    forged_requests: u64,
}

impl Fuzzed {
    fn forge(&mut self, numbers: &mut Rng) {
        let any = |random: &mut Rng| self.seen[random.usize(..self.seen.len())];
        let mut bytes = any(numbers);
        for _ in 0..numbers.usize(..4) {
            match numbers.u8(..5) {
                2 => bytes[COMMS].copy_from_slice(&any(numbers)[COMMS]),
                0 => bytes[ATTRIBUTE].copy_from_slice(&numbers.u16(0x10..0x19).to_be_bytes()),
                1 => bytes[numbers.usize(..MAD_BYTES)] = numbers.u8(..),
                _ => bytes[numbers.usize(NUMBERS)] ^= 1 << numbers.u8(..8),
            }
        }
        let to = address(numbers.usize(..2));
        self.forger.send_management(to, &bytes);
        self.pair.now += numbers.u64(..1_000_000);
        for end in [0, 1] {
            self.pair.at(end, Manager::wake);
            let forger = self.forger.address();
            let (forged, real): (VecDeque<_>, _) =
                self.pair.events[end].drain(..).partition(|event| match event.happening {
                    Happening::Requested(asker, _) | Happening::LookedUp(asker, _) => {
                        asker.peer == forger
                    }
                    _ => false,
                });
            self.pair.events[end] = real;
            self.forged_requests += forged.len() as u64;
            for event in forged {
                self.pair.let_go(end, event.comm);
            }
        }
    }

    /// The connection ends when an end wants it and not before, and leaves nothing, nor does what was forged.
    fn check(&mut self, numbers: &mut Rng) {
        let Fuzzed { pair, connection, .. } = self;
        assert!(pair.is_quiet());
        pair.sent = Default::default();
        if numbers.bool() {
            pair.disconnect(0, connection.0);
        } else {
            pair.disconnect(1, connection.1);
        }
        pair.is_over();
        while pair.pass() {}
        assert_eq!(pair.connections(), [0, 0]);
        *connection = pair.connected();
        self.seen = pair.sent.iter().flatten().map(CmMad::to_bytes).collect();
    }
}

#[test]
fn managers_that_get_forged_messages_serve_each_other() {
    let mut pair = Pair::safe();
    let mut fuzzed = Fuzzed {
        connection: pair.connected(),
        forger: pair.world.nic(&Faults::default(), None).unwrap(),
        pair,
        seen: Vec::new(),
        forged_requests: 0,
    };
    fuzzed.check(&mut Rng::with_seed(0));
    rounds(
        "-p softroce --lib fuzz",
        100_000,
        &mut fuzzed,
        |it: &mut Fuzzed, number| it.forge(&mut Rng::with_seed(number)),
        |it: &mut Fuzzed, number| it.check(&mut Rng::with_seed(number)),
    );
    // Refusing everything would test nothing.
    assert!(fuzzed.forged_requests > 100, "{}", fuzzed.forged_requests);
}
