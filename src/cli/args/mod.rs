//! What can be written on the command line, a file for each command. It must not know what is done about it.

mod command_line;
mod compare;
mod devices;
mod doctor;
mod explain;
mod faults;
mod gate;
mod manual;
mod mesh;
mod plot;
mod run;
mod send;
mod serve;
mod shared;
mod sweep;

pub use command_line::{Cli, Command, SHORT_HELP, command};
pub use compare::{CompareArgs, Strict, UnclearArgs, WhatArgs};
pub use devices::DevicesArgs;
pub use doctor::DoctorArgs;
pub use explain::ExplainArgs;
pub use faults::FaultsOfDevices;
pub use gate::{GateArgs, Switch};
pub use manual::{CompletionsArgs, ManArgs};
pub use mesh::MeshArgs;
pub use plot::PlotArgs;
pub use run::{AgainstArgs, OutputArgs, RunArgs, SearchArgs};
pub use send::SendArgs;
pub use serve::ServeArgs;
pub use shared::{ConnectionArgs, DEFAULT_PORT, EndpointArgs, SpeechArgs, TokenArgs};
pub use sweep::SweepArgs;
