//! One file a command, and what that command alone needs. None knows another, but `gate`, which is made of `compare` and
//! `plot`.

pub mod compare;
pub mod devices;
pub mod doctor;
pub mod explain;
pub mod gate;
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
