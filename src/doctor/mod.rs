//! First aid before a benchmark: what devices, ports and GIDs this machine has, which of them would be used
//! and why, and checks of the whole set-up, each with what was found, why it matters and the command that
//! mends it. It must not know the command line, and it changes nothing.
//!
//! What is read from `/proc`, `/sys`, `/dev` and `/etc` is read below a root ([`Machine`]), so that tests
//! give a tree of their own; what a check concludes is in pure functions.

pub mod checks;
pub mod choice;
pub mod devices_text;
pub mod entries;
pub mod examine;
pub mod finding;
pub mod inventory;
pub mod machine;
pub mod peer;
pub mod report_text;
mod sysfs;
pub mod transfer;
mod wrap;

pub use examine::{Examination, Report, examine};
pub use finding::{Finding, State};
pub use inventory::{Inventory, SCHEMA_VERSION};
pub use machine::Machine;
