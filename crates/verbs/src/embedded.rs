//! The embedded device, which is used if no other can be: when it is used, and with which address.

use std::net::IpAddr;

/// A device of the embedded library, listed without opening it.
pub use softroce::verbs::Listing as EmbeddedDevice;

use softroce::verbs::OpenOptions;

use super::adapter::Adapters;
use super::device::Context;
use super::network::Route;
use super::select::{Embedded, Port, PortRequest, among, select};
use super::{Operation, VerbsError, VerbsLibrary};

/// Opens the port for a session: from `library` as [`select`] does, or from the embedded library if `library` has no
/// device, no usable port, or no device of the requested name. In the embedded library the name decides, or else the
/// route: `soft0` within this machine, otherwise the device of the control connection's address.
///
/// # Errors
/// As [`select`]; [`VerbsError::OnlyOnEmbeddedDevice`].
pub fn select_or_embedded(
    library: &'static VerbsLibrary,
    request: &PortRequest,
    route: Option<Route>,
) -> Result<Port, VerbsError> {
    let error = match select(library, request, route) {
        Ok(port) => {
            let only_embedded = [
                (
                    "--faults",
                    request.faults.is_some(),
                    "`tc qdisc add dev ETH root netem loss 1%` loses packets",
                ),
                (
                    "--pcap",
                    request.pcap.is_some(),
                    "`tcpdump -i ETH -w FILE udp port 4791` captures packets",
                ),
            ];
            return match only_embedded.into_iter().find(|(_, is_given, _)| *is_given) {
                Some((flag, _, instead)) => Err(VerbsError::OnlyOnEmbeddedDevice {
                    flag,
                    device: port.context.name().to_owned(),
                    instead,
                }),
                None => Ok(port),
            };
        }
        Err(error) => error,
    };
    if let Some(name) = &request.device {
        return match embedded_device(name)? {
            Some(device) => open(&device, request, None),
            None => Err(with_embedded(error, name, &embedded_devices()?)),
        };
    }
    let devices = embedded_devices()?;
    let asks_for_a_port = request.ib_port.is_some() || request.gid_index.is_some();
    match (&error, choose(&devices, route)) {
        (VerbsError::NoUsablePort { .. }, _) if asks_for_a_port => Err(error),
        (VerbsError::NoDevice | VerbsError::NoUsablePort { .. }, Some(device)) => {
            let others = matches!(error, VerbsError::NoUsablePort { .. });
            let mut port = open(device, request, Some(error.to_string()))?;
            if let Some(embedded) = &mut port.embedded {
                embedded.is_in_place_of_others = others;
            }
            Ok(port)
        }
        _ => Err(error),
    }
}

/// The embedded devices of this machine. Opens none, since that would take its UDP port.
///
/// # Errors
/// The system does not report its addresses.
pub fn embedded_devices() -> Result<Vec<EmbeddedDevice>, VerbsError> {
    softroce::verbs::devices().map_err(unlisted)
}

/// The embedded device of this name, also one of those on loopback that are in no list.
///
/// # Errors
/// The system does not report its addresses.
pub fn embedded_device(name: &str) -> Result<Option<EmbeddedDevice>, VerbsError> {
    softroce::verbs::named(name).map_err(unlisted)
}

fn unlisted(source: std::io::Error) -> VerbsError {
    VerbsError::Call {
        operation: Operation::GetDeviceList,
        object: VerbsLibrary::embedded().name.to_owned(),
        source,
    }
}

/// Adds the embedded library's names to the error for an unknown name.
fn with_embedded(error: VerbsError, name: &str, devices: &[EmbeddedDevice]) -> VerbsError {
    let mut available = match error {
        VerbsError::NoSuchDevice { available, .. } => available,
        VerbsError::NoDevice => Vec::new(),
        other => return other,
    };
    available.extend(devices.iter().map(|device| match device.address {
        Some(address) => format!("{} (embedded, {address})", device.name),
        None => format!("{} (embedded, loopback)", device.name),
    }));
    VerbsError::NoSuchDevice { name: name.to_owned(), available }
}

/// The device for a route: that of its address, or else one that probably reaches the other end.
fn choose(devices: &[EmbeddedDevice], route: Option<Route>) -> Option<&EmbeddedDevice> {
    let Some(route) = route.filter(|route| !route.within_host) else {
        return devices.first();
    };
    // A link-local address is valid on one interface only, which a device's address does not name.
    let outside: Vec<_> = devices
        .iter()
        .filter_map(|device| Some((device, device.address?)))
        .filter(|(_, address)| {
            let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            !address.is_loopback() && !link_local
        })
        .collect();
    outside
        .iter()
        .find(|(_, address)| *address == route.local)
        .or_else(|| outside.iter().find(|(_, address)| address.is_ipv4() == route.local.is_ipv4()))
        .or_else(|| outside.first())
        .map_or_else(|| devices.first(), |(device, _)| Some(device))
}

fn open(
    device: &EmbeddedDevice,
    request: &PortRequest,
    because: Option<String>,
) -> Result<Port, VerbsError> {
    let library = VerbsLibrary::embedded();
    let options =
        OpenOptions { faults: request.faults.unwrap_or_default(), capture: request.pcap.clone() };
    let raw = softroce::verbs::open_with(&device.name, options).map_err(|error| {
        let Some(code) = softroce::net::os_error(&error) else {
            return VerbsError::Capture(error);
        };
        let object = match device.address {
            Some(address) => format!("{} (UDP port 4791 of {address})", device.name),
            None => format!("{} (UDP port 4791 of an address of 127.0.0.0/8)", device.name),
        };
        VerbsError::Call {
            operation: Operation::OpenDevice,
            object,
            source: std::io::Error::from_raw_os_error(code),
        }
    })?;
    let context = Context::of_opened(library, raw, device.name.clone());
    let mut port = among(Adapters::alone(context)?, request, None)?;
    port.embedded = Some(Embedded {
        because,
        is_in_place_of_others: false,
        faults: request.faults,
        pcap: request.pcap.clone(),
    });
    Ok(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(addresses: &[&str]) -> Vec<EmbeddedDevice> {
        addresses
            .iter()
            .enumerate()
            .map(|(index, address)| EmbeddedDevice {
                name: format!("soft{index}"),
                address: address.parse().ok(),
            })
            .collect()
    }

    fn chosen(addresses: &[&str], local: &str, peer: &str) -> String {
        let route = Route::between(local.parse().unwrap(), peer.parse().unwrap());
        let devices = devices(addresses);
        choose(&devices, Some(route)).unwrap().name.clone()
    }

    const MACHINE: [&str; 5] = ["", "192.0.2.2", "fe80::1", "fd00::2", "198.51.100.2"];

    #[test]
    fn within_this_machine_loopback_is_taken() {
        for (local, peer) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("198.51.100.2", "198.51.100.2"),
        ] {
            assert_eq!(chosen(&MACHINE, local, peer), "soft0", "{local}");
        }
        assert_eq!(choose(&devices(&MACHINE), None).unwrap().name, "soft0");
    }

    #[test]
    fn between_machines_the_connections_own_address_is_taken() {
        for (local, peer, name) in [
            ("198.51.100.2", "198.51.100.9", "soft4"),
            ("::ffff:192.0.2.2", "::ffff:192.0.2.9", "soft1"),
            ("fd00::2", "fd00::9", "soft3"),
        ] {
            assert_eq!(chosen(&MACHINE, local, peer), name, "{local}");
        }
    }

    #[test]
    fn an_address_without_a_device_gets_one_that_may_reach_the_peer() {
        assert_eq!(chosen(&MACHINE, "203.0.113.1", "203.0.113.2"), "soft1");
        assert_eq!(chosen(&MACHINE, "fe80::1", "fe80::2"), "soft3");
        assert_eq!(chosen(&MACHINE[..2], "fd00::2", "fd00::9"), "soft1");
        assert_eq!(chosen(&MACHINE[..1], "192.0.2.2", "192.0.2.9"), "soft0");
    }
}
