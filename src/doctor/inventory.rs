//! Lists all devices, ports and GIDs of this machine, from sysfs and verbs together: sysfs needs no permission and
//! names interfaces; only verbs knows path MTUs and the embedded devices.

use serde::Serialize;

use protocol::failure::RunFailure;
use results::model::Host;
use verbs::{
    Adapter, AdapterPort, Adapters, Port, PortRequest, Refused, Route, VerbsError, VerbsLibrary,
    embedded_devices, select_or_embedded,
};

use super::choice::Choice;
use super::entries::{DeviceEntry, EMBEDDED, GidRow, PortEntry};
use super::machine::Machine;
use super::sysfs;

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
        let opened = adapters.opened.iter().map(|it| of_adapter(it)).collect();
        let mut devices = merged(sysfs::devices(machine), opened, |device| {
            let refused = adapters.refused.iter().find(|it| it.name == device.name);
            let error = refused.map(|it| &it.error).or(verbs_error.as_ref());
            why_shut(machine, device, error)
        });
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
        let opened = of_adapter(&port.adapter);
        device.firmware = opened.firmware;
        device.ports = opened.ports;
        for port in &mut device.ports {
            // It has no link with a meaningful speed.
            (port.link_gbit_per_s, port.width_lanes) = (None, None);
        }
        let netdev = match device.address {
            Some(address) => sysfs::interface_of(machine, address),
            None => Some("lo".to_owned()),
        };
        if let Some(netdev) = netdev {
            for port in &mut device.ports {
                sysfs::fill_netdev(machine, port, netdev.clone());
            }
        }
    }
}

/// The facts of an open device.
fn of_adapter(adapter: &Adapter) -> DeviceEntry {
    let firmware = &adapter.limits.firmware;
    DeviceEntry {
        name: adapter.name().to_owned(),
        library: adapter.context.library().name.to_owned(),
        transport: adapter.transport.name(),
        firmware: Some(firmware.clone()).filter(|text| !text.is_empty()),
        note: adapter.silent.first().map(ToString::to_string),
        ports: adapter.ports.iter().map(of_port).collect(),
        ..DeviceEntry::default()
    }
}

fn of_port(AdapterPort { info, gids }: &AdapterPort) -> PortEntry {
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

#[cfg(test)]
mod tests {
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
        let all = merged(vec![known.clone()], others, |_| "shut".into());
        assert_eq!(all.len(), 2);
        let port = &all[0].ports[0];
        let both = (port.active_mtu_bytes, port.netdev.as_deref());
        assert_eq!(both, (Some(1024), Some("v0")));
        assert_eq!(all[0].note, None);
        let shut = merged(vec![known], Vec::new(), |device: &DeviceEntry| {
            format!("{} is shut", device.name)
        });
        assert_eq!(shut[0].note.as_deref(), Some("rxe0 is shut"));
    }

    #[test]
    fn a_device_that_is_shut_says_why() {
        let tree = sysfs::tests::tree();
        let card = sysfs::devices(&tree.machine).remove(0);
        let why = |card: &DeviceEntry| why_shut(&tree.machine, card, None);
        assert!(why(&card).ends_with("/dev/infiniband/uverbs0 is not there"));
        tree.add("dev/infiniband", &[("uverbs0", "")]);
        assert_eq!(why(&card), "not opened by libibverbs");
        let bare = DeviceEntry { uverbs: None, ..card };
        assert!(why(&bare).contains("modprobe ib_uverbs"));
    }
}
