//! Verbs libraries without a device: the functions of libibverbs, under their names without `ibv_`, for two devices
//! in this process.
//!
//! - `null0` ([`null`]) completes every WR at once and moves no bytes, so a program's cost on it is its own.
//! - `loop0` ([`loopback`]) moves bytes between QPs of this process, slowly and strictly: it refuses what a real
//!   device would refuse.
//!
//! Besides, [`personas`] has tables of what real adapters report, each of which makes a library whose devices say that and move
//! bytes as `loop0` does.
//!
//! Its users build a table of these functions, or export them under libibverbs' names. They are `provider`'s, but for the
//! list of devices and their opening.
//!
//! Differences from libibverbs: an SRQ of `null0` takes receives and never uses them, only `loop0` has completion
//! channels, only `null0` has UD QPs and address handles, and there are no extended verbs.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod answers;
pub mod loopback;
pub mod null;
pub mod personas;

pub use personas::{Persona, get_device_list, open_device};
pub use provider::verbs::*;
