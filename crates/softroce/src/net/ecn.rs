//! Explicit congestion notification: the two low bits of the type of service or traffic class (RFC 3168, section 5). It
//! must not know what answers a mark.

const MASK: u8 = 0b11;
/// ECN-capable transport: a congested switch marks the packet, where it would drop another. The class of packets from the
/// sending sockets that ask for no other.
pub const ECT_0: u8 = 0b10;
/// Congestion experienced: the mark.
const CE: u8 = 0b11;

/// This class for packets that a switch may mark.
pub fn ecn_capable(traffic_class: u8) -> u8 {
    traffic_class & !MASK | ECT_0
}

/// The class that a congested switch gives to a packet of this one.
pub fn mark(traffic_class: u8) -> u8 {
    match traffic_class & MASK {
        0 => traffic_class,
        _ => traffic_class | CE,
    }
}

/// Whether a packet came through congestion.
pub fn is_marked(traffic_class: u8) -> bool {
    traffic_class & MASK == CE
}
