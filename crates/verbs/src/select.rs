//! Which device, port and GID to use.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::adapter::{Adapter, AdapterPort, Adapters};
use super::device::{Context, PortInfo};
use super::gid::{GidEntry, choose_gid};
use super::link_layer::LinkLayer;
use super::{Faults, VerbsError, VerbsLibrary};

/// The user's request; `None` leaves the choice open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortRequest {
    /// Device name.
    pub device: Option<String>,
    /// Port number.
    pub ib_port: Option<u8>,
    /// GID index.
    pub gid_index: Option<u8>,
    /// Index in the port's table of P_Keys; 0 without one.
    pub pkey_index: Option<u16>,
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
    /// What that is and can do.
    pub adapter: Arc<Adapter>,
    /// Its attributes.
    pub info: PortInfo,
    /// The GIDs to choose from.
    pub gids: Vec<GidEntry>,
    /// The GID: always set on RoCE; on InfiniBand the port's first or the requested one.
    pub gid: Option<GidEntry>,
    /// Index of the P_Key that its QPs have.
    pub pkey_index: u16,
    /// Whether InfiniBand packets carry a GRH, because a GID index was requested or the port needs one.
    pub wants_grh: bool,
    /// Set if it is the embedded device.
    pub embedded: Option<Embedded>,
}

/// Facts of a port of the embedded device.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// Why no other device was chosen; `None` if this one was requested.
    pub because: Option<String>,
    /// Whether there are others, none of which can be used.
    pub is_in_place_of_others: bool,
    /// The faults that it makes.
    pub faults: Option<Faults>,
    /// The file that its packets are captured in, without the address that is added to the name.
    pub pcap: Option<PathBuf>,
}

/// Opens the port for a session whose control connection has the address `local` at this end. Of the active ports that
/// fit the request it is the first that has that address, or else the first of RoCE with a GID that is not link-local, or else
/// the first of RoCE, or else the first.
///
/// # Errors
/// No device, none that fits (with each port's reason), or a failed call.
pub fn select(
    library: &'static VerbsLibrary,
    request: &PortRequest,
    local: Option<IpAddr>,
) -> Result<Port, VerbsError> {
    among(
        Adapters::open(library, request.device.as_deref())?,
        request,
        local,
    )
}

/// As [`select`], among these.
pub(super) fn among(
    adapters: Adapters,
    request: &PortRequest,
    local: Option<IpAddr>,
) -> Result<Port, VerbsError> {
    let Adapters {
        names,
        opened,
        refused,
    } = adapters;
    if opened.is_empty() {
        return Err(match (refused.into_iter().next(), &request.device) {
            (Some(refused), _) => refused.error,
            (None, Some(name)) => VerbsError::NoSuchDevice {
                name: name.clone(),
                available: names,
            },
            (None, None) => VerbsError::NoDevice,
        });
    }
    let local = local.map(|address| address.to_canonical());
    let mut candidates = Vec::new();
    let mut have = Vec::new();
    let mut reasons: Vec<_> = refused.iter().map(|it| it.error.to_string()).collect();
    let mut no_gid = None;
    for adapter in &opened {
        let last = adapter.limits.ports;
        if request
            .ib_port
            .is_some_and(|port| !(1..=last).contains(&port))
        {
            let name = adapter.name();
            have.push(match last {
                1 => format!("{name} has port 1"),
                last => format!("{name} has ports 1 to {last}"),
            });
            continue;
        }
        reasons.extend(adapter.silent.iter().map(ToString::to_string));
        let is_wanted = |port: &&AdapterPort| {
            request
                .ib_port
                .is_none_or(|wanted| wanted == port.info.port)
        };
        for port in adapter.ports.iter().filter(is_wanted) {
            match candidate(adapter, port, request, local) {
                Ok(port) => candidates.push(port),
                Err(Unfit::Because(reason)) => reasons.push(reason),
                Err(Unfit::NoSuchGid(error)) => no_gid = no_gid.or(Some(error)),
            }
        }
    }
    let has_address = |port: &Port| {
        let address = port.gid.map(|entry| entry.gid.address());
        local.is_some() && address == local
    };
    let is_roce = |port: &Port| port.info.link_layer == LinkLayer::Ethernet;
    let is_routable =
        |port: &Port| is_roce(port) && port.gid.is_some_and(|entry| !entry.gid.is_link_local());
    let first = |fits: &dyn Fn(&Port) -> bool| candidates.iter().position(fits);
    let best = first(&has_address)
        .or_else(|| first(&is_routable))
        .or_else(|| first(&is_roce));
    if let Some(port) = candidates.into_iter().nth(best.unwrap_or(0)) {
        return Ok(port);
    }
    Err(match (no_gid, request.ib_port) {
        (Some(error), _) => error,
        (None, Some(port)) if reasons.is_empty() => VerbsError::NoSuchPort { port, have },
        _ => VerbsError::NoUsablePort { reasons },
    })
}

/// Why a port does not fit.
enum Unfit {
    Because(String),
    /// It has no GID of the index that was asked for.
    NoSuchGid(VerbsError),
}

/// The port, if it is usable.
fn candidate(
    adapter: &Arc<Adapter>,
    port: &AdapterPort,
    request: &PortRequest,
    local: Option<IpAddr>,
) -> Result<Port, Unfit> {
    let because = |text: String| Err(Unfit::Because(text));
    if let Some(transport) = adapter.transport.name() {
        let name = adapter.name();
        return because(format!(
            "{name} has {transport}, and only RoCE and InfiniBand can be used"
        ));
    }
    let info = &port.info;
    let name = format!("{} port {}", adapter.name(), info.port);
    if !info.active {
        let waits = match (info.link_layer, info.state) {
            (LinkLayer::Infiniband, "INIT") => ": no subnet manager, such as opensm, has set it up",
            _ => "",
        };
        return because(format!("{name} is {}{waits}", info.state));
    }
    let pkey_index = request.pkey_index.unwrap_or(0);
    if pkey_index > 0 && pkey_index >= info.pkey_table_length {
        return because(format!(
            "{name} has P_Key indices 0 to {}, and not {pkey_index}",
            info.pkey_table_length.saturating_sub(1)
        ));
    }
    let here = adapter.gids_of_this_namespace(port);
    let gid = match (request.gid_index, info.link_layer) {
        (Some(index), _) => {
            let entry = port.gids.iter().find(|entry| entry.index == index);
            Some(*entry.ok_or_else(|| {
                Unfit::NoSuchGid(VerbsError::NoSuchGid {
                    device: adapter.name().to_owned(),
                    port: info.port,
                    index,
                    available: port.gids.iter().map(ToString::to_string).collect(),
                })
            })?)
        }
        (None, LinkLayer::Infiniband) => port.gids.first().copied(),
        (None, LinkLayer::Ethernet) => {
            match (choose_gid(&here, local), choose_gid(&port.gids, local)) {
                (Some(entry), _) => Some(entry),
                (None, Some(_)) => {
                    return because(format!(
                        "{name} has RoCE v2 GIDs of other network namespaces alone"
                    ));
                }
                (None, None) => return because(format!("{name} has no RoCE v2 GID")),
            }
        }
    };
    Ok(Port {
        context: Arc::clone(&adapter.context),
        adapter: Arc::clone(adapter),
        info: info.clone(),
        gids: here,
        gid,
        pkey_index,
        wants_grh: request.gid_index.is_some() || info.grh_required,
        embedded: None,
    })
}
