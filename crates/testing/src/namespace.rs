//! A wire between the kernel's Soft-RoCE and the embedded device: a veth with `rxe2` on the end here, since
//! rxe lives in the first network namespace only, and the other end in a namespace of its own, where programs
//! run on the embedded device.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::preload::library;
use crate::program::{copied, run};

/// The kernel's end.
pub const RXE: End =
    End { device: "rxe2", interface: "x0", v4: "198.51.100.1", v6: "2001:db8:1::1" };
/// The embedded device's end; its name where it is the only one.
pub const SOFT: End =
    End { device: "soft0", interface: "x1", v4: "198.51.100.2", v6: "2001:db8:1::2" };

const NAME: &str = "softroce";

/// One end of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub device: &'static str,
    pub interface: &'static str,
    pub v4: &'static str,
    pub v6: &'static str,
}

impl End {
    /// A command that runs a program at this end. At the embedded one, the device of `address` is the only one.
    pub fn command_at(self, program: impl Into<std::ffi::OsString>, address: &str) -> Command {
        if self == RXE {
            return Command::new(program.into());
        }
        let mut command = Command::new("ip");
        command.args(["netns", "exec", NAME]).arg(program.into());
        command.env("SOFTROCE_ADDRESS", address);
        command
    }

    /// As [`End::command_at`] of the IPv4 address.
    pub fn command(self, program: impl Into<std::ffi::OsString>) -> Command {
        self.command_at(program, self.v4)
    }

    pub fn other(self) -> End {
        if self == RXE { SOFT } else { RXE }
    }

    pub fn has(self, address: IpAddr) -> bool {
        [self.v4, self.v6].contains(&&*address.to_string())
    }
}

/// The library that puts programs on the embedded device.
pub fn preload() -> &'static PathBuf {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| copied(library()))
}

pub struct Wire(());

impl Wire {
    /// Lays it, with an MTU that an RDMA MTU of 4096 fits in.
    pub fn lay() -> Wire {
        run(&format!("ip netns add {NAME}"));
        let wire = Wire(());
        run(&format!("ip -n {NAME} link set lo up"));
        let (here, there) = (RXE.interface, SOFT.interface);
        let pair = format!("{here} mtu 4200 type veth peer name {there} mtu 4200");
        run(&format!("ip link add {pair} netns {NAME}"));
        for (end, ip) in [(RXE, "ip".to_owned()), (SOFT, format!("ip -n {NAME}"))] {
            let device = end.interface;
            let (v4, v6) = (end.v4, end.v6);
            run(&format!("{ip} address add {v4}/24 dev {device}"));
            run(&format!("{ip} address add {v6}/64 dev {device} nodad"));
            run(&format!("{ip} link set {device} up"));
        }
        run(&format!("rdma link add {} type rxe netdev {here}", RXE.device));
        wire
    }

    /// From now on the embedded device's end has no loopback address, as before its interface is brought up.
    pub fn take_loopback(&self) {
        run(&format!("ip -n {NAME} address flush dev lo"));
    }

    /// From now on each end loses this share of what it sends.
    pub fn lose(&self, percent: u32) {
        for (end, tc) in [(RXE, "tc".to_owned()), (SOFT, format!("ip netns exec {NAME} tc"))] {
            let interface = end.interface;
            run(&format!(
                "{tc} qdisc replace dev {interface} root netem limit 100000 loss {percent}%"
            ));
        }
    }

    /// From now on the embedded device's trains are cut into packets before they are on the wire, where
    /// otherwise only the receiving end cuts them.
    pub fn cut_trains(&self) {
        let interface = SOFT.interface;
        run(&format!("ip -n {NAME} link set {interface} gso_max_segs 1"));
    }

    /// How often rxe had something to repair: packets that came a second time, and gaps that either end found.
    pub fn repaired(&self) -> u64 {
        const REPAIRS: [&str; 4] =
            ["duplicate_request", "out_of_seq_request", "rcvd_seq_err", "completer_retry_err"];
        let counted = counted();
        REPAIRS.iter().map(|name| counted[*name]).sum()
    }
}

/// What rxe has counted since its wire was laid.
pub fn counted() -> BTreeMap<String, u64> {
    let folder = format!("/sys/class/infiniband/{}/ports/1/hw_counters", RXE.device);
    let files = std::fs::read_dir(folder).unwrap();
    files
        .map(|file| {
            let file = file.unwrap();
            let text = std::fs::read_to_string(file.path()).unwrap();
            let name = file.file_name().into_string().unwrap();
            (name, text.trim().parse().unwrap())
        })
        .collect()
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The veth goes with the namespace, and rxe2 with it.
        for arguments in [["link", "delete", RXE.interface], ["netns", "delete", NAME]] {
            let _ = Command::new("ip").args(arguments).stderr(Stdio::null()).status();
        }
    }
}
