//! How the QPs of a round are connected: by TCP or by rdma_cm.

use crate::run::EarlyEnd;
use plan::Side;
use settings::ConnectMode;

use super::by_cm::{self, CmRoute};
use super::by_tcp;
use super::objects::{ConnectedQps, SetupObjects};
use super::steps::StepTimes;
use super::watch::Watch;

/// A method of connecting, with its state for all rounds.
pub(crate) enum Connector {
    Tcp,
    Cm(CmRoute),
}

impl Connector {
    /// Prepares the method of the case.
    ///
    /// # Errors
    /// A method that the port does not support, a failed call, or an error that `watch` found.
    pub(crate) fn prepare(
        objects: &SetupObjects<'_>,
        side: Side,
        watch: &mut Watch<'_, '_>,
    ) -> Result<Connector, EarlyEnd> {
        Ok(match objects.case.connect {
            ConnectMode::Tcp => Connector::Tcp,
            ConnectMode::Cm => Connector::Cm(CmRoute::arrange(objects, side, watch)?),
        })
    }

    /// Brings the QPs of a round to RTS at this end.
    ///
    /// # Errors
    /// A failed step, the peer's end or fault, or an error that `watch` found.
    pub(crate) fn connect(
        &self,
        objects: &SetupObjects<'_>,
        side: Side,
        watch: &mut Watch<'_, '_>,
        times: &mut StepTimes,
    ) -> Result<ConnectedQps, EarlyEnd> {
        match self {
            Connector::Tcp => by_tcp::connect(objects, side, watch, times),
            Connector::Cm(route) => by_cm::connect(objects, route, watch, times),
        }
    }
}
