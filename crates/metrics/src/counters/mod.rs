//! A device's own counters: read from sysfs or from the embedded device, subtracted as wide as they are, and told by
//! what they mean where the driver is known.

mod drivers;
mod growth;
mod known;
mod loss;
mod pause;
mod reading;
mod watch;

pub use drivers::EMBEDDED_DRIVER;
pub use growth::Growth;
pub use loss::why_loss_is_unknown;
pub use pause::counts_pauses;
pub use reading::Reading;
pub use watch::CounterWatch;
