//! What a server can do that the first ones of this protocol could not. It names it in `welcome`; a client asks
//! for nothing that is not named there, as an older server would read past a field it does not know.

use std::net::SocketAddr;

use crate::plan::case::{Case, ConnectMode, PollMode};

use crate::protocol::failure::RunFailure;

/// Something that not every server of this protocol version does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// It knows the messages about perftest.
    Perftest,
    /// It takes part in lessons.
    Explain,
    /// It knows ways of waiting for completions besides busy polling.
    Poll,
    /// It connects by rdma_cm where a case says so.
    Cm,
    /// It takes part in measuring set-up.
    Connect,
    /// It was started to receive files.
    Receive,
}

/// A server that lacks what is asked of it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the rocebench at {server} {}", .feature.lack())]
pub struct FeatureMissing {
    /// The server.
    pub server: SocketAddr,
    /// What it lacks.
    pub feature: Feature,
}

impl Feature {
    const OF_EVERY_SERVER: [Feature; 5] = [
        Feature::Perftest,
        Feature::Explain,
        Feature::Poll,
        Feature::Cm,
        Feature::Connect,
    ];

    /// As `welcome` has it.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Perftest => "perftest",
            Feature::Explain => "explain",
            Feature::Poll => "poll",
            Feature::Cm => "cm",
            Feature::Connect => "connect",
            Feature::Receive => "receive",
        }
    }

    fn lack(self) -> &'static str {
        match self {
            Feature::Perftest => "is too old to run perftest",
            Feature::Explain => "is too old to take part in a lesson",
            Feature::Poll => "is too old for --poll event and adaptive",
            Feature::Cm => "is too old for --connect cm",
            Feature::Connect => "is too old for --op connect",
            Feature::Receive => "receives no files",
        }
    }

    /// What this program's server can do however it was started, as `welcome` has it.
    pub fn offered() -> Vec<String> {
        Self::OF_EVERY_SERVER
            .iter()
            .map(|feature| feature.name().to_owned())
            .collect()
    }

    /// What a server must be able to do for a case, beyond the protocol's version.
    pub fn needed_by(case: &Case) -> impl Iterator<Item = Feature> {
        let poll = (case.poll != PollMode::Busy).then_some(Feature::Poll);
        let cm = (case.connect == ConnectMode::Cm).then_some(Feature::Cm);
        let connect = case.setup.map(|_| Feature::Connect);
        poll.into_iter().chain(cm).chain(connect)
    }

    /// Checks that `server`, which told its `features`, can do this.
    ///
    /// # Errors
    /// It cannot.
    pub fn demand(self, server: SocketAddr, features: &[String]) -> Result<(), FeatureMissing> {
        if features.iter().any(|name| name == self.name()) {
            return Ok(());
        }
        Err(FeatureMissing {
            server,
            feature: self,
        })
    }
}

impl FeatureMissing {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self.feature {
            Feature::Receive => "start it with `rocebench serve --receive DIR`, of this version",
            Feature::Cm => "install this version of rocebench there, or use --connect tcp",
            _ => "install this version of rocebench there",
        }
        .into()
    }
}

impl From<FeatureMissing> for RunFailure {
    fn from(missing: FeatureMissing) -> Self {
        RunFailure {
            bad_input: true,
            ..RunFailure::new(missing.to_string(), Some(missing.hint()))
        }
    }
}
