//! When perftest's server is there. A connection to try it would be taken for its client's, so the system is
//! asked.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// A TCP port that nobody listens on.
pub fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Whether somebody listens on a TCP port, in the network namespace of process `id`.
pub fn listens(id: u32, port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        std::fs::read_to_string(format!("/proc/{id}/net/{table}"))
            .is_ok_and(|table| has_listener(&table, port))
    })
}

/// In a table of `/proc/net/tcp`'s form; the state 0A is LISTEN.
fn has_listener(table: &str, port: u16) -> bool {
    let local = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|address| address.ends_with(&local))
            && fields.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_seen_and_a_free_port_is_free() {
        let own = std::process::id();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(own, port));
        drop(listener);
        assert!(!listens(own, port));
        assert!(!listens(own, free_port().unwrap()));
    }

    #[test]
    fn only_a_listeners_own_port_counts() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:4853 0100007F:4854 01 x\n   1: 00000000:4855 \
                     00000000:0000 0A x\n";
        assert!(has_listener(table, 0x4855));
        assert!(!has_listener(table, 0x4853), "connected, not listening");
        assert!(!has_listener(table, 0x4854));
    }
}
