//! The list of devices: `soft0` on loopback, and one for each network address that this machine has at the moment. The numbers
//! after them are further devices on loopback, which are in no list and are opened by name.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::os::raw::{c_char, c_int};
use std::{env, io};

use provider::{Listed, Lock, code, null_terminated, pointer_or_errno};
use rdma_sys::{ibv_device, ibv_node_type, ibv_transport_type};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::errno::complain;

/// The variable with the address of the only device to list.
const ADDRESS_VARIABLE: &str = "SOFTROCE_ADDRESS";

/// So many devices have a name, `soft0` to `soft15`, unless there are more addresses.
const NAMED: usize = 16;

pub(crate) struct Device {
    listed: Listed,
    number: usize,
    pub(crate) place: Place,
}

impl Device {
    fn new(number: usize, place: Place) -> Device {
        let name = format!("soft{number}");
        let (node, transport) = (ibv_node_type::IBV_NODE_CA, ibv_transport_type::IBV_TRANSPORT_IB);
        Device { listed: Listed::new(&name, node, transport), number, place }
    }

    /// The device of a pointer from the list, if it is one.
    pub(super) fn from_raw(device: *mut ibv_device) -> Option<&'static Device> {
        KNOWN.lock().iter().find(|known| known.verbs() == device).copied()
    }

    /// The pointer that programs get.
    pub(super) fn verbs(&'static self) -> *mut ibv_device {
        self.listed.verbs()
    }

    /// `soft0` and so on.
    pub(super) fn name(&self) -> String {
        self.listed.name()
    }

    /// Where it is to be opened now: at the address of the environment if that came after the list, as in the child of a
    /// program that listed the devices. EINVAL, and a line on stderr, for one that this device cannot have.
    pub(crate) fn address_now(&self) -> Result<Option<IpAddr>, c_int> {
        let listed = self.place.address;
        match address_of_environment().map_err(|error| invalid(&error))? {
            None => Ok(listed),
            address if address == listed => Ok(listed),
            Some(address) if is_on_loopback(address) && listed.is_none_or(is_on_loopback) => {
                Ok(Some(address))
            }
            Some(address) => Err(invalid(&format_args!(
                "set {ADDRESS_VARIABLE} before the devices are listed: it became {address} later, and {} is elsewhere",
                self.name()
            ))),
        }
    }

    pub(super) fn guid(&self) -> u64 {
        guid(self.place.address)
    }
}

fn is_on_loopback(address: IpAddr) -> bool {
    address.is_ipv4() && address.is_loopback()
}

/// The devices in the list, as this machine's addresses are now; or the error number.
pub(crate) fn devices() -> Result<Vec<&'static Device>, c_int> {
    let (mut devices, listed) = found()?;
    devices.truncate(listed);
    Ok(devices)
}

/// The device of this name, listed or not.
pub(super) fn named(name: &str) -> Result<Option<&'static Device>, c_int> {
    Ok(found()?.0.into_iter().find(|device| device.name() == name))
}

/// All devices that this process has found, each once. Programs have pointers to them, so none goes.
static KNOWN: Lock<Vec<&'static Device>> = Lock::new(Vec::new());

/// The device of this number and place, the same at each call.
fn known(number: usize, place: Place) -> &'static Device {
    let mut devices = KNOWN.lock();
    let same = devices.iter().find(|device| (device.number, device.place) == (number, place));
    if let Some(device) = same {
        return device;
    }
    let device: &'static Device = Box::leak(Box::new(Device::new(number, place)));
    devices.push(device);
    device
}

/// All devices, and how many of them are listed.
fn found() -> Result<(Vec<&'static Device>, usize), c_int> {
    let wanted = address_of_environment().map_err(|error| invalid(&error))?;
    let interfaces = present().map_err(|error| code(&error))?;
    let mut places = places(&interfaces, wanted);
    let listed = places.len();
    let on_loopback = on_loopback(&interfaces);
    places.resize(listed.max(NAMED), on_loopback);
    let devices = places.into_iter().enumerate().map(|(number, place)| known(number, place));
    Ok((devices.collect(), listed))
}

fn invalid(what: &dyn std::fmt::Display) -> c_int {
    complain(format_args!("{what}"));
    libc::EINVAL
}

/// The variable for the only device contains no IP address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the variable {ADDRESS_VARIABLE}: `{text}` is not an IP address; give one of this machine, such as 127.0.0.2"
)]
pub struct AddressError {
    pub text: String,
}

/// The address of the only device, if the environment sets one.
///
/// # Errors
/// Its value is no address.
pub fn address_of_environment() -> Result<Option<IpAddr>, AddressError> {
    let Some(value) = env::var_os(ADDRESS_VARIABLE) else {
        return Ok(None);
    };
    let text = value.to_string_lossy();
    text.parse().map(Some).map_err(|_| AddressError { text: text.into_owned() })
}

pub unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    let devices = devices();
    if !count.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { *count = devices.as_ref().map_or(0, Vec::len) as c_int };
    }
    pointer_or_errno(devices.and_then(|list| null_terminated(list.into_iter().map(Device::verbs))))
}

/// `ibv_get_device_guid(3)`, in network order; 0 for a device of another library.
pub unsafe extern "C" fn get_device_guid(device: *mut ibv_device) -> u64 {
    Device::from_raw(device).map_or(0, |device| device.guid().to_be())
}

/// `ibv_get_device_index(3)`: the number in the name; -1 for a device of another library.
pub unsafe extern "C" fn get_device_index(device: *mut ibv_device) -> c_int {
    Device::from_raw(device).map_or(-1, |known| known.number as c_int)
}

/// The address and interface of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The address to take, or of an interface that is up; `None` takes one of 127.0.0.0/8.
    pub(crate) address: Option<IpAddr>,
    pub(super) interface_index: u32,
    pub(super) interface_mtu_bytes: u32,
}

/// Linux' index of the loopback interface in every network namespace.
const LOOPBACK_INDEX: u32 = 1;
const LOOPBACK_MTU_BYTES: u32 = 65536;

/// The addresses of the interfaces that are up.
///
/// # Errors
/// The failed system call.
pub(super) fn present() -> io::Result<Vec<Place>> {
    let interfaces = if_addrs::get_if_addrs()?;
    Ok(interfaces
        .iter()
        .filter(|interface| interface.is_oper_up())
        .filter_map(|interface| {
            Some(Place {
                address: Some(interface.ip()),
                interface_index: interface.index?,
                interface_mtu_bytes: mtu_bytes(&interface.name).ok()?,
            })
        })
        .collect())
}

fn mtu_bytes(name: &str) -> io::Result<u32> {
    let answer = ask_interface(name, libc::SIOCGIFMTU)?;
    // SAFETY: this member is what the request filled.
    let mtu: c_int = unsafe { answer.ifr_ifru.ifru_mtu };
    Ok(u32::try_from(mtu).unwrap_or(0))
}

/// The interface's flags (netdevice(7)).
pub(super) fn flags(name: &str) -> io::Result<c_int> {
    let answer = ask_interface(name, libc::SIOCGIFFLAGS)?;
    // SAFETY: this member is what the request filled.
    Ok(unsafe { answer.ifr_ifru.ifru_flags }.into())
}

/// Asks the socket layer, because sysfs may belong to another network namespace.
fn ask_interface(name: &str, what: libc::Ioctl) -> io::Result<libc::ifreq> {
    // SAFETY: bytes and integers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    // SAFETY: an open socket and the struct that this request reads and writes.
    if unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(request)
}

/// The devices: one on loopback, then one for each other address, ordered by interface and with IPv4 first; or only
/// the one that is `wanted`.
pub(super) fn places(interfaces: &[Place], wanted: Option<IpAddr>) -> Vec<Place> {
    if let Some(address) = wanted {
        return vec![wanted_place(interfaces, address)];
    }
    let mut others = interfaces.to_vec();
    others.retain(|place| {
        place.address.is_some_and(|address| {
            !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
        })
    });
    others.sort_by_key(|place| {
        let ipv6 = place.address.is_some_and(|address| address.is_ipv6());
        let link_local =
            matches!(place.address, Some(IpAddr::V6(ip)) if ip.is_unicast_link_local());
        (place.interface_index, ipv6, link_local, place.address)
    });
    others.dedup_by_key(|place| place.address);
    others.insert(0, on_loopback(interfaces));
    others
}

/// At a free address of loopback.
pub(super) fn on_loopback(interfaces: &[Place]) -> Place {
    Place { address: None, ..wanted_place(interfaces, Ipv4Addr::LOCALHOST.into()) }
}

/// All of 127.0.0.0/8 belongs to the loopback interface, although it has only one address. An address that no
/// interface has also makes a device, so that opening it reports the error.
fn wanted_place(interfaces: &[Place], address: IpAddr) -> Place {
    let loopback = Place {
        address: None,
        interface_index: LOOPBACK_INDEX,
        interface_mtu_bytes: LOOPBACK_MTU_BYTES,
    };
    let found = interfaces.iter().find(|place| place.address == Some(address)).or_else(|| {
        interfaces.iter().find(|place| place.address.is_some_and(|own| own.is_loopback()))
    });
    Place { address: Some(address), ..*found.unwrap_or(&loopback) }
}

/// A locally administered EUI-64, derived from the address: the same in every process that has the device.
pub(super) fn guid(address: Option<IpAddr>) -> u64 {
    const LOCAL: u64 = 0x0200_0000_0000_0000;
    const GROUP: u64 = 0x0100_0000_0000_0000;
    const IPV4: u64 = 0x0200_00ff_0000_0000;
    match address {
        None => IPV4 | u64::from(u32::from(Ipv4Addr::new(127, 0, 0, 0))),
        Some(IpAddr::V4(address)) => IPV4 | u64::from(u32::from(address)),
        Some(IpAddr::V6(address)) => {
            // Multiplied, so that 2001:db8:0:1::1 and 2001:db8:0:2::2 differ.
            const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
            let bits = u128::from(address);
            let (network, host) = ((bits >> 64) as u64, bits as u64);
            (network.wrapping_mul(SPREAD) ^ host) & !GROUP | LOCAL
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn interface(address: &str, interface_index: u32, interface_mtu_bytes: u32) -> Place {
        Place { address: Some(address.parse().unwrap()), interface_index, interface_mtu_bytes }
    }

    fn machine() -> Vec<Place> {
        vec![
            interface("fe80::1", 4, 1500),
            interface("fd00::2", 4, 1500),
            interface("192.0.2.9", 7, 9000),
            interface("127.0.0.1", 1, 65536),
            interface("192.0.2.2", 4, 1500),
            interface("::1", 1, 65536),
        ]
    }

    #[test]
    fn loopback_comes_first_and_the_others_in_their_interfaces_order() {
        let places = places(&machine(), None);
        let listed =
            places.iter().map(|it| (it.address, it.interface_index, it.interface_mtu_bytes));
        let of = |text: &str| Some(text.parse().unwrap());
        let expected = [
            (None, 1, 65536),
            (of("192.0.2.2"), 4, 1500),
            (of("fd00::2"), 4, 1500),
            (of("fe80::1"), 4, 1500),
            (of("192.0.2.9"), 7, 9000),
        ];
        assert_eq!(listed.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_wanted_address_is_the_only_device() {
        for (wanted, index) in [("192.0.2.9", 7), ("127.7.7.7", 1), ("::1", 1)] {
            let wanted = wanted.parse().unwrap();
            let places = places(&machine(), Some(wanted));
            assert_eq!(places.len(), 1);
            let listed = (places[0].address, places[0].interface_index);
            assert_eq!(listed, (Some(wanted), index));
        }
    }

    /// Pointers that programs have stay valid, and a device whose address changes is another one of the same name.
    #[test]
    fn a_device_is_the_same_as_long_as_its_address_is() {
        let [first, later] = ["192.0.2.2", "192.0.2.3"].map(|address| interface(address, 4, 1500));
        let device = known(1, first);
        assert!(std::ptr::eq(device, known(1, first)));
        let moved = known(1, later);
        assert_eq!((moved.name(), moved.place), (device.name(), later));
        for listed in [device, moved] {
            assert!(std::ptr::eq(Device::from_raw(listed.verbs()).unwrap(), listed));
        }
    }

    #[test]
    fn without_interfaces_there_is_still_loopback() {
        assert_eq!(places(&[], None).len(), 1);
    }

    #[test]
    fn guids_differ_and_are_local() {
        let addresses =
            ["127.0.0.2", "192.0.2.2", "fd00::2", "fe80::1", "2001:db8:0:1::1", "2001:db8:0:2::2"];
        let guids = BTreeSet::from_iter(
            addresses
                .map(|address| guid(Some(address.parse().unwrap())))
                .into_iter()
                .chain([guid(None)]),
        );
        assert!(guids.iter().all(|guid| guid & 0x0200_0000_0000_0000 != 0));
        assert_eq!(guids.len(), 7);
    }
}
