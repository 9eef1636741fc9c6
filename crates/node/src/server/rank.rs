//! A rank of a launcher's job other than 0: it connects to rank 0, joins it, and serves the session that rank 0 leads on
//! that connection. When a session ends early it joins again, since rank 0 may go on.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::events::ServerLog;
use crate::server::options::ServerOptions;
use crate::server::session::session;
use protocol::error::{AcceptError, ConnectError};
use protocol::failure::RunFailure;
use protocol::handshake::ServerTerms;
use protocol::join::{JoinError, join};
use protocol::join_message::Join;

/// How long rank 0 may take to listen. A launcher may load the program at each node first.
const FIRST_LIMIT: Duration = Duration::from_secs(60);

/// How long rank 0, which was there, may take to answer again.
const AGAIN_LIMIT: Duration = Duration::from_secs(2);

/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Where rank 0 listens.
#[derive(Clone, Debug)]
pub struct Place {
    /// Names or addresses of its host.
    pub hosts: Vec<String>,
    /// The TCP port.
    pub port: u16,
}

/// Serves rank 0 until its goodbye; `own` is what this rank tells of itself.
///
/// # Errors
/// Rank 0 is not there, refuses, has failed, or has ended before its goodbye; or `stop` is set.
pub fn serve_rank_0(
    place: &Place,
    own: &Join,
    options: &ServerOptions,
    log: &ServerLog,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let terms = ServerTerms::new(options.token.clone(), options.host.clone());
    let mut hosts = place.hosts.clone();
    let mut since = Instant::now();
    // How the last session ended.
    let mut last: Option<RunFailure> = None;
    loop {
        let error = match join(&hosts, place.port, own, &terms, stop) {
            Ok(accepted) => {
                let rank_0 = accepted.peer.address;
                let said = format!("{rank_0} gave up: ");
                if hosts.len() > 1 {
                    // The one that answers: its silence tells that rank 0 has ended.
                    hosts = vec![rank_0.ip().to_string()];
                }
                let Err(mut failure) = session(accepted, options, log, stop) else {
                    return Ok(());
                };
                if let Some(reason) = failure.message.strip_prefix(&said) {
                    failure.message = reason.to_owned();
                }
                since = Instant::now();
                last = Some(failure);
                thread::sleep(PAUSE);
                continue;
            }
            Err(error) => error,
        };
        let limit = match last {
            Some(_) => AGAIN_LIMIT,
            None => FIRST_LIMIT,
        };
        let may_try_again = !is_final(&error, last.is_some()) && since.elapsed() < limit;
        if !may_try_again || stop.load(Ordering::Relaxed) {
            return Err(told(error, last));
        }
        thread::sleep(PAUSE);
    }
}

/// Whether trying again is of no use.
fn is_final(error: &JoinError, was_there: bool) -> bool {
    match error {
        JoinError::Connect(ConnectError::Unreachable { source, .. }) => {
            // Rank 0 listens as long as it lives.
            was_there && source.kind() == io::ErrorKind::ConnectionRefused
        }
        JoinError::Connect(error) => error.is_interrupt(),
        JoinError::Accept(error) => {
            matches!(error, AcceptError::Refused { .. } | AcceptError::Unproven { .. })
        }
    }
}

/// Why this rank ends: what rank 0 said, or else how the last session ended, or that rank 0 is not there.
fn told(error: JoinError, last: Option<RunFailure>) -> RunFailure {
    match (error, last) {
        (JoinError::Accept(AcceptError::Refused { why, .. }), _) => why.into(),
        (_, Some(failure)) => failure,
        (JoinError::Connect(error), None) => {
            let hint = match &error {
                ConnectError::Resolve { .. }
                | ConnectError::Unreachable { .. }
                | ConnectError::NoAnswer { .. } => Some(
                    "read rank 0's output; if it runs on another host, give --rank-0 HOST:PORT at all ranks"
                        .to_owned(),
                ),
                error => error.hint(),
            };
            RunFailure { bad_input: false, hint, ..RunFailure::from(error) }
        }
        (JoinError::Accept(error), None) => {
            let hint = match &error {
                AcceptError::Unproven { .. } => Some("give all ranks the same --token".to_owned()),
                error => error.hint(),
            };
            RunFailure::new(format!("joining rank 0: {error}"), hint)
        }
    }
}
