//! `--connect cm`: connects the QPs of a flow through rdma_cm. The target listens and tells where
//! ([`CmListening`]). The initiator requests one connection per QP, several at a
//! time; the private data of each request names the run and the QP. Callers do the QPs' transitions; memory addresses
//! and all else go over the control connections.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use protocol::{failure::RunFailure, message::CmListening, token::to_hex};
use verbs::{
    LinkLayer, Port,
    cm::{CmAddress, CmChannel, CmError, CmEvent, CmEventKind, CmId, CmParameters, CmStep},
};

pub(crate) use crate::cm_caller::{Caller, CmTimes};
use crate::{
    cm_caller::{failed, is_our_port},
    port_path::Agreed,
};

/// The ids of established connections. Dropping it ends them.
pub(crate) struct Connections {
    /// In QP order; `None` has ended.
    pub(crate) ids: Vec<Option<CmId>>,
    /// Whether this end disconnects; the other end's ids then receive an event.
    pub(crate) disconnects: bool,
    /// Its events are not read while the connections are in use: the control connection detects a lost peer.
    pub(crate) _channel: Arc<CmChannel>,
}

impl Connections {
    /// Ends the connection of a QP.
    pub(crate) fn end(&mut self, index: usize) {
        if let Some(id) = self.ids.get_mut(index).and_then(Option::take)
            && self.disconnects
        {
            id.disconnect();
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if self.disconnects {
            for id in self.ids.iter().flatten() {
                id.disconnect();
            }
        }
    }
}

/// Time to wait for the control connection to report why the other end gave a connection up.
const REASON_LIMIT: Duration = Duration::from_millis(500);

/// The failure that caused a failed step. The ids of an end that gives up or dies go with it, and rdma_cm may report
/// that before the control connection gives the reason.
pub(crate) fn behind(
    failure: RunFailure,
    alive: impl Fn() -> Result<(), RunFailure>,
) -> RunFailure {
    let seen = Instant::now();
    while seen.elapsed() < REASON_LIMIT {
        if let Err(cause) = alive() {
            return cause;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    failure
}

pub(crate) fn ns_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The parameters common to all connections of a run, at one end.
pub struct Terms {
    pub(crate) local: CmAddress,
    /// Name of its device and its port number.
    pub(crate) port: (String, u8),
    /// QP numbers of this end, in QP order.
    pub(crate) qpns: Vec<u32>,
    /// QP numbers of the other end, if the control connection has sent them.
    pub(crate) peer_qpns: Option<Vec<u32>>,
    responder_resources: u8,
    initiator_depth: u8,
    retry_count: u8,
    rnr_retry_count: u8,
}

impl Terms {
    /// For `port`, whose QPs are connected to the peer's as `agreed`.
    ///
    /// # Errors
    /// A port that rdma_cm does not serve.
    pub(crate) fn new(
        port: &Port,
        agreed: &Agreed,
        qpns: Vec<u32>,
        peer_qpns: Option<Vec<u32>>,
    ) -> Result<Terms, RunFailure> {
        let reliability = &agreed.reliability;
        let local = local_address(port)?;
        Ok(Terms {
            local,
            port: (port.context.name().to_owned(), port.info.port),
            qpns,
            peer_qpns,
            // rdma_cm refuses more than the device reports, even if that is 0.
            responder_resources: port.adapter.limits.max_responder_reads,
            initiator_depth: reliability
                .initiator_reads
                .min(port.adapter.limits.max_initiator_reads),
            retry_count: reliability.retry_cnt,
            rnr_retry_count: reliability.rnr_retry,
        })
    }

    /// This end's private data for QP `index`.
    pub(crate) fn private_data(&self, role: Role, index: u32, nonce: Nonce) -> [u8; BYTES] {
        let qpn = self.qpns.get(index as usize).copied().unwrap_or(0);
        PrivateData { role, index, qpn, nonce }.encode()
    }

    pub(crate) fn parameters<'a>(&self, index: u32, private_data: &'a [u8]) -> CmParameters<'a> {
        CmParameters {
            qpn: self.qpns.get(index as usize).copied().unwrap_or(0),
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            private_data,
        }
    }

    /// Whether a request or answer has the QP number that it claims and that the control connection sent.
    pub(crate) fn is_peer(&self, data: &PrivateData, qpn: u32) -> bool {
        data.qpn == qpn
            && self
                .peer_qpns
                .as_ref()
                .is_none_or(|qpns| qpns.get(data.index as usize) == Some(&qpn))
    }
}

/// The address by which rdma_cm knows a port.
pub(crate) fn local_address(port: &Port) -> Result<CmAddress, RunFailure> {
    let (root, name) = (port.context.root(), port.context.name());
    check_port(port)?;
    match port.gid {
        Some(entry) => Ok(CmAddress::local(root, name, port.info.port, &entry)),
        None => Err(RunFailure::refused(
            format!("{name} has no address for rdma_cm"),
            "give its network interface one",
        )),
    }
}

/// Whether rdma_cm serves a port.
///
/// # Errors
/// It does not; with what to do instead.
pub fn check_port(port: &Port) -> Result<(), RunFailure> {
    let (name, library) = (port.context.name(), port.context.library());
    if !library.is_system() && !library.is_embedded() {
        return Err(RunFailure::refused(
            format!("{name} of {} has no connection manager", library.name),
            "use --connect tcp with it",
        ));
    }
    if port.info.link_layer == LinkLayer::Infiniband {
        return Err(RunFailure::refused(
            format!(
                "--connect cm needs a RoCE port: {name} port {} is InfiniBand, and rocebench does not know its IPoIB \
                 addresses",
                port.info.port
            ),
            "use --connect tcp with it",
        ));
    }
    Ok(())
}

/// The first bytes, including the format version.
const MAGIC: [u8; 5] = *b"rocb\x01";

/// The length of private data; its last bytes are the nonce.
pub(crate) const BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Request,
    Answer,
}

/// The private data of a request and its answer: identifies the program, the run and the QP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrivateData {
    pub(crate) role: Role,
    /// Index of the QP in the run.
    pub(crate) index: u32,
    pub(crate) qpn: u32,
    /// The nonce that the listener drew for this run.
    pub(crate) nonce: Nonce,
}

/// A random number that tells requests of this run from those of other runs and programs.
pub(crate) type Nonce = [u8; 16];

/// Private data that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PrivateDataError {
    #[error("it is not from rocebench")]
    Foreign,
    #[error("it has {0} bytes of private data")]
    Short(usize),
}

impl PrivateData {
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..5].copy_from_slice(&MAGIC);
        bytes[5] = match self.role {
            Role::Request => 1,
            Role::Answer => 2,
        };
        bytes[8..12].copy_from_slice(&self.index.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.qpn.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.nonce);
        bytes
    }

    /// Decodes received bytes, which rdma_cm pads with zeros.
    pub(crate) fn decode(bytes: &[u8]) -> Result<PrivateData, PrivateDataError> {
        let Some(bytes) = bytes.first_chunk::<BYTES>() else {
            return Err(PrivateDataError::Short(bytes.len()));
        };
        let role = match bytes[5] {
            1 => Role::Request,
            2 => Role::Answer,
            _ => return Err(PrivateDataError::Foreign),
        };
        if bytes[..5] != MAGIC {
            return Err(PrivateDataError::Foreign);
        }
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&bytes[16..32]);
        Ok(PrivateData { role, index: number(bytes, 8), qpn: number(bytes, 12), nonce })
    }
}

/// The little-endian number at an offset.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The text of a rejection: the printable bytes before the padding; `None` if there are none.
pub(crate) fn reason(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    (!text.is_empty()).then(|| results::text::printable(text, 80))
}

/// Requests that may wait while earlier ones are answered; the kernel allows at most 1,024.
const BACKLOG: u32 = 1024;

/// Interval of the checks while waiting.
const TICK: Duration = Duration::from_millis(10);

/// Time limit without a request: the initiator gives up long before.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// The token of the listening id, which belongs to no QP.
const LISTENER: u32 = u32::MAX;

/// The target's part: listens during one run, finds the QP of each request, and rejects requests of others. A run may
/// connect more than once.
pub(crate) struct Listener {
    id: CmId,
    channel: Arc<CmChannel>,
    nonce: Nonce,
}

impl Listener {
    /// Listens at a port's address, on a free port number.
    ///
    /// # Errors
    /// The failed step.
    pub(crate) fn open(port: &Port) -> Result<Listener, RunFailure> {
        let address = local_address(port)?;
        let channel = CmChannel::open(port.context.library())?;
        let id = CmId::new(&channel, LISTENER)?;
        id.bind(address)?;
        id.listen(BACKLOG)?;
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).map_err(|error| {
            RunFailure::new(format!("the kernel gave no random bytes: {error}"), None)
        })?;
        Ok(Listener { id, channel, nonce })
    }

    /// What the initiator must know to connect.
    pub(crate) fn listening(&self) -> CmListening {
        CmListening { port: self.id.local_port(), nonce: to_hex(&self.nonce) }
    }

    /// Accepts one connection for each QP. `ready` brings a QP to RTS with the attributes of its id; it is given the
    /// peer's QP number from the request. `alive` is called throughout and may end the attempt.
    ///
    /// # Errors
    /// The first step that failed, with its QP; an error of `ready` or `alive`.
    pub(crate) fn accept(
        &self,
        terms: &Terms,
        alive: impl Fn() -> Result<(), RunFailure>,
        mut ready: impl FnMut(u32, &CmId, u32) -> Result<(), RunFailure>,
    ) -> Result<Connections, RunFailure> {
        is_our_port(&self.id, terms)?;
        let mut ids: Vec<Option<CmId>> = Vec::new();
        ids.resize_with(terms.qpns.len(), || None);
        let (mut established, mut heard) = (0, Instant::now());
        while established < ids.len() {
            alive()?;
            let Some(event) = self.channel.next(TICK)? else {
                if heard.elapsed() > SILENCE_LIMIT {
                    return Err(silence(established, ids.len()));
                }
                continue;
            };
            heard = Instant::now();
            let index = event.token;
            match event.kind {
                CmEventKind::ConnectRequest => {
                    self.requested(event, terms, &mut ids, &mut ready)
                        .map_err(|failure| behind(failure, &alive))?;
                }
                CmEventKind::Established => established += 1,
                // The client gives the reason over the control connection.
                CmEventKind::Disconnected | CmEventKind::TimewaitExit => {}
                _ => {
                    let object = match index {
                        LISTENER => "the port for connections".to_owned(),
                        _ => format!("QP {index} at {}", terms.local),
                    };
                    let failure = failed(CmStep::Accept, object, &event).into();
                    return Err(behind(failure, &alive));
                }
            }
        }
        Ok(Connections { ids, disconnects: false, _channel: Arc::clone(&self.channel) })
    }

    fn requested(
        &self,
        event: CmEvent,
        terms: &Terms,
        ids: &mut [Option<CmId>],
        ready: &mut impl FnMut(u32, &CmId, u32) -> Result<(), RunFailure>,
    ) -> Result<(), RunFailure> {
        let Some(mut id) = event.request else {
            return Ok(());
        };
        let index = match PrivateData::decode(&event.private_data) {
            Err(error) => return turn_away(id, &error.to_string()),
            Ok(data) if data.role != Role::Request || data.nonce != self.nonce => {
                return turn_away(id, "it is of another run");
            }
            Ok(data)
                if ids.get(data.index as usize).is_none_or(Option::is_some)
                    || !terms.is_peer(&data, event.qpn) =>
            {
                return turn_away(id, "the run has no such QP to connect");
            }
            Ok(data) => data.index,
        };
        id.set_token(index);
        is_our_port(&id, terms)?;
        ready(index, &id, event.qpn)?;
        let answer = terms.private_data(Role::Answer, index, self.nonce);
        id.accept(&terms.parameters(index, &answer))?;
        if let Some(place) = ids.get_mut(index as usize) {
            *place = Some(id);
        }
        Ok(())
    }
}

/// Rejects a request that is not of this run. If its sender has gone, that is no error.
fn turn_away(id: CmId, why: &str) -> Result<(), RunFailure> {
    tracing::warn!(why, "rejected a connection");
    match id.reject(why) {
        Ok(()) | Err(CmError::Call { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn silence(established: usize, qps: usize) -> RunFailure {
    let seconds = SILENCE_LIMIT.as_secs();
    RunFailure::new(
        format!(
            "rdma_cm brought no request for {seconds} s: {established} of {qps} QPs are connected"
        ),
        Some("see that UDP port 4791 is open between both ends (`rocebench doctor HOST`)".into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbs::{Gid, GidEntry, GidType, cm::MAX_PRIVATE_BYTES};

    #[test]
    fn a_peer_is_who_it_says_and_whom_the_control_connection_told() {
        let entry = GidEntry {
            index: 1,
            gid: Gid::from_address("192.0.2.1".parse().unwrap()),
            gid_type: GidType::RoceV2,
            interface: None,
        };
        let mut terms = Terms {
            local: CmAddress::local("/".as_ref(), "rxe0", 1, &entry),
            port: ("rxe0".into(), 1),
            qpns: vec![7, 8],
            peer_qpns: Some(vec![17, 18]),
            responder_resources: 1,
            initiator_depth: 1,
            retry_count: 7,
            rnr_retry_count: 7,
        };
        let data = PrivateData { role: Role::Request, index: 1, qpn: 18, nonce: Nonce::default() };
        assert!(terms.is_peer(&data, 18) && !terms.is_peer(&data, 17));
        let other = PrivateData { index: 0, ..data };
        assert!(!terms.is_peer(&other, 18), "of another QP");
        terms.peer_qpns = None;
        assert!(terms.is_peer(&other, 18) && !terms.is_peer(&other, 17));
    }

    const SAMPLE: PrivateData = PrivateData {
        role: Role::Request,
        index: 4095,
        qpn: 0x00ab_cdef,
        nonce: *b"0123456789abcdef",
    };

    #[test]
    fn what_is_sent_is_read_with_the_padding_of_the_other_end() {
        const { assert!(BYTES <= MAX_PRIVATE_BYTES) };
        for role in [Role::Request, Role::Answer] {
            let sent = PrivateData { role, ..SAMPLE };
            let mut bytes = sent.encode().to_vec();
            assert_eq!(PrivateData::decode(&bytes), Ok(sent));
            bytes.resize(196, 0);
            assert_eq!(PrivateData::decode(&bytes), Ok(sent));
        }
    }

    #[test]
    fn what_others_send_is_foreign() {
        let foreign = Err(PrivateDataError::Foreign);
        for bytes in [&[][..], &[0; 31]] {
            let short = Err(PrivateDataError::Short(bytes.len()));
            assert_eq!(PrivateData::decode(bytes), short);
        }
        assert_eq!(PrivateData::decode(&[0; 56]), foreign);
        for at in [0, 4, 5] {
            let mut bytes = SAMPLE.encode();
            bytes[at] ^= 0x80;
            assert_eq!(PrivateData::decode(&bytes), foreign, "{at}");
        }
    }

    #[test]
    fn reasons_end_where_the_padding_begins() {
        let words = reason(b"another run's\0\0\0");
        assert_eq!(words.as_deref(), Some("another run's"));
        assert_eq!(reason(&[0; 8]), None);
        assert_eq!(reason(&[0xff, 0xfe, 0]), None);
        assert_eq!(reason(b"wakeup \x07!").as_deref(), Some("wakeup \\u{7}!"));
    }
}
