//! `rocebench devices`: the inventory, as text or JSON.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};

use serde::Serialize;

use crate::doctor::{Inventory, Machine, devices_text};
use crate::node::resources::{PortRequest, Route};
use crate::protocol::failure::RunFailure;
use verbs::{VerbsError, VerbsLibrary};

use super::args::DevicesArgs;
use super::endpoint::check_environment;
use super::errors::Failure;

/// Prints the inventory.
///
/// # Errors
/// `--device` names none of them, the environment's address is none, or stdout cannot be written.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    check_environment()?;
    let request = PortRequest {
        device: args.device.clone(),
        ..PortRequest::default()
    };
    let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
    let route = Route::between(loopback, loopback);
    let mut inventory = Inventory::read(&Machine::this(), VerbsLibrary::system(), &request, route)
        .map_err(not_there)?;
    if let Some(name) = &args.device {
        inventory.keep_only(name);
    }
    if args.json {
        return print_json(&inventory);
    }
    print(&devices_text::text(&inventory, args.device.as_deref()))
}

/// What was asked for is not there.
pub(super) fn not_there(error: VerbsError) -> Failure {
    let hint = RunFailure::from_verbs(&error).hint;
    Failure::told(error, true, hint)
}

/// Prints a document. A reader that closes the pipe early has seen enough.
pub(super) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::failed)?;
    print(&(text + "\n"))
}

/// Prints text, as [`print_json`] does.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What became of text for stdout. A reader that closes the pipe early has seen enough.
pub(super) fn unless_closed(printed: io::Result<()>) -> Result<(), Failure> {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
