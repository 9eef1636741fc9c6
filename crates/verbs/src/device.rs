//! Devices: the list, an open context, device and port attributes, the GID table.

use std::mem::zeroed;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_sys::{
    IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2, ibv_atomic_cap, ibv_context, ibv_device_attr,
    ibv_gid_entry, ibv_node_type, ibv_packet_pacing_caps, ibv_port_attr, ibv_port_state,
    ibv_qp_type, ibv_transport_type,
};
use serde::{Deserialize, Serialize};
use softroce::transport::{Nic, Wire};

use crate::error::TeardownToken;
use crate::{
    Driver, Gid, GidEntry, GidType, LinkLayer, Operation, RecordedPacket, Teardown, VerbsError,
    VerbsLibrary, ffi, kernel,
};

/// An open device. Everything made from it keeps it open.
pub struct Context {
    library: &'static VerbsLibrary,
    raw: NonNull<ibv_context>,
    name: String,
    driver: Option<&'static Driver>,
    closed: bool,
}

// SAFETY: libibverbs' functions on a context may be called from any thread (ibv_open_device(3) objects
// are thread-safe), and nothing here is changed after construction.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Limits of a device, from `ibv_query_device(3)`; a number is 0 where the device does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Who made it: a PCI vendor, as a rule.
    pub vendor_id: u32,
    /// Firmware version; empty if there is none, and not among what a node tells others.
    #[serde(skip)]
    pub firmware: String,
    pub max_qp: u64,
    /// WRs outstanding on one queue of a QP.
    pub max_qp_wr: u64,
    /// Scatter/gather elements of a WR.
    pub max_sge: u64,
    /// The same of a READ.
    pub max_sge_rd: u64,
    /// SRQs; 0 if it has none.
    pub max_srq: u64,
    /// Receives outstanding on one SRQ.
    pub max_srq_wr: u64,
    /// Scatter/gather elements of a receive on an SRQ.
    pub max_srq_sge: u64,
    pub max_cq: u64,
    /// Completions that one CQ holds at most.
    pub max_cqe: u64,
    /// Whether it has atomic operations.
    pub has_atomics: bool,
    /// READs and atomics that one QP may have outstanding as requester.
    pub max_initiator_reads: u8,
    /// READs and atomics that one QP serves at once as responder.
    pub max_responder_reads: u8,
    pub ports: u8,
    /// The rates that it keeps for QPs, if it does.
    pub pacing: Option<Pacing>,
}

/// How a device limits what a QP sends (`packet_pacing_caps` of `ibv_query_device_ex(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// The least rate, in 1000 bits a second.
    pub least_kbit_per_s: u32,
    pub most_kbit_per_s: u32,
    /// It does so for QPs of these services.
    pub services: Services,
}

/// Some of the services that QPs may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Services {
    pub rc: bool,
    pub uc: bool,
    pub ud: bool,
}

impl Pacing {
    /// `None` for a device that has no such limits.
    fn from_caps(caps: &ibv_packet_pacing_caps) -> Option<Pacing> {
        let has = |kind: ibv_qp_type::Type| caps.supported_qpts >> kind & 1 != 0;
        (caps.qp_rate_limit_max > 0).then(|| Pacing {
            least_kbit_per_s: caps.qp_rate_limit_min,
            most_kbit_per_s: caps.qp_rate_limit_max,
            services: Services {
                rc: has(ibv_qp_type::IBV_QPT_RC),
                uc: has(ibv_qp_type::IBV_QPT_UC),
                ud: has(ibv_qp_type::IBV_QPT_UD),
            },
        })
    }
}

/// The bit of `ibv_port_attr.flags` that verbs.h calls `IBV_QPF_GRH_REQUIRED`.
const GRH_REQUIRED: u8 = 1;

/// The attributes of a port, from `ibv_query_port(3)`.
#[derive(Clone, Debug)]
pub struct PortInfo {
    /// The port's number, counted from 1.
    pub port: u8,
    pub active: bool,
    /// State as text: `ACTIVE`, `DOWN` …
    pub state: &'static str,
    /// Path MTU in use, in bytes.
    pub active_mtu_bytes: u32,
    /// Largest path MTU, in bytes.
    pub max_mtu_bytes: u32,
    pub max_message_bytes: u32,
    /// Local identifier, 0 on RoCE.
    pub lid: u16,
    pub link_layer: LinkLayer,
    /// Data rate of the link in Gb/s, where something tells it for sure.
    pub link_gbit_per_s: Option<f64>,
    /// Number of lanes, if the code is known.
    pub lanes: Option<u32>,
    /// Length of its table of P_Keys.
    pub pkey_table_length: u16,
    /// Packets to other ports need a GRH there.
    pub grh_required: bool,
    gid_table_length: u32,
}

impl PortInfo {
    /// Data rate of a lane in Gb/s.
    pub fn lane_gbit_per_s(&self) -> Option<f64> {
        Some(self.link_gbit_per_s? / f64::from(self.lanes?))
    }
}

impl Context {
    /// Owns a context that `library` has opened; closes it when dropped.
    pub(super) fn from_opened(
        library: &'static VerbsLibrary,
        raw: NonNull<ibv_context>,
        name: String,
    ) -> Arc<Context> {
        let driver = if library.is_embedded() {
            None
        } else {
            kernel::kernel_driver(Path::new(library.root), &name)
                .and_then(|it| Driver::from_name(&it))
        };
        Arc::new(Context { library, raw, name, driver, closed: false })
    }

    /// What is known of its kernel driver; `None` for another one, and for the embedded device.
    pub fn driver(&self) -> Option<&'static Driver> {
        self.driver
    }

    /// The device's name, such as `mlx5_0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The library it was opened with.
    pub fn library(&self) -> &'static VerbsLibrary {
        self.library
    }

    /// Below which the kernel's files of it are.
    pub fn root(&self) -> &'static Path {
        Path::new(self.library.root)
    }

    /// Its node type and its transport type, by `ibv_get_device_list(3)`.
    pub(super) fn kind(&self) -> (ibv_node_type::Type, ibv_transport_type::Type) {
        // SAFETY: the context is open, and its device lives as long.
        unsafe {
            let device = (*self.raw()).device;
            ((*device).node_type, (*device).transport_type)
        }
    }

    /// What `ibv_query_port_speed(3)` answers, where the library and the driver have it.
    fn port_speed_100mbit_per_s(&self, port: u8) -> Option<u64> {
        let mut speed = 0;
        // SAFETY: the context is open and `speed` writable.
        let code =
            unsafe { (self.library.query_port_speed)(self.raw(), port.into(), &raw mut speed) };
        (code == 0 && speed > 0).then_some(speed)
    }

    fn link_gbit_per_s(&self, port: u8, attr: &ibv_port_attr) -> Option<f64> {
        self.port_speed_100mbit_per_s(port)
            .map(|speed| speed as f64 / 10.0)
            .or_else(|| kernel::link_gbit_per_s(self.root(), &self.name, port, attr))
    }

    /// Whether it is the kernel's Soft-RoCE.
    pub(super) fn is_soft_roce(&self) -> bool {
        self.driver.is_some_and(Driver::is_software)
    }

    /// Whether extended verbs can be asked for at all. Those of a context know nothing of QPs that another library makes.
    pub(super) fn is_extended(&self) -> bool {
        // SAFETY: the context is open.
        !self.library.is_overlaid() && unsafe { ffi::is_extended(self.raw()) }
    }

    /// The embedded device behind it; `None` of others.
    fn embedded(&self) -> Option<&Nic> {
        // SAFETY: a context of the embedded library, open as long as this.
        self.library.is_embedded().then(|| unsafe { softroce::verbs::nic(self.raw) })
    }

    /// How packets of the embedded device go to a QP at an address; `None` of others.
    pub fn wire_to(&self, address: IpAddr, qpn: u32) -> Option<Wire> {
        self.embedded().map(|nic| nic.wire_to(address, qpn))
    }

    /// Counters of the embedded device; `None` for others, whose kernel driver has them.
    pub fn counters(&self) -> Option<Vec<(&'static str, u64)>> {
        self.embedded().map(Nic::counters)
    }

    /// Lets the embedded device's own thread run on these cores alone; other devices have none.
    pub fn place_engine(&self, cores: &[usize]) {
        if let Some(nic) = self.embedded() {
            nic.place_engine(cores);
        }
    }

    /// The cores on which that thread may run; `None` of other devices, and where the kernel does not say.
    pub fn engine_cores(&self) -> Option<Vec<usize>> {
        let cores = self.embedded().map(Nic::engine_cores);
        cores.filter(|cores| !cores.is_empty())
    }

    /// Starts to record the packets of the embedded device; returns false for other devices.
    pub fn record_packets(&self) -> bool {
        self.embedded().map(|nic| nic.tap().open()).is_some()
    }

    /// The packets since [`Context::record_packets`]; stops recording.
    pub fn recorded_packets(&self) -> Vec<RecordedPacket> {
        let nic = self.embedded();
        nic.map(|nic| nic.tap().close()).unwrap_or_default()
    }

    /// Completion vectors, at least 1.
    pub(super) fn completion_vectors(&self) -> usize {
        // SAFETY: the context is open.
        let count = unsafe { (*self.raw()).num_comp_vectors };
        usize::try_from(count).unwrap_or(0).max(1)
    }

    pub(super) fn raw(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    /// The file that is readable while an asynchronous event is pending. A non-blocking duplicate, which stays valid
    /// on its own.
    pub(super) fn async_file(&self) -> Result<OwnedFd, std::io::Error> {
        // SAFETY: the context is open, so its descriptor is valid while it is duplicated.
        let duplicate = unsafe { libc::fcntl((*self.raw()).async_fd, libc::F_DUPFD_CLOEXEC, 3) };
        if duplicate < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: it was just made and belongs to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(duplicate) };
        // SAFETY: a descriptor owned here.
        unsafe {
            let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
            libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        Ok(file)
    }

    /// Whether `file` is readable now; does not wait.
    pub(super) fn readable(file: BorrowedFd<'_>) -> bool {
        let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd, no waiting.
        unsafe { libc::poll(&mut poll, 1, 0) == 1 }
    }

    /// What the device can do.
    pub(super) fn limits(&self) -> Result<DeviceLimits, VerbsError> {
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_device_attr = unsafe { zeroed() };
        // SAFETY: the context is open and `attr` writable.
        let code = unsafe { (self.library.query_device)(self.raw(), &mut attr) };
        if code != 0 {
            return Err(VerbsError::returned(Operation::QueryDevice, &self.name, code));
        }
        let firmware: Vec<u8> = attr
            .fw_ver
            .iter()
            .flat_map(|byte| byte.to_ne_bytes())
            .take_while(|&byte| byte != 0)
            .collect();
        Ok(DeviceLimits {
            vendor_id: attr.vendor_id,
            firmware: String::from_utf8_lossy(&firmware).into_owned(),
            max_qp: count(attr.max_qp),
            max_qp_wr: count(attr.max_qp_wr),
            max_sge: count(attr.max_sge),
            max_sge_rd: count(attr.max_sge_rd),
            max_srq: count(attr.max_srq),
            max_srq_wr: count(attr.max_srq_wr),
            max_srq_sge: count(attr.max_srq_sge),
            max_cq: count(attr.max_cq),
            max_cqe: count(attr.max_cqe),
            has_atomics: attr.atomic_cap != ibv_atomic_cap::IBV_ATOMIC_NONE,
            max_initiator_reads: reads(attr.max_qp_init_rd_atom),
            max_responder_reads: reads(attr.max_qp_rd_atom),
            ports: attr.phys_port_cnt,
            // SAFETY: the context is open.
            pacing: unsafe { ffi::query_device_ex(self.raw()) }
                .and_then(|extended| Pacing::from_caps(&extended.packet_pacing_caps)),
        })
    }

    /// The attributes of port `port`.
    pub(super) fn port(&self, port: u8) -> Result<PortInfo, VerbsError> {
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_port_attr = unsafe { zeroed() };
        // SAFETY: the context is open and `attr` writable and zeroed.
        let code = unsafe { (self.library.query_port)(self.raw(), port, &mut attr) };
        if code != 0 {
            let object = format!("{} port {port}", self.name);
            return Err(VerbsError::returned(Operation::QueryPort, object, code));
        }
        // The embedded device's says nothing of a link.
        let has_speed = !self.library.is_embedded();
        let speed = has_speed.then(|| self.link_gbit_per_s(port, &attr));
        Ok(PortInfo {
            port,
            active: attr.state == ibv_port_state::IBV_PORT_ACTIVE,
            state: state_name(attr.state),
            active_mtu_bytes: mtu_bytes(attr.active_mtu),
            max_mtu_bytes: mtu_bytes(attr.max_mtu),
            max_message_bytes: attr.max_msg_sz,
            lid: attr.lid,
            link_layer: LinkLayer::from_attributes(&attr),
            link_gbit_per_s: speed.flatten(),
            lanes: kernel::lanes(attr.active_width),
            pkey_table_length: attr.pkey_tbl_len,
            grh_required: attr.flags & GRH_REQUIRED != 0,
            gid_table_length: u32::try_from(attr.gid_tbl_len).unwrap_or(0),
        })
    }

    /// The non-empty entries of a port's GID table.
    pub(super) fn gid_table(&self, port: &PortInfo) -> Result<Vec<GidEntry>, VerbsError> {
        let mut table = Vec::new();
        for index in 0..port.gid_table_length.min(256) {
            // SAFETY: plain data, for which zero is valid.
            let mut entry: ibv_gid_entry = unsafe { zeroed() };
            // SAFETY: the context is open and `entry` writable.
            let code = unsafe {
                (self.library.query_gid_ex)(self.raw(), port.port.into(), index, &mut entry, 0)
            };
            match code {
                0 => {}
                libc::ENODATA => continue,
                _ => {
                    let object = format!("{} port {} GID index {index}", self.name, port.port);
                    return Err(VerbsError::returned(Operation::QueryGid, object, code));
                }
            }
            // SAFETY: every bit pattern is a valid GID.
            let gid = Gid(unsafe { entry.gid.raw });
            if gid.is_zero() {
                continue;
            }
            table.push(GidEntry {
                index: u8::try_from(index).unwrap_or(u8::MAX),
                gid,
                interface: NonZeroU32::new(entry.ndev_ifindex),
                gid_type: match entry.gid_type {
                    IBV_GID_TYPE_ROCE_V1 => GidType::RoceV1,
                    IBV_GID_TYPE_ROCE_V2 => GidType::RoceV2,
                    _ => GidType::Infiniband,
                },
            });
        }
        Ok(table)
    }
}

impl Teardown for Context {
    const OPERATION: Operation = Operation::CloseDevice;

    fn object(&self) -> String {
        self.name.clone()
    }

    fn tear_down(&mut self, _: TeardownToken) -> i32 {
        self.closed = true;
        // SAFETY: opened by this library, and everything made from it held an `Arc` to it; it was not closed before.
        unsafe { (self.library.close_device)(self.raw()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.closed {
            self.tear_down(TeardownToken::new());
        }
    }
}

/// Bytes of an `ibv_mtu` code; 0 for an unknown one.
fn mtu_bytes(code: u32) -> u32 {
    match code {
        1..=5 => 128 << code,
        _ => 0,
    }
}

fn state_name(state: u32) -> &'static str {
    match state {
        ibv_port_state::IBV_PORT_NOP => "NOP",
        ibv_port_state::IBV_PORT_DOWN => "DOWN",
        ibv_port_state::IBV_PORT_INIT => "INIT",
        ibv_port_state::IBV_PORT_ARMED => "ARMED",
        ibv_port_state::IBV_PORT_ACTIVE => "ACTIVE",
        _ => "unknown",
    }
}

fn count(value: i32) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn reads(value: i32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// The clock by which a device stamps completions (`ibv_query_rt_values_ex`).
#[derive(Clone)]
pub struct StampClock {
    context: Arc<Context>,
    /// The bits that the clock has: after the last of them it begins again at 0.
    mask: u64,
    khz: u64,
}

impl StampClock {
    /// That of a device; `None` of one that has none, or does not say its frequency.
    pub fn new(context: &Arc<Context>) -> Option<StampClock> {
        // SAFETY: the context is open.
        let attr = unsafe { ffi::query_device_ex(context.raw()) }?;
        let (mask, khz) = (attr.completion_timestamp_mask, attr.hca_core_clock);
        (mask != 0 && khz != 0).then(|| StampClock { context: Arc::clone(context), mask, khz })
    }

    /// What it says, in ticks as those of stamps.
    pub fn read(&self) -> Result<u64, VerbsError> {
        // SAFETY: the context is open.
        let read = unsafe { ffi::query_clock(self.context.raw()) };
        read.map_err(|code| VerbsError::returned(Operation::QueryClock, self.context.name(), code))
    }

    /// Ticks in a millisecond: its frequency in kHz.
    pub fn khz(&self) -> u64 {
        self.khz
    }

    /// Ticks from one reading to another, at most half of what the clock counts before it begins again; negative where
    /// the second is the earlier.
    #[inline]
    pub fn ticks_between(&self, one: u64, other: u64) -> i64 {
        let unused_bits = self.mask.leading_zeros();
        (other.wrapping_sub(one) << unused_bits).cast_signed() >> unused_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EmbeddedDevice, PortRequest, VerbsLibrary, embedded_devices, select_or_embedded};

    fn clock(mask: u64) -> StampClock {
        let devices: Vec<EmbeddedDevice> = embedded_devices().unwrap();
        let request =
            PortRequest { device: Some(devices[0].name.clone()), ..PortRequest::default() };
        let port = select_or_embedded(VerbsLibrary::system(), &request, None).unwrap();
        let clock = StampClock::new(&port.context).unwrap();
        StampClock { mask, ..clock }
    }

    #[test]
    fn ticks_go_both_ways_and_over_the_end_of_the_clock() {
        let whole = clock(u64::MAX);
        assert_eq!(whole.ticks_between(5, 12), 7);
        assert_eq!(whole.ticks_between(12, 5), -7);
        assert_eq!(whole.ticks_between(u64::MAX, 1), 2);
        let short = clock((1 << 48) - 1);
        assert_eq!(short.ticks_between((1 << 48) - 3, 4), 7);
        assert_eq!(short.ticks_between(4, (1 << 48) - 3), -7);
        assert!(whole.read().unwrap() <= whole.read().unwrap());
    }
}
