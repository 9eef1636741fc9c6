//! The property that the packet parser must have for any bytes. The fuzz target in `fuzz/` and the bounded test below
//! check it. It is public only for the fuzz target.

use super::Packet;

/// Bytes of the invariant CRC, which the parser ignores.
const ICRC_BYTES: usize = 4;

/// Parses `bytes`. A packet that parses must have exactly the headers of its opcode, and building it again must give
/// the same packet. Refused bytes are fine.
///
/// # Errors
/// The violation, in words.
pub fn parses_back(bytes: &[u8]) -> Result<(), String> {
    let Ok(packet) = Packet::parse(bytes) else {
        return Ok(());
    };
    let extended = &packet.extended;
    let headers_there = [
        extended.reth.is_some() == packet.opcode.has_reth(),
        extended.atomic.is_some() == packet.opcode.has_atomic_eth(),
        extended.aeth.is_some() == packet.opcode.has_aeth(),
        extended.atomic_answer.is_some() == packet.opcode.has_atomic_ack(),
        extended.immediate.is_some() == packet.opcode.has_immediate(),
    ];
    if headers_there.contains(&false) {
        return Err(format!(
            "headers that are not those of the opcode: {packet:?}"
        ));
    }
    let mut headers = [0; Packet::HEADER_ROOM];
    let header_bytes = packet.headers(&mut headers);
    let Some(headers) = headers.get(..header_bytes) else {
        return Err(format!(
            "{header_bytes} bytes of headers have no room: {packet:?}"
        ));
    };
    // The received padding may be longer or shorter than needed; the payload must not be.
    let after_headers = bytes.len().checked_sub(header_bytes + ICRC_BYTES);
    let padding_bytes = after_headers.and_then(|all| all.checked_sub(packet.payload.len()));
    if padding_bytes.is_none_or(|padding_bytes| padding_bytes > 3) {
        return Err(format!(
            "{padding_bytes:?} bytes between payload and CRC of {packet:?}"
        ));
    }
    let mut wire = headers.to_vec();
    wire.extend(packet.payload);
    wire.resize(wire.len() + usize::from(packet.pad_bytes()) + ICRC_BYTES, 0);
    match Packet::parse(&wire) {
        Ok(again) if again == packet => Ok(()),
        again => Err(format!("{packet:?} became {again:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{ParseError, Service};
    use super::*;

    const MUTATED_INPUTS: usize = 200_000;
    const LONGEST_INPUT_BYTES: usize = 300;

    /// The fuzz target's seeds by their names.
    fn seeds() -> Vec<(String, Vec<u8>)> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/packet");
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
        let name = |file: &fs::DirEntry| file.file_name().into_string().unwrap();
        let seed = |file: fs::DirEntry| (name(&file), fs::read(file.path()).unwrap());
        let mut seeds: Vec<_> = files.map(seed).collect();
        seeds.sort();
        seeds
    }

    #[test]
    fn the_fuzz_targets_seeds_are_a_packet_of_every_opcode() {
        let seeds = seeds();
        assert_eq!(seeds.len(), 35, "all opcodes of all services");
        for (name, bytes) in seeds {
            let packet = Packet::parse(&bytes).unwrap();
            let kind = format!("{:?}-{:?}", packet.service, packet.opcode);
            assert_eq!(name, kind.to_lowercase());
            let mut headers = [0; Packet::HEADER_ROOM];
            let length = packet.headers(&mut headers);
            let padding = [0; 8];
            let rest = &padding[..usize::from(packet.pad_bytes()) + ICRC_BYTES];
            assert_eq!([&headers[..length], packet.payload, rest].concat(), bytes);
        }
    }

    /// Built again, the headers are those that were parsed, but for bits that tell nothing.
    fn is_built_as_it_was(packet: &Packet<'_>, bytes: &[u8]) {
        let mut headers = [0; Packet::HEADER_ROOM];
        let length = packet.headers(&mut headers);
        assert_eq!(length, packet.header_bytes(), "{packet:?}");
        let both = headers[..length].iter().zip(bytes);
        let mut differ: Vec<u8> = both.map(|(a, b)| a ^ b).collect();
        // Migration and padding, marks of congestion, reserved bits.
        let nothing: &[(usize, u8)] = match packet.service {
            Service::Ud => &[(1, 0x70), (4, 0xff), (8, 0x7f), (16, 0xff)],
            _ => &[(1, 0x70), (4, 0xff), (8, 0x7f)],
        };
        for (at, bits) in nothing {
            differ[*at] &= !bits;
        }
        let all_same = differ.iter().all(|bits| *bits == 0);
        assert!(all_same, "{packet:?}: {differ:02x?}");
    }

    #[test]
    fn mutated_packets_parse_back_or_are_refused() {
        let seeds = seeds();
        for (name, bytes) in &seeds {
            parses_back(bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
        let mut numbers = fastrand::Rng::with_seed(4791);
        // Accepted, too short, of another version, of an unknown operation.
        let mut times = [0; 4];
        for _ in 0..MUTATED_INPUTS {
            let mut bytes = seeds[numbers.usize(..seeds.len())].1.clone();
            for _ in 0..=numbers.usize(..4) {
                mutate(&mut bytes, &seeds, &mut numbers);
            }
            parses_back(&bytes).unwrap_or_else(|why| panic!("{bytes:02x?}: {why}"));
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
        }
        // A run that refuses everything or nothing tests nothing.
        let enough = times.iter().all(|times| *times > MUTATED_INPUTS / 100);
        assert!(enough, "{times:?}");
    }

    fn mutate(bytes: &mut Vec<u8>, seeds: &[(String, Vec<u8>)], numbers: &mut fastrand::Rng) {
        let at = numbers.usize(..bytes.len() + 1);
        let edge = [0, 1, 0x7f, 0x80, 0xff][numbers.usize(..5)];
        let mut change = |at: usize, to: &dyn Fn(u8) -> u8| {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = to(*byte);
            }
        };
        let bit = 1 << numbers.usize(..8);
        match numbers.usize(..8) {
            0 | 1 => change(at, &|byte| byte ^ bit),
            2 => change(at, &|_| edge),
            // The opcode and the flags determine how the rest is parsed.
            3 => {
                let any = numbers.u8(..);
                change(numbers.usize(..2), &|_| any);
            }
            4 => bytes.truncate(at),
            5 => bytes.insert(at, edge),
            6 => {
                let most = LONGEST_INPUT_BYTES - at.min(LONGEST_INPUT_BYTES - 1);
                bytes.resize(at + numbers.usize(..most), edge);
            }
            _ => {
                let other = &seeds[numbers.usize(..seeds.len())].1;
                bytes.truncate(at);
                bytes.extend(&other[at.min(other.len())..]);
            }
        }
    }
}
