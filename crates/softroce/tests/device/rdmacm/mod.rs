//! The device as librdmacm: two devices of this process connect by messages of their connection managers.

mod connections;
mod datagrams;
mod ids;
mod shared;
mod testbed;
