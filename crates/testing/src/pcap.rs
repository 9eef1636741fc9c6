//! Captures of raw IP packets with stamps in nanoseconds.

use std::path::Path;

/// The packets of a file, whose records must be whole and in the order of time.
pub fn packets(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let (header, mut records) = bytes.split_at(24);
    let field = |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((field(header, 0), field(header, 20)), (0xa1b2_3c4d, 101));
    let mut packets = Vec::new();
    let mut last_s = 0;
    while !records.is_empty() {
        let (header, rest) = records.split_at(16);
        let (at_s, nanoseconds) = (field(header, 0), field(header, 4));
        assert!(at_s >= last_s && nanoseconds < 1_000_000_000);
        last_s = at_s;
        let length = field(header, 8);
        assert_eq!(field(header, 12), length);
        let (packet, rest) = rest.split_at(length as usize);
        packets.push(packet.to_vec());
        records = rest;
    }
    packets
}
