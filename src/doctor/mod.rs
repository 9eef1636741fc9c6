//! Checks a machine before a benchmark: lists its devices, ports and GIDs and which of them would be used and why, and
//! checks the whole set-up. Each finding says what was found, why it matters and how to mend it.
//!
//! Files of `/proc`, `/sys`, `/dev` and `/etc` are read below a root ([`Machine`]), so that tests can use their own
//! tree. Pure functions draw the conclusions.

pub mod checks;
pub mod examine;
pub mod inventory;
pub mod machine;
pub mod nodes;
pub mod peer;
pub mod text;

pub use examine::{Examination, Report, examine};
pub use inventory::{Inventory, SCHEMA_VERSION};
pub use machine::Machine;
pub use protocol::node_report::{Finding, State};
