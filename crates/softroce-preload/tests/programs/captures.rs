//! `SOFTROCE_PCAP`: two processes that are told the same file write one each.

use std::fs;
use std::path::{Path, PathBuf};

use crate::pair::succeed;

/// How many packets a capture has, or what is wrong with its records.
fn packets(bytes: &[u8]) -> Result<usize, &'static str> {
    let field = |bytes: &[u8], at: usize| {
        let four = bytes.get(at..at + 4).ok_or("a field is cut off")?;
        let four = <[u8; 4]>::try_from(four).map_err(|_| "no four bytes")?;
        Ok::<_, &str>(u32::from_ne_bytes(four))
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

/// A folder of captures, removed when dropped.
pub struct Captures(PathBuf);

impl Captures {
    pub fn new(name: &str) -> Captures {
        let name = format!("softroce-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Captures(folder)
    }

    /// The variable that makes a program capture here.
    pub fn variable(&self) -> String {
        format!("SOFTROCE_PCAP={}", self.0.join("run.pcap").display())
    }

    /// The files, each of a device.
    pub fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Whether so many ends have packets that carry messages, not only those that connect them.
    pub fn moves(&self, ends: usize) -> bool {
        let is_long = |file: &PathBuf| fs::metadata(file).is_ok_and(|it| it.len() > 200_000);
        self.files().iter().filter(|file| is_long(file)).count() >= ends
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn both_ends_of_a_ping_pong_capture_all_packets() {
    let captures = Captures::new("pcap");
    let program = format!("{} ibv_rc_pingpong", captures.variable());
    let pair = succeed(&program, "-g 0 -n 200");
    let files = captures.files();
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap();
        let is_named = name.starts_with("run-127.") && Path::new(name).extension().is_some();
        assert!(is_named, "{name}");
        let packets = packets(&fs::read(file).unwrap());
        // 200 messages of 4096 bytes each way, in packets of 1024 bytes.
        assert!(
            packets.is_ok_and(|packets| packets >= 2 * 200 * 4),
            "{packets:?}\n{}",
            pair.report()
        );
    }
}
