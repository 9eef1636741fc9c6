//! An interface for Rust programs: lists names and addresses of devices without opening them, since opening takes the
//! address, and opens them with the caller's options.

use std::io;
use std::net::IpAddr;
use std::ptr::NonNull;

use rdma_sys::ibv_context;

use super::context::Context;
use super::open::OpenOptions;
use super::{device, open};
use crate::transport::Nic;

/// A device of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// `soft0` and so on.
    pub name: String,
    /// Its address once opened; `None` takes a free one of 127.0.0.0/8.
    pub address: Option<IpAddr>,
}

/// The devices, in the order of [`super::get_device_list`].
///
/// # Errors
/// The system does not report its addresses.
pub fn devices() -> io::Result<Vec<Listing>> {
    let devices = device::devices().map_err(io::Error::from_raw_os_error)?;
    Ok(devices.iter().map(Listing::of).collect())
}

/// The device of this name, also one that is not listed: up to `soft15` those after the list are on loopback.
///
/// # Errors
/// The system does not report its addresses.
pub fn named(name: &str) -> io::Result<Option<Listing>> {
    let device = device::named(name).map_err(io::Error::from_raw_os_error)?;
    Ok(device.map(Listing::of))
}

impl Listing {
    fn of(device: &device::Device) -> Listing {
        Listing { name: device.name(), address: device.place.address }
    }
}

/// [`super::open_device`] by name with these options, ignoring those of the environment. One on loopback is at an address of
/// this opening's own, so that one process can have both ends. Close it with [`super::close_device`].
///
/// # Errors
/// ENODEV for a name that no device has; otherwise the sockets' error, as of [`crate::net::open`], or that of the
/// capture's file.
pub fn open_with(name: &str, options: OpenOptions) -> io::Result<NonNull<ibv_context>> {
    let found = device::named(name).and_then(|device| device.ok_or(libc::ENODEV));
    let device = found.map_err(io::Error::from_raw_os_error)?;
    let open = open::open(device, device.place.address, false, options)?;
    NonNull::new(open).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// The device behind a context: its counters, its recorder and the thread of its own.
///
/// # Safety
/// `context` came from [`open_with`] or [`super::open_device`] and is not closed while the device is used.
pub unsafe fn nic<'a>(context: NonNull<ibv_context>) -> &'a Nic {
    // SAFETY: the caller's.
    &unsafe { Context::of(context.as_ptr()) }.nic
}
