//! Requests of several packets, as they are on the wire.

use softroce::wire::{Opcode, Packet};

use super::{MTU, PSN, connected};

#[test]
fn a_long_send_has_a_first_and_a_last_packet_and_asks_for_acknowledgements() {
    const PACKETS: u32 = 40;
    let (peer, mut device) = connected();
    let length = PACKETS * MTU - 5;
    device.fill();
    device.post_send(length);
    let sent = peer.answers(PACKETS as usize);
    let pieces = device.memory[..length as usize].chunks(MTU as usize);
    for ((number, bytes), piece) in (0..).zip(&sent).zip(pieces) {
        let packet = Packet::parse_body(bytes).unwrap();
        let opcode = match number {
            0 => Opcode::SendFirst,
            39 => Opcode::SendLast,
            _ => Opcode::SendMiddle,
        };
        let psn = PSN.wrapping_add(number) & 0x00ff_ffff;
        assert_eq!((packet.opcode, packet.psn.value()), (opcode, psn));
        // PSN 0x00ff_ffff is the second packet's; then each sixteenth, so that the peer's window moves; and the last.
        let asks = matches!(number, 1 | 17 | 33 | 39);
        assert_eq!(packet.ack_request, asks, "packet {number}");
        assert_eq!(packet.payload, piece, "packet {number}");
    }
}
