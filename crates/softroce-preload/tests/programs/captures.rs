//! `SOFTROCE_PCAP`: two processes that are told the same file write one each.

use std::fs;

use crate::pair::succeed;

/// How many packets a capture has, or what is wrong with its records.
fn packets(bytes: &[u8]) -> Result<usize, &'static str> {
    let field = |bytes: &[u8], at: usize| {
        let four = bytes.get(at..at + 4).ok_or("a field is cut off")?;
        let four = <[u8; 4]>::try_from(four).map_err(|_| "no four bytes")?;
        Ok(u32::from_ne_bytes(four))
    };
    // Nanoseconds, and raw IP.
    if (field(bytes, 0)?, field(bytes, 20)?) != (0xa1b2_3c4d, 101) {
        return Err("no such header");
    }
    let mut records = &bytes[24..];
    let mut packets = 0;
    while !records.is_empty() {
        let whole = field(records, 8)? as usize;
        let packet = records.get(16..16 + whole).ok_or("a packet is cut off")?;
        let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        // IPv4, UDP to port 4791.
        if packet[0] != 0x45 || length != whole || packet[22..24] != 4791_u16.to_be_bytes() {
            return Err("no RoCEv2 packet");
        }
        packets += 1;
        records = &records[16 + whole..];
    }
    Ok(packets)
}

#[test]
fn both_ends_of_a_ping_pong_capture_all_packets() {
    let folder = std::env::temp_dir().join(format!("softroce-pcap-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("run.pcap");
    let program = format!(
        "SOFTROCE_PCAP={} ibv_rc_pingpong -g 0 -n 200",
        file.display()
    );
    let pair = succeed("env", &program);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        names.push(entry.file_name().into_string().unwrap());
        let packets = packets(&fs::read(entry.path()).unwrap());
        // 200 messages of 4096 bytes each way, in packets of 1024 bytes.
        assert!(
            packets.is_ok_and(|packets| packets >= 2 * 200 * 4),
            "{packets:?}\n{}",
            pair.report()
        );
    }
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names
            .iter()
            .all(|name| name.starts_with("run-127.") && name.ends_with(".pcap"))
    );
    fs::remove_dir_all(&folder).unwrap();
}
