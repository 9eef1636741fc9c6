//! Which device, port and GID to use.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::device::{Context, DeviceLimits, LinkLayer, PortInfo, open_all};
use super::gid::{GidEntry, choose_gid};
use super::{Extensions, Faults, VerbsError, VerbsLibrary};

/// The user's request; `None` leaves the choice open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortRequest {
    /// Device name.
    pub device: Option<String>,
    /// Port number.
    pub ib_port: Option<u8>,
    /// GID index.
    pub gid_index: Option<u8>,
    /// Faults, which only the embedded device can make.
    pub faults: Option<Faults>,
    /// A file for a capture of all packets, which only the embedded device can make.
    pub pcap: Option<PathBuf>,
}

/// The port that a session uses.
#[derive(Clone)]
pub struct Port {
    /// Its device.
    pub context: Arc<Context>,
    /// Its attributes.
    pub info: PortInfo,
    /// The GID: always set on RoCE; on InfiniBand the port's first or the requested one.
    pub gid: Option<GidEntry>,
    /// Whether InfiniBand packets carry a GRH, because a GID index was requested.
    pub wants_grh: bool,
    /// The device's limits.
    pub limits: DeviceLimits,
    /// Set if it is the embedded device.
    pub embedded: Option<Embedded>,
    /// Found when they are first asked for.
    extensions: Arc<OnceLock<Extensions>>,
}

impl Port {
    /// The extended verbs that its device has.
    pub fn extensions(&self) -> Extensions {
        *self
            .extensions
            .get_or_init(|| Extensions::probe(&self.context))
    }
}

/// Facts of a port of the embedded device.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// Why no other device was chosen; `None` if this one was requested.
    pub because: Option<String>,
    /// The faults that it makes.
    pub faults: Option<Faults>,
    /// The file that its packets are captured in, without the address that is added to the name.
    pub pcap: Option<PathBuf>,
}

/// Opens the port for a session whose control connection has the address `local` at this end: of the active ports
/// that fit the request, the first that has that address, or else the first.
///
/// # Errors
/// No device, none that fits (with each port's reason), or a failed call.
pub fn select(
    library: &'static VerbsLibrary,
    request: &PortRequest,
    local: Option<IpAddr>,
) -> Result<Port, VerbsError> {
    among(&open_all(library)?, request, local)
}

/// As [`select`], among open devices.
pub(super) fn among(
    devices: &[Arc<Context>],
    request: &PortRequest,
    local: Option<IpAddr>,
) -> Result<Port, VerbsError> {
    let available = || {
        devices
            .iter()
            .map(|device| device.name().to_owned())
            .collect()
    };
    let wanted: Vec<_> = match &request.device {
        None => devices.to_vec(),
        Some(name) => {
            let wanted: Vec<_> = devices
                .iter()
                .filter(|d| d.name() == name)
                .cloned()
                .collect();
            if wanted.is_empty() {
                return Err(VerbsError::NoSuchDevice {
                    name: name.clone(),
                    available: available(),
                });
            }
            wanted
        }
    };
    let local = local.map(|address| address.to_canonical());
    let mut candidates = Vec::new();
    let mut reasons = Vec::new();
    let mut have = Vec::new();
    for device in wanted {
        let limits = device.limits()?;
        let ports = match request.ib_port {
            Some(port) => port..=port,
            None => 1..=limits.ports,
        };
        for number in ports {
            if number == 0 || number > limits.ports {
                let name = device.name();
                have.push(match limits.ports {
                    1 => format!("{name} has port 1"),
                    last => format!("{name} has ports 1 to {last}"),
                });
                continue;
            }
            match candidate(&device, number, &limits, request, local)? {
                Ok(port) => candidates.push(port),
                Err(reason) => reasons.push(reason),
            }
        }
    }
    let owner = candidates.iter().position(|port| {
        let address = port.gid.map(|entry| entry.gid.address());
        local.is_some() && address == local
    });
    match candidates.into_iter().nth(owner.unwrap_or(0)) {
        Some(port) => Ok(port),
        None => Err(match request.ib_port {
            Some(port) if reasons.is_empty() => VerbsError::NoSuchPort { port, have },
            _ => VerbsError::NoUsablePort { reasons },
        }),
    }
}

/// Returns the port if it is usable, or else the reason.
fn candidate(
    device: &Arc<Context>,
    number: u8,
    limits: &DeviceLimits,
    request: &PortRequest,
    local: Option<IpAddr>,
) -> Result<Result<Port, String>, VerbsError> {
    let info = device.port(number)?;
    let name = format!("{} port {number}", device.name());
    if !info.active {
        return Ok(Err(format!("{name} is {}", info.state)));
    }
    let table = device.gid_table(&info)?;
    let gid = match (request.gid_index, info.link_layer) {
        (Some(index), _) => {
            let entry = table.iter().find(|entry| entry.index == index);
            Some(*entry.ok_or_else(|| VerbsError::NoSuchGid {
                device: device.name().to_owned(),
                port: number,
                index,
                available: table.iter().map(ToString::to_string).collect(),
            })?)
        }
        (None, LinkLayer::Infiniband) => table.first().copied(),
        (None, LinkLayer::Ethernet) => match choose_gid(&table, local) {
            Some(entry) => Some(entry),
            None => return Ok(Err(format!("{name} has no RoCE v2 GID"))),
        },
    };
    Ok(Ok(Port {
        context: Arc::clone(device),
        info,
        gid,
        wants_grh: request.gid_index.is_some(),
        limits: limits.clone(),
        embedded: None,
        extensions: Arc::default(),
    }))
}
