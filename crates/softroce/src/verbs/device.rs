//! The list of devices: `soft0` on loopback, and one for each network address of this machine. The numbers after them are
//! further devices on loopback, which are in no list and are opened by name.

use std::env;
use std::net::IpAddr;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{from_ref, null};
use std::sync::OnceLock;

use rdma_sys::{ibv_device, ibv_node_type, ibv_transport_type};

use super::errno::{code, complain, pointer_or_errno};
use super::interfaces::{self, Place};

/// The variable with the address of the only device to list.
const ADDRESS_VARIABLE: &str = "SOFTROCE_ADDRESS";

/// So many devices have a name, `soft0` to `soft15`, unless there are more addresses.
const NAMED: usize = 16;

/// A device; the verbs struct comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
pub(crate) struct Device {
    verbs: ibv_device,
    /// Where providers of rdma-core look whether a device is theirs (`struct verbs_device.ops` in its `driver.h`):
    /// mlx5's and EFA's functions do so with every device. Null is of nobody.
    _provider: *const c_void,
    pub(crate) place: Place,
}

// SAFETY: the raw pointers are function pointers in the verbs struct and one to a provider, and all stay null; nothing
// is written after the making.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    fn new(number: usize, place: Place) -> Device {
        // SAFETY: integers, arrays of them and optional function pointers: zero is a value of each.
        let mut verbs: ibv_device = unsafe { std::mem::zeroed() };
        verbs.node_type = ibv_node_type::IBV_NODE_CA;
        verbs.transport_type = ibv_transport_type::IBV_TRANSPORT_IB;
        // The paths stay empty: there are no files of it but those of `kernel_files`.
        let name = format!("soft{number}");
        for field in [&mut verbs.name, &mut verbs.dev_name] {
            for (to, from) in field.iter_mut().zip(name.bytes()) {
                *to = from as c_char;
            }
        }
        Device { verbs, _provider: null(), place }
    }

    /// The device of a pointer from the list, if it is one.
    pub(super) fn of(device: *mut ibv_device) -> Option<&'static Device> {
        found().ok()?.0.get(position(device)?)
    }

    /// The pointer that programs get.
    pub(super) fn verbs(&'static self) -> *mut ibv_device {
        from_ref(self).cast::<ibv_device>().cast_mut()
    }

    /// `soft0` and so on.
    pub(super) fn name(&self) -> String {
        self.verbs
            .name
            .iter()
            .take_while(|byte| **byte != 0)
            .flat_map(|byte| byte.to_ne_bytes())
            .map(char::from)
            .collect()
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
        interfaces::guid(self.place.address)
    }
}

fn is_on_loopback(address: IpAddr) -> bool {
    address.is_ipv4() && address.is_loopback()
}

/// The devices of this process in the list, as found at the first call; or the error number.
pub(crate) fn devices() -> Result<&'static [Device], c_int> {
    found().map(|(devices, listed)| &devices[..listed])
}

/// The device of this name, listed or not.
pub(super) fn named(name: &str) -> Result<Option<&'static Device>, c_int> {
    Ok(found()?.0.iter().find(|device| device.name() == name))
}

/// All devices, and how many of them are listed.
fn found() -> Result<(&'static [Device], usize), c_int> {
    static DEVICES: OnceLock<Result<(Vec<Device>, usize), c_int>> = OnceLock::new();
    match DEVICES.get_or_init(find) {
        Ok((devices, listed)) => Ok((devices, *listed)),
        Err(error) => Err(*error),
    }
}

/// Where a pointer to a device stands among all.
fn position(device: *mut ibv_device) -> Option<usize> {
    let mut devices = found().ok()?.0.iter();
    devices.position(|known| known.verbs() == device)
}

fn find() -> Result<(Vec<Device>, usize), c_int> {
    let wanted = address_of_environment().map_err(|error| invalid(&error))?;
    let interfaces = interfaces::present().map_err(|error| code(&error))?;
    let mut places = interfaces::places(&interfaces, wanted);
    let listed = places.len();
    let on_loopback = interfaces::on_loopback(&interfaces);
    places.resize(listed.max(NAMED), on_loopback);
    Ok((
        places.into_iter().enumerate().map(|(number, place)| Device::new(number, place)).collect(),
        listed,
    ))
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
        unsafe { *count = devices.map_or(0, <[Device]>::len) as c_int };
    }
    pointer_or_errno(devices.and_then(|all| null_terminated(all.iter().map(Device::verbs))))
}

/// A list of pointers that ends with a null, by `calloc`. ENOMEM.
pub(crate) fn null_terminated<T>(
    pointers: impl ExactSizeIterator<Item = *mut T>,
) -> Result<*mut *mut T, c_int> {
    // SAFETY: no pointer is passed.
    let list = unsafe { libc::calloc(pointers.len() + 1, size_of::<*mut T>()) }.cast::<*mut T>();
    if list.is_null() {
        return Err(libc::ENOMEM);
    }
    for (index, pointer) in pointers.enumerate() {
        // SAFETY: the list has room for one more than there are.
        unsafe { list.add(index).write(pointer) };
    }
    Ok(list)
}

/// `ibv_free_device_list(3)`. Devices live as long as the process.
///
/// # Safety
/// `list` came from [`get_device_list`] and is not used again.
pub unsafe extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    // SAFETY: made by `calloc`, or null.
    unsafe { libc::free(list.cast()) };
}

pub unsafe extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    // SAFETY: devices live as long as the process.
    unsafe { (&raw const (*device).name).cast() }
}

/// `ibv_get_device_guid(3)`, in network order; 0 for a device of another library.
pub unsafe extern "C" fn get_device_guid(device: *mut ibv_device) -> u64 {
    Device::of(device).map_or(0, |device| device.guid().to_be())
}

/// `ibv_get_device_index(3)`: the number in the name; -1 for a device of another library.
pub unsafe extern "C" fn get_device_index(device: *mut ibv_device) -> c_int {
    position(device).map_or(-1, |index| index as c_int)
}
