//! The verbs objects of one end of a lesson, made one by one, each call told as it is done. Both ends make the same
//! ones; only one tells.

use std::sync::Arc;

use crate::control::message::{self, Endpoints, QpEndpoint, gid_text};
use crate::plan::Op;
use crate::verbs::{
    Access, Completion, CompletionQueue, LinkLayer, MemoryRegion, Path, Port, ProtectionDomain,
    QpCapacity, QpState, QueuePair, RecvRing, RecvTemplate, Reliability, RemoteQp, SendOpcode,
    SendRing, SendTemplate, VerbsError, WcBatch, tear_down,
};

use super::step::{Call, Note, Part, Topic};
use super::{End, Lesson, PostedReceive, SeenCompletion};
use crate::control::failure::RunFailure;

/// Room in the CQ: more than is ever outstanding.
const CQ_ENTRIES: u32 = 4;
/// Memory that holds nothing yet.
const NOTHING: u8 = b'.';

/// Told of each step.
pub(super) type Tell<'a> = dyn FnMut(Topic, Vec<Part>) + 'a;

/// One end's objects.
pub(super) struct Apparatus {
    pub(super) port: Port,
    pd: Arc<ProtectionDomain>,
    memory: Arc<MemoryRegion>,
    cq: Arc<CompletionQueue>,
    qps: Vec<Arc<QueuePair>>,
    psns: Vec<u32>,
    send: Option<SendRing>,
    receive: Option<RecvRing>,
    /// The peer may access the memory.
    offers: bool,
}

/// How an end's QP is connected.
pub(super) struct Connection {
    pub(super) remote: RemoteQp,
    pub(super) path: Path,
    pub(super) reliability: Reliability,
    /// Words on the GID and on the MTU.
    pub(super) notes: [Note; 2],
}

fn hex(value: u32) -> String {
    format!("{value:#x}")
}

fn number(value: u32) -> String {
    format!("{value:#08x}")
}

impl Apparatus {
    /// From an open port to QPs in INIT. `text` is what the memory holds; else it holds dots.
    pub(super) fn create(
        port: Port,
        lesson: &Lesson,
        access: Access,
        text: Option<&str>,
        qps: usize,
        tell: &mut Tell<'_>,
    ) -> Result<Apparatus, RunFailure> {
        tell_port(&port, tell);
        let pd = ProtectionDomain::new(&port.context)?;
        tell(
            Topic::Pd,
            vec![Part::Call(Call::new("ibv_alloc_pd(context)", "pd"))],
        );
        let memory = register(&pd, lesson, access, text, tell)?;
        let cq = CompletionQueue::new(&port.context, CQ_ENTRIES)?;
        let code = format!("ibv_create_cq(context, {CQ_ENTRIES}, NULL, NULL, 0)");
        tell(Topic::Cq, vec![Part::Call(Call::new(code, "cq"))]);
        let offers = matches!(access, Access::RemoteWrite | Access::RemoteRead);
        let mut made = Apparatus {
            port,
            pd,
            memory,
            cq,
            qps: Vec::new(),
            psns: psns(qps)?,
            send: None,
            receive: None,
            offers,
        };
        made.create_qps(qps, tell)?;
        made.to_init(access, tell)?;
        Ok(made)
    }

    fn create_qps(&mut self, count: usize, tell: &mut Tell<'_>) -> Result<(), VerbsError> {
        let capacity = QpCapacity {
            send_wr: 1,
            recv_wr: 1,
            inline_bytes: 0,
        };
        let mut parts = Vec::new();
        for _ in 0..count {
            let qp = QueuePair::new(&self.pd, &self.cq, &self.cq, capacity)?;
            let call = Call::new("ibv_create_qp(pd, &init)", "qp")
                .given("qp_type", "IBV_QPT_RC")
                .given("send_cq", "cq")
                .given("recv_cq", "cq")
                .given("cap.max_send_wr", capacity.send_wr)
                .given("cap.max_recv_wr", capacity.recv_wr)
                .came("qp_num", number(qp.qpn()));
            parts.push(Part::Call(call));
            parts.push(Part::States(End::This, vec![qp.query()?.state]));
            self.qps.push(qp);
        }
        if count > 1 {
            parts.push(Part::OnPurpose);
        }
        tell(Topic::Qp, parts);
        Ok(())
    }

    fn to_init(&mut self, access: Access, tell: &mut Tell<'_>) -> Result<(), VerbsError> {
        let mut states = Vec::new();
        for qp in &self.qps {
            qp.to_init(self.port.info.port, access)?;
            states.push(qp.query()?.state);
        }
        let may = if self.offers {
            Note::RemoteMay
        } else {
            Note::RemoteMayNot
        };
        let mask = "IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS";
        let call = Call::new(format!("ibv_modify_qp(qp, &attr, {mask})"), "0")
            .given("qp_state", "IBV_QPS_INIT")
            .given("pkey_index", 0)
            .given("port_num", self.port.info.port)
            .given_as("qp_access_flags", access.c_qp_flags(), may);
        tell(
            Topic::Init,
            vec![Part::Call(call), Part::States(End::This, states)],
        );
        Ok(())
    }

    /// This end's connection array.
    pub(super) fn endpoints(&self) -> Endpoints {
        let info = &self.port.info;
        let (address, rkey, length) = match self.offers {
            true => (
                self.memory.address(),
                self.memory.rkey(),
                self.memory.length_bytes() as u64,
            ),
            false => (0, 0, 0),
        };
        let qp = |(qp, psn): (&Arc<QueuePair>, &u32)| QpEndpoint {
            qpn: qp.qpn(),
            psn: *psn,
            address,
            rkey,
            length,
        };
        Endpoints {
            mtu_bytes: info.active_mtu_bytes,
            max_rd_atomic: self.port.limits.max_responder_reads.max(1),
            lid: info.lid,
            gid: gid_text(self.port.gid.map_or([0; 16], |entry| entry.gid.0)),
            link_layer: match info.link_layer {
                LinkLayer::Ethernet => message::LinkLayer::Ethernet,
                LinkLayer::Infiniband => message::LinkLayer::Infiniband,
            },
            qps: self.qps.iter().zip(&self.psns).map(qp).collect(),
        }
    }

    /// How packets leave this end.
    pub(super) fn path(&self, mtu_bytes: u32) -> Path {
        let info = &self.port.info;
        let has_grh = info.link_layer == LinkLayer::Ethernet || self.port.wants_grh;
        Path {
            port: info.port,
            link_layer: info.link_layer,
            gid_index: self.port.gid.filter(|_| has_grh).map(|entry| entry.index),
            service_level: 0,
            traffic_class: 0,
            hop_limit: 64,
            mtu_code: Path::mtu_code(mtu_bytes),
        }
    }

    /// INIT → RTR.
    pub(super) fn to_rtr(
        &self,
        connection: &Connection,
        tell: &mut Tell<'_>,
    ) -> Result<QpState, VerbsError> {
        let qp = self.qp()?;
        let Connection {
            remote,
            path,
            reliability,
            notes: [gid_note, mtu_note],
        } = connection;
        let call = |returned: String| {
            let mask = "IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | \
                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER";
            let call = Call::new(format!("ibv_modify_qp(qp, &attr, {mask})"), returned)
                .given("qp_state", "IBV_QPS_RTR")
                .given_as("path_mtu", mtu_name(path.mtu_code), *mtu_note)
                .given_as("dest_qp_num", number(remote.qpn), Note::TheirQpn)
                .given_as("rq_psn", number(remote.psn), Note::TheirPsn)
                .given("max_dest_rd_atomic", reliability.responder_reads)
                .given_as(
                    "min_rnr_timer",
                    reliability.min_rnr_timer,
                    Note::MinRnrTimer,
                )
                .given("ah_attr.port_num", path.port);
            match path.gid_index {
                None => call.given("ah_attr.dlid", remote.lid),
                Some(index) => call
                    .given("ah_attr.is_global", 1)
                    .given_as("ah_attr.grh.dgid", remote.gid, *gid_note)
                    .given_as("ah_attr.grh.sgid_index", index, Note::SourceGid)
                    .given("ah_attr.grh.hop_limit", path.hop_limit),
            }
        };
        let done = qp.to_rtr(path, remote, reliability);
        let state = qp.query()?.state;
        let returned = match &done {
            Ok(()) => "0".to_owned(),
            Err(error) => errno_name(error),
        };
        let mut parts = vec![
            Part::Call(call(returned)),
            Part::States(End::This, vec![state]),
        ];
        if [Note::WrongGid].contains(gid_note) || [Note::LargerMtu].contains(mtu_note) {
            parts.insert(0, Part::OnPurpose);
        }
        parts.extend(
            done.as_ref()
                .err()
                .map(|error| Part::Error(error.to_string())),
        );
        tell(Topic::Rtr, parts);
        done.map(|()| state)
    }

    /// RTR → RTS.
    pub(super) fn to_rts(
        &self,
        reliability: &Reliability,
        tell: &mut Tell<'_>,
    ) -> Result<QpState, VerbsError> {
        let qp = self.qp()?;
        let psn = self.psns.first().copied().unwrap_or(0);
        qp.to_rts(psn, reliability)?;
        let state = qp.query()?.state;
        let mask = "IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC";
        let rnr = match reliability.rnr_retry {
            7 => Note::RnrForEver,
            _ => Note::RnrRetry,
        };
        let call = Call::new(format!("ibv_modify_qp(qp, &attr, {mask})"), "0")
            .given("qp_state", "IBV_QPS_RTS")
            .given_as("sq_psn", number(psn), Note::OurPsn)
            .given_as("timeout", reliability.timeout, Note::Timeout)
            .given_as("retry_cnt", reliability.retry_cnt, Note::RetryCnt)
            .given_as("rnr_retry", reliability.rnr_retry, rnr)
            .given("max_rd_atomic", reliability.initiator_reads);
        tell(
            Topic::Rts,
            vec![Part::Call(call), Part::States(End::This, vec![state])],
        );
        Ok(state)
    }

    /// Posts one receive of the message's length.
    pub(super) fn post_receive(
        &mut self,
        length_bytes: u32,
        wr_id: u64,
    ) -> Result<PostedReceive, VerbsError> {
        let qp = Arc::clone(self.qp()?);
        let template = RecvTemplate {
            wr_id,
            offset: 0,
            length_bytes,
        };
        let ring = RecvRing::new(&qp, &self.memory, &[template], false)?;
        let posted = ring.post(0);
        self.receive = Some(ring);
        posted.map_err(|error| error.into_error(crate::verbs::Operation::PostRecv, qp.qpn()))?;
        Ok(PostedReceive {
            wr_id,
            address: self.memory.address(),
            length_bytes,
            lkey: self.memory.lkey(),
        })
    }

    /// Posts the transfer itself.
    pub(super) fn post(
        &mut self,
        lesson: &Lesson,
        wr_id: u64,
        address: u64,
        (rkey, wrong): (u32, bool),
        tell: &mut Tell<'_>,
    ) -> Result<(), VerbsError> {
        let qp = Arc::clone(self.qp()?);
        let (opcode, name) = match lesson.op {
            Op::Send => (SendOpcode::Send, "IBV_WR_SEND"),
            Op::Write => (SendOpcode::Write { address, rkey }, "IBV_WR_RDMA_WRITE"),
            Op::Read => (SendOpcode::Read { address, rkey }, "IBV_WR_RDMA_READ"),
        };
        let template = SendTemplate {
            wr_id,
            opcode,
            offset: 0,
            length_bytes: lesson.length_bytes,
            signalled: true,
            inline: false,
            ends_chain: true,
        };
        let ring = SendRing::new(&qp, &self.memory, &[template])?;
        let posted = ring.post(0);
        self.send = Some(ring);
        posted.map_err(|error| error.into_error(crate::verbs::Operation::PostSend, qp.qpn()))?;
        let mut call = Call::new("ibv_post_send(qp, &wr, &bad_wr)", "0")
            .given_as("wr_id", wr_id, Note::WrId)
            .given("opcode", name)
            .given_as("send_flags", "IBV_SEND_SIGNALED", Note::Signalled)
            .given_as(
                "sg_list[0].addr",
                format!("{:#x}", self.memory.address()),
                Note::OurMemory,
            )
            .given("sg_list[0].length", lesson.length_bytes)
            .given("sg_list[0].lkey", hex(self.memory.lkey()));
        if lesson.op != Op::Send {
            let note = if wrong {
                Note::WrongRkey
            } else {
                Note::TheirRkey
            };
            call = call
                .given_as(
                    "wr.rdma.remote_addr",
                    format!("{address:#x}"),
                    Note::TheirAddress,
                )
                .given_as("wr.rdma.rkey", hex(rkey), note);
        }
        let mut parts = vec![Part::Call(call)];
        if wrong {
            parts.insert(0, Part::OnPurpose);
        }
        tell(Topic::Post, parts);
        Ok(())
    }

    /// A completion, if there is one.
    pub(super) fn poll(&self) -> Result<Option<SeenCompletion>, VerbsError> {
        let mut batch = WcBatch::new();
        Ok(self.cq.poll(&mut batch)?.first().map(seen))
    }

    /// The QP of the transfer.
    pub(super) fn qp(&self) -> Result<&Arc<QueuePair>, VerbsError> {
        self.qps.first().ok_or(VerbsError::NoDevice)
    }

    /// What the memory holds now.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.memory.length_bytes()];
        self.memory.read_at(0, &mut bytes);
        bytes
    }

    /// Its first byte's address.
    pub(super) fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Destroys everything, last made first.
    pub(super) fn tear_down(self, tell: &mut Tell<'_>) {
        let Apparatus {
            port,
            pd,
            memory,
            cq,
            qps,
            send,
            receive,
            ..
        } = self;
        // They hold the QP and the memory.
        drop((send, receive));
        let mut parts = Vec::new();
        let mut told = |code: &str, done: Result<(), VerbsError>| {
            let returned = done.map_or_else(|error| errno_name(&error), |()| "0".to_owned());
            parts.push(Part::Call(Call::new(code, returned)));
        };
        for qp in qps {
            told("ibv_destroy_qp(qp)", tear_down(qp));
        }
        told("ibv_destroy_cq(cq)", tear_down(cq));
        told("ibv_dereg_mr(mr)", tear_down(memory));
        told("ibv_dealloc_pd(pd)", tear_down(pd));
        let Port { context, .. } = port;
        if Arc::strong_count(&context) == 1 {
            told("ibv_close_device(context)", tear_down(context));
        }
        tell(Topic::TearDown, parts);
    }
}

fn tell_port(port: &Port, tell: &mut Tell<'_>) {
    let name = port.context.name();
    let open = Call::new(format!("ibv_open_device({name})"), "context");
    tell(Topic::Open, vec![Part::Call(open)]);
    let info = &port.info;
    let link_layer = match info.link_layer {
        LinkLayer::Ethernet => "IBV_LINK_LAYER_ETHERNET",
        LinkLayer::Infiniband => "IBV_LINK_LAYER_INFINIBAND",
    };
    let asked = Call::new(
        format!("ibv_query_port(context, {}, &attr)", info.port),
        "0",
    )
    .came("state", format!("IBV_PORT_{}", info.state))
    .came("link_layer", link_layer)
    .came("max_mtu", info.max_mtu_bytes)
    .came("active_mtu", info.active_mtu_bytes);
    let mut parts = vec![Part::Call(asked)];
    if let Some(entry) = port.gid {
        let code = format!(
            "ibv_query_gid_ex(context, {}, {}, &entry, 0)",
            info.port, entry.index
        );
        let call = Call::new(code, "0")
            .came("gid", entry.gid)
            .came("gid_type", entry.gid_type.name());
        parts.push(Part::Call(call));
    }
    tell(Topic::Port, parts);
}

fn register(
    pd: &Arc<ProtectionDomain>,
    lesson: &Lesson,
    access: Access,
    text: Option<&str>,
    tell: &mut Tell<'_>,
) -> Result<Arc<MemoryRegion>, VerbsError> {
    let message_bytes = lesson.length_bytes as usize;
    // Some bytes more, to see that they stay as they are.
    let bytes = (message_bytes / 16 + 1) * 16;
    let memory = MemoryRegion::new(pd, bytes, access, None)?;
    memory.write_at(0, &vec![NOTHING; bytes]);
    memory.write_at(0, text.unwrap_or_default().as_bytes());
    let code = format!(
        "ibv_reg_mr(pd, {:#x}, {bytes}, {})",
        memory.address(),
        access.c_flags()
    );
    let call = Call::new(code, "mr")
        .came("lkey", hex(memory.lkey()))
        .came("rkey", hex(memory.rkey()));
    let mut held = vec![0; bytes];
    memory.read_at(0, &mut held);
    let holds = Part::Memory {
        end: End::This,
        after: false,
        address: memory.address(),
        bytes: held,
        message_bytes: text.map_or(0, str::len),
    };
    tell(Topic::Mr, vec![Part::Call(call), holds]);
    Ok(memory)
}

fn seen(completion: &Completion) -> SeenCompletion {
    let good = completion.is_success();
    SeenCompletion {
        wr_id: completion.wr_id(),
        status: completion.status().0,
        opcode: if good { completion.opcode_name() } else { "" }.to_owned(),
        byte_len: match good && completion.is_receive() {
            true => completion.byte_len(),
            false => 0,
        },
        qpn: completion.qpn(),
        vendor_error: completion.vendor_error(),
    }
}

fn mtu_name(code: u32) -> String {
    format!("IBV_MTU_{}", 128 << code.min(5))
}

/// What a call returned, by its name.
fn errno_name(error: &VerbsError) -> String {
    let VerbsError::Call { source, .. } = error else {
        return error.to_string();
    };
    let code = source.raw_os_error().unwrap_or(0);
    let name = match code {
        libc::EINVAL => "EINVAL",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::EADDRNOTAVAIL => "EADDRNOTAVAIL",
        libc::EBUSY => "EBUSY",
        libc::ENOMEM => "ENOMEM",
        _ => return source.to_string(),
    };
    format!("{code} ({name})")
}

/// Random first PSNs, so that packets of an earlier connection are not taken for this one's.
fn psns(count: usize) -> Result<Vec<u32>, RunFailure> {
    let mut bytes = vec![0; count * 4];
    getrandom::fill(&mut bytes).map_err(|error| {
        RunFailure::new(format!("the kernel gave no random bytes: {error}"), None)
    })?;
    let numbers = bytes.chunks_exact(4);
    Ok(numbers
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], 0]))
        .collect())
}
