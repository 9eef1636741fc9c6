//! The connection array of one end of a flow: its port and its QPs, and what is wrong with one that a peer sent; and what
//! each of its send rings has posted.

use std::net::Ipv6Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use results::text::printable;
use settings::{Mtu, Settings};
use verbs::{Gid, GidEntry, GidType};

/// The connection array of one end of a flow. LID, GID and the limits belong to its port, which all of its QPs are on;
/// so they stand here once, not with each QP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    /// The port's active MTU, in payload bytes of a packet.
    pub mtu_bytes: u32,
    /// READs that the device takes at once on one QP.
    pub max_rd_atomic: u8,
    /// The port's LID; 0 on Ethernet.
    pub lid: u16,
    /// The port's GID, as [`gid_text`] writes it.
    pub gid: String,
    /// What datagrams to the QPs must have as their Q_Key; 0 where they take none.
    pub qkey: u32,
    pub link_layer: LinkLayer,
    /// One entry a QP, in QP order.
    pub qps: Vec<QpEndpoint>,
}

/// Two ends of a flow that connect, as one of them sees it.
#[derive(Clone, Copy, Debug)]
pub struct ConnectingEnds<'a> {
    pub settings: &'a Settings,
    /// The own device, with the index of its GID.
    pub device: &'a str,
    pub gid_index: Option<u32>,
    pub own: &'a Endpoints,
    pub peer: &'a Endpoints,
}

/// What lies beneath the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    /// RoCE v1, by the type of the port's GID: addressed by GID, within one Ethernet.
    RoceV1,
    /// RoCE v2: addressed by GID, which is an IP address.
    RoceV2,
    /// InfiniBand: addressed by LID within a subnet.
    Infiniband,
}

impl LinkLayer {
    /// Of a port with this entry of its GID table.
    pub fn from_attributes(port: verbs::LinkLayer, gid: Option<&GidEntry>) -> Self {
        match (port, gid.map(|entry| entry.gid_type)) {
            (verbs::LinkLayer::Infiniband, _) => LinkLayer::Infiniband,
            (_, Some(GidType::RoceV1)) => LinkLayer::RoceV1,
            (_, _) => LinkLayer::RoceV2,
        }
    }

    fn name(self) -> &'static str {
        match self {
            LinkLayer::RoceV1 => "RoCE v1",
            LinkLayer::RoceV2 => "RoCE v2",
            LinkLayer::Infiniband => "InfiniBand",
        }
    }
}

/// One QP and the memory that its peer may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QpEndpoint {
    /// QP number at the end that sent this, 24 bits.
    pub qpn: u32,
    /// First PSN that this QP sends, 24 bits.
    pub psn: u32,
    /// Start of the memory, as the device takes it; 0 if none is accessible.
    pub address: u64,
    /// Remote key of the memory; 0 if none is accessible.
    pub rkey: u32,
    /// Length of the memory, in bytes; 0 if none is accessible.
    pub length: u64,
}

/// What is wrong with the connection array that a peer sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EndpointsError {
    #[error("the peer sent {got} QPs instead of {expected}")]
    Count { expected: u32, got: usize },
    #[error("the peer's QP {index} has {field} {value:#x}, which is not a 24-bit number")]
    Not24Bits {
        index: usize,
        /// The field of the peer's QP: `QPN` or `PSN`.
        field: &'static str,
        value: u32,
    },
    /// The memory is too small for the case, or runs past the end of the address space.
    #[error(
        "the peer's QP {index} offers {length} bytes at {address:#x}, the case needs {needed_bytes}"
    )]
    Memory {
        index: usize,
        /// Start of the memory, as the peer sent it.
        address: u64,
        length: u64,
        /// Bytes that the case accesses.
        needed_bytes: u64,
    },
    #[error("the peer's port has MTU {0}, which is none of 256, 512, 1024, 2048 and 4096")]
    Mtu(u32),
    #[error("one end has a RoCE port and the other an InfiniBand port")]
    Kinds,
    #[error("the GID here is {here}, the peer's is {there}: they cannot reach each other")]
    Unseen {
        /// Type or family, and the address.
        here: String,
        there: String,
        /// What must be one: `type` or `family`.
        choice: &'static str,
    },
    /// Not a GID, or one that addresses nothing on RoCE.
    #[error("the peer's GID `{0}` is not an address")]
    Gid(String),
}

impl EndpointsError {
    /// What the user should change, for the line below the error.
    pub fn hint(&self) -> String {
        match self {
            EndpointsError::Kinds => {
                "choose ports of one kind with --device and --ib-port at both ends".to_owned()
            }
            EndpointsError::Unseen { choice, .. } => format!(
                "choose GIDs of one {choice} with --gid-index at both ends (`rocebench devices` lists them)"
            ),
            _ => "install the same version of rocebench on both ends".to_owned(),
        }
    }

    /// Whether the fault is in what was asked for.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, EndpointsError::Kinds | EndpointsError::Unseen { .. })
    }
}

impl Endpoints {
    /// Checks the peer's array against the case: `expected_qps` of them, each with at least
    /// `needed_bytes` of memory (0 if the case accesses none).
    ///
    /// # Errors
    /// The first thing that is wrong, as a sentence.
    pub fn check(&self, expected_qps: u32, needed_bytes: u64) -> Result<(), EndpointsError> {
        Mtu::try_from(self.mtu_bytes).map_err(|_| EndpointsError::Mtu(self.mtu_bytes))?;
        let gid = self.gid_bytes()?;
        if self.link_layer != LinkLayer::Infiniband && gid == [0; 16] {
            return Err(self.bad_gid());
        }
        if usize::try_from(expected_qps) != Ok(self.qps.len()) {
            return Err(EndpointsError::Count { expected: expected_qps, got: self.qps.len() });
        }
        self.qps.iter().enumerate().try_for_each(|(index, qp)| qp.check(index, needed_bytes))
    }

    /// The GID's 16 bytes.
    ///
    /// # Errors
    /// [`EndpointsError::Gid`] if the text is none.
    pub fn gid_bytes(&self) -> Result<[u8; 16], EndpointsError> {
        self.gid.parse::<Ipv6Addr>().map(|gid| gid.octets()).map_err(|_| self.bad_gid())
    }

    /// Checks that packets of one port are packets to the other's: of one kind, and of RoCE v2 one family of addresses.
    ///
    /// # Errors
    /// What differs, and what to choose instead.
    pub fn fits(&self, peer: &Endpoints) -> Result<(), EndpointsError> {
        let (here, there) = (self.link_layer, peer.link_layer);
        if (here == LinkLayer::Infiniband) != (there == LinkLayer::Infiniband) {
            return Err(EndpointsError::Kinds);
        }
        let [own, others] = [self, peer].map(|end| end.gid_bytes().map(|gid| Gid(gid).address()));
        let (own, others) = (own?, others?);
        let unseen = |[near, far]: [&str; 2], choice| {
            Err(EndpointsError::Unseen {
                here: format!("{near} ({own})"),
                there: format!("{far} ({others})"),
                choice,
            })
        };
        if here != there {
            return unseen([here.name(), there.name()], "type");
        }
        if here == LinkLayer::RoceV2 && own.is_ipv4() != others.is_ipv4() {
            return unseen(
                [own.is_ipv4(), others.is_ipv4()].map(|is_v4| if is_v4 { "IPv4" } else { "IPv6" }),
                "family",
            );
        }
        Ok(())
    }

    fn bad_gid(&self) -> EndpointsError {
        EndpointsError::Gid(printable(&self.gid, 60))
    }
}

impl QpEndpoint {
    fn check(&self, index: usize, needed_bytes: u64) -> Result<(), EndpointsError> {
        for (field, value) in [("QPN", self.qpn), ("PSN", self.psn)] {
            if value >> 24 != 0 {
                return Err(EndpointsError::Not24Bits { index, field, value });
            }
        }
        let fits = self.length >= needed_bytes && self.address.checked_add(self.length).is_some();
        if fits {
            return Ok(());
        }
        Err(EndpointsError::Memory {
            index,
            address: self.address,
            length: self.length,
            needed_bytes,
        })
    }
}

/// A GID as sysfs writes it: eight groups of four hex digits with colons between.
pub fn gid_text(gid: [u8; 16]) -> String {
    Ipv6Addr::from(gid).segments().map(|group| format!("{group:04x}")).join(":")
}

/// How often each position of an end's send rings was posted, as `drained` has it with `--verify`: packed, since it must
/// fit a frame with as many positions as a case may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posts {
    /// Positions of each QP's ring.
    pub positions: u32,
    /// QP by QP, a count for each position; on the wire the base64 of 4 bytes each, little-endian.
    #[serde(serialize_with = "pack", deserialize_with = "unpack")]
    pub packed: Vec<u32>,
}

impl Posts {
    /// The counts of each QP.
    pub fn of_qps(&self) -> impl Iterator<Item = &[u32]> {
        self.packed.chunks(self.positions.max(1) as usize)
    }

    /// The most bytes that so many QPs with so many positions each take on the wire.
    pub fn most_bytes(qps: u32, positions: u32) -> u64 {
        const REST_BYTES: u64 = 64;
        let packed = u64::from(qps) * u64::from(positions) * size_of::<u32>() as u64;
        // Four characters for three bytes.
        packed.div_ceil(3) * 4 + REST_BYTES
    }
}

fn pack<S: Serializer>(counts: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    serializer.serialize_str(&BASE64.encode(bytes))
}

fn unpack<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let wrong = || D::Error::custom("not the base64 of numbers of 4 bytes");
    let text = String::deserialize(deserializer)?;
    let bytes = BASE64.decode(text).map_err(|_| wrong())?;
    let (counts, []) = bytes.as_chunks() else {
        return Err(wrong());
    };
    Ok(counts.iter().copied().map(u32::from_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    use results::sample::has;

    #[test]
    fn ports_whose_packets_the_other_does_not_see_are_refused_with_what_to_change() {
        use LinkLayer::{Infiniband, RoceV1, RoceV2};
        let port = |(link_layer, gid): (LinkLayer, &str)| Endpoints {
            mtu_bytes: 1024,
            max_rd_atomic: 1,
            lid: 0,
            gid: gid.to_owned(),
            qkey: 0,
            link_layer,
            qps: Vec::new(),
        };
        let (v4, v6) = ("::ffff:10.0.0.1", "fd00::9");
        for (here, there, says) in [
            ((RoceV2, v4), (RoceV2, "::ffff:192.0.2.9"), None),
            ((RoceV2, v6), (RoceV2, v6), None),
            // Its GIDs are no addresses of IP.
            ((RoceV1, v4), (RoceV1, v6), None),
            ((Infiniband, v4), (Infiniband, v6), None),
            ((RoceV2, v4), (RoceV2, v6), Some("IPv4 (10.0.0.1), the peer's is IPv6 (fd00::9)")),
            ((RoceV1, v6), (RoceV2, v6), Some("RoCE v1 (fd00::9), the peer's is RoCE v2")),
            ((RoceV2, v4), (Infiniband, v6), Some("an InfiniBand port")),
        ] {
            let fits = port(here).fits(&port(there));
            let Some(says) = says else {
                fits.unwrap();
                continue;
            };
            let refused = fits.unwrap_err();
            assert!(refused.is_bad_input());
            has(refused.to_string(), [says]);
            has(refused.hint(), ["at both ends"]);
        }
    }

    #[test]
    fn counts_are_read_back_and_nothing_else_is() {
        let posts = Posts { positions: 2, packed: vec![0, 1, u32::MAX, 7] };
        let text = serde_json::to_string(&posts).unwrap();
        assert_eq!(text, r#"{"positions":2,"packed":"AAAAAAEAAAD/////BwAAAA"}"#);
        assert_eq!(serde_json::from_str::<Posts>(&text).unwrap(), posts);
        let of_qps: Vec<&[u32]> = posts.of_qps().collect();
        assert_eq!(of_qps, [[0, 1], [u32::MAX, 7]]);
        for wrong in ["\"AAAA\"", "\"!\"", "[1]"] {
            let refused = format!(r#"{{"positions":1,"packed":{wrong}}}"#);
            assert!(serde_json::from_str::<Posts>(&refused).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_most_bytes_are_not_exceeded_and_almost_reached() {
        for (qps, positions) in [(1, 1), (1, 65_536), (100, 777), (3000, 16)] {
            let posts = Posts { positions, packed: vec![u32::MAX; (qps * positions) as usize] };
            let bytes = serde_json::to_string(&posts).unwrap().len() as u64;
            let most = Posts::most_bytes(qps, positions);
            assert!(bytes <= most && bytes + 64 >= most, "{bytes} of {most}");
        }
    }
}
