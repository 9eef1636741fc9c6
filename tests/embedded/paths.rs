//! The path of packets: flow labels and UDP source ports.

use std::collections::BTreeSet;
use std::fs;

use testing::embedded_device::packets;
use testing::program::call;

/// Length of the IPv4 header, and the opcode of an RDMA WRITE in one packet (RC and UC).
const IPV4_BYTES: usize = 20;
const WRITE_ONLY: [u8; 2] = [0x0a, 0x2a];

#[test]
fn the_ports_that_a_result_tells_are_those_on_the_wire() {
    for service in ["rc --timeout 18", "uc"] {
        let ended = call(&format!(
            "-d soft0 --op write --service {service} -s 64 -n 20 -q 8 --flow-label 1,2,0x30000 --warmup 0 \
             --pcap wire.pcap"
        ))
        .is_whole(1);
        let result = ended.result();
        let qps = &result.cases[0].runs[0].flows[0].qps;
        let reported: BTreeSet<u16> = qps.iter().map(|qp| qp.udp_source_port.unwrap()).collect();
        let entries = fs::read_dir(ended.folder()).unwrap();
        let captures = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == "pcap"));
        let mut seen = BTreeSet::new();
        for packet in captures.flat_map(|path| packets(&path)) {
            let udp = &packet[IPV4_BYTES..];
            if WRITE_ONLY.contains(&udp[8]) {
                seen.insert(u16::from_be_bytes([udp[0], udp[1]]));
            }
        }
        assert_eq!(reported, seen, "{service}");
        let first: Vec<_> = qps.iter().map(|qp| qp.udp_source_port).collect();
        assert_eq!(first[..3], first[3..6], "QPs take the labels in turn");
        let header = ended.file("-qps.csv");
        assert!(header.starts_with("id,") && header.contains("udp_source_port"));
    }
}

#[test]
fn labels_of_datagrams_are_those_of_each_qp() {
    call("-d soft0 --service ud --op send -s 64 -n 20 -q 3 --flow-label 1,2,3 --warmup 0 --verify")
        .is_whole(1);
}

#[test]
fn what_the_device_cannot_is_refused_before_the_run() {
    let words = "-d soft0 --op write -n 9 --warmup 0 --udp-sport 50000";
    call(words).is_refused(&["no call for a QP's UDP source port", "use --flow-label"]);
}
