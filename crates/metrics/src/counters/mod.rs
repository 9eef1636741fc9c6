//! A device's own counters: read from sysfs or from the embedded device, subtracted as wide as they are, and
//! told by what they mean where the driver is known. It must not know what a run is, nor how results are written.

mod growth;
mod known;
mod reading;
mod watch;

pub use growth::Growth;
pub use known::EMBEDDED_DRIVER;
pub use reading::Reading;
pub use watch::CounterWatch;
