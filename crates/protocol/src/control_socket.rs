//! TCP sockets of control connections. Their segments are small: a path that drops large frames, which is what a person
//! wants to be told of, must not stall the connection that tells.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Payload bytes of a segment: every path of IPv6 carries it with its headers (1280 bytes, RFC 8200, section 5), and so do
/// those of IPv4 that matter.
const SEGMENT_BYTES: u32 = 1200;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Connects, within `limit`.
pub(crate) fn connect(address: &SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let socket = made(address)?;
    socket.connect_timeout(&(*address).into(), limit)?;
    Ok(socket.into())
}

/// Listens.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = made(&address)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A socket before either, since ends agree on the size of segments when they connect.
fn made(address: &SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_mss(SEGMENT_BYTES)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use socket2::SockRef;

    use super::*;

    #[test]
    fn segments_are_small_at_both_ends_also_where_only_one_asks() {
        let any = "127.0.0.1:0".parse().unwrap();
        for (own_listens, own_connects) in [(true, true), (true, false), (false, true)] {
            let listener =
                if own_listens { listen(any).unwrap() } else { TcpListener::bind(any).unwrap() };
            let address = listener.local_addr().unwrap();
            let client = if own_connects {
                connect(&address, Duration::from_secs(1)).unwrap()
            } else {
                TcpStream::connect(address).unwrap()
            };
            let (server, _) = listener.accept().unwrap();
            for end in [client, server] {
                let bytes = SockRef::from(&end).tcp_mss().unwrap();
                assert!(bytes <= SEGMENT_BYTES, "{bytes}");
            }
        }
    }
}
