//! All packets that pass an interface of this network namespace, as a sniffer sees them (root only), and what
//! the embedded device's parser makes of those that are RoCEv2. Here the IPv4 identification is known, which a
//! UDP socket never shows, so the invariant CRC is checked against the real one.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, sockopt};
use softroce::wire::{IcrcAddresses, Packet, UDP_PORT, icrc};

/// `ETH_P_ALL`, in network order as sockets of this family want it.
const ALL: u32 = 0x0003_u16.to_be() as u32;
const ETHERNET_BYTES: usize = 14;
const UDP_BYTES: usize = 8;
const UDP: u8 = 17;
/// Bytes that the kernel keeps for the capture.
const BUFFER_BYTES: usize = 256 << 20;

/// A capture that goes on until [`Capture::stop`].
pub struct Capture {
    stop: Arc<AtomicBool>,
    reader: JoinHandle<Vec<Vec<u8>>>,
}

/// A RoCEv2 packet with what stood below it.
pub struct Captured<'a> {
    pub source: IpAddr,
    pub source_port: u16,
    /// Of IPv4.
    pub identification: Option<u16>,
    pub packet: Packet<'a>,
}

impl Capture {
    /// Of all interfaces of this namespace.
    pub fn start() -> Capture {
        let protocol = std::num::NonZeroU32::new(ALL).map(Protocol::from_raw);
        let socket = rustix::net::socket_with(
            AddressFamily::PACKET,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )
        .unwrap();
        sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES).unwrap();
        let wait = Some(Duration::from_millis(50));
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, wait).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let reader = std::thread::spawn(move || {
            let mut frames = Vec::new();
            let mut buffer = vec![0; 1 << 16];
            loop {
                // Before the look: what has passed by then is read.
                let is_last = stops.load(Ordering::Relaxed);
                let received = rustix::net::recv(&socket, &mut *buffer, RecvFlags::empty());
                let Ok((bytes, _)) = received else {
                    if is_last {
                        break;
                    }
                    continue;
                };
                let frame = &buffer[..bytes];
                if roce(frame).is_some() {
                    frames.push(frame.to_vec());
                }
            }
            frames
        });
        Capture { stop, reader }
    }

    /// The RoCEv2 frames that passed.
    pub fn stop(self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.reader.join().unwrap()
    }
}

/// Writes frames where other programs can read them.
pub fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    // Magic number, version 2.4, two unused words, longest frame, Ethernet.
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1 << 16, 1];
    let word = |value: u32, file: &mut dyn std::io::Write| {
        file.write_all(&value.to_ne_bytes()).unwrap();
    };
    for value in header {
        word(value, &mut file);
    }
    for (number, frame) in frames.iter().enumerate() {
        for value in [0, number as u32, frame.len() as u32, frame.len() as u32] {
            word(value, &mut file);
        }
        file.write_all(frame).unwrap();
    }
    file.flush().unwrap();
}

struct Headers<'a> {
    addresses: IcrcAddresses,
    source_port: u16,
    udp_payload: &'a [u8],
}

fn two(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The headers of a frame to the RoCEv2 port.
fn roce(frame: &[u8]) -> Option<Headers<'_>> {
    let ip = frame.get(ETHERNET_BYTES..)?;
    let (addresses, udp) = match two(frame, 12)? {
        0x0800 if *ip.get(9)? == UDP => {
            let four = |at| Some(Ipv4Addr::from(*ip.get(at..)?.first_chunk::<4>()?));
            let addresses = IcrcAddresses::V4 {
                source: four(12)?,
                destination: four(16)?,
                identification: two(ip, 4)?,
                flags: two(ip, 6)?,
            };
            (addresses, ip.get(20..usize::from(two(ip, 2)?))?)
        }
        0x86dd if *ip.get(6)? == UDP => {
            let sixteen = |at| Some(Ipv6Addr::from(*ip.get(at..)?.first_chunk::<16>()?));
            let addresses = IcrcAddresses::V6 { source: sixteen(8)?, destination: sixteen(24)? };
            (addresses, ip.get(40..40 + usize::from(two(ip, 4)?))?)
        }
        _ => return None,
    };
    (two(udp, 2)? == UDP_PORT).then_some(Headers {
        addresses,
        source_port: two(udp, 0)?,
        udp_payload: udp.get(UDP_BYTES..)?,
    })
}

/// The packet in a frame, or why it is none.
pub fn decode(frame: &[u8]) -> Result<Captured<'_>, String> {
    let Headers { addresses, source_port, udp_payload } = roce(frame).ok_or("not RoCEv2")?;
    let packet = Packet::parse(udp_payload).map_err(|error| error.to_string())?;
    let (body, written) = udp_payload.split_last_chunk::<4>().ok_or("no CRC")?;
    let right = icrc(addresses, source_port, body);
    if right != *written {
        return Err(format!("invariant CRC {written:x?} instead of {right:x?}"));
    }
    let (source, identification) = match addresses {
        IcrcAddresses::V4 { source, identification, .. } => (source.into(), Some(identification)),
        IcrcAddresses::V6 { source, .. } => (source.into(), None),
    };
    Ok(Captured { source, source_port, identification, packet })
}
