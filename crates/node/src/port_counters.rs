//! The counters of a port from one moment to another, and whether they would show lost packets.

use std::sync::Arc;

use metrics::counters::{CounterWatch, Growth, Reading, why_loss_is_unknown};
use results::model::LossUnknown;
use verbs::{Port, kernel_driver};

/// Watches the counters of a port.
pub(crate) struct PortCounters {
    device: String,
    driver: Option<String>,
    /// `None` where there are none.
    watch: Option<CounterWatch>,
}

impl PortCounters {
    /// From now on.
    pub(crate) fn watch(port: &Port) -> PortCounters {
        let (context, port) = (Arc::clone(&port.context), port.info.port);
        let device = context.name().to_owned();
        let driver = kernel_driver(context.root(), &device);
        let of_kernel = driver.clone();
        let watch = CounterWatch::start(move || match context.counters() {
            Some(own) => Some(Reading::of_embedded(own)),
            None => {
                let (root, name) = (context.root(), context.name());
                Reading::of_kernel(root, of_kernel.as_deref(), name, port)
            }
        });
        PortCounters { device, driver, watch }
    }

    /// Up to now: what they grew by, and why that would not show lost packets. The coordinator knows the node.
    pub(crate) fn finish(self) -> (Option<Growth>, Option<LossUnknown>) {
        let growth = self.watch.and_then(CounterWatch::finish);
        // Ports of iWARP are not taken.
        let reason = why_loss_is_unknown(growth.as_ref().map(Growth::last), false);
        let unknown = reason.map(|reason| LossUnknown {
            node: String::new(),
            device: self.device,
            driver: self.driver,
            reason,
        });
        (growth, unknown)
    }
}
