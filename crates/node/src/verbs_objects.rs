//! The verbs objects of one end of a flow: memory with the least access that the operation needs, its queues, and the
//! transitions of its QPs to RTS.

use std::sync::Arc;

use datapath::{
    Geometry, Layout, Mismatch, Numbered, Peers, QpContext, Receiver, Regions, RemoteMemory,
    Sender, SharedReceives, Sizes, WorkerSpec, check_sums, check_written, fill_for_reads,
    initiator_access, target_access,
};
use metrics::limits::Wire;
use plan::Side;
use protocol::{
    endpoints::{Endpoints, QpEndpoint},
    failure::RunFailure,
};
use results::model::{EndMemory, WireKind};
use settings::{
    Access as OfferedAccess, CallStyle, ConnectMode, CqMode, Domains, Settings, Timestamps,
};
use verbs::{
    Access, AddressHandle, CompletionQueue, CqCalls, GidType, LinkLayer, Mapping, Port,
    ProtectionDomain, QpCapacity, QpParts, QueuePair, Service, SharedReceiveQueue, ThreadDomain,
    VerbsError,
};

pub use crate::needs::EndRoles;
use crate::{
    connect_cm::{Connections, check_port},
    memory_place,
    needs::{Needs, check_flow, effective_workers},
    port_path::{self, Agreed, psns, service},
    threads::NodeThreads,
};

pub struct VerbsObjects {
    flow: Settings,
    sizes: Sizes,
    port: Port,
    roles: EndRoles,
    pd: Arc<ProtectionDomain>,
    service: Service,
    local: Option<Regions>,
    receives: Option<Regions>,
    offered: Option<Regions>,
    /// What the result says of them.
    memory: Option<EndMemory>,
    shared_receives: Option<Arc<SharedReceives>>,
    /// The thread that serves each worker's part.
    threads: Vec<usize>,
    cqs: Vec<Arc<CompletionQueue>>,
    cq_entries: u32,
    qps: Vec<Arc<QueuePair>>,
    psns: Vec<u32>,
    path_mtu_bytes: u32,
    outstanding_reads: u8,
    wire_kind: Option<WireKind>,
    connections: Option<Connections>,
}

impl VerbsObjects {
    /// Creates all objects, for threads of the node to serve, and brings the QPs to INIT. Calls `alive` from time to time, which
    /// may end it.
    ///
    /// # Errors
    /// A limit of the device, a failed call, or an error of `alive`.
    pub fn create(
        port: &Port,
        flow: &Settings,
        side: Side,
        numa_node: Option<u32>,
        node_threads: &mut NodeThreads,
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<VerbsObjects, RunFailure> {
        let roles = EndRoles::new(flow, side);
        let geometry = Geometry::from_flow(flow);
        let needs = Needs::new(flow, &geometry, roles);
        check_flow(&verbs::PortLimits::new(&port.adapter, &port.info), flow, side)?;
        if flow.connect == ConnectMode::Cm {
            check_port(port)?;
        }
        let pd = ProtectionDomain::new(&port.context)?;
        let place = memory_place::place(flow, side, port, 0)?;
        let region = |wanted: bool, layout: Layout, access| {
            wanted
                .then(|| Regions::new(&pd, flow, &layout, access, (place, numa_node), &alive))
                .transpose()
        };
        let requests = Layout::requests(flow, &geometry);
        let sizes = Sizes::new(flow);
        let profile = flow.op.profile();
        let local = region(roles.sends, requests, initiator_access(profile))?;
        let receives = region(roles.receives, Layout::receives(flow), Access::LocalWrite)?;
        let offered = region(roles.offers_memory, requests, target_access(profile))?;
        if let (Some(offered), OfferedAccess::Read, true) = (&offered, profile.access, flow.verify)
        {
            fill_for_reads(offered, flow, &sizes);
        }
        let memory = [&local, &receives, &offered]
            .into_iter()
            .flatten()
            .find_map(|regions| memory_place::in_result(flow, side, port, place, regions));
        let workers = if roles.sends || roles.receives { effective_workers(flow) } else { 0 };
        let threads = node_threads.threads_for(workers);
        let service = service(flow)?;
        let Queues { cqs, srq, qps } = Queues::create(
            (port, &pd),
            (flow, service),
            &needs,
            remote_access(flow, roles),
            (node_threads, &threads),
            alive,
        )?;
        let shared_receives = match (&srq, &receives) {
            (Some(srq), Some(regions)) => {
                let qpns = qps.iter().map(|qp| qp.qpn());
                Some(Arc::new(SharedReceives::post(flow, srq, regions.of_qp(0), qpns)?))
            }
            _ => None,
        };
        Ok(VerbsObjects {
            psns: psns(qps.len())?,
            flow: flow.clone(),
            sizes,
            port: port.clone(),
            roles,
            pd,
            service,
            local,
            receives,
            offered,
            memory,
            shared_receives,
            threads,
            cqs,
            cq_entries: needs.cq_entries,
            qps,
            path_mtu_bytes: 0,
            outstanding_reads: 0,
            wire_kind: None,
            connections: None,
        })
    }

    /// This end's connection array: what the peer needs to know of its QPs and memory.
    pub fn endpoints(&self) -> Endpoints {
        let layout = Layout::requests(&self.flow, &Geometry::from_flow(&self.flow));
        let qps = self.qps.iter().zip(&self.psns).enumerate().map(|(index, (qp, &psn))| {
            let bare = QpEndpoint { qpn: qp.qpn(), psn, address: 0, rkey: 0, length: 0 };
            let Some(regions) = &self.offered else { return bare };
            let target = Layout::target_of(&self.flow, index as u32);
            let region = regions.of_qp(target);
            QpEndpoint {
                address: region.address() + layout.start_of(target) as u64,
                rkey: region.rkey(),
                length: layout.qp_bytes() as u64,
                ..bare
            }
        });
        Endpoints {
            qkey: match self.service {
                Service::Datagram { qkey } => qkey,
                Service::ReliableConnection | Service::UnreliableConnection => 0,
            },
            ..port_path::endpoints(&self.port, qps.collect())
        }
    }

    /// Connects all QPs to the peer's and posts all receives; returns the contexts for the workers.
    ///
    /// # Errors
    /// An array that does not fit the flow, ports that do not fit each other, or a failed call.
    pub fn connect(
        &mut self,
        peer: &Endpoints,
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<Vec<QpContext>, RunFailure> {
        let agreed = self.agree(peer)?;
        let peers = Peers::new(&self.flow);
        // Datagrams to all QPs of a port take one way, but with flow labels.
        let mut way = None;
        let mut qp_contexts = Vec::with_capacity(self.qps.len());
        for (index, (&psn, remote)) in (0u32..).zip(self.psns.iter().zip(&peer.qps)) {
            alive()?;
            let mut qp_context = self.qp_context(
                index,
                remote,
                |qp| {
                    let remote = agreed.remote(remote);
                    Ok(qp.to_rtr(&agreed.path(index), &remote, &agreed.reliability)?)
                },
                |qp| Ok(qp.to_rts(psn, &agreed.reliability)?),
            )?;
            let needs_another = way.is_none() || self.flow.flow_label.is_some();
            if matches!(self.service, Service::Datagram { .. }) && needs_another {
                let (path, to) = (agreed.path(index), agreed.remote(remote));
                way = Some(AddressHandle::new(&self.pd, &path, &to)?);
            }
            if let Some(way) = &way {
                qp_context.sender = qp_context.sender.take().map(|sender| {
                    sender.addressed(way, peer.qkey, |position: usize| {
                        let receiver = peers.receiver(index, position as u32);
                        peer.qps.get(receiver as usize).map_or(remote.qpn, |qp| qp.qpn)
                    })
                });
            }
            qp_contexts.push(qp_context);
        }
        Ok(qp_contexts)
    }

    /// Checks the peer's array and derives the parameters from both ends' ports.
    ///
    /// # Errors
    /// An array that does not fit the flow, or ports that do not fit each other.
    pub(crate) fn agree(&mut self, peer: &Endpoints) -> Result<Agreed, RunFailure> {
        let flow = &self.flow;
        let layout = Layout::requests(flow, &Geometry::from_flow(flow));
        let needed = match flow.op.profile().access {
            OfferedAccess::None => 0,
            _ if !self.roles.sends => 0,
            _ => layout.qp_bytes() as u64,
        };
        peer.check(flow.qps, needed)?;
        let agreed = Agreed::between(&self.port, flow, peer)?;
        self.path_mtu_bytes = agreed.path_mtu_bytes;
        self.outstanding_reads = agreed.reliability.initiator_reads;
        self.wire_kind = port_path::wire_kind(&self.port, peer)?;
        Ok(agreed)
    }

    /// Brings QP `index` to RTS, after posting its receives, and returns its context.
    ///
    /// # Errors
    /// A failed call, or an error of a transition.
    pub(crate) fn qp_context(
        &self,
        index: u32,
        remote: &QpEndpoint,
        to_rtr: impl FnOnce(&QueuePair) -> Result<(), RunFailure>,
        to_rts: impl FnOnce(&QueuePair) -> Result<(), RunFailure>,
    ) -> Result<QpContext, RunFailure> {
        let (flow, qp) = (&self.flow, &self.qps[index as usize]);
        to_rtr(qp)?;
        let receiver = self
            .receives
            .as_ref()
            .map(|memory| Receiver::new(flow, &self.sizes, index, qp, memory.of_qp(index)))
            .transpose()?;
        if let Some(receiver) = &receiver {
            receiver.post_all(qp.qpn())?;
        }
        to_rts(qp)?;
        if self.roles.sends
            && let Some(kbit_per_s) = flow.device_kbit_per_s()
        {
            qp.limit_rate(u32::try_from(kbit_per_s).unwrap_or(u32::MAX))?;
        }
        if let Some(ports) = &flow.udp_sport {
            // The range of the setting ends where a port's does.
            qp.set_udp_source_port(ports.of_qp(index) as u16)?;
        }
        let remote = RemoteMemory { address: remote.address, rkey: remote.rkey };
        let sender = self
            .local
            .as_ref()
            .map(|memory| Sender::new(flow, &self.sizes, index, qp, memory.of_qp(index), remote))
            .transpose()?;
        let numbered = self.local.as_ref().and_then(|local| {
            let [offered, receives] =
                [&self.offered, &self.receives].map(|it| Some(it.as_ref()?.of_qp(index)));
            Numbered::new(flow, index, local.of_qp(index), offered, receives)
        });
        Ok(QpContext { numbered, qp: Arc::clone(qp), sender, receiver })
    }

    /// The UDP source port of a QP's packets; `None` where it is not known, and on ports that send no UDP.
    pub(crate) fn udp_source_port(&self, qp: &QueuePair) -> Option<u16> {
        let gid_type = self.port.gid.map(|entry| entry.gid_type);
        qp.udp_source_port().filter(|_| gid_type == Some(GidType::RoceV2))
    }

    /// The receives of the SRQ, if this end has one.
    pub fn shared_receives(&self) -> Option<&Arc<SharedReceives>> {
        self.shared_receives.as_ref()
    }

    /// Keeps rdma_cm's connections as long as the QPs.
    pub(crate) fn keep(&mut self, connections: Connections) {
        self.connections = Some(connections);
    }

    pub(crate) fn qps(&self) -> &[Arc<QueuePair>] {
        &self.qps
    }

    /// The peer's access to this end's memory.
    pub(crate) fn remote_access(&self) -> Access {
        remote_access(&self.flow, self.roles)
    }

    /// How many workers the flow has at this end: threads that serve it.
    pub fn workers(&self) -> usize {
        self.threads.len()
    }

    /// The CQs and QPs of each worker, with the thread that serves it.
    pub fn worker_specs(&self) -> Vec<(usize, WorkerSpec)> {
        let workers = self.workers();
        self.threads
            .iter()
            .enumerate()
            .map(|(index, &thread)| {
                let qps: Vec<usize> = (index..self.qps.len()).step_by(workers).collect();
                let cqs = match self.flow.cq {
                    CqMode::Shared => self.cqs.clone(),
                    CqMode::PerWorker => self.cqs.get(index).into_iter().cloned().collect(),
                    CqMode::PerQp => {
                        qps.iter().filter_map(|&qp| self.cqs.get(qp)).cloned().collect()
                    }
                };
                (thread, WorkerSpec { cqs, qps })
            })
            .collect()
    }

    /// With `--verify`, checks what the peer wrote through QP `qp`; `posts` as in [`check_written`].
    pub fn check_written(&self, qp: u32, posts: &[u32]) -> Option<Mismatch> {
        let offered = self.offered.as_ref().filter(|_| !self.flow.op.profile().fetches)?;
        let packet_bytes = self.path_mtu_bytes;
        check_written(offered, &self.flow, &self.sizes, qp, packet_bytes, posts)
    }

    /// With `--verify`, checks the words that the peer changed by atomic operations; `posts` as in [`check_sums`].
    pub fn check_sums<'p>(&self, posts: impl Iterator<Item = &'p [u32]>) -> Option<Mismatch> {
        let offered = self.offered.as_ref().filter(|_| self.flow.op.profile().is_atomic())?;
        check_sums(offered, &self.flow, posts)
    }

    /// Moves all QPs to ERR, which flushes all posted WRs and stops sending.
    pub fn flush(&self) {
        for qp in &self.qps {
            // A failure is harmless: the QP is in ERR already, or the device is gone.
            let _ = qp.to_error();
        }
    }

    /// What the result says of its memory, if that is not the host's ordinary.
    pub fn memory(&self) -> Option<&EndMemory> {
        self.memory.as_ref()
    }

    /// Whether memory on a GPU is still there.
    ///
    /// # Errors
    /// The copy that failed.
    pub fn check_memory(&self) -> Result<(), VerbsError> {
        let regions = [&self.local, &self.receives, &self.offered].into_iter().flatten();
        regions.map(Regions::mapping).try_for_each(Mapping::check)
    }

    pub fn roles(&self) -> EndRoles {
        self.roles
    }

    pub fn port(&self) -> &Port {
        &self.port
    }

    pub fn cq_entries(&self) -> u32 {
        self.cq_entries
    }

    pub fn cqs(&self) -> &[Arc<CompletionQueue>] {
        &self.cqs
    }

    /// The path MTU that both ends use; 0 before [`VerbsObjects::connect`].
    pub fn path_mtu_bytes(&self) -> u32 {
        self.path_mtu_bytes
    }

    /// The most outstanding READs of a QP of this end; 0 before [`VerbsObjects::connect`].
    pub fn outstanding_reads(&self) -> u8 {
        self.outstanding_reads
    }

    /// How its packets go; `None` of adapters.
    pub fn wire_kind(&self) -> Option<WireKind> {
        self.wire_kind
    }

    /// The headers of its packets.
    pub fn wire(&self) -> Wire {
        let is_ipv6 = self.port.gid.is_some_and(|entry| entry.gid.address().is_ipv6());
        match (self.port.info.link_layer, self.port.embedded.is_some()) {
            (LinkLayer::Infiniband, _) if self.port.wants_grh => Wire::InfiniBandGrh,
            (LinkLayer::Infiniband, _) => Wire::InfiniBand,
            (_, true) if is_ipv6 => Wire::UdpIpv6,
            (_, true) => Wire::UdpIpv4,
            (_, false) if is_ipv6 => Wire::RoceIpv6,
            (_, false) => Wire::RoceIpv4,
        }
    }
}

/// The peer's access to the memory of an end with these roles.
fn remote_access(flow: &Settings, roles: EndRoles) -> Access {
    if roles.offers_memory { target_access(flow.op.profile()) } else { Access::LocalRead }
}

/// The queues of an end: its CQs, its SRQ, and its QPs in INIT, made by the calls that the flow asks for.
pub(super) struct Queues {
    pub(super) cqs: Vec<Arc<CompletionQueue>>,
    pub(super) srq: Option<Arc<SharedReceiveQueue>>,
    pub(super) qps: Vec<Arc<QueuePair>>,
}

impl Queues {
    /// Creates what `needs` says, for `threads` of the node to serve: one for each worker. The peer has `access` through
    /// the QPs. Calls `alive` from time to time, which may end it.
    ///
    /// # Errors
    /// A failed call, or an error of `alive`.
    pub(super) fn create(
        (port, pd): (&Port, &Arc<ProtectionDomain>),
        (flow, service): (&Settings, Service),
        needs: &Needs,
        access: Access,
        (node_threads, threads): (&mut NodeThreads, &[usize]),
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<Queues, RunFailure> {
        let cqs = (0..needs.cqs as usize)
            .map(|index| {
                completion_queue(port, flow, needs, node_threads, pollers(flow, threads, index))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let srq =
            needs.srq_wrs.map(|wrs| SharedReceiveQueue::new(pd, wrs, flow.sges)).transpose()?;
        let domains = match flow.domains {
            Domains::Usual => Vec::new(),
            Domains::Thread => {
                threads.iter().map(|_| ThreadDomain::new(pd)).collect::<Result<Vec<_>, _>>()?
            }
        };
        let mut qps = Vec::with_capacity(flow.qps as usize);
        for index in 0..flow.qps as usize {
            alive()?;
            let cq = cq_of(flow, &cqs, index);
            let parts = QpParts {
                srq: srq.as_ref(),
                // QPs belong to workers in turn.
                domain: domains.get(index % domains.len().max(1)),
                extended_post: flow.post == CallStyle::Extended,
            };
            let qp = QueuePair::with_parts(service, pd, [cq, cq], parts, needs.capacity)
                .map_err(|error| explain_inline(error, pd, cq, needs.capacity, service))?;
            // rdma_cm supplies the attributes of INIT with the connection.
            if flow.connect == ConnectMode::Tcp {
                qp.to_init(port.info.port, port.pkey_index, access)?;
            }
            qps.push(qp);
        }
        Ok(Queues { cqs, srq, qps })
    }
}

fn completion_queue(
    port: &Port,
    flow: &Settings,
    needs: &Needs,
    node_threads: &mut NodeThreads,
    pollers: &[usize],
) -> Result<Arc<CompletionQueue>, VerbsError> {
    let calls = CqCalls {
        extended: flow.poll_api == CallStyle::Extended,
        stamps: flow.timestamps == Timestamps::Device,
        single_threaded: flow.domains == Domains::Thread,
    };
    let channel = node_threads.channel(&port.context, pollers)?;
    let vector = pollers.first().copied().unwrap_or(0);
    let sleeps_on = channel.as_ref().map(|channel| (channel, vector));
    CompletionQueue::with_calls(&port.context, needs.cq_entries, calls, sleeps_on)
}

/// Those of `threads` that poll CQ `index`.
fn pollers<'t>(flow: &Settings, threads: &'t [usize], index: usize) -> &'t [usize] {
    match flow.cq {
        CqMode::Shared => threads,
        CqMode::PerWorker | CqMode::PerQp => {
            let poller = threads.get(index % threads.len().max(1));
            poller.map(std::slice::from_ref).unwrap_or_default()
        }
    }
}

fn cq_of<'c>(
    flow: &Settings,
    cqs: &'c [Arc<CompletionQueue>],
    qp: usize,
) -> &'c Arc<CompletionQueue> {
    let index = match flow.cq {
        CqMode::Shared => 0,
        CqMode::PerWorker => qp % cqs.len().max(1),
        CqMode::PerQp => qp,
    };
    &cqs[index]
}

/// If a device refused the inline size, names the largest that it accepts, since no query reports it.
fn explain_inline(
    error: VerbsError,
    pd: &Arc<ProtectionDomain>,
    cq: &Arc<CompletionQueue>,
    capacity: QpCapacity,
    service: Service,
) -> VerbsError {
    let works = |inline_bytes| {
        let capacity = QpCapacity { inline_bytes, ..capacity };
        QueuePair::with_parts(service, pd, [cq, cq], QpParts::default(), capacity).is_ok()
    };
    if capacity.inline_bytes == 0 || !works(0) {
        return error;
    }
    let (mut good, mut bad) = (0, capacity.inline_bytes);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if works(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    VerbsError::DeviceLimit {
        device: pd.context().name().to_owned(),
        what: "bytes inline with these depths",
        limit: good.into(),
        needed: capacity.inline_bytes.into(),
        flags: "--inline",
    }
}
