//! How many packets the kernel takes as one GSO batch.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use super::fabric::Attachment;
use super::gso_batch_limits::{MAX_GSO_BATCH_PACKETS, OLDER_GSO_BATCH_PACKETS};
use super::sockets::{SendOptions, Socket};

/// The most packets of a GSO batch: more than older kernels take, if this one does.
pub fn most_packets() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| match takes(MAX_GSO_BATCH_PACKETS) {
        Ok(()) => MAX_GSO_BATCH_PACKETS,
        Err(_) => OLDER_GSO_BATCH_PACKETS,
    })
}

/// Sends a batch of so many packets of one byte from a socket to itself.
fn takes(packets: usize) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let options = SendOptions {
        destination: socket.local_addr()?,
        traffic_class: 0,
        hop_limit: 0,
        segment_bytes: Some(1),
    };
    let zeroes = [0; MAX_GSO_BATCH_PACKETS + 1];
    let bytes = zeroes.get(..packets).unwrap_or(&zeroes);
    let socket = Socket::from(OwnedFd::from(socket));
    Attachment::Udp(socket).send_bytes(bytes, &options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_the_most_packets_is_taken_and_a_longer_one_is_not() {
        let most = most_packets();
        assert!(takes(most).is_ok());
        assert!(takes(most + 1).is_err());
    }
}
