//! Data centre bridging of a network interface: PFC, and the priority that a DSCP stands for. Asked of the kernel by
//! rtnetlink (`RTM_GETDCB`), which needs no root.
//!
//! Numbers are those of `linux/dcbnl.h`, structs those of its `ieee_pfc` and `dcb_app`.

use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with, sockopt,
};

/// Header of a netlink message: length, type, flags, sequence number, port.
const HEADER_BYTES: usize = 16;
/// `struct dcbmsg`: family, command, padding.
const DCB_HEADER_BYTES: usize = 4;
/// Length and type of an attribute.
const ATTRIBUTE_HEADER_BYTES: usize = 4;

const NLM_F_REQUEST: u16 = 1;
const RTM_GETDCB: u16 = 78;
const DCB_CMD_IEEE_GET: u8 = 21;
const DCB_ATTR_IFNAME: u16 = 1;
const DCB_ATTR_IEEE: u16 = 13;
const DCB_ATTR_IEEE_PFC: u16 = 2;
const DCB_ATTR_IEEE_APP_TABLE: u16 = 3;
const DCB_ATTR_IEEE_APP: u16 = 1;
const DCB_ATTR_DCB_APP_TRUST_TABLE: u16 = 11;
/// `IEEE_8021QAZ_APP_SEL_DSCP`: the entry is of a DSCP.
const SELECTS_DSCP: u8 = 5;
/// `DCB_APP_SEL_PCP`: the priority is that of the VLAN tag.
const SELECTS_PCP: u8 = 255;
/// Flags in an attribute's type.
const TYPE_MASK: u16 = 0x3fff;

/// How long the kernel may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// What the kernel tells of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bridging {
    /// Priorities with PFC, in order.
    pub pfc_priorities: Option<Vec<u8>>,
    /// DSCP with the priority that it stands for, in order of DSCP.
    pub dscp_priorities: Option<Vec<(u8, u8)>>,
    /// By which field a packet gets its priority: `dscp` or `pcp`.
    pub trust: Option<&'static str>,
}

/// Asks the kernel; `None` where the interface's driver has no such thing.
pub fn read(netdev: &str) -> Option<Bridging> {
    let socket = open().ok()?;
    sendto(&socket, &request(netdev), SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))
        .ok()?;
    let mut answer = vec![0; 16 << 10];
    let (received, _) = recv(&socket, &mut answer[..], RecvFlags::empty()).ok()?;
    parse(answer.get(..received)?)
}

fn open() -> rustix::io::Result<OwnedFd> {
    // No protocol is that of routes and interfaces.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    Ok(socket)
}

fn request(netdev: &str) -> Vec<u8> {
    let mut body = vec![0, DCB_CMD_IEEE_GET, 0, 0];
    put_attribute(&mut body, DCB_ATTR_IFNAME, &[netdev.as_bytes(), &[0]].concat());
    message(RTM_GETDCB, NLM_F_REQUEST, &body)
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence number and port: the only request on its socket.
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

fn put_attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// An answer; `None` for an error or another message.
fn parse(answer: &[u8]) -> Option<Bridging> {
    let length = u32::from_ne_bytes(*answer.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    if kind != RTM_GETDCB {
        return None;
    }
    let body = answer.get(HEADER_BYTES + DCB_HEADER_BYTES..length)?;
    let ieee = attributes(body).find(|(kind, _)| *kind == DCB_ATTR_IEEE)?.1;
    let mut found = Bridging::default();
    for (kind, value) in attributes(ieee) {
        match kind {
            // `pfc_cap`, then a bit for each priority.
            DCB_ATTR_IEEE_PFC => {
                let enabled = *value.get(1)?;
                found.pfc_priorities =
                    Some((0..8).filter(|priority| enabled >> priority & 1 == 1).collect());
            }
            DCB_ATTR_IEEE_APP_TABLE => found.dscp_priorities = Some(dscps(value)),
            DCB_ATTR_DCB_APP_TRUST_TABLE => found.trust = trust(value),
            _ => {}
        }
    }
    Some(found)
}

/// Of a table of `dcb_app`: selector, priority, protocol (here the DSCP).
fn dscps(table: &[u8]) -> Vec<(u8, u8)> {
    let mut found: Vec<_> = attributes(table)
        .filter_map(|(kind, entry)| match *entry {
            [SELECTS_DSCP, priority, low, high, ..] if kind == DCB_ATTR_IEEE_APP => {
                let dscp = u8::try_from(u16::from_ne_bytes([low, high])).ok()?;
                Some((dscp, priority))
            }
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found
}

/// The selector that comes first counts first.
fn trust(table: &[u8]) -> Option<&'static str> {
    attributes(table).find_map(|(_, value)| match *value.first()? {
        SELECTS_DSCP => Some("dscp"),
        SELECTS_PCP => Some("pcp"),
        _ => None,
    })
}

/// Types and values, up to the first that does not fit.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & TYPE_MASK;
        let value = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_attribute(&mut bytes, kind, value);
        bytes
    }

    /// What the kernel's `dcbnl_ieee_fill` writes for an interface with PFC on priorities 3 and 4.
    fn answer() -> Vec<u8> {
        const NESTED: u16 = 0x8000;
        let mut pfc = [0; 136];
        pfc[..2].copy_from_slice(&[8, 0b1_1000]);
        let app = |selector, priority, protocol: u16| {
            let [low, high] = protocol.to_ne_bytes();
            attribute(DCB_ATTR_IEEE_APP, &[selector, priority, low, high])
        };
        let table = [app(SELECTS_DSCP, 6, 48), app(1, 3, 0x8915), app(SELECTS_DSCP, 3, 26)];
        let trust = [attribute(1, &[SELECTS_DSCP]), attribute(2, &[SELECTS_PCP])];
        let ieee = [
            attribute(1, &[8; 60]),
            attribute(DCB_ATTR_IEEE_PFC, &pfc),
            attribute(DCB_ATTR_IEEE_APP_TABLE, &table.concat()),
            attribute(DCB_ATTR_DCB_APP_TRUST_TABLE | NESTED, &trust.concat()),
        ];
        let body = [
            vec![0, DCB_CMD_IEEE_GET, 0, 0],
            attribute(DCB_ATTR_IFNAME, b"eth2\0"),
            attribute(DCB_ATTR_IEEE | NESTED, &ieee.concat()),
        ];
        message(RTM_GETDCB, 0, &body.concat())
    }

    #[test]
    fn pfc_and_dscp_are_read() {
        let found = parse(&answer()).unwrap();
        assert_eq!(found.pfc_priorities, Some(vec![3, 4]));
        assert_eq!(found.dscp_priorities, Some(vec![(26, 3), (48, 6)]));
        assert_eq!(found.trust, Some("dscp"));
    }

    #[test]
    fn what_is_cut_off_or_an_error_is_no_answer_and_no_panic() {
        let whole = answer();
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None, "{length}");
        }
        // NLMSG_ERROR is 2.
        assert_eq!(parse(&message(2, 0, &[0; 20])), None);
        let mut short = whole;
        let inner = HEADER_BYTES + DCB_HEADER_BYTES + 12;
        short[inner] = 6;
        short[inner + 1] = 0;
        assert_eq!(parse(&short), Some(Bridging::default()));
    }

    /// Loopback has no such thing, and the kernel says so at once.
    #[test]
    fn loopback_has_none() {
        assert_eq!(read("lo"), None);
        assert_eq!(read("no-such-interface"), None);
    }
}
