//! A peer made of packets, in a network in memory: it sends what no device of ours sends, and sees each answer as it is on
//! the wire.

use std::net::IpAddr;
use std::sync::Arc;

use softroce::net::Datagram;
use softroce::transport::World;
use softroce::wire::{IcrcAddresses, Opcode, Packet, Syndrome, icrc};

use super::end::End;
use super::look::steps;

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

    pub fn send(&self, to: &End, packet: &Packet<'_>) {
        self.send_bytes(to, PORT, 0, &wire(packet));
    }

    /// Sends these bytes and their CRC, from a port and as a class of its own.
    pub fn send_bytes(&self, to: &End, port: u16, class: u8, bytes: &[u8]) {
        let source = (self.address, port);
        forge(&self.world, source, to.nic.address(), class, bytes, true);
    }

    /// Sends these bytes with a wrong CRC.
    pub fn send_damaged(&self, to: &End, bytes: &[u8]) {
        let source = (self.address, PORT);
        forge(&self.world, source, to.nic.address(), 0, bytes, false);
    }

    /// The next packet that comes.
    #[track_caller]
    pub fn arrival(&self) -> Datagram {
        steps(&self.world, || self.world.fabric().take(self.address), || "answer".into())
    }

    /// The next answer, without its CRC.
    #[track_caller]
    pub fn answer(&self) -> Vec<u8> {
        let mut bytes = self.arrival().bytes;
        bytes.truncate(bytes.len() - 4);
        bytes
    }

    #[track_caller]
    pub fn answers(&self, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.answer()).collect()
    }

    /// The next answer, which is an acknowledgement or NAK: its PSN and syndrome.
    #[track_caller]
    pub fn acknowledged(&self) -> (u32, Syndrome) {
        let answer = self.answer();
        let packet = Packet::parse_body(&answer).unwrap();
        assert_eq!(packet.opcode, Opcode::Acknowledge);
        (packet.psn.value(), packet.extended.aeth.unwrap().syndrome)
    }

    /// Lets all happen that still happens: no answer comes.
    #[track_caller]
    pub fn is_left_alone(&self) {
        while self.world.step() {}
        let more = self.world.fabric().take(self.address);
        assert!(more.is_none(), "{more:02x?}");
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
