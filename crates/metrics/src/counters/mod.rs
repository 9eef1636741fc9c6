//! A device's own counters: read from sysfs or from the embedded device, subtracted as wide as they are, and told by
//! what they mean where the driver is known.

mod drivers;
mod growth;
mod reading;

pub use drivers::{EMBEDDED_DRIVER, counts_pauses};
pub use growth::{CounterWatch, Growth};
pub use reading::{Reading, why_loss_is_unknown};
