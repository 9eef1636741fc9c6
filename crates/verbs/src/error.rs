//! Errors of verbs: the failed operation, its object, and advice.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::{fmt, io};

use gpu::GpuError;

/// An enum of calls, each in a row with the name that its manual page has for it.
macro_rules! calls {
    ($(#[$about:meta])* $type:ident { $($(#[$note:meta])* $call:ident $({ $field:ident: $of:ty })? = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant is the call of its name
        pub enum $type { $($(#[$note])* $call $({ $field: $of })?,)* }

        impl $type {
            pub fn name(self) -> &'static str {
                match self { $($type::$call $({ $field: _ })? => $name,)* }
            }
        }
    };
}
pub(super) use calls;

calls! {
    Operation {
        GetDeviceList = "ibv_get_device_list",
        OpenDevice = "ibv_open_device",
        QueryDevice = "ibv_query_device",
        QueryPort = "ibv_query_port",
        QueryGid = "ibv_query_gid_ex",
        AllocPd = "ibv_alloc_pd",
        AllocMemory = "allocating buffer memory (mmap)",
        RegMr = "ibv_reg_mr",
        RegDmabufMr = "ibv_reg_dmabuf_mr",
        /// Of a GPU's memory, by its address.
        RegPeerMemory = "ibv_reg_mr of a GPU's memory",
        CreateChannel = "ibv_create_comp_channel",
        CreateEventFd = "creating an eventfd to wake a thread",
        CreateCq = "ibv_create_cq",
        CreateCqEx = "ibv_create_cq_ex",
        QueryClock = "ibv_query_rt_values_ex",
        AllocTd = "ibv_alloc_td",
        AllocParentDomain = "ibv_alloc_parent_domain",
        ReqNotifyCq = "ibv_req_notify_cq",
        WaitForEvent = "waiting for a completion event (poll)",
        GetCqEvent = "ibv_get_cq_event",
        PollCq = "ibv_poll_cq",
        CreateSrq = "ibv_create_srq",
        ModifySrq = "ibv_modify_srq",
        CreateQp = "ibv_create_qp",
        CreateQpEx = "ibv_create_qp_ex",
        CreateAh = "ibv_create_ah",
        QueryQp = "ibv_query_qp",
        ModifyToInit = "ibv_modify_qp RESET→INIT",
        /// With the GID index in use, the usual cause of its errors.
        ModifyToRtr { gid_index: Option<u8> } = "ibv_modify_qp INIT→RTR",
        ModifyToRts = "ibv_modify_qp RTR→RTS",
        ModifyToErr = "ibv_modify_qp →ERR",
        LimitRate = "ibv_modify_qp_rate_limit",
        SetUdpPort = "mlx5dv_modify_qp_udp_sport",
        DestroyQp = "ibv_destroy_qp",
        PostSend = "ibv_post_send",
        PostRecv = "ibv_post_recv",
        PostSrqRecv = "ibv_post_srq_recv",
        DestroyCq = "ibv_destroy_cq",
        DeregMr = "ibv_dereg_mr",
        DeallocPd = "ibv_dealloc_pd",
        CloseDevice = "ibv_close_device",
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Whole, as docs quote it.
            Operation::ModifyToRtr { gid_index: Some(index) } => {
                write!(f, "ibv_modify_qp INIT→RTR with GID index {index}")
            }
            call => f.write_str(call.name()),
        }
    }
}

/// A failed verbs operation, or an unusable device.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum VerbsError {
    #[error("no RDMA device on this machine")]
    NoDevice,
    #[error("there is no RDMA device {name:?}; this machine has: {}", .available.join(", "))]
    NoSuchDevice { name: String, available: Vec<String> },
    #[error("no usable RDMA port: {}", .reasons.join("; "))]
    NoUsablePort { reasons: Vec<String> },
    #[error("no RDMA port {port}: {}", .have.join("; "))]
    NoSuchPort { port: u8, have: Vec<String> },
    #[error("{device} port {port} has no GID at index {index}; it has: {}", .available.join(", "))]
    NoSuchGid {
        device: String,
        port: u8,
        index: u8,
        /// The existing entries, as text.
        available: Vec<String>,
    },
    #[error("{device} can do at most {limit} {what}, but the case needs {needed}")]
    DeviceLimit {
        device: String,
        /// The limited quantity, in the plural.
        what: &'static str,
        limit: u64,
        needed: u64,
        /// The flags that reduce it.
        flags: &'static str,
    },
    #[error("{device} has no {what}")]
    DeviceLacks {
        device: String,
        /// What it lacks, in the plural.
        what: &'static str,
        /// What to do instead, as an imperative.
        instead: Cow<'static, str>,
    },
    #[error(
        "--memory-at huge takes {needed} huge pages of {mib} MiB, but fewer are free on this machine"
    )]
    NoHugePages { needed: u64, mib: usize },
    #[error(
        "--memory-at transparent needs transparent huge pages, but this machine's kernel has none"
    )]
    NoTransparentPages,
    #[error("no dmabuf of {bytes} bytes is to be had on this machine: {reasons}")]
    NoDmabuf {
        bytes: usize,
        reasons: String,
        /// The kernel has none of the devices that make one.
        is_missing: bool,
    },
    #[error(transparent)]
    Gpu(#[from] GpuError),
    #[error("{flag} works only on the embedded software device, not on {device}")]
    OnlyOnEmbeddedDevice {
        flag: &'static str,
        device: String,
        /// What does the same on other devices.
        instead: &'static str,
    },
    #[error("{device} is on loopback, and {peer} is another machine")]
    OnLoopback {
        device: String,
        peer: IpAddr,
        /// A device that other machines may reach, if there is one.
        instead: Option<String>,
    },
    /// The file of `--pcap` cannot be written; the text names it and says what to do.
    #[error("{0}")]
    Capture(io::Error),
    #[error("{operation} failed for {object}: {source}")]
    Call {
        operation: Operation,
        /// The object of the call: device, QP number, sizes.
        object: String,
        source: io::Error,
    },
}

impl VerbsError {
    /// The error of a call whose error number is in `errno`.
    pub(super) fn last(operation: Operation, object: impl Into<String>) -> Self {
        VerbsError::Call { operation, object: object.into(), source: io::Error::last_os_error() }
    }

    /// The error of a call that returned its error number (or -1 with it in `errno`).
    pub(super) fn returned(operation: Operation, object: impl Into<String>, code: i32) -> Self {
        let source = match code {
            -1..=0 => io::Error::last_os_error(),
            // Some return it negated, such as RDMA over Thunderbolt.
            code => io::Error::from_raw_os_error(code.saturating_abs()),
        };
        VerbsError::Call { operation, object: object.into(), source }
    }

    /// Whether the request is at fault (a flag names something missing, or asks for more than the device has), rather
    /// than the run.
    pub fn is_bad_input(&self) -> bool {
        match self {
            VerbsError::Call { .. } => false,
            VerbsError::Gpu(error) => !matches!(error, GpuError::Call { .. }),
            _ => true,
        }
    }

    pub fn hint(&self) -> Option<String> {
        let (operation, source) = match self {
            VerbsError::NoDevice => {
                return Some(
                    "load the device's driver, or make a software device on an Ethernet interface: \
                     `modprobe rdma_rxe && rdma link add rxe0 type rxe netdev ETH`; the embedded one needs \
                     nothing: --device soft0"
                        .into(),
                );
            }
            VerbsError::NoSuchDevice { .. } => {
                return Some("name one of them with --device, or leave the flag out".into());
            }
            VerbsError::NoUsablePort { .. } => {
                return Some(
                    "bring the interface up and give it an address (`ip link set ETH up`, `ip addr add …`), \
                     or choose with --device, --ib-port and --gid-index"
                        .into(),
                );
            }
            VerbsError::NoSuchPort { .. } => {
                return Some("choose another with --ib-port, or leave the flag out".into());
            }
            VerbsError::NoSuchGid { .. } => {
                return Some("choose one of them with --gid-index, or leave the flag out".into());
            }
            VerbsError::DeviceLimit { flags, .. } => return Some(format!("lower {flags}")),
            VerbsError::DeviceLacks { instead, .. } => return Some(instead.clone().into_owned()),
            VerbsError::NoHugePages { needed, .. } => {
                return Some(format!(
                    "reserve them early, before memory is fragmented: `echo {needed} | sudo tee \
                     /proc/sys/vm/nr_hugepages`; --memory-at transparent needs no reservation"
                ));
            }
            VerbsError::NoTransparentPages => {
                return Some(
                    "leave --memory-at out, or reserve huge pages for --memory-at huge".into(),
                );
            }
            VerbsError::NoDmabuf { is_missing: true, .. } => {
                return Some(
                    "take a kernel with CONFIG_DMABUF_HEAPS_SYSTEM or CONFIG_UDMABUF (`modprobe udmabuf`); in a \
                     container, give it /dev/dma_heap/system or /dev/udmabuf"
                        .into(),
                );
            }
            VerbsError::NoDmabuf { .. } => {
                return Some(
                    "run as a user who may open /dev/dma_heap/system or /dev/udmabuf, or for more memory raise \
                     /sys/module/udmabuf/parameters/size_limit_mb"
                        .into(),
                );
            }
            VerbsError::Gpu(error) => return Some(error.hint().to_owned()),
            VerbsError::OnlyOnEmbeddedDevice { instead, .. } => {
                return Some(format!(
                    "choose the embedded device with --device soft0; with Soft-RoCE, {instead}"
                ));
            }
            VerbsError::OnLoopback { instead: Some(name), .. } => {
                return Some(format!("use {name} at that end: --device {name}"));
            }
            VerbsError::OnLoopback { instead: None, .. } => {
                return Some(
                    "give an interface there an address that is not link-local (`ip addr add ADDRESS/24 dev ETH`), \
                     and leave SOFTROCE_ADDRESS out"
                        .into(),
                );
            }
            VerbsError::Capture(_) => return None,
            VerbsError::Call { operation, source, .. } => (operation, source),
        };
        let errno = source.raw_os_error().unwrap_or(0);
        let hint = match (operation, errno) {
            (Operation::ModifyToRtr { .. }, libc::EINVAL) => {
                "choose another RoCE v2 GID with --gid-index at that end, of the peer's address family and network \
                 (`ibv_devinfo -v` lists them): a wrong GID is the usual cause"
            }
            (Operation::ModifyToRtr { .. }, libc::ETIMEDOUT) => {
                "ping the peer from this GID's interface, and choose another --device, or a GID in the right network \
                 with --gid-index: the peer's address was not resolved there"
            }
            (Operation::ModifyToRtr { .. }, libc::ENETUNREACH | libc::EHOSTUNREACH) => {
                "choose another GID with --gid-index: this one's interface has no route to the peer's GID"
            }
            (Operation::ModifyToRtr { .. }, libc::ENODEV) => {
                "choose another GID with --gid-index (`rocebench devices` lists them): this one's interface is gone, \
                 or in another network namespace"
            }
            (Operation::OpenDevice, libc::EACCES | libc::EPERM) => {
                "get permission with `sudo chmod a+rw /dev/infiniband/uverbs*` or a udev rule for your group; the \
                 embedded device needs none: --device soft0"
            }
            (Operation::OpenDevice, libc::EADDRINUSE) => {
                "end the program that has this port, such as another user's rocebench on this embedded device or the \
                 kernel's rdma_rxe; or choose the device of another address with --device"
            }
            (Operation::OpenDevice, libc::EADDRNOTAVAIL) => {
                "choose an address of this machine (`ip address` lists them)"
            }
            (Operation::OpenDevice, libc::ENOENT) => {
                "run `rocebench doctor`: the device's node in /dev/infiniband is missing, as in a container without \
                 it, or this user has no permission for it; the embedded device needs none: --device soft0"
            }
            (Operation::RegDmabufMr, libc::EOPNOTSUPP | libc::EPROTONOSUPPORT) => {
                "take --register peermem or another adapter: this one's driver, kernel or libibverbs imports no dmabufs"
            }
            (Operation::RegDmabufMr, libc::EINVAL) => {
                "take a newer kernel and driver of the adapter, or --register peermem: the dmabuf cannot be \
                 attached to this adapter; look at `dmesg`, at ACS and at the IOMMU (`rdma_topo check`)"
            }
            (
                Operation::RegPeerMemory,
                libc::EFAULT | libc::EINVAL | libc::EPROTONOSUPPORT | libc::EOPNOTSUPP,
            ) => {
                "load the peer-memory module (`sudo modprobe nvidia-peermem`; with ROCm, amdgpu of the installed \
                 driver), and the adapter's driver again if that was loaded first: without it the address is \
                 taken for ordinary memory; or take --register dmabuf"
            }
            (
                Operation::RegMr
                | Operation::RegDmabufMr
                | Operation::RegPeerMemory
                | Operation::CreateCq
                | Operation::CreateCqEx
                | Operation::CreateSrq
                | Operation::CreateQp
                | Operation::CreateQpEx,
                libc::ENOMEM,
            ) => {
                "raise the locked-memory limit, the usual cause (`ulimit -l unlimited`, or memlock in \
                 /etc/security/limits.conf), or lower --qps, --size or the depths"
            }
            (
                Operation::CreateChannel | Operation::CreateEventFd | Operation::OpenDevice,
                libc::EMFILE | libc::ENFILE,
            ) => {
                "raise `ulimit -Hn`, lower --workers, or run fewer nodes in one process: too many files are open"
            }
            (Operation::CreateChannel | Operation::ReqNotifyCq, _) => {
                "use --poll busy: the device's driver has no completion events"
            }
            (Operation::CreateSrq | Operation::ModifySrq, libc::EOPNOTSUPP | libc::ENOSYS) => {
                "use --recv-queue per-qp: the device has no shared receive queues"
            }
            (Operation::CreateQpEx, libc::EOPNOTSUPP) => {
                "use --post legacy: the device has no extended posting for this service"
            }
            (
                Operation::CreateQp
                | Operation::CreateQpEx
                | Operation::CreateCq
                | Operation::CreateCqEx
                | Operation::CreateSrq,
                libc::EINVAL,
            ) => {
                "lower --tx-depth, --rx-depth, --inline, --sges or --cq-depth: the device refuses these sizes"
            }
            (Operation::PollCq, _) => {
                "leave --cq-depth out, or raise it: the CQ is broken, as after an overflow; `dmesg` may say more"
            }
            (Operation::AllocMemory, _) => "lower --qps, --size or the depths",
            (Operation::PostSend, libc::ENOMEM) => {
                "lower --tx-depth: the send queue is full, the device took fewer WRs than its limit"
            }
            (Operation::PostSend, libc::EINVAL | libc::EOPNOTSUPP) => {
                "take another --op: this device, or a library preloaded before libibverbs, does not post this one \
                 (MRC has write and write-imm alone)"
            }
            (Operation::PostRecv | Operation::PostSrqRecv, libc::ENOMEM) => {
                "lower --rx-depth: the receive queue is full, the device took fewer WRs than its limit"
            }
            (Operation::SetUdpPort, libc::EOPNOTSUPP) => {
                "use --flow-label, from which many drivers derive the port: only mlx5 takes UDP source ports, for RC \
                 and UC"
            }
            (Operation::ModifyToInit, libc::EINVAL) => {
                "choose another P_Key with --pkey-index (`cat /sys/class/infiniband/DEVICE/ports/PORT/pkeys/*` shows \
                 them): a wrong one is the usual cause"
            }
            (_, libc::EACCES | libc::EPERM) => {
                "run as a user who may use RDMA devices: the kernel refused permission"
            }
            _ => "look at `dmesg` and at the device's state (`ibv_devinfo -v`)",
        };
        Some(hint.into())
    }
}

// Destroying objects with the result of the call. Dropping an object makes the same call and ignores its result.

/// An object that a call of its verbs library destroys.
pub trait Teardown {
    /// The call that destroys it.
    const OPERATION: Operation;

    fn object(&self) -> String;

    /// Makes the call, at most once, and returns its result. Dropping does nothing afterwards.
    fn tear_down(&mut self, token: TeardownToken) -> i32;
}

/// Proof that the object is not used again. Only the modules of the objects can create it.
pub struct TeardownToken(());

impl TeardownToken {
    /// The caller drops the object next.
    pub(super) fn new() -> TeardownToken {
        TeardownToken(())
    }
}

/// Destroys an object that has no other owner.
///
/// # Errors
/// The error of the call; EBUSY without a call if the object has other owners.
pub fn tear_down<T: Teardown>(object: Arc<T>) -> Result<(), VerbsError> {
    let name = object.object();
    let Some(mut object) = Arc::into_inner(object) else {
        return Err(VerbsError::returned(T::OPERATION, name, libc::EBUSY));
    };
    match object.tear_down(TeardownToken::new()) {
        0 => Ok(()),
        code => Err(VerbsError::returned(T::OPERATION, name, code)),
    }
}
