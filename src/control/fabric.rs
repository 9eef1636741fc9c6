//! The verbs objects of one end of a run, from nothing to connected: memory with the least access that
//! the operation needs, CQs as the case asks, QPs, and the way to RTS.

use std::sync::Arc;

use crate::datapath::Mismatch;
use crate::datapath::{
    Geometry, Lane, Layout, Receiver, RemoteMemory, Sender, WorkerSpec, check_written,
    fill_for_reads,
};
use crate::metrics::limits::Wire;
use crate::plan::{Case, CqMode, Op};
use crate::verbs::{
    Access, CompletionQueue, Gid, LinkLayer, MemoryRegion, Path, Port, ProtectionDomain, QueuePair,
    Reliability, RemoteQp, VerbsError,
};

use super::failure::RunFailure;
use super::message::{self, Endpoints, QpEndpoint, gid_text};
pub use super::needs::{Duties, Side};
use super::needs::{Needs, enough_memory, explain_inline};
use super::sleepers::Sleepers;

/// One end's objects.
pub struct Fabric {
    case: Case,
    port: Port,
    duties: Duties,
    local: Option<Arc<MemoryRegion>>,
    receives: Option<Arc<MemoryRegion>>,
    offered: Option<Arc<MemoryRegion>>,
    sleepers: Option<Sleepers>,
    cqs: Vec<Arc<CompletionQueue>>,
    cq_entries: u32,
    qps: Vec<Arc<QueuePair>>,
    psns: Vec<u32>,
    path_mtu_bytes: u32,
    outstanding_reads: u8,
}

impl Fabric {
    /// Creates all objects and brings the QPs to INIT. `alive` is asked now and then whether it is still
    /// worth it.
    ///
    /// # Errors
    /// What the device cannot do, as a sentence with its limit; a failed call; or what `alive` said.
    pub fn create(
        port: &Port,
        case: &Case,
        side: Side,
        numa_node: Option<u32>,
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<Fabric, RunFailure> {
        let duties = Duties::of(case, side);
        let geometry = Geometry::of(case);
        let needs = Needs::of(case, &geometry, duties);
        needs.check(case, port)?;
        let pd = ProtectionDomain::new(&port.context)?;
        let region = |wanted: bool, layout: Layout, access| {
            wanted
                .then(|| MemoryRegion::new(&pd, layout.total_bytes(), access, numa_node))
                .transpose()
        };
        let requests = Layout::requests(case, &geometry);
        enough_memory(
            [
                (duties.sends, requests),
                (duties.receives, Layout::receives(case)),
                (duties.offers_memory, requests),
            ]
            .iter()
            .filter(|(wanted, _)| *wanted)
            .map(|(_, layout)| layout.total_bytes() as u64),
        )?;
        let (local_access, offered_access) = match case.op {
            Op::Send => (Access::LocalRead, Access::LocalRead),
            Op::Write => (Access::LocalRead, Access::RemoteWrite),
            Op::Read => (Access::LocalWrite, Access::RemoteRead),
        };
        let local = region(duties.sends, requests, local_access)?;
        let receives = region(duties.receives, Layout::receives(case), Access::LocalWrite)?;
        let offered = region(duties.offers_memory, requests, offered_access)?;
        if let (Some(offered), Op::Read, true) = (&offered, case.op, case.verify) {
            fill_for_reads(offered, case);
        }
        let sleepers = Sleepers::of(case, duties, &port.context)?;
        let cqs = (0..needs.cqs as usize)
            .map(|index| match &sleepers {
                None => CompletionQueue::new(&port.context, needs.cq_entries),
                Some(sleepers) => {
                    let (worker, channel) = sleepers.channel_of(index);
                    let (context, entries) = (&port.context, needs.cq_entries);
                    CompletionQueue::with_channel(context, entries, channel, worker)
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut qps = Vec::with_capacity(case.qps as usize);
        for index in 0..case.qps {
            alive()?;
            let cq = cq_of(case, &cqs, index as usize);
            let qp = QueuePair::new(&pd, cq, cq, needs.capacity)
                .map_err(|error| explain_inline(error, &pd, cq, needs.capacity))?;
            let remote = if duties.offers_memory {
                offered_access
            } else {
                Access::LocalRead
            };
            qp.to_init(port.info.port, remote)?;
            qps.push(qp);
        }
        Ok(Fabric {
            psns: psns(qps.len())?,
            case: case.clone(),
            port: port.clone(),
            duties,
            local,
            receives,
            offered,
            sleepers,
            cqs,
            cq_entries: needs.cq_entries,
            qps,
            path_mtu_bytes: 0,
            outstanding_reads: 0,
        })
    }

    /// This end's connection array.
    pub fn endpoints(&self) -> Endpoints {
        let layout = Layout::requests(&self.case, &Geometry::of(&self.case));
        let memory = |index: usize| match &self.offered {
            Some(region) => (
                region.address() + layout.offset(index as u32, 0) as u64,
                region.rkey(),
                layout.qp_bytes() as u64,
            ),
            None => (0, 0, 0),
        };
        Endpoints {
            mtu_bytes: self.port.info.active_mtu_bytes,
            max_rd_atomic: self.port.limits.max_responder_reads.max(1),
            lid: self.port.info.lid,
            gid: gid_text(self.port.gid.map_or([0; 16], |entry| entry.gid.0)),
            link_layer: match self.port.info.link_layer {
                LinkLayer::Ethernet => message::LinkLayer::Ethernet,
                LinkLayer::Infiniband => message::LinkLayer::Infiniband,
            },
            qps: self
                .qps
                .iter()
                .zip(&self.psns)
                .enumerate()
                .map(|(index, (qp, &psn))| {
                    let (address, rkey, length) = memory(index);
                    QpEndpoint {
                        qpn: qp.qpn(),
                        psn,
                        address,
                        rkey,
                        length,
                    }
                })
                .collect(),
        }
    }

    /// Connects all QPs to the peer's and posts all receives; returns the lanes for the workers.
    ///
    /// # Errors
    /// An array that does not fit the case, ports that do not fit each other, or a failed call.
    pub fn connect(
        &mut self,
        peer: &Endpoints,
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<Vec<Lane>, RunFailure> {
        let case = &self.case;
        let layout = Layout::requests(case, &Geometry::of(case));
        let needed = if self.duties.sends && case.op != Op::Send {
            layout.qp_bytes() as u64
        } else {
            0
        };
        peer.check(case.qps, needed)?;
        let ours = self.endpoints();
        if ours.link_layer != peer.link_layer {
            return Err(RunFailure::new(
                "one end has a RoCE port and the other an InfiniBand port",
                Some("choose ports of one kind with --device and --ib-port on both ends".into()),
            ));
        }
        self.path_mtu_bytes = path_mtu(case, ours.mtu_bytes, peer.mtu_bytes)?;
        let reliability = self.reliability(peer)?;
        self.outstanding_reads = reliability.initiator_reads;
        let path = Path {
            port: self.port.info.port,
            link_layer: self.port.info.link_layer,
            gid_index: match self.port.info.link_layer {
                LinkLayer::Ethernet => self.port.gid.map(|entry| entry.index),
                LinkLayer::Infiniband if self.port.wants_grh => {
                    self.port.gid.map(|entry| entry.index)
                }
                LinkLayer::Infiniband => None,
            },
            service_level: case.transport.service_level,
            traffic_class: case.transport.traffic_class,
            hop_limit: case.transport.hop_limit,
            mtu_code: Path::mtu_code(self.path_mtu_bytes),
        };
        let gid = Gid(peer.gid_bytes()?);
        let mut lanes = Vec::with_capacity(self.qps.len());
        for (index, ((qp, &psn), remote)) in
            (0u32..).zip(self.qps.iter().zip(&self.psns).zip(&peer.qps))
        {
            alive()?;
            let remote_qp = RemoteQp {
                qpn: remote.qpn,
                psn: remote.psn,
                lid: peer.lid,
                gid,
            };
            qp.to_rtr(&path, &remote_qp, &reliability)?;
            let receiver = self
                .receives
                .as_ref()
                .map(|memory| Receiver::new(case, index, qp, memory))
                .transpose()?;
            if let Some(receiver) = &receiver {
                receiver.post_all(qp.qpn())?;
            }
            qp.to_rts(psn, &reliability)?;
            let remote = RemoteMemory {
                address: remote.address,
                rkey: remote.rkey,
            };
            let sender = self
                .local
                .as_ref()
                .map(|memory| Sender::new(case, index, qp, memory, remote))
                .transpose()?;
            lanes.push(Lane {
                qp: Arc::clone(qp),
                sender,
                receiver,
            });
        }
        Ok(lanes)
    }

    fn reliability(&self, peer: &Endpoints) -> Result<Reliability, VerbsError> {
        let transport = self.case.transport;
        let limit = self
            .port
            .limits
            .max_initiator_reads
            .min(peer.max_rd_atomic)
            .max(1);
        let initiator_reads = match transport.max_rd_atomic {
            Some(wanted) if wanted > limit => {
                return Err(VerbsError::DeviceLimit {
                    device: self.port.context.name().to_owned(),
                    what: "READs outstanding on one QP, its peer's limit considered",
                    limit: limit.into(),
                    needed: wanted.into(),
                    flags: "--max-rd-atomic",
                });
            }
            Some(wanted) => wanted,
            None => limit,
        };
        Ok(Reliability {
            timeout: transport.timeout,
            retry_cnt: transport.retry_cnt,
            rnr_retry: transport.rnr_retry,
            min_rnr_timer: transport.min_rnr_timer,
            initiator_reads,
            responder_reads: self.port.limits.max_responder_reads.max(1),
        })
    }

    /// What each of `cores.len()` workers polls and starts.
    pub fn worker_specs(&self, cores: &[Option<usize>]) -> Vec<WorkerSpec> {
        let workers = cores.len().max(1);
        cores
            .iter()
            .enumerate()
            .map(|(index, &core)| {
                let lanes: Vec<usize> = (index..self.qps.len()).step_by(workers).collect();
                let cqs = match self.case.cq {
                    CqMode::Shared => self.cqs.iter().collect(),
                    CqMode::PerWorker => self.cqs.get(index).into_iter().collect(),
                    CqMode::PerQp => lanes
                        .iter()
                        .filter_map(|&lane| self.cqs.get(lane))
                        .collect(),
                };
                let cqs: Vec<&Arc<CompletionQueue>> = cqs;
                WorkerSpec {
                    index,
                    core,
                    cqs: cqs.into_iter().cloned().collect(),
                    lanes,
                    sleep: self.sleepers.as_ref().and_then(|all| all.of_worker(index)),
                }
            })
            .collect()
    }

    /// Checks what the peer has written, with `--verify`.
    pub fn check_written(&self, posts: &[Vec<u32>]) -> Option<Mismatch> {
        let offered = self.offered.as_ref()?;
        if self.case.op != Op::Write {
            return None;
        }
        (0u32..)
            .zip(posts)
            .find_map(|(qp, posts)| check_written(offered, &self.case, qp, posts))
    }

    /// Moves all QPs to ERR, so that everything posted is flushed and nothing more goes out.
    pub fn flush(&self) {
        for qp in &self.qps {
            // A QP that is in ERR already, or a device that is gone, needs no more.
            let _ = qp.to_error();
        }
    }

    /// What this end does.
    pub fn duties(&self) -> Duties {
        self.duties
    }

    /// The port.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Entries of each CQ.
    pub fn cq_entries(&self) -> u32 {
        self.cq_entries
    }

    /// The CQs.
    pub fn cqs(&self) -> &[Arc<CompletionQueue>] {
        &self.cqs
    }

    /// The path MTU that both ends use; 0 before [`Fabric::connect`].
    pub fn path_mtu_bytes(&self) -> u32 {
        self.path_mtu_bytes
    }

    /// READs that a QP of this end has outstanding at most; 0 before [`Fabric::connect`].
    pub fn outstanding_reads(&self) -> u8 {
        self.outstanding_reads
    }

    /// What carries the packets.
    pub fn wire(&self) -> Wire {
        match (self.port.info.link_layer, self.port.gid) {
            (LinkLayer::Infiniband, _) if self.port.wants_grh => Wire::InfiniBandGrh,
            (LinkLayer::Infiniband, _) => Wire::InfiniBand,
            (LinkLayer::Ethernet, Some(entry)) if entry.gid.address().is_ipv6() => Wire::RoceIpv6,
            (LinkLayer::Ethernet, _) => Wire::RoceIpv4,
        }
    }
}

fn cq_of<'c>(case: &Case, cqs: &'c [Arc<CompletionQueue>], qp: usize) -> &'c Arc<CompletionQueue> {
    let index = match case.cq {
        CqMode::Shared => 0,
        CqMode::PerWorker => qp % cqs.len().max(1),
        CqMode::PerQp => qp,
    };
    &cqs[index]
}

/// The smaller of both ports' MTU, or the one asked for, which may not be larger.
fn path_mtu(case: &Case, ours: u32, peers: u32) -> Result<u32, RunFailure> {
    let most = ours.min(peers);
    match case.mtu.map(|mtu| mtu.bytes()) {
        None => Ok(most),
        Some(wanted) if wanted <= most => Ok(wanted),
        Some(wanted) => {
            let hint = "lower --mtu, or raise the network interface's MTU (4200 carries an RDMA MTU of 4096)";
            Err(RunFailure {
                bad_input: true,
                ..RunFailure::new(
                    format!(
                        "an MTU of {wanted} is more than the ports have: {ours} here, {peers} at the peer"
                    ),
                    Some(hint.into()),
                )
            })
        }
    }
}

/// A random first PSN for each QP, so that packets of an earlier connection are not taken for this one's.
pub(crate) fn psns(count: usize) -> Result<Vec<u32>, RunFailure> {
    let mut bytes = vec![0; count * 4];
    getrandom::fill(&mut bytes).map_err(|error| {
        RunFailure::new(format!("the kernel gave no random bytes: {error}"), None)
    })?;
    Ok(bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], 0]))
        .collect())
}
