//! Bytes are refused, or are a packet that is built again as it was.

use fastrand::Rng;
use softroce::wire::{Packet, ParseError, Service};
use testing::fuzz::rounds;

use super::forge::{Target, mutate, operations, packet};
use crate::support::peer::wire;

/// Bytes of the CRC, which the parser ignores.
const CRC: [u8; 4] = [0; 4];

/// Built again, a packet has the bytes that it was parsed from, but for bits that tell nothing, and its padding.
fn is_built_as_it_was(packet: &Packet<'_>, bytes: &[u8]) {
    let mut again = wire(packet);
    let length = packet.headers_for(0, &mut [0; Packet::HEADER_ROOM]);
    // Migration and padding, marks of congestion, reserved bits.
    let nothing: &[(usize, u8)] = match packet.service {
        Service::Ud => &[(1, 0x70), (4, 0xff), (8, 0x7f), (16, 0xff)],
        _ => &[(1, 0x70), (4, 0xff), (8, 0x7f)],
    };
    let mut headers = bytes[..length].to_vec();
    for (at, bits) in nothing {
        headers[*at] &= !bits;
        again[*at] &= !bits;
    }
    assert!(again[..length] == headers, "{packet:?} of {bytes:02x?}");
    let rest = &bytes[length..bytes.len() - CRC.len()];
    assert!(rest.starts_with(packet.payload), "{packet:?}");
    // The padding may have been longer or shorter than needed; the payload must not be.
    assert!(rest.len() - packet.payload.len() < 4, "{packet:?}");
    let whole = [wire(packet), CRC.to_vec()].concat();
    assert_eq!(Packet::parse(&whole), Ok(*packet));
}

#[test]
fn mutated_packets_parse_back_or_are_refused() {
    let all = operations();
    assert_eq!(all.len(), 35);
    let mut times = [0; 4];
    rounds(
        "-p softroce --test device fuzz::parser",
        100_000,
        &mut times,
        |times: &mut [u32; 4], number| {
            let numbers = &mut Rng::with_seed(number);
            let operation = all[numbers.usize(..all.len())];
            let payload_bytes = numbers.usize(..100);
            let mut bytes = packet(numbers, operation, &Target::default(), payload_bytes);
            bytes.extend(CRC);
            if numbers.bool() {
                mutate(&mut bytes, numbers);
            }
            let outcome = match Packet::parse(&bytes) {
                Ok(packet) => {
                    is_built_as_it_was(&packet, &bytes);
                    0
                }
                Err(ParseError::Short { .. }) => 1,
                Err(ParseError::Version) => 2,
                Err(ParseError::Opcode(_)) => 3,
            };
            times[outcome] += 1;
        },
        |_, _| (),
    );
    // Refusing everything or nothing would test nothing.
    assert!(times.iter().all(|times| *times > 0), "{times:?}");
}
