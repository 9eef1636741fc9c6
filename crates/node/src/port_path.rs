//! The description that a port sends to its peer, and what follows for the QPs of two ports: MTU, path, reliability, service
//! and the random numbers with which QPs begin.

use protocol::{
    endpoints::{self, Endpoints, QpEndpoint, gid_text},
    failure::RunFailure,
};
use results::model::WireKind;
use settings::{QpNumbers, Settings};
use verbs::{Gid, Path, Port, Reliability, RemoteQp, Service, VerbsError, Wire, WireRequest};

/// The connection array of a port's QPs.
pub fn endpoints(port: &Port, qps: Vec<QpEndpoint>) -> Endpoints {
    Endpoints {
        mtu_bytes: port.info.active_mtu_bytes,
        max_rd_atomic: port.adapter.limits.max_responder_reads.max(1),
        lid: port.info.lid,
        gid: gid_text(port.gid.map_or([0; 16], |entry| entry.gid.0)),
        qkey: 0,
        link_layer: endpoints::LinkLayer::from_attributes(port.info.link_layer, port.gid.as_ref()),
        qps,
    }
}

/// The parameters that two ports agree on for a flow.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    path: Path,
    flow_labels: Option<QpNumbers>,
    /// Retries and timeouts, and the number of READs in flight.
    pub(crate) reliability: Reliability,
    pub(crate) path_mtu_bytes: u32,
    lid: u16,
    gid: Gid,
}

impl Agreed {
    /// The agreement between this end's `port` and the `peer`'s.
    ///
    /// # Errors
    /// Ports that do not fit each other, or that cannot do what the flow asks for.
    pub(crate) fn between(
        port: &Port,
        flow: &Settings,
        peer: &Endpoints,
    ) -> Result<Self, RunFailure> {
        endpoints(port, Vec::new()).fits(peer)?;
        let path_mtu_bytes = path_mtu(flow, port.info.active_mtu_bytes, peer.mtu_bytes)?;
        let path = Path {
            port: port.info.port,
            link_layer: port.info.link_layer,
            gid_index: port.gid.filter(|_| port.has_grh()).map(|entry| entry.index),
            service_level: flow.service_level,
            traffic_class: flow.traffic_class,
            flow_label: 0,
            hop_limit: flow.hop_limit,
            mtu_code: Path::mtu_code(path_mtu_bytes),
        };
        Ok(Agreed {
            path,
            flow_labels: flow.flow_label.clone(),
            reliability: reliability(port, flow, peer)?,
            path_mtu_bytes,
            lid: peer.lid,
            gid: Gid(peer.gid_bytes()?),
        })
    }

    /// How the packets of QP `index` leave.
    pub(crate) fn path(&self, index: u32) -> Path {
        let labels = self.flow_labels.as_ref();
        Path { flow_label: labels.map_or(0, |labels| labels.of_qp(index)), ..self.path }
    }

    pub(crate) fn gid(&self) -> Gid {
        self.gid
    }

    /// One of the peer's QPs, in the form that `ibv_modify_qp` needs.
    pub(crate) fn remote(&self, peer: &QpEndpoint) -> RemoteQp {
        RemoteQp { qpn: peer.qpn, psn: peer.psn, lid: self.lid, gid: self.gid }
    }
}

fn reliability(port: &Port, flow: &Settings, peer: &Endpoints) -> Result<Reliability, VerbsError> {
    let limit = port.adapter.limits.max_initiator_reads.min(peer.max_rd_atomic).max(1);
    let initiator_reads = match flow.max_rd_atomic {
        Some(wanted) if wanted > limit => {
            return Err(VerbsError::DeviceLimit {
                device: port.context.name().to_owned(),
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
        timeout: flow.timeout,
        retry_cnt: flow.retry_cnt,
        rnr_retry: flow.rnr_retry,
        min_rnr_timer: flow.min_rnr_timer,
        initiator_reads,
        responder_reads: port.adapter.limits.max_responder_reads.max(1),
    })
}

/// The smaller MTU of both ports, or the requested one, which must not be larger.
fn path_mtu(flow: &Settings, ours: u32, peers: u32) -> Result<u32, RunFailure> {
    let most = ours.min(peers);
    match flow.mtu.map(settings::Mtu::bytes) {
        None => Ok(most),
        Some(wanted) if wanted <= most => Ok(wanted),
        Some(wanted) => {
            let hint = "lower --mtu, or raise the network interface's MTU (4200 carries an RDMA MTU of 4096)";
            Err(RunFailure::refused(
                format!(
                    "an MTU of {wanted} is more than the ports have: {ours} here, {peers} at the peer"
                ),
                hint,
            ))
        }
    }
}

/// How packets of an embedded device go to the peer; `None` of adapters.
///
/// # Errors
/// Not as `--wire` wants it.
pub(crate) fn wire_kind(port: &Port, peer: &Endpoints) -> Result<Option<WireKind>, RunFailure> {
    let (Some(embedded), Some(qp)) = (&port.embedded, peer.qps.first()) else {
        return Ok(None);
    };
    let address = Gid(peer.gid_bytes()?).address();
    match port.context.wire_to(address, qp.qpn) {
        Some(Wire::Udp) if embedded.wire == WireRequest::Memory => Err(RunFailure::refused(
            format!("--wire memory, but {address} is not a device of this process"),
            "leave --wire out, or run both ends in one process: without HOST, or with --nodes local:2",
        )),
        wire => Ok(wire.map(|wire| match wire {
            Wire::Udp => WireKind::Udp,
            Wire::Memory => WireKind::Memory,
        })),
    }
}

/// The service of a flow's QPs; of UD with a Q_Key for this run.
pub(crate) fn service(flow: &Settings) -> Result<Service, RunFailure> {
    Ok(match flow.service {
        settings::Service::Rc => Service::ReliableConnection,
        settings::Service::Uc => Service::UnreliableConnection,
        // Of 24 bits: the highest of 32 would have a datagram take its own QP's Q_Key.
        settings::Service::Ud => {
            Service::Datagram { qkey: random_24_bits(1)?.into_iter().next().unwrap_or(0) }
        }
    })
}

/// A random first PSN for each QP, so that packets of an earlier connection are not accepted.
pub fn psns(count: usize) -> Result<Vec<u32>, RunFailure> {
    random_24_bits(count)
}

fn random_24_bits(count: usize) -> Result<Vec<u32>, RunFailure> {
    let mut bytes = vec![0; count * 4];
    getrandom::fill(&mut bytes).map_err(|error| {
        RunFailure::new(format!("the kernel gave no random bytes: {error}"), None)
    })?;
    Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], 0])).collect())
}
