//! What real adapters report: `personas/` has a table a machine, each value with its source. They are data for tests; that a table
//! is right, only the adapter can show.

use std::os::raw::c_int;
use std::sync::OnceLock;

use rdma_sys::ibv_device;

use crate::device;
use crate::persona::Persona;

/// A persona and its device list, the only function of a library that differs from persona to persona.
#[derive(Debug)]
pub struct Entry {
    /// The name of its file.
    pub name: &'static str,
    pub persona: fn() -> &'static Persona,
    pub get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device,
}

#[expect(clippy::panic, reason = "the tables are part of this crate, and its tests read all")]
fn parse(name: &str, text: &str) -> Persona {
    toml::from_str(text).unwrap_or_else(|error| panic!("personas/{name}.toml: {error}"))
}

macro_rules! personas {
    ($($name:ident)*) => {
        $(mod $name {
            use super::*;

            pub(super) fn persona() -> &'static Persona {
                static PERSONA: OnceLock<Persona> = OnceLock::new();
                let text = include_str!(concat!("../personas/", stringify!($name), ".toml"));
                PERSONA.get_or_init(|| parse(stringify!($name), text))
            }

            pub(super) unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
                static DEVICES: OnceLock<device::Devices> = OnceLock::new();
                let devices = DEVICES.get_or_init(|| device::Devices::from_persona(persona()));
                // SAFETY: the caller's.
                unsafe { devices.list(count) }
            }
        })*

        /// All, this project's own devices first.
        pub const ALL: &[Entry] = &[$(Entry {
            name: stringify!($name),
            persona: $name::persona,
            get_device_list: $name::get_device_list,
        }),*];
    };
}

personas! {
    plain
    mixed rails
    connectx6dx connectx7 connectx7_vf connectx7_bond connectx7_container connectx8_xdr
    infiniband_ndr infiniband_grh
    thor2 irdma_roce irdma_iwarp efa erdma hns mana ionic qedr siw
}

/// `ibv_get_device_list(3)`: `null0` and `loop0`.
///
/// # Safety
/// `count` is null or writable.
pub unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    // SAFETY: the caller's.
    unsafe { plain::get_device_list(count) }
}
