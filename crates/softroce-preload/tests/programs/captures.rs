//! `SOFTROCE_PCAP`: two processes that are told the same file write one each.

use std::fs;
use std::path::{Path, PathBuf};

use crate::pair::succeed;
use testing::pcap::packets;

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
        let packets = packets(&file);
        for packet in &packets {
            let length = u16::from_be_bytes([packet[2], packet[3]]);
            // IPv4, UDP to port 4791.
            assert_eq!((packet[0], usize::from(length)), (0x45, packet.len()));
            assert_eq!(packet[22..24], 4791_u16.to_be_bytes());
        }
        // 200 messages of 4096 bytes each way, in packets of 1024 bytes.
        let count = packets.len();
        assert!(count >= 2 * 200 * 4, "{count}\n{pair}");
    }
}
