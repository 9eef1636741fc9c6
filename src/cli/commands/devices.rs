//! `rocebench devices`: the inventory, as text or JSON.

use std::net::{IpAddr, Ipv4Addr};

use crate::doctor::{Inventory, Machine, devices_text};
use node::resources::{PortRequest, Route};
use protocol::failure::RunFailure;
use verbs::{VerbsError, VerbsLibrary};

use crate::cli::args::DevicesArgs;
use crate::cli::endpoint::check_environment;
use crate::cli::terminal::errors::Failure;
use crate::cli::terminal::stdout::{print, print_json};

/// Prints the inventory.
///
/// # Errors
/// `--device` names none of them, the environment's address is none, or stdout cannot be written.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    check_environment()?;
    let request = PortRequest { device: args.device.clone(), ..PortRequest::default() };
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
pub(in crate::cli) fn not_there(error: VerbsError) -> Failure {
    let hint = RunFailure::from_verbs(&error).hint;
    Failure::new(error, true, hint)
}
