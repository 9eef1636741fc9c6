//! The verbs objects of one end: registered memory, whose size does not depend on the file; a CQ and a completion
//! channel for each worker; and QPs up to RTS.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use node::memory_needs::MemoryNeeds;
use node::port_path;
use node::port_path::psns;
use node::resources::NodeResources;
use protocol::endpoints::{Endpoints, QpEndpoint};
use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{ChannelSettings, Message};
use settings::Mtu;
use verbs::{
    Access, AsyncEvent, AsyncEvents, CompletionChannel, CompletionQueue, Gid, MemoryRegion, Path,
    Port, Poster, ProtectionDomain, QpCapacity, QueuePair, Reliability, RemoteQp, Sleeper, Wakeup,
};

/// The most QPs of a transfer.
pub const MAX_QPS: u32 = 4096;
/// The most outstanding chunks of a QP.
pub const MAX_WINDOW: u32 = 1024;
/// Smallest and largest chunk, in bytes.
pub const CHUNK_BYTES: RangeInclusive<u32> = 4096..=(64 << 20);
/// The most memory that an end registers.
pub const MAX_MEMORY_BYTES: u64 = 4 << 30;

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

impl TransferEnd {
    /// Checks that the other end lives and that this end is not to stop.
    pub(super) fn alive(self, link: &Link, stop: &AtomicBool) -> Result<(), RunFailure> {
        if stop.load(Ordering::Relaxed) {
            return Err(self.stopped());
        }
        Ok(link.check()?)
    }

    /// The next message. A stop is reported with its own words.
    pub(super) fn recv(
        self,
        link: &Link,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Message, RunFailure> {
        link.recv(limit, stop).map_err(|error| match error {
            LinkError::Interrupted { .. } => self.stopped(),
            error => error.into(),
        })
    }

    /// The failure of a stop.
    pub(super) fn stopped(self) -> RunFailure {
        match self {
            TransferEnd::Sender => RunFailure::interrupted(),
            TransferEnd::Receiver => RunFailure::server_stopped(),
        }
    }
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
        check_settings(&settings)?;
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
        Ok(Path {
            port: self.port.info.port,
            link_layer: self.port.info.link_layer,
            gid_index: self.port.gid.filter(|_| self.port.has_grh()).map(|entry| entry.index),
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

/// Checks the settings of a transfer against their limits, at both ends.
pub(super) fn check_settings(settings: &ChannelSettings) -> Result<(), RunFailure> {
    let ChannelSettings { qps, window, chunk_bytes, timeout, retry_cnt, .. } = *settings;
    if qps == 0 || qps > MAX_QPS {
        return refuse(format!("{qps} QPs are too few or too many"), "give --qps 1 to 4096");
    }
    if window == 0 || window > MAX_WINDOW {
        return refuse(format!("a window of {window} is out of range"), "give --window 1 to 1024");
    }
    if !CHUNK_BYTES.contains(&chunk_bytes) || chunk_bytes % 4096 != 0 {
        let text = format!("chunks of {chunk_bytes} bytes are not possible");
        return refuse(text, "give --chunk a multiple of 4K, up to 64M");
    }
    let memory = memory_bytes(settings);
    if memory > MAX_MEMORY_BYTES {
        let text =
            format!("QPs x window x chunk take {memory} bytes of memory at each end, too many");
        return refuse(text, "lower --qps, --window or --chunk: the limit is 4 GiB");
    }
    if timeout > 31 || retry_cnt > 7 {
        let text = format!("ACK timeout {timeout} or retry count {retry_cnt} is out of range");
        return refuse(text, "give --timeout 0 to 31, --retry-cnt 0 to 7");
    }
    if let Some(mtu) = settings.mtu_bytes
        && Mtu::try_from(mtu).is_err()
    {
        let hint = "give --mtu 256, 512, 1024, 2048 or 4096";
        return refuse(format!("an MTU of {mtu} is not possible"), hint);
    }
    Ok(())
}

/// Memory that each end registers, in bytes.
pub fn memory_bytes(settings: &ChannelSettings) -> u64 {
    qp_bytes(settings) * u64::from(settings.qps)
}

/// Memory of one QP, in bytes.
pub(super) fn qp_bytes(settings: &ChannelSettings) -> u64 {
    u64::from(settings.window) * u64::from(settings.chunk_bytes)
}

fn refuse(text: String, hint: &str) -> Result<(), RunFailure> {
    Err(RunFailure::refused(text, hint))
}

#[cfg(test)]
mod tests {
    use results::sample::has;

    use super::*;

    #[test]
    fn a_wr_id_names_lane_and_queue() {
        for qp in [0, 1, 4095] {
            assert_eq!(ChannelWrId::send(qp).qp(), qp);
            assert_eq!(ChannelWrId::receive(qp).qp(), qp);
            assert!(ChannelWrId::receive(qp).is_receive() && !ChannelWrId::send(qp).is_receive());
        }
    }

    const USUAL: ChannelSettings = ChannelSettings {
        qps: 16,
        chunk_bytes: 1 << 18,
        window: 4,
        mtu_bytes: None,
        timeout: 14,
        retry_cnt: 7,
    };

    #[test]
    fn settings_out_of_range_are_bad_input() {
        check_settings(&USUAL).unwrap();
        let refused = |change: fn(&mut ChannelSettings), says| {
            let mut settings = USUAL;
            change(&mut settings);
            let error = check_settings(&settings).unwrap_err();
            assert!(error.bad_input);
            has(error.hint.unwrap(), [says]);
        };
        refused(|it| it.qps = 0, "--qps");
        refused(|it| it.qps = 5000, "--qps");
        refused(|it| it.window = 0, "--window");
        refused(|it| it.chunk_bytes = 0, "--chunk");
        refused(|it| it.chunk_bytes = 5000, "--chunk");
        refused(|it| (it.qps, it.window) = (4096, 1024), "4 GiB");
        refused(|it| it.retry_cnt = 8, "--retry-cnt");
        refused(|it| it.mtu_bytes = Some(1500), "--mtu");
    }
}
