//! A peer made of packets, in a network in memory: it sends what no device of ours sends.

use std::net::IpAddr;
use std::sync::Arc;

use softroce::transport::World;
use softroce::wire::{IcrcAddresses, Packet, icrc};

pub const QPN: u32 = 0x0077_1234;
/// The port that it sends from.
pub const PORT: u16 = 50_000;
/// "Don't fragment", as Linux sets it for UDP sockets.
const DONT_FRAGMENT: u16 = 0x4000;
/// The types of service of packets that may be marked, and of marked ones.
pub const ECT_0: u8 = 2;
pub const CE: u8 = 3;

pub struct Peer {
    pub world: Arc<World>,
    pub address: IpAddr,
}

impl Peer {
    pub fn new(world: &Arc<World>) -> Peer {
        Peer { world: Arc::clone(world), address: world.stranger() }
    }
}

/// The packet but for its CRC.
pub fn wire(packet: &Packet<'_>) -> Vec<u8> {
    let mut headers = [0; Packet::HEADER_ROOM];
    let length = packet.headers(&mut headers);
    let mut bytes = headers[..length].to_vec();
    bytes.extend(packet.payload);
    bytes.resize(bytes.len() + usize::from(packet.pad_bytes()), 0);
    bytes
}

/// Sends these bytes in the name of any sender, with a right or a wrong CRC; of less than a header it is wrong.
pub fn forge(
    world: &World,
    source: (IpAddr, u16),
    to: IpAddr,
    class: u8,
    bytes: &[u8],
    right: bool,
) {
    let (IpAddr::V4(source_ip), IpAddr::V4(destination)) = (source.0, to) else {
        panic!("IPv4 only");
    };
    let addresses = IcrcAddresses::V4 {
        source: source_ip,
        destination,
        identification: 0,
        flags: DONT_FRAGMENT,
    };
    let crc = icrc(addresses, source.1, bytes).map(|byte| if right { byte } else { !byte });
    let whole = [bytes, &crc].concat();
    world.fabric().forge(source.into(), to, class, &whole);
}
