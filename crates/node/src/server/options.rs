//! How a server serves: its device, its token, and what else it does for coordinators.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;

use crate::resources::{NodeOptions, NodeResources, Route};
use crate::server::events::ServerLog;
use plan::FlowDevice;
use protocol::examination::NodeExamination;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::Message;
use protocol::token::Token;

/// How to serve.
pub struct ServerOptions {
    /// Device, cores and library.
    pub resources: NodeOptions,
    /// The token that coordinators must prove.
    pub token: Option<Token>,
    /// Facts of this host.
    pub host: Value,
    /// Where its traffic goes, which decides the port and the GID; `None` for where the control connection comes from.
    pub route: Option<Route>,
    /// What stands before a failure to open the device: `at the server: `, or nothing for the coordinator's own node.
    pub whose: String,
    /// Return after one session.
    pub once: bool,
    /// Start perftest's programs for coordinators.
    pub allow_perftest: bool,
    /// What receives files, where some may come.
    pub files: Option<Arc<dyn FileService>>,
    /// What examines this machine; `None` at a node that none asks for it.
    pub examiner: Option<Arc<Examiner>>,
}

/// Examines this machine with a node's options, the way of its control connection, and the device that is asked for.
pub type Examiner =
    dyn Fn(&NodeOptions, Route, Option<&FlowDevice>) -> NodeExamination + Send + Sync;

/// What a server does with files that are sent to it.
pub trait FileService: Send + Sync {
    /// Does what `first` and the messages after it ask for, until the sender says goodbye.
    ///
    /// # Errors
    /// Why the session ended early; the sender is still to be told.
    fn serve(
        &self,
        link: &Link,
        resources: &NodeResources,
        first: Message,
        log: &ServerLog,
        stop: &AtomicBool,
    ) -> Result<(), RunFailure>;
}
