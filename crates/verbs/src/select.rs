//! Which device, port and GID to use, and when the embedded device is used.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use softroce::transport::Wire;
use softroce::verbs::OpenOptions;

use crate::gid::choose_gid;
use crate::{
    Adapter, AdapterPort, Adapters, Context, Faults, GidEntry, GidReason, LinkLayer, Network,
    Operation, PortInfo, Route, VerbsError, VerbsLibrary,
};

/// The user's request; `None` leaves the choice open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortRequest {
    pub device: Option<String>,
    pub ib_port: Option<u8>,
    pub gid_index: Option<u8>,
    /// Index in the port's table of P_Keys; 0 without one.
    pub pkey_index: Option<u16>,
    /// Faults, which only the embedded device can make.
    pub faults: Option<Faults>,
    /// A file for a capture of all packets, which only the embedded device can make.
    pub pcap: Option<PathBuf>,
    /// How packets of the embedded device go to another one of this process.
    pub wire: WireRequest,
}

/// How packets are to go between embedded devices of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireRequest {
    /// Through memory where both ends are in this process.
    #[default]
    Auto,
    /// Through memory; other ends are refused.
    Memory,
    /// By sockets.
    Udp,
    /// As between two processes: by sockets, where a device has a choice.
    BetweenProcesses,
}

/// The port that a session uses.
#[derive(Clone)]
pub struct Port {
    pub context: Arc<Context>,
    /// What that is and can do.
    pub adapter: Arc<Adapter>,
    pub info: PortInfo,
    pub choice: PortChoice,
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
    /// How its packets are to go to devices of this process.
    pub wire: WireRequest,
}

impl Port {
    /// Whether its packets carry the GID, in a GRH or an IP header.
    pub fn has_grh(&self) -> bool {
        self.info.link_layer.has_gid_addresses() || self.wants_grh
    }

    /// Whether this network is that of another port or GID that may be taken in place of this one.
    pub fn may_move_to(&self, network: Network) -> bool {
        self.choice.networks.iter().any(|own| {
            let contains = network.only().is_some_and(|only| own.contains(only));
            *own == network || contains
        }) && !is_in(network, self.gid)
    }

    /// The address from which packets to the other end's RDMA address leave, as a network to move to.
    pub fn toward(&self, other: IpAddr) -> Option<Network> {
        (self.context.library().source)(other).map(Network::alone)
    }

    /// The choice as a line for the user; `None` if there was none.
    pub fn choice_line(&self) -> Option<String> {
        let sentence = Some(self.choice.sentence()).filter(|_| !self.choice.others.is_empty())?;
        let address = match (self.info.link_layer, self.gid) {
            (LinkLayer::Infiniband, _) | (_, None) => String::new(),
            (_, Some(entry)) => format!(" ({})", entry.gid.address()),
        };
        let name = self.context.name();
        Some(format!("{name} port {}{address}: {sentence}", self.info.port))
    }
}

/// Opens the port for a session whose control connection runs along `route`. Of the active ports that fit the request it is the
/// first of the best [`PortReason`].
///
/// # Errors
/// No device, none that fits (with each port's reason), or a failed call.
pub fn select(
    library: &'static VerbsLibrary,
    request: &PortRequest,
    route: Option<Route>,
) -> Result<Port, VerbsError> {
    among(Adapters::open(library, request.device.as_deref())?, request, route)
}

/// As [`select`], among devices that are open already.
pub(super) fn among(
    adapters: Adapters,
    request: &PortRequest,
    route: Option<Route>,
) -> Result<Port, VerbsError> {
    let Adapters { names, opened, refused } = adapters;
    if opened.is_empty() {
        return Err(match (refused.into_iter().next(), &request.device) {
            (Some(refused), _) => refused.error,
            (None, Some(name)) => VerbsError::NoSuchDevice { name: name.clone(), available: names },
            (None, None) => VerbsError::NoDevice,
        });
    }
    let mut candidates = Vec::new();
    let mut have = Vec::new();
    let mut reasons: Vec<_> = refused.iter().map(|it| it.error.to_string()).collect();
    let mut no_gid = None;
    for adapter in &opened {
        let last = adapter.limits.ports;
        if request.ib_port.is_some_and(|port| !(1..=last).contains(&port)) {
            let name = adapter.name();
            have.push(match last {
                1 => format!("{name} has port 1"),
                last => format!("{name} has ports 1 to {last}"),
            });
            continue;
        }
        reasons.extend(adapter.silent.iter().map(ToString::to_string));
        for port in adapter
            .ports
            .iter()
            .filter(|port| request.ib_port.is_none_or(|wanted| wanted == port.info.port))
        {
            match candidate(adapter, port, request, route) {
                Ok(port) => candidates.push(port),
                Err(Unfit::Because(reason)) => reasons.push(reason),
                Err(Unfit::NoSuchGid(error)) => no_gid = no_gid.or(Some(error)),
            }
        }
    }
    if let Some(port) = best(candidates, request) {
        return Ok(port);
    }
    Err(match (no_gid, request.ib_port) {
        (Some(error), _) => error,
        (None, Some(port)) if reasons.is_empty() => VerbsError::NoSuchPort { port, have },
        _ => VerbsError::NoUsablePort { reasons },
    })
}

/// The first of the best reason, with what it was chosen of.
fn best(mut candidates: Vec<Port>, request: &PortRequest) -> Option<Port> {
    // Stable: of one reason they stay in their order.
    candidates.sort_by_key(|port| port.choice.reason);
    let networks: Vec<Network> =
        candidates.iter().flat_map(|port| &port.choice.networks).copied().collect();
    let mut in_order = candidates.into_iter();
    let mut port = in_order.next()?;
    port.choice.others = in_order.map(|other| name_of(&other)).collect();
    // One with the control connection's own address stays.
    if port.choice.reason != PortReason::OwnAddress {
        port.choice.networks = networks;
    }
    if request.device.is_some() && port.choice.others.is_empty() {
        port.choice.reason = PortReason::Requested;
    }
    Some(port)
}

fn name_of(port: &Port) -> String {
    let name = port.context.name();
    match port.adapter.limits.ports {
        1 => name.to_owned(),
        _ => format!("{name} port {}", port.info.port),
    }
}

/// Whether the address of a GID is in this network.
fn is_in(network: Network, gid: Option<GidEntry>) -> bool {
    gid.is_some_and(|entry| entry.is_usable() && network.contains(entry.gid.address()))
}

/// Why this port would be chosen.
fn reason(link_layer: LinkLayer, gid: Option<GidEntry>, route: Option<Route>) -> PortReason {
    let local = route.map(|route| route.local);
    let network = route.and_then(|route| route.network);
    match (gid, network) {
        (Some(entry), _) if Some(entry.gid.address()) == local => PortReason::OwnAddress,
        (gid, Some(network)) if is_in(network, gid) => PortReason::CommonNetwork(network),
        _ if link_layer == LinkLayer::Infiniband => PortReason::Infiniband,
        (Some(entry), _) if !entry.gid.is_link_local() => PortReason::Routable,
        _ => PortReason::LinkLocal,
    }
}

/// The networks of these GIDs, that of the chosen one first.
fn networks(chosen: Option<GidEntry>, gids: &[GidEntry], library: &VerbsLibrary) -> Vec<Network> {
    let prefixes = (library.prefixes)();
    let mut networks = Vec::new();
    for entry in chosen.iter().chain(gids).filter(|it| it.is_usable()) {
        let address = entry.gid.address();
        if entry.gid.is_link_local() || address.is_loopback() {
            continue;
        }
        let prefix = prefixes.iter().find(|(other, _)| *other == address);
        let network = prefix.and_then(|(_, bits)| Network::from_address(address, *bits));
        networks.extend(network.filter(|network| !networks.contains(network)));
    }
    networks
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
    route: Option<Route>,
) -> Result<Port, Unfit> {
    if let Some(transport) = adapter.transport.name() {
        let name = adapter.name();
        let text = format!("{name} has {transport}, but rocebench needs RoCE or InfiniBand");
        return Err(Unfit::Because(text));
    }
    let info = &port.info;
    let name = format!("{} port {}", adapter.name(), info.port);
    if !info.active {
        let waits = match (info.link_layer, info.state) {
            (LinkLayer::Infiniband, "INIT") => ": no subnet manager, such as opensm, has set it up",
            _ => "",
        };
        return Err(Unfit::Because(format!("{name} is {}{waits}", info.state)));
    }
    let pkey_index = request.pkey_index.unwrap_or(0);
    if pkey_index > 0 && pkey_index >= info.pkey_table_length {
        return Err(Unfit::Because(format!(
            "{name} has P_Key indices 0 to {}, not {pkey_index}",
            info.pkey_table_length.saturating_sub(1)
        )));
    }
    let here = adapter.gids_of_this_namespace(port);
    let local = route.map(|route| route.local);
    let network = route.and_then(|route| route.network);
    let (gid, gid_reason) = match (request.gid_index, info.link_layer) {
        (Some(index), _) => {
            let entry = *port.gids.iter().find(|entry| entry.index == index).ok_or_else(|| {
                Unfit::NoSuchGid(VerbsError::NoSuchGid {
                    device: adapter.name().to_owned(),
                    port: info.port,
                    index,
                    available: port.gids.iter().map(ToString::to_string).collect(),
                })
            })?;
            (Some(entry), GidReason::Requested)
        }
        (None, LinkLayer::Infiniband) => (port.gids.first().copied(), GidReason::Infiniband),
        (None, _) => match choose_gid(&here, local, network) {
            Some((entry, reason)) => (Some(entry), reason),
            None if port.gids.iter().any(GidEntry::is_usable) => {
                return Err(Unfit::Because(format!(
                    "{name} has RoCE v2 GIDs only in other network namespaces"
                )));
            }
            None => return Err(Unfit::Because(format!("{name} has no RoCE v2 GID"))),
        },
    };
    let is_fixed = matches!(gid_reason, GidReason::Requested | GidReason::OwnAddress);
    let others = if is_fixed { &[] } else { &here[..] };
    let choice = PortChoice {
        reason: reason(info.link_layer, gid, route),
        gid_reason,
        others: Vec::new(),
        networks: networks(gid, others, adapter.context.library()),
    };
    Ok(Port {
        context: Arc::clone(&adapter.context),
        adapter: Arc::clone(adapter),
        info: info.clone(),
        choice,
        gids: here,
        gid,
        pkey_index,
        wants_grh: request.gid_index.is_some() || info.grh_required,
        embedded: None,
    })
}

// Why a port and its GID were chosen, and of what.

/// Why a port was chosen, best reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortReason {
    /// Its device was asked for.
    Requested,
    /// It has the address of the control connection.
    OwnAddress,
    /// It is in the network in which the nodes have ports; or, if that is an address alone, packets to the other end leave there.
    CommonNetwork(Network),
    /// It is the first of RoCE with a GID that is not link-local.
    Routable,
    /// It is the first of RoCE.
    LinkLocal,
    /// It is the first of InfiniBand.
    Infiniband,
}

impl fmt::Display for PortReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PortReason::Requested => "it was requested",
            PortReason::OwnAddress => "it has the address of the control connection",
            PortReason::CommonNetwork(network) if network.only().is_some() => {
                "the route to the other end's RDMA address uses it"
            }
            PortReason::CommonNetwork(network) => {
                return write!(f, "it is in the nodes' common network {network}");
            }
            PortReason::Routable => {
                "it is the first active port with a RoCE v2 GID that is not link-local"
            }
            PortReason::LinkLocal => "it is the first active port with a RoCE v2 GID",
            PortReason::Infiniband => "it is the first active port, and none is RoCE",
        })
    }
}

/// How a port was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct PortChoice {
    pub reason: PortReason,
    pub gid_reason: GidReason,
    /// The other ports that could have been chosen: the device, and its port where it has several.
    pub others: Vec<String>,
    /// The networks of the RoCE v2 GIDs that may be chosen, that of the chosen one first. An address that no interface of this
    /// namespace has is of an unknown one, and link-local and loopback addresses are of none.
    pub networks: Vec<Network>,
}

/// Names in a sentence; the rest are counted.
const MOST_NAMED: usize = 6;

impl PortChoice {
    /// The reason, and the ports that were not chosen.
    pub fn sentence(&self) -> String {
        let mut text = self.reason.to_string();
        if let [first, rest @ ..] = &self.others[..] {
            text += &format!("; not {first}");
            for name in rest.iter().take(MOST_NAMED - 1) {
                text += &format!(", {name}");
            }
            if self.others.len() > MOST_NAMED {
                text += &format!(" and {} more", self.others.len() - MOST_NAMED);
            }
        }
        text
    }
}

// The embedded device is used if no other can be.

/// A device of the embedded library, listed without opening it.
pub use softroce::verbs::Listing as EmbeddedDevice;

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
                (
                    "--wire",
                    matches!(request.wire, WireRequest::Memory | WireRequest::Udp),
                    "adapters have a way of their own",
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
            Some(device) => {
                check_reaches(&device, route)?;
                open_embedded(&device, request, None)
            }
            None => Err(with_embedded(error, name, &embedded_devices()?)),
        };
    }
    let devices = embedded_devices()?;
    let asks_for_a_port = request.ib_port.is_some() || request.gid_index.is_some();
    match (&error, choose_embedded(&devices, route)) {
        (VerbsError::NoUsablePort { .. }, _) if asks_for_a_port => Err(error),
        (VerbsError::NoDevice | VerbsError::NoUsablePort { .. }, Some(device)) => {
            check_reaches(device, route)?;
            let others = matches!(error, VerbsError::NoUsablePort { .. });
            let mut port = open_embedded(device, request, Some(error.to_string()))?;
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

/// Refuses a device on loopback where the other end is another machine: an address there has that machine for itself.
fn check_reaches(device: &EmbeddedDevice, route: Option<Route>) -> Result<(), VerbsError> {
    let Some(peer) = route.filter(|known| !known.is_within_host()).and_then(|known| known.peer)
    else {
        return Ok(());
    };
    if device.address.is_some_and(|address| !address.is_loopback()) {
        return Ok(());
    }
    let devices = embedded_devices()?;
    let instead = outside(&devices).map(|(other, _)| other.name.clone()).next();
    Err(VerbsError::OnLoopback { device: device.name.clone(), peer, instead })
}

/// The devices that other machines may reach, with their addresses. A link-local address is valid on one interface only,
/// which a device's address does not name.
fn outside(devices: &[EmbeddedDevice]) -> impl Iterator<Item = (&EmbeddedDevice, IpAddr)> {
    devices.iter().filter_map(|device| Some((device, device.address?))).filter(|(_, address)| {
        let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        !address.is_loopback() && !link_local
    })
}

/// The device for a route: that of its address, or else one that probably reaches the other end.
fn choose_embedded(devices: &[EmbeddedDevice], route: Option<Route>) -> Option<&EmbeddedDevice> {
    let Some(local) = route.filter(|known| !known.is_within_host()).map(|known| known.local) else {
        return devices.first();
    };
    outside(devices)
        .find(|(_, address)| *address == local)
        .or_else(|| outside(devices).find(|(_, address)| address.is_ipv4() == local.is_ipv4()))
        .or_else(|| outside(devices).next())
        .map_or_else(|| devices.first(), |(device, _)| Some(device))
}

fn open_embedded(
    device: &EmbeddedDevice,
    request: &PortRequest,
    because: Option<String>,
) -> Result<Port, VerbsError> {
    let library = VerbsLibrary::embedded();
    let options = OpenOptions {
        faults: request.faults.unwrap_or_default(),
        capture: request.pcap.clone(),
        wire: match request.wire {
            WireRequest::Auto | WireRequest::Memory => Wire::Memory,
            WireRequest::Udp | WireRequest::BetweenProcesses => Wire::Udp,
        },
    };
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
    let context = Context::from_opened(library, raw, device.name.clone());
    let mut port = among(Adapters::alone(context)?, request, None)?;
    port.embedded = Some(Embedded {
        because,
        is_in_place_of_others: false,
        faults: request.faults,
        pcap: request.pcap.clone(),
        wire: request.wire,
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
        choose_embedded(&devices, Some(route)).unwrap().name.clone()
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
        assert_eq!(choose_embedded(&devices(&MACHINE), None).unwrap().name, "soft0");
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
    fn another_machine_is_not_offered_a_device_on_loopback() {
        for (addresses, number, peer, is_refused) in [
            (&["", "192.0.2.2"][..], 0, "192.0.2.9", true),
            (&["127.0.0.9"], 0, "192.0.2.9", true),
            (&["", "192.0.2.2"], 1, "192.0.2.9", false),
            (&["", "192.0.2.2"], 0, "192.0.2.2", false),
        ] {
            let route = Route::between("192.0.2.2".parse().unwrap(), peer.parse().unwrap());
            let refused = check_reaches(&devices(addresses)[number], Some(route)).err();
            assert_eq!(refused.is_some(), is_refused, "{addresses:?} {peer}: {refused:?}");
        }
        // Of link-local addresses none is taken, and what is left reaches nobody else.
        let of_link = Route::between("fe80::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let left = devices(&["", "fe80::1"]);
        let taken = choose_embedded(&left, Some(of_link)).unwrap();
        let refused = check_reaches(taken, Some(of_link)).unwrap_err();
        assert_eq!(refused.to_string(), "soft0 is on loopback, and fe80::2 is another machine");
        assert!(refused.is_bad_input() && refused.hint().is_some());
        // From anywhere somebody of this machine may come.
        assert!(check_reaches(taken, Some(Route::to(of_link.local))).is_ok());
    }

    #[test]
    fn an_address_without_a_device_gets_one_that_may_reach_the_peer() {
        assert_eq!(chosen(&MACHINE, "203.0.113.1", "203.0.113.2"), "soft1");
        assert_eq!(chosen(&MACHINE, "fe80::1", "fe80::2"), "soft3");
        assert_eq!(chosen(&MACHINE[..2], "fd00::2", "fd00::9"), "soft1");
        assert_eq!(chosen(&MACHINE[..1], "192.0.2.2", "192.0.2.9"), "soft0");
    }
}
