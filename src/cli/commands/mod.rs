//! One file a command, and what that command alone needs. They must not know each other.

pub mod compare;
pub mod devices;
pub mod doctor;
pub mod explain;
mod listen;
pub mod manual;
pub mod mesh;
mod pictures;
pub mod plot;
mod racks;
pub mod send;
mod send_progress;
pub mod serve;
mod server_log;
