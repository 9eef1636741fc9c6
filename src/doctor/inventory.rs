//! Lists all devices, ports and GIDs of this machine, from sysfs and verbs together: sysfs needs no permission and
//! names interfaces; only verbs knows path MTUs and the embedded devices.

use std::net::IpAddr;

use machine::device;
use machine::surroundings::{Bond, other_function};
use protocol::failure::RunFailure;
use results::model::Host;
use serde::Serialize;
use verbs::{
    Adapter, AdapterPort, Adapters, Driver, Gid, GidEntry, GidReason, GidType, KernelLink, Port,
    PortLimits, PortRequest, Refused, Route, VerbsError, VerbsLibrary, embedded_devices,
    kernel_driver, select_or_embedded,
};

use super::machine::Machine;

/// Version of the documents that `--json` prints.
pub const SCHEMA_VERSION: u32 = 1;

/// All devices of a machine, and the one that would be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Inventory {
    pub schema_version: u32,
    pub host: Host,
    /// The system's devices, then the embedded ones.
    pub devices: Vec<DeviceEntry>,
    /// Why libibverbs lists or opens no device; `null` if it does.
    pub verbs_error: Option<String>,
    /// The port and GID that rocebench would use; `null` if none.
    pub choice: Option<Choice>,
    pub no_choice: Option<NoChoice>,
}

/// Why no port can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NoChoice {
    pub because: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl From<VerbsError> for NoChoice {
    fn from(error: VerbsError) -> NoChoice {
        let failure = RunFailure::from_verbs(&error);
        NoChoice { because: failure.message, remedy: failure.hint }
    }
}

impl Inventory {
    /// Reads all devices, and chooses one as a sweep with this request and route would.
    ///
    /// # Errors
    /// The request names a device, port or GID that does not exist.
    pub fn read(
        machine: &Machine,
        library: &'static VerbsLibrary,
        request: &PortRequest,
        route: Route,
    ) -> Result<Inventory, VerbsError> {
        let (adapters, verbs_error) = match Adapters::open(library, None) {
            Ok(adapters) => (adapters, None),
            Err(error) => (Adapters::default(), Some(error)),
        };
        let opened = adapters.opened.iter().map(|adapter| entry_from_adapter(adapter)).collect();
        let mut devices = merged(kernel_devices(machine), opened, |device| {
            let refused = adapters.refused.iter().find(|it| it.name == device.name);
            let error = refused.map(|it| &it.error).or(verbs_error.as_ref());
            why_shut(machine, device, error)
        });
        for device in &mut devices {
            device.is_unlisted = !adapters.names.contains(&device.name);
        }
        for Refused { name, error } in &adapters.refused {
            if !devices.iter().any(|device| device.name == *name) {
                devices.push(DeviceEntry {
                    name: name.clone(),
                    library: library.name.to_owned(),
                    note: Some(format!("not opened: {error}")),
                    ..DeviceEntry::default()
                });
            }
        }
        let embedded = embedded_devices().unwrap_or_default();
        devices.extend(embedded.into_iter().map(|listed| DeviceEntry {
            name: listed.name,
            library: EMBEDDED.to_owned(),
            software: true,
            driver: Some("softroce".to_owned()),
            address: listed.address,
            ..DeviceEntry::default()
        }));
        let mut inventory = Inventory {
            schema_version: SCHEMA_VERSION,
            host: machine::host::read_below(&machine.path("")),
            devices,
            verbs_error: verbs_error.map(|error| error.to_string()),
            ..Inventory::default()
        };
        match select_or_embedded(library, request, Some(route)) {
            Ok(port) => {
                inventory.fill_embedded(machine, &port);
                inventory.choice = Some(Choice::new(&port));
            }
            Err(
                error @ (VerbsError::NoSuchDevice { .. }
                | VerbsError::NoSuchGid { .. }
                | VerbsError::OnlyOnEmbeddedDevice { .. }),
            ) => return Err(error),
            Err(error) => inventory.no_choice = Some(error.into()),
        }
        Ok(inventory)
    }

    /// Removes all devices but the one of this name; returns whether that is an embedded one.
    pub fn keep_only(&mut self, name: &str) -> bool {
        self.devices.retain(|device| device.name == name);
        self.devices.iter().any(DeviceEntry::is_embedded)
    }

    pub fn system(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.devices.iter().filter(|device| !device.is_embedded())
    }

    /// The system's devices' ports, each with its device.
    pub fn system_ports(&self) -> impl Iterator<Item = (&DeviceEntry, &PortEntry)> {
        self.system().flat_map(|device| device.ports.iter().map(move |port| (device, port)))
    }

    /// Adds the facts of an embedded device that are known only while it is open.
    fn fill_embedded(&mut self, machine: &Machine, port: &Port) {
        if port.embedded.is_none() {
            return;
        }
        let name = port.context.name();
        let Some(device) =
            self.devices.iter_mut().find(|device| device.is_embedded() && device.name == name)
        else {
            return;
        };
        let opened = entry_from_adapter(&port.adapter);
        device.firmware = opened.firmware;
        device.ports = opened.ports;
        let netdev = match device.address {
            Some(address) => interface_of(machine, address),
            None => Some("lo".to_owned()),
        };
        for own in &mut device.ports {
            // It has no link with a meaningful speed.
            (own.link_gbit_per_s, own.width_lanes) = (None, None);
            if let Some(netdev) = &netdev {
                fill_netdev(machine, own, netdev.clone());
            }
        }
    }
}

/// The facts of an open device.
fn entry_from_adapter(adapter: &Adapter) -> DeviceEntry {
    let firmware = &adapter.limits.firmware;
    DeviceEntry {
        name: adapter.name().to_owned(),
        library: adapter.context.library().name.to_owned(),
        transport: adapter.transport.name(),
        firmware: Some(firmware.clone()).filter(|text| !text.is_empty()),
        note: adapter.silent.first().map(ToString::to_string),
        ports: adapter.ports.iter().map(entry_from_port).collect(),
        ..DeviceEntry::default()
    }
}

fn entry_from_port(AdapterPort { info, gids }: &AdapterPort) -> PortEntry {
    PortEntry {
        port: info.port,
        state: Some(info.state.to_owned()),
        link_layer: Some(info.link_layer.name().to_owned()),
        link_gbit_per_s: info.link_gbit_per_s,
        width_lanes: info.lanes,
        active_mtu_bytes: Some(info.active_mtu_bytes).filter(|bytes| *bytes > 0),
        max_mtu_bytes: Some(info.max_mtu_bytes).filter(|bytes| *bytes > 0),
        gids: gids.iter().map(|entry| GidRow::from_entry(entry, None)).collect(),
        ..PortEntry::default()
    }
}

/// Why libibverbs does not open a device. Its error is ENOENT both for a missing node and for missing permission, and
/// with several devices belongs to only one of them.
fn why_shut(machine: &Machine, device: &DeviceEntry, error: Option<&VerbsError>) -> String {
    let Some(node) = &device.uverbs else {
        return "not opened: the kernel has no uverbs for it (sudo modprobe ib_uverbs)".to_owned();
    };
    let path = format!("dev/infiniband/{node}");
    if !machine.has(&path) {
        return format!("not opened: /{path} is not there");
    }
    if !machine.may_use(&path) {
        return format!("not opened: this user has no permission to read and write /{path}");
    }
    match error {
        Some(error) => format!("not opened: {error}"),
        None => "not opened by libibverbs".to_owned(),
    }
}

/// Merges sysfs' devices with the facts of verbs; the devices that only verbs has come last.
fn merged(
    mut known: Vec<DeviceEntry>,
    opened: Vec<DeviceEntry>,
    why_shut: impl Fn(&DeviceEntry) -> String,
) -> Vec<DeviceEntry> {
    for device in &mut known {
        if !opened.iter().any(|other| other.name == device.name) {
            device.note = Some(why_shut(device));
        }
    }
    for other in opened {
        let Some(device) = known.iter_mut().find(|device| device.name == other.name) else {
            known.push(other);
            continue;
        };
        device.note = other.note;
        device.firmware = device.firmware.take().or(other.firmware);
        device.transport = other.transport;
        for port in other.ports {
            match device.ports.iter_mut().find(|own| own.port == port.port) {
                Some(own) => {
                    own.active_mtu_bytes = port.active_mtu_bytes;
                    own.max_mtu_bytes = port.max_mtu_bytes;
                    own.state = own.state.take().or(port.state);
                    own.link_gbit_per_s = port.link_gbit_per_s.or(own.link_gbit_per_s);
                    own.width_lanes = own.width_lanes.or(port.width_lanes);
                    if let Some(transport) = other.transport {
                        own.link_layer = Some(transport.to_owned());
                        own.gids.clear();
                    }
                    if own.gids.is_empty() {
                        own.gids = port.gids;
                    }
                }
                None => device.ports.push(port),
            }
        }
    }
    known
}

/// The port and GID that rocebench would use, and why; `verbs` makes the choice, and has the reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Choice {
    pub device: String,
    /// Library of the device: `libibverbs` or `embedded`.
    pub library: String,
    pub port: u8,
    /// It is the embedded device, and there are others, none of which can be used.
    pub is_in_place_of_another: bool,
    /// Index of the GID; `null` on InfiniBand without one.
    pub gid_index: Option<u32>,
    /// Why this device and port, and which others could have been chosen.
    pub device_because: String,
    pub gid_because: String,
    /// The services of which the device makes no QP, each with what it answered.
    pub lacks: Vec<String>,
    /// It has UC QPs, and no RC ones.
    #[serde(skip)]
    pub needs_uc: bool,
    /// The extended verbs that the device has; empty if it has none.
    pub extended_verbs: Vec<&'static str>,
}

impl Choice {
    pub fn new(port: &Port) -> Choice {
        let because = port.embedded.as_ref().and_then(|it| it.because.as_ref());
        let device_because = match because {
            Some(because) => format!("{because}, so the embedded device is used"),
            None => port.choice.sentence(),
        };
        let gid_because = match port.choice.gid_reason {
            GidReason::Infiniband if port.info.grh_required => {
                "it is the first, and the port requires one".to_owned()
            }
            reason @ (GidReason::Requested | GidReason::Infiniband) => reason.to_string(),
            _ if port.gids.len() == 1 => "it is the only one".to_owned(),
            reason => reason.to_string(),
        };
        let services_lacking = PortLimits::new(&port.adapter, &port.info).lacks_services;
        Choice {
            device: port.context.name().to_owned(),
            library: port.context.library().name.to_owned(),
            port: port.info.port,
            is_in_place_of_another: port
                .embedded
                .as_ref()
                .is_some_and(|it| it.is_in_place_of_others),
            gid_index: port.gid.map(|entry| entry.index.into()),
            device_because,
            gid_because,
            lacks: lacks(port),
            needs_uc: services_lacking.rc && !services_lacking.uc,
            extended_verbs: extended_verbs(port),
        }
    }

    /// Whether it is this GID of this port of this device.
    pub fn is(&self, device: &str, port: u8, gid_index: u32) -> bool {
        self.device == device && self.port == port && self.gid_index == Some(gid_index)
    }
}

fn lacks(port: &Port) -> Vec<String> {
    port.adapter
        .refused_services()
        .iter()
        .map(|(service, error)| {
            let answer = match error {
                VerbsError::Call { source, .. } => source.to_string(),
                other => other.to_string(),
            };
            let words = answer.split(" (os error").next();
            format!("no {}: {}", service.name(), words.unwrap_or(&answer))
        })
        .collect()
}

fn extended_verbs(port: &Port) -> Vec<&'static str> {
    let has = port.adapter.extensions();
    let extensions = [
        (has.extended_post, "extended posting"),
        (has.extended_poll, "extended polling"),
        (has.thread_domains, "thread domains"),
        (has.stamps, "time stamps of completions"),
    ];
    extensions.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect()
}

/// Library name of the embedded devices.
pub const EMBEDDED: &str = "embedded";

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceEntry {
    pub name: String,
    /// `libibverbs`, or [`EMBEDDED`] for a device of this program.
    pub library: String,
    /// Whether it is without hardware.
    pub software: bool,
    /// Name of its driver in the kernel, or `softroce`.
    pub driver: Option<String>,
    /// What its packets are, where they are not InfiniBand's: `iWARP`, `SRD (EFA)` …
    pub transport: Option<&'static str>,
    pub firmware: Option<String>,
    pub node_guid: Option<String>,
    pub pci_address: Option<String>,
    /// Speed of a PCI lane, in 10^9 transfers a second.
    pub pci_gtransfer_per_s: Option<f64>,
    pub pci_width_lanes: Option<u32>,
    /// The highest speed of a PCI lane of the device, in 10^9 transfers a second.
    pub pci_max_gtransfer_per_s: Option<f64>,
    /// PCI lanes that the device has.
    pub pci_max_width_lanes: Option<u32>,
    pub numa_node: Option<u32>,
    /// Its character device in `/dev/infiniband`, such as `uverbs0`.
    pub uverbs: Option<String>,
    /// Address of an embedded device; `null` takes a free one of 127.0.0.0/8 at opening.
    pub address: Option<IpAddr>,
    /// Why some facts are missing.
    pub note: Option<String>,
    /// The kernel has it, but libibverbs does not list it.
    #[serde(skip)]
    pub is_unlisted: bool,
    /// Its ports; empty for an embedded device that was not opened.
    pub ports: Vec<PortEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortEntry {
    /// Number of the port, from 1.
    pub port: u8,
    /// State as verbs names it: `ACTIVE`, `DOWN` …
    pub state: Option<String>,
    /// State of the link below it: `LinkUp`, `Disabled`, `Polling` …
    pub physical_state: Option<String>,
    /// What it is a port of: `Ethernet` or `InfiniBand`.
    pub link_layer: Option<String>,
    pub link_gbit_per_s: Option<f64>,
    pub width_lanes: Option<u32>,
    /// Path MTU in use; `null` when the device could not be opened.
    pub active_mtu_bytes: Option<u32>,
    pub max_mtu_bytes: Option<u32>,
    pub netdev: Option<String>,
    pub netdev_mtu_bytes: Option<u32>,
    /// `up`, `down` … of that interface.
    pub netdev_state: Option<String>,
    /// Another device at the same connector of the same card, with PCIe lanes of its own.
    pub other_function: Option<String>,
    /// The bond that its interface is.
    pub bond: Option<Bond>,
    /// The filled entries of its GID table.
    pub gids: Vec<GidRow>,
}

/// An entry of a GID table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GidRow {
    pub index: u32,
    /// The GID, written like an IPv6 address.
    pub gid: String,
    /// `RoCE v1`, `RoCE v2` or `IB`.
    pub gid_type: String,
    /// Address family of the GID: `IPv4`, `IPv6` or `link-local`.
    pub family: String,
    /// Network interface of the address.
    pub netdev: Option<String>,
}

/// The address family of a GID.
pub(super) fn family(gid: &Gid) -> &'static str {
    if gid.is_link_local() {
        "link-local"
    } else if gid.address().is_ipv4() {
        "IPv4"
    } else {
        "IPv6"
    }
}

impl GidRow {
    /// The row of an entry.
    pub fn from_entry(entry: &GidEntry, netdev: Option<String>) -> GidRow {
        GidRow {
            index: entry.index.into(),
            gid: entry.gid.to_string(),
            gid_type: entry.gid_type.name().to_owned(),
            family: family(&entry.gid).to_owned(),
            netdev,
        }
    }

    /// The entry in the form of verbs.
    pub fn entry(&self) -> Option<GidEntry> {
        let types = [GidType::RoceV1, GidType::RoceV2, GidType::Infiniband];
        Some(GidEntry {
            index: u8::try_from(self.index).ok()?,
            gid: Gid::parse(&self.gid)?,
            gid_type: types.into_iter().find(|found| found.name() == self.gid_type)?,
            interface: None,
        })
    }
}

impl PortEntry {
    pub fn is_active(&self) -> bool {
        self.state.as_deref() == Some("ACTIVE")
    }

    /// Whether its link layer is Ethernet.
    pub fn is_ethernet(&self) -> bool {
        self.link_layer.as_deref() == Some("Ethernet")
    }

    /// The table in the form of verbs.
    pub fn table(&self) -> Vec<GidEntry> {
        self.gids.iter().filter_map(GidRow::entry).collect()
    }
}

impl DeviceEntry {
    /// Whether it is a device of this program.
    pub fn is_embedded(&self) -> bool {
        self.library == EMBEDDED
    }
}

const CLASS: &str = "sys/class/infiniband";

/// All devices of the kernel.
pub(super) fn kernel_devices(machine: &Machine) -> Vec<DeviceEntry> {
    let names = machine.list(CLASS);
    names.iter().map(|name| kernel_device(machine, name)).collect()
}

fn kernel_device(machine: &Machine, name: &str) -> DeviceEntry {
    let folder = format!("{CLASS}/{name}");
    let facts = device::read(machine.root(), name, 1, None);
    let driver = kernel_driver(machine.root(), name);
    let known = driver.as_deref().and_then(Driver::from_name);
    let ports = machine.list(format!("{folder}/ports"));
    let max_speed = machine.text(format!("{folder}/device/max_link_speed"));
    DeviceEntry {
        transport: None,
        name: name.to_owned(),
        library: "libibverbs".to_owned(),
        software: known.is_some_and(Driver::is_software),
        driver,
        firmware: facts.firmware,
        node_guid: machine.text(format!("{folder}/node_guid")),
        pci_address: facts.pci_address,
        pci_gtransfer_per_s: facts.pci_gtransfer_per_s,
        pci_width_lanes: facts.pci_width_lanes,
        pci_max_gtransfer_per_s: max_speed
            .and_then(|text| text.split_whitespace().next()?.parse().ok()),
        pci_max_width_lanes: machine.number(format!("{folder}/device/max_link_width")),
        numa_node: facts.numa_node,
        uverbs: uverbs(machine, name),
        is_unlisted: false,
        address: None,
        note: None,
        ports: ports
            .iter()
            .filter_map(|number| Some(kernel_port(machine, name, number.parse().ok()?)))
            .collect(),
    }
}

/// The character device of an RDMA device.
fn uverbs(machine: &Machine, name: &str) -> Option<String> {
    let class = "sys/class/infiniband_verbs";
    let nodes = machine.list(class);
    nodes
        .into_iter()
        .find(|node| machine.text(format!("{class}/{node}/ibdev")).as_deref() == Some(name))
}

fn kernel_port(machine: &Machine, name: &str, number: u8) -> PortEntry {
    let facts = device::read(machine.root(), name, number, None);
    let folder = format!("{CLASS}/{name}/ports/{number}");
    let physical = machine.text(format!("{folder}/phys_state"));
    let link = KernelLink::read(machine.root(), name, number);
    let is_ethernet = facts.link_layer.as_deref() == Some("Ethernet");
    let mut port = PortEntry {
        port: number,
        state: facts.state,
        physical_state: physical.map(|text| after_number(&text).to_owned()),
        link_layer: facts.link_layer,
        link_gbit_per_s: link.gbit_per_s,
        width_lanes: link.lanes,
        other_function: other_function(machine.root(), name, number),
        bond: Bond::read(machine.root(), name, number),
        gids: kernel_gids(machine, &folder, is_ethernet),
        ..PortEntry::default()
    };
    let of_gids = port.gids.iter().find_map(|gid| gid.netdev.clone());
    let netdev = of_gids.or_else(|| machine.text(format!("{CLASS}/{name}/parent"))).or_else(|| {
        // With several interfaces on one card, it could be any of them.
        match machine.list(format!("{CLASS}/{name}/device/net")).as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    });
    if let Some(netdev) = netdev {
        fill_netdev(machine, &mut port, netdev);
    }
    port
}

/// Adds the facts of a port's network interface.
fn fill_netdev(machine: &Machine, port: &mut PortEntry, netdev: String) {
    let folder = format!("sys/class/net/{netdev}");
    port.netdev_mtu_bytes = machine.number(format!("{folder}/mtu"));
    port.netdev_state = machine.text(format!("{folder}/operstate"));
    for gid in &mut port.gids {
        gid.netdev.get_or_insert_with(|| netdev.clone());
    }
    port.netdev = Some(netdev);
}

fn kernel_gids(machine: &Machine, folder: &str, is_ethernet: bool) -> Vec<GidRow> {
    let indices = machine.list(format!("{folder}/gids"));
    indices
        .iter()
        .filter_map(|index| {
            let gid = Gid::parse(&machine.text(format!("{folder}/gids/{index}"))?)?;
            if gid.is_zero() {
                return None;
            }
            let gid_type =
                match machine.text(format!("{folder}/gid_attrs/types/{index}")).as_deref() {
                    Some("RoCE v2") => GidType::RoceV2,
                    _ if is_ethernet => GidType::RoceV1,
                    _ => GidType::Infiniband,
                };
            let entry = GidEntry { index: index.parse().ok()?, gid, gid_type, interface: None };
            let netdev = machine.text(format!("{folder}/gid_attrs/ndevs/{index}"));
            Some(GidRow::from_entry(&entry, netdev))
        })
        .collect()
}

/// The word after a number: `ACTIVE` of `4: ACTIVE`.
fn after_number(text: &str) -> &str {
    text.split_once(": ").map_or(text, |(_, word)| word)
}

/// The interface that has an address, from the output of `ip -o address`.
fn interface_of(machine: &Machine, address: IpAddr) -> Option<String> {
    interface_in(&machine.tool("ip", &["-o", "address"])?, address)
}

fn interface_in(listed: &str, address: IpAddr) -> Option<String> {
    listed.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (interface, _family, own_address) = (words.next()?, words.next()?, words.next()?);
        let own: IpAddr = own_address.split('/').next()?.parse().ok()?;
        (own == address).then(|| interface.to_owned())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::Ipv6Addr;

    use super::super::machine::made_up::Tree;
    use super::*;

    fn device(name: &str, port: PortEntry) -> DeviceEntry {
        DeviceEntry {
            name: name.into(),
            library: "libibverbs".into(),
            ports: vec![port],
            ..DeviceEntry::default()
        }
    }

    #[test]
    fn verbs_adds_mtus_and_devices() {
        let known = PortEntry {
            port: 1,
            state: Some("ACTIVE".into()),
            netdev: Some("v0".into()),
            ..PortEntry::default()
        };
        let known = device("rxe0", known);
        let opened = PortEntry {
            port: 1,
            active_mtu_bytes: Some(1024),
            max_mtu_bytes: Some(4096),
            ..PortEntry::default()
        };
        let others = vec![device("rxe0", opened.clone()), device("other", opened)];
        let devices = merged(vec![known.clone()], others, |_| "shut".into());
        assert_eq!(devices.len(), 2);
        let port = &devices[0].ports[0];
        let both = (port.active_mtu_bytes, port.netdev.as_deref());
        assert_eq!(both, (Some(1024), Some("v0")));
        assert_eq!(devices[0].note, None);
        let shut = merged(vec![known], Vec::new(), |device: &DeviceEntry| {
            format!("{} is shut", device.name)
        });
        assert_eq!(shut[0].note.as_deref(), Some("rxe0 is shut"));
    }

    #[test]
    fn a_device_that_is_shut_says_why() {
        let tree = tree();
        let card = kernel_devices(&tree.machine).remove(0);
        let why = |device: &DeviceEntry| why_shut(&tree.machine, device, None);
        assert!(why(&card).ends_with("/dev/infiniband/uverbs0 is not there"));
        tree.add("dev/infiniband", &[("uverbs0", "")]);
        assert_eq!(why(&card), "not opened by libibverbs");
        let bare = DeviceEntry { uverbs: None, ..card };
        assert!(why(&bare).contains("modprobe ib_uverbs"));
    }

    #[test]
    fn rows_keep_their_entry() {
        let entry = GidEntry {
            index: 3,
            gid: Gid::parse("::ffff:192.0.2.1").unwrap(),
            gid_type: GidType::RoceV2,
            interface: None,
        };
        let row = GidRow::from_entry(&entry, Some("eth0".into()));
        let words = (&*row.family, &*row.gid_type);
        assert_eq!(words, ("IPv4", "RoCE v2"));
        assert_eq!(row.entry(), Some(entry));
    }

    /// A 100 GbE card, a second port that is down, and Soft-RoCE.
    pub(crate) fn tree() -> Tree {
        let pci = "sys/devices/pci0000:3a/0000:3b:00.0";
        let card = "sys/class/infiniband/mlx5_0";
        let tree = Tree::new(&[
            ("sys/class/net/eth2/mtu", "4200\n"),
            ("sys/class/net/eth2/operstate", "up\n"),
            ("sys/class/infiniband_verbs/abi_version", "6\n"),
            ("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n"),
            ("sys/class/infiniband_verbs/uverbs1/ibdev", "rxe0\n"),
        ]);
        let link = [
            ("numa_node", "1\n"),
            ("current_link_speed", "8.0 GT/s PCIe\n"),
            ("current_link_width", "8\n"),
            ("max_link_speed", "16.0 GT/s PCIe\n"),
            ("max_link_width", "16\n"),
        ];
        tree.add(pci, &link);
        tree.link(&format!("{card}/device"), pci);
        tree.link(&format!("{pci}/driver"), "sys/bus/pci/drivers/mlx5_core");
        let adapter = [
            ("fw_ver", "22.31.1014\n"),
            ("node_guid", "0c42:a103:0065:1f3e\n"),
            ("ports/1/state", "4: ACTIVE\n"),
            ("ports/1/phys_state", "5: LinkUp\n"),
            ("ports/1/link_layer", "Ethernet\n"),
            ("ports/1/rate", "100 Gb/sec (4X EDR)\n"),
        ];
        tree.add(card, &adapter);
        let (local, ipv4) = ("fe80::e42:a1ff:fe65:1f3e", "::ffff:192.168.1.2");
        for (index, text) in [local, local, ipv4, ipv4].into_iter().enumerate() {
            let gid: Ipv6Addr = text.parse().unwrap();
            let words = gid.segments().map(|word| format!("{word:04x}")).join(":");
            let version = ["IB/RoCE v1\n", "RoCE v2\n"][index % 2];
            let port = format!("{card}/ports/1");
            tree.add(&port, &[(&format!("gids/{index}"), &words)]);
            let attributes = [("types", version), ("ndevs", "eth2\n")];
            for (attribute, value) in attributes {
                tree.add(&port, &[(&format!("gid_attrs/{attribute}/{index}"), value)]);
            }
        }
        let no_gid = "0000:0000:0000:0000:0000:0000:0000:0000\n";
        tree.add(card, &[("ports/1/gids/4", no_gid)]);
        let soft = [
            ("parent", "v0\n"),
            ("ports/1/state", "1: DOWN\n"),
            ("ports/1/phys_state", "3: Disabled\n"),
            ("ports/1/link_layer", "Ethernet\n"),
            ("ports/1/rate", "2.5 Gb/sec (1X SDR)\n"),
            ("ports/1/gids/0", no_gid),
        ];
        tree.add("sys/class/infiniband/rxe0", &soft);
        tree
    }

    #[test]
    fn a_card_and_soft_roce() {
        let tree = tree();
        let found = kernel_devices(&tree.machine);
        let [card, soft] = <[DeviceEntry; 2]>::try_from(found).unwrap();
        assert_eq!(card.uverbs.as_deref(), Some("uverbs0"));
        assert_eq!(card.pci_address.as_deref(), Some("0000:3b:00.0"));
        let speeds = (card.pci_gtransfer_per_s, card.pci_max_gtransfer_per_s);
        assert_eq!(speeds, (Some(8.0), Some(16.0)));
        let port = &card.ports[0];
        assert!(port.is_active() && port.is_ethernet());
        assert_eq!(port.physical_state.as_deref(), Some("LinkUp"));
        let netdev = (port.netdev.as_deref(), port.netdev_mtu_bytes);
        assert_eq!(netdev, (Some("eth2"), Some(4200)));
        let rows = port.gids.iter().map(|row| (row.index, &*row.gid_type, &*row.family));
        let expected = [
            (0, "RoCE v1", "link-local"),
            (1, "RoCE v2", "link-local"),
            (2, "RoCE v1", "IPv4"),
            (3, "RoCE v2", "IPv4"),
        ];
        assert!(rows.eq(expected), "{:?}", port.gids);
        assert!(soft.software);
        assert_eq!(soft.ports[0].netdev.as_deref(), Some("v0"));
        assert!(soft.ports[0].gids.is_empty());
        assert_eq!(kernel_devices(&Tree::new(&[]).machine), []);
    }

    #[test]
    fn interfaces_by_address() {
        let listed = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n\
                      2: eth0    inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0\n\
                      2: eth0    inet6 2001:db8::7/64 scope global\n";
        let eth0 = Some("eth0");
        for (address, interface) in
            [("192.0.2.7", eth0), ("2001:db8::7", eth0), ("192.0.2.8", None)]
        {
            let found = interface_in(listed, address.parse().unwrap());
            assert_eq!(found.as_deref(), interface, "{address}");
        }
    }
}
