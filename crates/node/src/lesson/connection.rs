//! The attributes with which an end connects its QP: the right ones, or those of the lesson's mistake.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use protocol::endpoints::Endpoints;
use protocol::failure::RunFailure;
use verbs::{Gid, Path, RemoteQp};

use super::objects::LessonObjects;
use super::step::Note;
use super::transfer::Connection;
use protocol::lesson_message::Lesson;
use protocol::mistake::Mistake;

/// Path MTU of the other end for the MTU mistake.
const SMALL_MTU_BYTES: u32 = 256;

impl Connection {
    /// The right attributes.
    ///
    /// # Errors
    /// Ports that do not fit each other or the requested MTU.
    pub(crate) fn sound(
        objects: &LessonObjects,
        lesson: &Lesson,
        ours: &Endpoints,
        theirs: &Endpoints,
    ) -> Result<Connection, RunFailure> {
        ours.fits(theirs)?;
        let mtu_bytes = path_mtu(lesson, ours, theirs)?;
        let limits = &objects.port.adapter.limits;
        let reads = limits.max_initiator_reads.min(theirs.max_rd_atomic).max(1);
        let peer = theirs.qps.first();
        Ok(Connection {
            remote: RemoteQp {
                qpn: peer.map_or(0, |qp| qp.qpn),
                psn: peer.map_or(0, |qp| qp.psn),
                lid: theirs.lid,
                gid: Gid(theirs.gid_bytes()?),
            },
            path: objects.path(mtu_bytes),
            reliability: lesson.reliability(reads, limits.max_responder_reads.max(1)),
            gid_note: Note::TheirGid,
            mtu_note: Note::SmallerMtu,
        })
    }

    /// Adds the client's mistake, if it makes one here.
    ///
    /// # Errors
    /// This port cannot make the mistake.
    pub(crate) fn mistaken(self, mistake: Option<Mistake>) -> Result<Connection, RunFailure> {
        match mistake {
            Some(Mistake::Gid) if self.path.gid_index.is_none() => Err(RunFailure::refused(
                "--break gid needs a RoCE port: this one goes by LID",
                "choose one with --device, such as the embedded soft0",
            )),
            Some(Mistake::Gid) => Ok(Connection {
                remote: RemoteQp { gid: nobodys(self.remote.gid), ..self.remote },
                gid_note: Note::WrongGid,
                ..self
            }),
            Some(Mistake::Mtu) if self.path.mtu_code <= Path::mtu_code(SMALL_MTU_BYTES) => {
                Err(RunFailure::refused(
                    "--break mtu needs a path MTU above 256",
                    "raise --mtu, or the network interface's MTU",
                ))
            }
            Some(Mistake::Mtu) => Ok(Connection { mtu_note: Note::LargerMtu, ..self }),
            _ => Ok(self),
        }
    }

    /// Adds the server's part of a mistake, if it has one.
    pub(crate) fn at_server(mut self, mistake: Option<Mistake>) -> Connection {
        if mistake == Some(Mistake::Mtu) {
            self.path.mtu_code = Path::mtu_code(SMALL_MTU_BYTES);
        }
        self
    }
}

/// A GID of the same kind that nobody has: in a network reserved for documentation, or on loopback, where packets can
/// be captured, an address that is not in use.
fn nobodys(gid: Gid) -> Gid {
    Gid::from_address(match gid.address() {
        IpAddr::V4(v4) if v4.is_loopback() => Ipv4Addr::new(127, 255, 113, 77).into(),
        IpAddr::V4(_) => Ipv4Addr::new(203, 0, 113, 77).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0xdead, 0, 0, 0, 0, 0x77).into(),
    })
}

/// The smaller MTU of both ports, or the requested one, which must not be larger.
fn path_mtu(lesson: &Lesson, ours: &Endpoints, theirs: &Endpoints) -> Result<u32, RunFailure> {
    let most = ours.mtu_bytes.min(theirs.mtu_bytes);
    match lesson.mtu_bytes {
        None => Ok(most),
        Some(wanted) if wanted <= most => Ok(wanted),
        Some(wanted) => Err(RunFailure::refused(
            format!("an MTU of {wanted} is more than the ports have: {most}"),
            "lower --mtu, or raise the network interface's MTU",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::endpoints::LinkLayer;
    use settings::Op;

    fn endpoints(mtu_bytes: u32) -> Endpoints {
        Endpoints {
            mtu_bytes,
            max_rd_atomic: 1,
            lid: 0,
            gid: "::1".into(),
            qkey: 0,
            link_layer: LinkLayer::RoceV2,
            qps: Vec::new(),
        }
    }

    #[test]
    fn nobody_is_at_another_address_of_the_same_family() {
        for text in ["::ffff:127.0.0.2", "::ffff:192.0.2.2", "fd00::2"] {
            let gid = Gid::parse(text).unwrap();
            let other = nobodys(gid);
            assert_ne!(gid, other);
            assert_eq!(gid.address().is_ipv4(), other.address().is_ipv4());
            assert_eq!(gid.address().is_loopback(), other.address().is_loopback());
        }
    }

    #[test]
    fn the_smaller_mtu_counts() {
        let [large, small] = [4096, 1024].map(endpoints);
        let agreed = |asked| path_mtu(&Lesson::new(Op::Send, None, asked, "x"), &large, &small);
        assert_eq!(agreed(None).unwrap(), 1024);
        assert_eq!(agreed(Some(512)).unwrap(), 512);
        assert!(agreed(Some(2048)).unwrap_err().bad_input);
    }
}
