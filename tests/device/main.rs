//! rocebench on the kernel's Soft-RoCE, in one guest of the lab: `scripts/device-tests` runs it. The server is
//! on `rxe1`, the client on `rxe0`; packets cross the wire between them. The tests of interoperation lay a wire
//! of their own, to the embedded device. Without these devices everything here fails.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod against;
mod connect;
mod connect_cm;
mod death;
mod doctor;
mod endurance;
mod flows;
mod interop;
mod interop_programs;
mod large_frames;
mod limits;
mod loss;
mod no_device;
mod operations;
mod options;
mod outputs;
mod send;
mod session;
mod signals;
mod tables;
mod trouble;
