//! This end as flags and the environment ask for it: device, faults, capture and cores.

use std::path::PathBuf;

use node::resources::{NodeOptions, PortRequest};
use plan::Devices;
use verbs::address_of_environment;

use crate::cli::args::{EndpointArgs, FaultsOfDevices};
use crate::cli::terminal::errors::Failure;

/// The variable from which every program on the embedded device takes its faults.
const FAULTS_VARIABLE: &str = "SOFTROCE_FAULTS";
/// The variable from which every program on it takes the file for a capture.
const CAPTURE_VARIABLE: &str = "SOFTROCE_PCAP";

/// Checks what the environment says about the embedded device's address, before any device is touched.
pub(super) fn check_environment() -> Result<(), Failure> {
    address_of_environment().map(drop).map_err(Failure::bad_input)
}

/// This end as flags ask for it, on the system's verbs library; faults and capture otherwise by the environment.
///
/// # Errors
/// When the environment's faults or address are none.
pub(super) fn resources(args: EndpointArgs) -> Result<NodeOptions, Failure> {
    check_environment()?;
    let mut faults = args.faults.unwrap_or_default();
    if let (true, Some(text)) =
        (faults == FaultsOfDevices::default(), std::env::var_os(FAULTS_VARIABLE))
        && !text.is_empty()
    {
        faults.default = Some(text.to_string_lossy().parse().map_err(|error| {
            Failure::bad_input(format!("the variable {FAULTS_VARIABLE}: {error}"))
        })?);
    }
    if let Some(Devices::Named(names)) = &args.device
        && let Some((name, _)) = faults.of.iter().find(|(name, _)| !names.contains(name))
    {
        let text = format!("--faults names {name}, which is not in --device");
        return Err(
            Failure::bad_input(text).with_hint(format!("the devices are {}", names.join(", ")))
        );
    }
    let capture = std::env::var_os(CAPTURE_VARIABLE).filter(|path| !path.is_empty());
    let pcap = args.pcap.or_else(|| capture.map(PathBuf::from));
    let request = PortRequest {
        device: args.device.as_ref().and_then(|it| Some(it.only()?.to_owned())),
        ib_port: args.ib_port,
        gid_index: args.gid_index,
        pkey_index: args.pkey_index,
        faults: faults.default,
        pcap,
    };
    Ok(NodeOptions {
        rails: args.device.filter(|devices| devices.only().is_none()),
        device_faults: faults.of,
        ..NodeOptions::system(request, args.cores.map(|cores| cores.0))
    })
}

/// Refuses several devices, where `what` needs one.
pub(super) fn check_one_device(endpoint: &EndpointArgs, what: &str) -> Result<(), Failure> {
    if endpoint.device.as_ref().is_some_and(|it| it.only().is_none()) {
        Err(Failure::bad_input(format!(
            "`rocebench {what}` takes one device, but --device names several"
        ))
        .with_hint("name one of them"))
    } else {
        Ok(())
    }
}
