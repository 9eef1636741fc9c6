//! The verbs objects of one end: registered memory, whose size does not depend on the file; a CQ and a completion
//! channel for each worker; and QPs up to RTS.

use std::sync::Arc;

use node::memory_needs::MemoryNeeds;
use node::port_path;
use node::qp_service::psns;
use node::resources::NodeResources;
use protocol::endpoints::{Endpoints, QpEndpoint};
use protocol::failure::RunFailure;
use protocol::file_message::ChannelSettings;
use verbs::{
    Access, AsyncEvent, AsyncEvents, CompletionChannel, CompletionQueue, Gid, LinkLayer,
    MemoryRegion, Path, Port, Poster, ProtectionDomain, QpCapacity, QueuePair, Reliability,
    RemoteQp, Sleeper, Wakeup,
};

use super::settings::{check, memory_bytes, qp_bytes};

/// The most workers of an end: more do not make one file faster.
const MAX_WORKERS: usize = 4;

/// RNR NAK timer and retries. Receives are posted before their chunk can come, so neither should matter.
const MIN_RNR_TIMER: u8 = 12;
const RNR_RETRY: u8 = 7;

/// An end of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferEnd {
    Sender,
    Receiver,
}

/// A QP and its worker's state of it.
pub(super) struct ChannelQp<W> {
    /// Its index among all QPs.
    pub(super) index: usize,
    pub(super) poster: Poster,
    pub(super) window: W,
    /// Offset of its slots in this end's memory.
    pub(super) offset: usize,
    /// Address of its slots in the peer's memory, if this end writes to them.
    pub(super) address: u64,
    pub(super) rkey: u32,
    /// Payload of its largest packet, until a message has been acknowledged.
    pub(super) untried_packet_bytes: u32,
}

/// The objects of one worker.
pub(super) struct ChannelWorker<W> {
    pub(super) qps: Vec<ChannelQp<W>>,
    pub(super) cq: Arc<CompletionQueue>,
    pub(super) sleeper: Sleeper,
    pub(super) cores: Arc<[usize]>,
}

/// The objects of one end.
pub(super) struct Channel {
    settings: ChannelSettings,
    side: TransferEnd,
    port: Port,
    cores: Arc<[usize]>,
    memory: Arc<MemoryRegion>,
    cqs: Vec<(Arc<CompletionQueue>, Arc<CompletionChannel>)>,
    qps: Vec<Arc<QueuePair>>,
    psns: Vec<u32>,
    cq_entries: u32,
    events: Option<AsyncEvents>,
}

impl Channel {
    /// Creates all objects and brings the QPs to INIT. Calls `alive` from time to time, which may end it.
    ///
    /// # Errors
    /// Invalid settings, a failed call, or an error of `alive`.
    pub(super) fn create(
        resources: &NodeResources,
        settings: ChannelSettings,
        side: TransferEnd,
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<Channel, RunFailure> {
        check(&settings)?;
        let port = resources.port().clone();
        let context = &port.context;
        let most = port.info.max_message_bytes;
        if settings.chunk_bytes > most {
            return Err(RunFailure::refused(
                format!(
                    "{} sends messages of at most {most} bytes, and a chunk has {}",
                    context.name(),
                    settings.chunk_bytes
                ),
                "lower --chunk",
            ));
        }
        let pd = ProtectionDomain::new(context)?;
        let access = match side {
            TransferEnd::Sender => Access::LocalRead,
            TransferEnd::Receiver => Access::RemoteWrite,
        };
        // At most MAX_MEMORY_BYTES.
        let bytes = memory_bytes(&settings);
        MemoryNeeds::of_buffers(bytes).check(&resources.memory_offer(), "the transfer").map_err(
            |failure| RunFailure {
                hint: Some("lower --qps, --window or --chunk".into()),
                ..failure
            },
        )?;
        let length = bytes as usize;
        let memory = MemoryRegion::new(&pd, length, access, resources.numa_node())?;
        let qps = settings.qps as usize;
        let workers = MAX_WORKERS.min(qps).min(resources.allowed_cores().len()).max(1);
        // A CQ has an entry for every WR that its QPs can have posted.
        let entries = (qps.div_ceil(workers) as u32) * 2 * settings.window;
        let cqs = (0..workers)
            .map(|index| {
                let channel = CompletionChannel::new(context)?;
                let cq = CompletionQueue::with_channel(context, entries, &channel, index)?;
                Ok((cq, channel))
            })
            .collect::<Result<Vec<_>, RunFailure>>()?;
        let capacity = QpCapacity {
            send_wr: settings.window,
            recv_wr: settings.window,
            inline_bytes: 0,
            sges: 1,
        };
        let qps = (0..qps)
            .map(|index| {
                alive()?;
                let (cq, _) = &cqs[index % workers];
                let qp = QueuePair::new(&pd, cq, cq, capacity)?;
                qp.to_init(port.info.port, port.pkey_index, access)?;
                Ok(qp)
            })
            .collect::<Result<Vec<_>, RunFailure>>()?;
        Ok(Channel {
            settings,
            side,
            cores: resources.allowed_cores().into(),
            memory,
            cqs,
            psns: psns(qps.len())?,
            qps,
            cq_entries: entries,
            events: AsyncEvents::new(&port.context).ok(),
            port,
        })
    }

    /// This end's QPs; at the receiver also the memory that the sender writes to.
    pub(super) fn endpoints(&self) -> Endpoints {
        let length = match self.side {
            TransferEnd::Sender => 0,
            TransferEnd::Receiver => qp_bytes(&self.settings),
        };
        let (address, rkey) = match self.side {
            TransferEnd::Sender => (0, 0),
            TransferEnd::Receiver => (self.memory.address(), self.memory.rkey()),
        };
        let qps = (0..)
            .zip(self.qps.iter().zip(&self.psns))
            .map(|(index, (qp, &psn)): (u64, _)| QpEndpoint {
                qpn: qp.qpn(),
                psn,
                address: address + index * length,
                rkey,
                length,
            })
            .collect();
        Endpoints { max_rd_atomic: 1, ..port_path::endpoints(&self.port, qps) }
    }

    /// Connects all QPs to the peer's, posts receives, and assigns the QPs to workers. `window` makes the window of
    /// each QP.
    ///
    /// # Errors
    /// The peer's array does not fit, or a failed call.
    pub(super) fn connect<W>(
        &self,
        peer: &Endpoints,
        window: impl Fn(u32) -> W,
    ) -> Result<Vec<ChannelWorker<W>>, RunFailure> {
        let needed = match self.side {
            TransferEnd::Sender => qp_bytes(&self.settings),
            TransferEnd::Receiver => 0,
        };
        peer.check(self.settings.qps, needed)?;
        let path = self.path(peer)?;
        let reliability = Reliability {
            timeout: self.settings.timeout,
            retry_cnt: self.settings.retry_cnt,
            rnr_retry: RNR_RETRY,
            min_rnr_timer: MIN_RNR_TIMER,
            initiator_reads: 1,
            responder_reads: 1,
        };
        let gid = Gid(peer.gid_bytes()?);
        let mut workers = self
            .cqs
            .iter()
            .map(|(cq, channel)| {
                Ok(ChannelWorker {
                    qps: Vec::new(),
                    cq: Arc::clone(cq),
                    sleeper: Sleeper::new(vec![Arc::clone(channel)], Arc::new(Wakeup::new()?)),
                    cores: Arc::clone(&self.cores),
                })
            })
            .collect::<Result<Vec<ChannelWorker<W>>, RunFailure>>()?;
        let count = workers.len();
        for (index, ((qp, &psn), remote)) in
            self.qps.iter().zip(&self.psns).zip(&peer.qps).enumerate()
        {
            let remote_qp = RemoteQp { qpn: remote.qpn, psn: remote.psn, lid: peer.lid, gid };
            qp.to_rtr(&path, &remote_qp, &reliability)?;
            let poster = Poster::new(qp, &self.memory)?;
            let qps = &mut workers[index % count].qps;
            for _ in 0..self.settings.window {
                let wr_id = ChannelWrId::receive(qps.len()).0;
                poster
                    .receive(wr_id)
                    .map_err(|error| error.into_error(verbs::Operation::PostRecv, qp.qpn()))?;
            }
            qp.to_rts(psn, &reliability)?;
            qps.push(ChannelQp {
                index,
                poster,
                window: window(self.settings.window),
                offset: index * qp_bytes(&self.settings) as usize,
                address: remote.address,
                rkey: remote.rkey,
                untried_packet_bytes: path.mtu_bytes().min(self.settings.chunk_bytes),
            });
        }
        Ok(workers)
    }

    fn path(&self, peer: &Endpoints) -> Result<Path, RunFailure> {
        let ours = self.endpoints();
        ours.fits(peer)?;
        let most = ours.mtu_bytes.min(peer.mtu_bytes);
        let mtu = self.settings.mtu_bytes.unwrap_or(most);
        if mtu > most {
            return Err(RunFailure::refused(
                format!(
                    "an MTU of {mtu} is more than the ports have: {} here, {} at the peer",
                    ours.mtu_bytes, peer.mtu_bytes
                ),
                "lower --mtu, or raise the network interface's MTU",
            ));
        }
        let wants_gid = self.port.info.link_layer == LinkLayer::Ethernet || self.port.wants_grh;
        Ok(Path {
            port: self.port.info.port,
            link_layer: self.port.info.link_layer,
            gid_index: self.port.gid.filter(|_| wants_gid).map(|entry| entry.index),
            service_level: 0,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            mtu_code: Path::mtu_code(mtu),
        })
    }

    /// Checks for device errors that cause no completion.
    pub(super) fn check_device(&self) -> Result<(), RunFailure> {
        while let Some(event) = self.events.as_ref().and_then(AsyncEvents::next) {
            if let AsyncEvent::CqError { cq } = event
                && !self.cqs.iter().any(|(own, _)| AsyncEvents::is_cq(own, cq))
            {
                continue;
            }
            let device = self.port.context.name();
            if let Some(failure) = RunFailure::from_event(event, device, self.cq_entries) {
                return Err(failure);
            }
        }
        Ok(())
    }
}

/// A `wr_id`: the index of a QP of its worker, and whether it is a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChannelWrId(pub(super) u64);

impl ChannelWrId {
    pub(super) fn send(qp: usize) -> ChannelWrId {
        ChannelWrId((qp as u64) << 1)
    }

    pub(super) fn receive(qp: usize) -> ChannelWrId {
        ChannelWrId((qp as u64) << 1 | 1)
    }

    pub(super) fn is_receive(self) -> bool {
        self.0 & 1 == 1
    }

    pub(super) fn qp(self) -> usize {
        (self.0 >> 1) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wr_id_names_lane_and_queue() {
        for qp in [0, 1, 4095] {
            assert_eq!(ChannelWrId::send(qp).qp(), qp);
            assert_eq!(ChannelWrId::receive(qp).qp(), qp);
            assert!(ChannelWrId::receive(qp).is_receive() && !ChannelWrId::send(qp).is_receive());
        }
    }
}
