//! The target's part: listens during one run, finds the QP of each request, and rejects requests of others. A run may
//! connect more than once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::failure::RunFailure;
use protocol::message::CmListening;
use protocol::token::to_hex;
use verbs::Port;
use verbs::cm::{CmChannel, CmError, CmEvent, CmEventKind, CmId, CmStep};

use super::dialer::{failed, is_our_port};
use super::private_data::{Nonce, PrivateData, Role};
use super::terms::local_address;
use super::{Connections, Terms, behind};

/// Requests that may wait while earlier ones are answered; the kernel allows at most 1,024.
const BACKLOG: u32 = 1024;

/// Interval of the checks while waiting.
const TICK: Duration = Duration::from_millis(10);

/// Time limit without a request: the initiator gives up long before.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// The token of the listening id, which belongs to no QP.
const LISTENER: u32 = u32::MAX;

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
