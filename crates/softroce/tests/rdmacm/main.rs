//! The device as librdmacm: two devices of this process connect by messages of their connection managers.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod connections;
mod endpoints;
mod ids;
mod loss;
mod testbed;
