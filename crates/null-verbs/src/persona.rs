//! The form of the tables of what adapters report. It knows the codes of verbs.h, not its structs.

use std::collections::BTreeMap;
use std::os::raw::c_int;

use serde::Deserialize;

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
    pub fn gids(&self) -> impl Iterator<Item = std::net::Ipv6Addr> {
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
    pub(crate) engine: Engine,
    /// `ibv_node_type`: `ca`, `rnic` (iWARP) or `unspecified` (EFA).
    pub(crate) node: Node,
    /// `ibv_transport_type`.
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
    /// What creating a QP of each service answers.
    pub(crate) services: Services,
    pub(crate) port: Vec<Port>,
}

impl Adapter {
    pub(crate) fn port(&self, number: u32) -> Option<&Port> {
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
    pub(crate) gid: std::net::Ipv6Addr,
    pub(crate) r#type: GidType,
    pub(crate) ifindex: u32,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Engine {
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
