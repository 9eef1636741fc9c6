//! The verbs objects of one end of a lesson, created one by one; each call is reported. Both ends create the same
//! objects, but only one reports. And the attributes with which an end connects its QP: the right ones, or those of the
//! lesson's mistake.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use datapath::{RemoteMemory, send_opcode};
use protocol::{
    endpoints::{Endpoints, QpEndpoint},
    failure::RunFailure,
    lesson::{Lesson, Mistake, PostedReceive, SeenCompletion},
};
use settings::Op;
use verbs::{
    Access, Completion, CompletionQueue, Gid, MemoryRegion, Operation, Path, Port,
    ProtectionDomain, QpCapacity, QueuePair, RecvRing, RecvTemplate, Reliability, RemoteQp,
    SendRing, SendTemplate, Teardown, VerbsError, WcBatch, tear_down,
};

use super::{Call, End, Note, Part, Topic, calls};
use crate::port_path;

/// Entries of the CQ: more than are ever outstanding.
const CQ_ENTRIES: u32 = 4;
/// The initial contents of memory.
const NOTHING: u8 = b'.';

const CAPACITY: QpCapacity = QpCapacity { send_wr: 1, recv_wr: 1, inline_bytes: 0, sges: 1 };

pub(crate) type Tell<'a> = dyn FnMut(Topic, Vec<Part>) + 'a;

pub(crate) struct LessonObjects {
    pub(crate) port: Port,
    pd: Arc<ProtectionDomain>,
    pub(crate) memory: Arc<MemoryRegion>,
    cq: Arc<CompletionQueue>,
    /// The QP of the transfer.
    pub(crate) qp: Arc<QueuePair>,
    psn: u32,
    /// The extra QP of a mistake, with its PSN.
    superfluous: Option<(Arc<QueuePair>, u32)>,
    send: Option<SendRing>,
    receive: Option<RecvRing>,
    access: Access,
}

impl LessonObjects {
    /// Creates the objects on an open port, up to a QP in INIT. Fills the memory with `text`, or else with dots.
    /// `superfluous` creates one extra QP.
    pub(crate) fn create(
        port: Port,
        lesson: &Lesson,
        access: Access,
        text: Option<&str>,
        superfluous: bool,
        tell: &mut Tell<'_>,
    ) -> Result<LessonObjects, RunFailure> {
        tell(Topic::Open, calls::open(&port));
        tell(Topic::Port, calls::query(&port));
        let pd = ProtectionDomain::new(&port.context)?;
        let call = Call::new("ibv_alloc_pd(context)", "pd");
        tell(Topic::Pd, vec![Part::Call(call)]);
        let memory = register(&pd, lesson, access, text, tell)?;
        let cq = CompletionQueue::new(&port.context, CQ_ENTRIES)?;
        let code = format!("ibv_create_cq(context, {CQ_ENTRIES}, NULL, NULL, 0)");
        tell(Topic::Cq, vec![Part::Call(Call::new(code, "cq"))]);
        let mut parts = Vec::new();
        let qp = create_qp(&pd, &cq, &mut parts)?;
        let superfluous = if superfluous {
            parts.insert(0, Part::OnPurpose);
            Some((create_qp(&pd, &cq, &mut parts)?, psn()?))
        } else {
            None
        };
        tell(Topic::Qp, parts);
        let made = LessonObjects {
            port,
            pd,
            memory,
            cq,
            qp,
            psn: psn()?,
            superfluous,
            send: None,
            receive: None,
            access,
        };
        made.to_init(tell)?;
        Ok(made)
    }

    fn to_init(&self, tell: &mut Tell<'_>) -> Result<(), VerbsError> {
        let port = self.port.info.port;
        let more = self.superfluous.iter().map(|(qp, _)| qp);
        let mut states = Vec::new();
        for qp in [&self.qp].into_iter().chain(more) {
            qp.to_init(port, self.port.pkey_index, self.access)?;
            states.push(qp.query()?.state);
        }
        let call = calls::to_init(port, self.access);
        tell(Topic::Init, vec![Part::Call(call), Part::States(End::This, states)]);
        Ok(())
    }

    pub(crate) fn endpoints(&self) -> Endpoints {
        let (address, rkey, length) = match self.access {
            Access::RemoteWrite | Access::RemoteRead | Access::RemoteAtomic => {
                (self.memory.address(), self.memory.rkey(), self.memory.length_bytes() as u64)
            }
            Access::LocalRead | Access::LocalWrite => (0, 0, 0),
        };
        let qps = std::iter::once((&self.qp, self.psn))
            .chain(self.superfluous.iter().map(|(qp, psn)| (qp, *psn)))
            .map(|(qp, psn)| QpEndpoint { qpn: qp.qpn(), psn, address, rkey, length })
            .collect();
        port_path::endpoints(&self.port, qps)
    }

    /// Path attributes of packets from this end.
    pub(crate) fn path(&self, mtu_bytes: u32) -> Path {
        let info = &self.port.info;
        Path {
            port: info.port,
            link_layer: info.link_layer,
            gid_index: self.port.gid.filter(|_| self.port.has_grh()).map(|entry| entry.index),
            service_level: 0,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            mtu_code: Path::mtu_code(mtu_bytes),
        }
    }

    /// Moves the QP from INIT to RTR, and reports the call and its error.
    pub(crate) fn to_rtr(
        &self,
        connection: &Connection,
        mistake: Option<Mistake>,
        tell: &mut Tell<'_>,
    ) -> Result<(), VerbsError> {
        let (path, remote) = (&connection.path, &connection.remote);
        let done = self.qp.to_rtr(path, remote, &connection.reliability);
        let mut parts = Vec::new();
        if matches!(mistake, Some(Mistake::Gid | Mistake::Mtu)) {
            parts.push(Part::OnPurpose);
        }
        parts.push(Part::Call(calls::to_rtr(connection, calls::returned(&done))));
        parts.push(Part::States(End::This, vec![self.qp.query()?.state]));
        parts.extend(done.as_ref().err().map(|error| Part::Error(error.to_string())));
        tell(Topic::Rtr, parts);
        done
    }

    /// Moves the QP from RTR to RTS, and reports the call.
    pub(crate) fn to_rts(
        &self,
        reliability: &Reliability,
        tell: &mut Tell<'_>,
    ) -> Result<(), VerbsError> {
        self.qp.to_rts(self.psn, reliability)?;
        let call = calls::to_rts(self.psn, reliability);
        let state = self.qp.query()?.state;
        tell(Topic::Rts, vec![Part::Call(call), Part::States(End::This, vec![state])]);
        Ok(())
    }

    /// Posts one receive of the message's length.
    pub(crate) fn post_receive(
        &mut self,
        length_bytes: u32,
        wr_id: u64,
    ) -> Result<PostedReceive, VerbsError> {
        let template = RecvTemplate { wr_id, offset: 0, length_bytes, sges: 1 };
        let ring = RecvRing::new(&self.qp, &self.memory, &[template], false)?;
        let posted = ring.post(0);
        self.receive = Some(ring);
        posted.map_err(|error| error.into_error(Operation::PostRecv, self.qp.qpn()))?;
        Ok(PostedReceive {
            wr_id,
            address: self.memory.address(),
            length_bytes,
            lkey: self.memory.lkey(),
        })
    }

    pub(crate) fn post(&mut self, transfer: &Transfer) -> Result<(), VerbsError> {
        let Transfer { address, rkey, .. } = *transfer;
        let template = SendTemplate {
            wr_id: transfer.wr_id,
            opcode: send_opcode(transfer.op.profile(), RemoteMemory { address, rkey }),
            offset: 0,
            length_bytes: transfer.length_bytes,
            sges: 1,
            signalled: true,
            inline: false,
            ends_chain: true,
        };
        let ring = SendRing::new(&self.qp, &self.memory, &[template])?;
        let posted = ring.post(0);
        self.send = Some(ring);
        posted.map_err(|error| error.into_error(Operation::PostSend, self.qp.qpn()))
    }

    pub(crate) fn poll(&self) -> Result<Option<SeenCompletion>, VerbsError> {
        let mut batch = WcBatch::new();
        Ok(self.cq.poll(&mut batch)?.first().map(seen))
    }

    /// The contents of the memory.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        bytes_of(&self.memory)
    }

    /// Destroys all objects in reverse order, and reports the result of each call.
    pub(crate) fn tear_down(self, tell: &mut Tell<'_>) {
        // The rings hold the QP and the memory.
        drop((self.send, self.receive));
        let mut parts = Vec::new();
        if let Some((qp, _)) = self.superfluous {
            parts.push(ended("qp", qp));
        }
        parts.push(ended("qp", self.qp));
        parts.push(ended("cq", self.cq));
        parts.push(ended("mr", self.memory));
        parts.push(ended("pd", self.pd));
        // What the device said of itself holds it too.
        let Port { context, adapter, .. } = self.port;
        drop(adapter);
        parts.push(ended("context", context));
        tell(Topic::TearDown, parts);
    }
}

fn ended<T: Teardown>(name: &str, object: Arc<T>) -> Part {
    let code = format!("{}({name})", T::OPERATION);
    Part::Call(Call::new(code, calls::returned(&tear_down(object))))
}

fn create_qp(
    pd: &Arc<ProtectionDomain>,
    cq: &Arc<CompletionQueue>,
    parts: &mut Vec<Part>,
) -> Result<Arc<QueuePair>, VerbsError> {
    let qp = QueuePair::new(pd, cq, cq, CAPACITY)?;
    parts.push(Part::Call(calls::create_qp(CAPACITY, qp.qpn())));
    parts.push(Part::States(End::This, vec![qp.query()?.state]));
    Ok(qp)
}

fn register(
    pd: &Arc<ProtectionDomain>,
    lesson: &Lesson,
    access: Access,
    text: Option<&str>,
    tell: &mut Tell<'_>,
) -> Result<Arc<MemoryRegion>, VerbsError> {
    // Some extra bytes, to show that they do not change.
    let length_bytes = (lesson.length_bytes as usize / 16 + 1) * 16;
    let memory = MemoryRegion::new(pd, length_bytes, access, None)?;
    memory.write_at(0, &vec![NOTHING; length_bytes]);
    memory.write_at(0, text.unwrap_or_default().as_bytes());
    let holds = Part::Memory {
        end: End::This,
        after: false,
        address: memory.address(),
        bytes: bytes_of(&memory),
        message_bytes: text.map_or(0, str::len),
    };
    let call = calls::register(&memory, access);
    tell(Topic::Mr, vec![Part::Call(call), holds]);
    Ok(memory)
}

fn bytes_of(memory: &MemoryRegion) -> Vec<u8> {
    let mut bytes = vec![0; memory.length_bytes()];
    memory.read_at(0, &mut bytes);
    bytes
}

fn seen(completion: &Completion) -> SeenCompletion {
    let good = completion.is_success();
    SeenCompletion {
        wr_id: completion.wr_id(),
        status: completion.status().0,
        opcode: if good { completion.opcode_name() } else { "" }.to_owned(),
        byte_len: if good && completion.is_receive() { completion.byte_len() } else { 0 },
        qpn: completion.qpn(),
        vendor_error: completion.vendor_error(),
    }
}

/// A random first PSN, so that packets of an earlier connection are not accepted.
fn psn() -> Result<u32, RunFailure> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes[1..]).map_err(|error| {
        RunFailure::new(format!("the kernel gave no random bytes: {error}"), None)
    })?;
    Ok(u32::from_be_bytes(bytes))
}

/// Attributes of an end's QP.
pub(crate) struct Connection {
    pub(crate) remote: RemoteQp,
    pub(crate) path: Path,
    pub(crate) reliability: Reliability,
    /// A remark on the GID.
    pub(crate) gid_note: Note,
    /// A remark on the MTU.
    pub(crate) mtu_note: Note,
}

pub(crate) struct Transfer {
    pub(crate) op: Op,
    pub(crate) wr_id: u64,
    pub(crate) length_bytes: u32,
    /// Its target in the other end's memory.
    pub(crate) address: u64,
    pub(crate) rkey: u32,
    pub(crate) wrong_rkey: bool,
}

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
    use protocol::endpoints::LinkLayer;
    use settings::Op;

    use super::*;

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
