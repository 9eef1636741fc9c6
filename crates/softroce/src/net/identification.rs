//! Finds the IPv4 identification of a received packet. The invariant CRC covers it, but a UDP socket does not show
//! it.
//!
//! Our own packets are numbered by their position in the GSO batch, so that number is tried first. If the CRC does
//! not match, the identification can be computed: the CRC is linear, so the difference between the packet's CRC and
//! the CRC for another identification is the flipped bits of the identification, moved to the CRC's end by a power of
//! x modulo the polynomial. Multiplying the difference by the inverse of that power gives the flipped bits, if and
//! only if the product is below x^16.
//!
//! This weakens the CRC: damaged bytes make an arbitrary difference of 32 bits, and 2^16 of these are
//! identifications. If any identification were allowed, one of 2^16 damaged packets would be accepted, where a CRC of
//! known headers accepts one of 2^32. So the allowed identifications depend on the sender:
//! - `Unknown`, at first: any. The first packet shows the kind of sender.
//! - `Indexed` numbers packets within a GSO batch, as Linux does for UDP sockets: below 128. Accepts one of 2^25
//!   damaged packets.
//! - `Counter` counts packets (the kernel's Soft-RoCE, most adapters): any. Accepts one of 2^16 damaged packets; UDP's
//!   checksum, if used, and Ethernet's CRC protect as well.
//!
//! An `Indexed` sender becomes a `Counter` when two packets in a row are refused whose identifications are within 256
//! of each other. Damage causes that with one packet of 2^24, and only directly after another one of 2^16. IPv6 has
//! no identification, so its CRC keeps its full strength.

use std::net::IpAddr;

use super::gso_batch::MAX_GSO_BATCH_PACKETS;
use crate::wire::{BEHIND_IDENTIFICATION, ONE, inverse_power, multiply};

/// The largest step of a counter between two of our packets.
const NEAR: u16 = 256;
/// Senders remembered; a sender that takes another's entry is `Unknown` again.
const SENDERS: usize = 256;
/// Powers remembered, one per length.
const LENGTHS: usize = 64;

/// How a sender sets the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum IdPattern {
    #[default]
    Unknown,
    Indexed,
    Counter,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    address: Option<IpAddr>,
    pattern: IdPattern,
    /// Identification of the last packet, if it was refused because of it.
    refused: Option<u16>,
    /// The identification expected of a counter's next packet.
    expected: u16,
}

pub struct Identification {
    senders: Box<[Sender; SENDERS]>,
    inverses: Box<[(usize, u32); LENGTHS]>,
}

impl Identification {
    pub fn new() -> Identification {
        Identification {
            senders: Box::new([Sender::default(); SENDERS]),
            inverses: Box::new([(0, ONE); LENGTHS]),
        }
    }

    /// The most likely identification of a packet at index `place` of its datagram.
    pub fn guess(&mut self, source: IpAddr, place: usize) -> u16 {
        match self.sender(source) {
            Some(sender) if sender.pattern == IdPattern::Counter => sender.expected,
            _ => place as u16,
        }
    }

    /// Whether to accept a packet whose CRC differs by `difference` from the CRC for identification `guess`. `bytes`
    /// is its length from the base transport header to the CRC, without it.
    pub fn takes(&mut self, source: IpAddr, guess: u16, difference: u32, bytes: usize) -> bool {
        let Some(identification) = self.solve(guess, difference, bytes) else {
            return false;
        };
        self.sender(source).is_some_and(|sender| sender.takes(identification))
    }

    /// The identification of a packet whose CRC differs by `difference` from the CRC for identification `guess`; `None`
    /// if there is none, because the packet is damaged. `bytes` as for [`Identification::takes`].
    pub fn solve(&mut self, guess: u16, difference: u32, bytes: usize) -> Option<u16> {
        let flipped = match difference {
            0 => 0,
            _ => flipped_bits(difference, self.inverse(bytes + BEHIND_IDENTIFICATION))?,
        };
        Some(guess ^ flipped)
    }

    fn sender(&mut self, source: IpAddr) -> Option<&mut Sender> {
        let mixed = match source {
            IpAddr::V4(v4) => v4.to_bits().wrapping_mul(0x9e37_79b9) >> 16,
            IpAddr::V6(_) => 0,
        };
        let sender = self.senders.get_mut(mixed as usize % SENDERS)?;
        if sender.address != Some(source) {
            *sender = Sender { address: Some(source), ..Sender::default() };
        }
        Some(sender)
    }

    fn inverse(&mut self, bytes: usize) -> u32 {
        let Some(entry) = self.inverses.get_mut(bytes / 4 % LENGTHS) else {
            return inverse_power(bytes);
        };
        if entry.0 != bytes {
            *entry = (bytes, inverse_power(bytes));
        }
        entry.1
    }
}

impl Sender {
    fn takes(&mut self, identification: u16) -> bool {
        let indexed = usize::from(identification) < MAX_GSO_BATCH_PACKETS;
        match self.pattern {
            IdPattern::Unknown if indexed => self.pattern = IdPattern::Indexed,
            IdPattern::Unknown => self.pattern = IdPattern::Counter,
            IdPattern::Indexed if !indexed => {
                let before = self.refused.replace(identification);
                let follows = before.is_some_and(|it| identification.wrapping_sub(it) <= NEAR);
                if !follows {
                    return false;
                }
                self.pattern = IdPattern::Counter;
            }
            IdPattern::Indexed | IdPattern::Counter => {}
        }
        self.refused = None;
        self.expected = identification.wrapping_add(1);
        true
    }
}

/// The identification bits that cause this difference; `None` if none do.
fn flipped_bits(difference: u32, inverse: u32) -> Option<u16> {
    // The identification's first byte is the lowest.
    let bits = u16::try_from(multiply(difference, inverse)).ok()?;
    Some(bits.swap_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{IcrcAddresses, IcrcSeed};

    fn seed(identification: u16, bytes: usize) -> IcrcSeed {
        let addresses = IcrcAddresses::V4 {
            source: [192, 0, 2, 1].into(),
            destination: [192, 0, 2, 2].into(),
            identification,
            flags: 0x4000,
        };
        IcrcSeed::new(addresses, 0xc000, bytes)
    }

    const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    /// Which of a sender's packets with these identifications are accepted.
    fn taken(identifications: &[u16]) -> Vec<bool> {
        let mut identification_of = Identification::new();
        identifications
            .iter()
            .map(|identification| {
                let body = [3; 40];
                let guess = identification_of.guess(SOURCE, 0);
                let written = seed(*identification, 44).over(&body);
                let difference = seed(guess, 44).over(&body) ^ written;
                identification_of.takes(SOURCE, guess, difference, body.len())
            })
            .collect()
    }

    #[test]
    fn what_is_taken_depends_on_the_sender() {
        let (yes, no) = (true, false);
        assert_eq!(taken(&[4711, 9, 60_000]), [yes; 3]);
        assert_eq!(taken(&[0, 127, 128, 127, 129]), [yes, yes, no, yes, no]);
        assert_eq!(taken(&[0, 900, 901, 902, 5]), [yes, no, yes, yes, yes]);
        assert_eq!(taken(&[0, 900, 1157, 1413]), [yes, no, no, yes]);
        assert_eq!(taken(&[0, 900, 899]), [yes, no, no]);
        assert_eq!(taken(&[0, 65_500, 200]), [yes, no, yes]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_solution_is_the_one_that_trying_all_finds(
            body in proptest::collection::vec(any::<u8>(), 12..600),
            identification: u16, guess: u16, damage: u32,
        ) {
            let bytes = body.len() + 4;
            let written = seed(identification, bytes).over(&body);
            let guessed = seed(guess, bytes).over(&body);
            let inverse = inverse_power(body.len() + BEHIND_IDENTIFICATION);
            prop_assert_eq!(flipped_bits(guessed ^ written, inverse), Some(guess ^ identification));
            let damaged = written ^ damage;
            let zero = seed(0, bytes);
            // All differences are linear, so one CRC each over zeroes after the identification is enough.
            let first = zero.over(&body);
            let mut basis = [0; 16];
            for (bit, flip) in basis.iter_mut().enumerate() {
                *flip = zero.flip_identification(1 << bit).over(&body) ^ first;
            }
            let tried = (0..=u16::MAX).find(|id| {
                let flips = basis.iter().enumerate().filter(|(bit, _)| id >> bit & 1 == 1);
                flips.fold(first, |crc, (_, flip)| crc ^ flip) == damaged
            });
            prop_assert_eq!(flipped_bits(first ^ damaged, inverse), tried);
        }
    }
}
