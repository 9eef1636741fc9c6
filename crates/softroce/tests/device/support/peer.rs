//! A peer made of packets: it sends what no device of ours sends, and sees each answer as it is on the wire.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};

use softroce::wire::{IcrcAddresses, Opcode, Packet, Syndrome, UDP_PORT, icrc};

use super::end::End;
use super::look::SOON;
use testing::wait::wait_for;

pub const QPN: u32 = 0x0077_1234;
/// "Don't fragment", as Linux sets it for UDP sockets.
const DONT_FRAGMENT: u16 = 0x4000;
const ICRC_BYTES: usize = 4;

pub struct Peer {
    pub address: Ipv4Addr,
    pub sender: UdpSocket,
    pub inbox: UdpSocket,
}

impl Peer {
    pub fn new() -> Peer {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let process = (std::process::id() % 250) as u8;
            let address = Ipv4Addr::new(127, 88, process, number);
            match UdpSocket::bind((address, UDP_PORT)) {
                Ok(inbox) => {
                    inbox.set_nonblocking(true).unwrap();
                    let sender = UdpSocket::bind((address, 0)).unwrap();
                    return Peer {
                        address,
                        sender,
                        inbox,
                    };
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}"),
            }
        }
    }

    /// Another port at its address, as another program there can take.
    pub fn other_port(&self) -> UdpSocket {
        UdpSocket::bind((self.address, 0)).unwrap()
    }

    pub fn send(&self, to: &End, packet: &Packet<'_>) {
        self.send_bytes(to, &wire(packet));
    }

    pub fn send_bytes(&self, to: &End, bytes: &[u8]) {
        send_on(&self.sender, to, bytes, true);
    }

    /// Sends packets of one length by one system call: they arrive as one batch.
    pub fn send_together(&self, to: &End, packets: [Packet<'_>; 2]) {
        let packets = packets.map(|packet| wire(&packet));
        let bytes = packets[0].len() + ICRC_BYTES;
        assert_eq!(packets[1].len() + ICRC_BYTES, bytes);
        set_option(
            &self.sender,
            (libc::SOL_UDP, libc::UDP_SEGMENT),
            bytes as i32,
        );
        let numbered = packets.iter().zip(0..);
        let batch =
            numbered.flat_map(|(packet, number)| with_icrc(&self.sender, to, packet, number));
        let batch: Vec<u8> = batch.collect();
        self.sender
            .send_to(&batch, (to.nic.address(), UDP_PORT))
            .unwrap();
        set_option(&self.sender, (libc::SOL_UDP, libc::UDP_SEGMENT), 0);
    }

    /// The next answer, without its CRC.
    pub fn answer(&self) -> Option<Vec<u8>> {
        let mut bytes = [0; 9000];
        let length = self.inbox.recv(&mut bytes).ok()?;
        Some(bytes[..length - 4].to_vec())
    }

    #[track_caller]
    pub fn answers(&self, count: usize) -> Vec<Vec<u8>> {
        let next = |number| {
            let what = format!("answer {number} of {count}");
            wait_for(&what, SOON, || self.answer())
        };
        (1..=count).map(next).collect()
    }

    #[track_caller]
    pub fn one_answer(&self) -> Vec<u8> {
        self.answers(1).remove(0)
    }

    /// Waits for an acknowledgement or NAK: its PSN and syndrome.
    #[track_caller]
    pub fn acknowledged(&self) -> (u32, Syndrome) {
        let answer = self.one_answer();
        let packet = Packet::parse_body(&answer).unwrap();
        assert_eq!(packet.opcode, Opcode::Acknowledge);
        (packet.psn.value(), packet.extended.aeth.unwrap().syndrome)
    }
}

pub fn set_ip_option(socket: &UdpSocket, option: i32, value: i32) {
    set_option(socket, (libc::IPPROTO_IP, option), value);
}

fn set_option(socket: &UdpSocket, (level, option): (i32, i32), value: i32) {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the pointer is to an int.
    let outcome = unsafe {
        let value = (&raw const value).cast();
        libc::setsockopt(socket.as_raw_fd(), level, option, value, length)
    };
    assert_eq!(outcome, 0);
}

pub fn wire(packet: &Packet<'_>) -> Vec<u8> {
    let mut headers = [0; Packet::HEADER_ROOM];
    let length = packet.headers(&mut headers);
    let mut bytes = headers[..length].to_vec();
    bytes.extend(packet.payload);
    bytes.resize(bytes.len() + usize::from(packet.pad_bytes()), 0);
    bytes
}

/// Sends these bytes and their CRC, a right or a wrong one.
pub fn send_on(from: &UdpSocket, to: &End, bytes: &[u8], right: bool) {
    let mut whole = with_icrc(from, to, bytes, 0);
    if !right {
        whole[bytes.len()..]
            .iter_mut()
            .for_each(|byte| *byte = !*byte);
    }
    from.send_to(&whole, (to.nic.address(), UDP_PORT)).unwrap();
}

/// These bytes and the CRC of a packet with this identification.
fn with_icrc(from: &UdpSocket, to: &End, bytes: &[u8], identification: u16) -> Vec<u8> {
    let source = from.local_addr().unwrap();
    let (IpAddr::V4(source_ip), IpAddr::V4(destination)) = (source.ip(), to.nic.address()) else {
        panic!("IPv4 only");
    };
    let addresses = IcrcAddresses::V4 {
        source: source_ip,
        destination,
        identification,
        flags: DONT_FRAGMENT,
    };
    let crc = icrc(addresses, source.port(), &bytes[..12], &bytes[12..]);
    [bytes, &crc].concat()
}
