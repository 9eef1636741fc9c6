//! What real adapters report: `personas/` has a table a machine, each value with its source. They are data for tests; that a table
//! is right, only the adapter can show. The form of the tables knows the codes of verbs.h, not its structs; each table makes the
//! devices that a list has.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::os::raw::c_int;
use std::sync::{Arc, OnceLock};

use provider::{Listed, Queue, code, null_terminated, pointer_or_errno};
use rdma_sys::{ibv_context, ibv_device};
use serde::Deserialize;

use crate::loopback::Loopback;
use crate::null::Null;

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
                static DEVICES: OnceLock<Devices> = OnceLock::new();
                let devices = DEVICES.get_or_init(|| Devices::from_persona(persona()));
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
    connectx6dx connectx7 connectx7_vf connectx7_bond connectx7_container connectx8_xdr connectx8_mrc gb10
    infiniband_ndr infiniband_grh
    thor2 irdma_roce irdma_iwarp efa erdma hns mana ionic qedr siw thunderbolt
}

/// `ibv_get_device_list(3)`: `null0` and `loop0`.
///
/// # Safety
/// `count` is null or writable.
pub unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    // SAFETY: the caller's.
    unsafe { plain::get_device_list(count) }
}

/// `ibv_open_device(3)`: what the table answers.
///
/// # Safety
/// `device` is of a list of this library.
pub unsafe extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    // SAFETY: a device of a list lies in a `Device`, which is never freed.
    let table = unsafe { (*device.cast::<Device>()).table };
    pointer_or_errno(table.open.0.and_then(|()| {
        let events = Arc::new(Queue::new().map_err(|error| code(&error))?);
        Ok(match table.engine {
            EngineKind::Null => provider::open(device, Null { table }, events),
            EngineKind::Loopback => provider::open(device, Loopback { table }, events),
        })
    }))
}

/// A machine with its adapters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Persona {
    /// The adapter and its mode, in a line.
    pub about: String,
    /// Where the values are from; comments beside them name a key.
    pub sources: BTreeMap<String, String>,
    /// Its devices, in libibverbs' order.
    pub device: Vec<Adapter>,
    /// Files of the machine: path below the root, without a slash before it, and content.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Its symbolic links: path and target.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
}

impl Persona {
    pub fn gids(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.device
            .iter()
            .flat_map(|device| &device.port)
            .flat_map(|port| &port.gid)
            .map(|entry| entry.gid)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    pub name: String,
    #[serde(default)]
    pub(crate) engine: EngineKind,
    /// `ibv_node_type`: `ca`, `rnic` (iWARP) or `unspecified` (EFA).
    pub(crate) node: Node,
    /// `ibv_transport_type`: `ib` (RoCE too), `iwarp` or `unspecified` (EFA).
    pub(crate) transport: Transport,
    pub(crate) open: Answer,
    pub(crate) firmware: String,
    pub(crate) vendor_id: u32,
    pub(crate) vendor_part_id: u32,
    pub(crate) max_qp: c_int,
    pub(crate) max_qp_wr: u32,
    pub(crate) max_sge: u32,
    pub(crate) max_sge_rd: u32,
    pub(crate) max_cq: c_int,
    pub(crate) max_cqe: c_int,
    pub(crate) max_srq: c_int,
    pub(crate) max_srq_wr: u32,
    pub(crate) max_srq_sge: u32,
    pub(crate) max_qp_rd_atom: u8,
    pub(crate) max_qp_init_rd_atom: u8,
    pub(crate) max_inline_bytes: u32,
    pub(crate) atomics: Atomics,
    /// Whether the driver takes relaxed ordering of an MR as more than a hint to ignore.
    pub relaxed_ordering: bool,
    /// Whether the flow label reaches the UDP source port.
    pub flow_label: bool,
    pub udp_sport: Answer,
    /// `ibv_post_send` takes WRITEs alone, with or without immediate data, as a library that turns RC into MRC.
    #[serde(default)]
    pub(crate) posts_writes_alone: bool,
    /// What creating a QP of each service answers.
    pub(crate) services: Services,
    pub(crate) port: Vec<Port>,
}

impl Adapter {
    pub(crate) fn port_table(&self, number: u32) -> Option<&Port> {
        self.port.iter().find(|port| u32::from(port.number) == number)
    }
}

/// Answers to `ibv_create_qp(3)`, by service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Services {
    pub(crate) rc: Answer,
    pub(crate) uc: Answer,
    pub(crate) ud: Answer,
}

/// A port, as `ibv_query_port(3)` tells of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Port {
    pub(crate) number: u8,
    pub(crate) state: State,
    pub(crate) link_layer: LinkLayer,
    pub(crate) max_mtu: u32,
    pub(crate) active_mtu: u32,
    pub(crate) width_code: u8,
    pub(crate) speed_code: u8,
    /// The wider code of newer libraries; 0 where the driver does not fill it.
    #[expect(dead_code, reason = "the program reads sysfs' rate instead")]
    pub(crate) speed_ex_code: u32,
    /// What `ibv_query_port_speed(3)` answers; 0 where the driver cannot.
    pub(crate) port_speed_100mbit_per_s: u64,
    pub(crate) max_message_bytes: u32,
    pub(crate) lid: u16,
    pub(crate) grh_required: bool,
    /// Length of its table of P_Keys.
    #[serde(default = "one")]
    pub(crate) pkeys: u16,
    #[serde(default)]
    pub(crate) gid: Vec<Gid>,
}

fn one() -> u16 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gid {
    pub(crate) index: u32,
    pub(crate) gid: Ipv6Addr,
    pub(crate) r#type: GidType,
    pub(crate) ifindex: u32,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineKind {
    Null,
    /// Moves bytes between QPs of this process.
    #[default]
    Loopback,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Node {
    Ca = 1,
    Rnic = 4,
    Unspecified = 7,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transport {
    Ib = 0,
    Iwarp = 1,
    Unspecified = 4,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Atomics {
    None = 0,
    Hca = 1,
    Glob = 2,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Down = 1,
    Init = 2,
    Armed = 3,
    Active = 4,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LinkLayer {
    Unspecified = 0,
    Infiniband = 1,
    Ethernet = 2,
    /// Its driver's code, which verbs.h does not have.
    Thunderbolt = 100,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GidType {
    Ib = 0,
    RoceV1 = 1,
    RoceV2 = 2,
}

/// `ok`, or the name of an errno.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Answer(
    /// The errno, if it is one.
    pub Result<(), c_int>,
);

impl TryFrom<String> for Answer {
    type Error = String;

    fn try_from(name: String) -> Result<Answer, String> {
        Ok(Answer(match name.as_str() {
            "ok" => Ok(()),
            "EACCES" => Err(libc::EACCES),
            "EINVAL" => Err(libc::EINVAL),
            "ENODEV" => Err(libc::ENODEV),
            "ENOSYS" => Err(libc::ENOSYS),
            "EOPNOTSUPP" => Err(libc::EOPNOTSUPP),
            "EPERM" => Err(libc::EPERM),
            _ => {
                return Err(format!("{name} is neither `ok` nor an errno that is known here"));
            }
        }))
    }
}

/// A device; the verbs struct comes first, so a pointer to one is a pointer to the other. It lives as long as the process.
#[repr(C)]
struct Device {
    listed: Listed,
    table: &'static Adapter,
}

struct Devices(Vec<Device>);

impl Devices {
    fn from_persona(persona: &'static Persona) -> Devices {
        let devices = persona.device.iter().map(|table| Device {
            listed: Listed::new(&table.name, table.node as c_int, table.transport as c_int),
            table,
        });
        Devices(devices.collect())
    }

    /// `ibv_get_device_list(3)`.
    ///
    /// # Safety
    /// `count` is null or writable.
    unsafe fn list(&'static self, count: *mut c_int) -> *mut *mut ibv_device {
        if !count.is_null() {
            // SAFETY: the caller vouches for it.
            unsafe { *count = self.0.len() as c_int };
        }
        pointer_or_errno(null_terminated(self.0.iter().map(|device| device.listed.verbs())))
    }
}
