//! The way in which the QPs of a round are connected: by TCP or by rdma_cm.

use crate::node::needs::Side;
use crate::node::running_node::Broken;
use settings::ConnectMode;

use super::bench::{Bench, Connected};
use super::by_cm::{self, CmRoute};
use super::by_tcp;
use super::steps::StepTimes;
use super::watch::Watch;

/// How the rounds of a bench connect, with what that needs for all of them.
pub(crate) enum Way {
    Tcp,
    Cm(CmRoute),
}

impl Way {
    /// The case's, prepared.
    ///
    /// # Errors
    /// A way that the port does not have, a failed call, or what `watch` saw.
    pub(crate) fn prepare(
        bench: &Bench<'_>,
        side: Side,
        watch: &mut Watch<'_>,
    ) -> Result<Way, Broken> {
        Ok(match bench.case.connect {
            ConnectMode::Tcp => Way::Tcp,
            ConnectMode::Cm => Way::Cm(CmRoute::arrange(bench, side, watch)?),
        })
    }

    /// Brings the QPs of a round from nothing to RTS at this end.
    ///
    /// # Errors
    /// A failed step, the peer's end or fault, or what `watch` saw.
    pub(crate) fn connect(
        &self,
        bench: &Bench<'_>,
        side: Side,
        watch: &mut Watch<'_>,
        times: &mut StepTimes,
    ) -> Result<Connected, Broken> {
        match self {
            Way::Tcp => by_tcp::connect(bench, side, watch, times),
            Way::Cm(route) => by_cm::connect(bench, route, watch, times),
        }
    }
}
