//! Networks of the lab: a wire between the kernel's Soft-RoCE and the embedded device, pairs of perftest's programs over it,
//! packets that are lost on purpose, and captures of all that passes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, sockopt};
use softroce::wire::{IcrcAddresses, Packet, UDP_PORT, icrc};

use crate::embedded_device::library;
use crate::process::{Call, Program, copied, listens, run};
use crate::program::{Server, program};
use crate::wait::wait_or_tell;

/// The kernel's end of a [`Wire`].
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

    /// A server at this end, on its device.
    pub fn serve(self, port: u16) -> Server {
        let words = format!("serve --bind {} -p {port} -d {}", self.v4, self.device);
        Server::on_rxe(Call::new(self.command(program()), &words))
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

/// A wire between the kernel's Soft-RoCE and the embedded device: a veth with `rxe2` on the end here, since
/// rxe lives in the first network namespace only, and the other end in a namespace of its own, where programs
/// run on the embedded device.
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
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|entry| {
            let file = entry.unwrap();
            let text = fs::read_to_string(file.path()).unwrap();
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

/// Loss on an interface's way out, until dropped.
pub struct Loss(&'static str);

impl Loss {
    /// This share of all packets.
    pub fn of_all(interface: &'static str, percent: &str) -> Loss {
        run(&format!("tc qdisc replace dev {interface} root netem limit 100000 loss {percent}"));
        Loss(interface)
    }

    /// This share of all packets of the wire of a guest that is alone, either way.
    pub fn of_both(percent: &str) -> [Loss; 2] {
        ["v0", "v1"].map(|interface| Loss::of_all(interface, percent))
    }

    /// This share of the RoCEv2 packets to one IPv4 address; the control connection loses none.
    pub fn of_roce_to(address: &str, interface: &'static str, percent: &str) -> Loss {
        let loss = Loss(interface);
        // All that no filter takes goes to the first band.
        for line in [
            "qdisc replace dev {} root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
            &format!("qdisc add dev {{}} parent 1:2 netem limit 100000 loss {percent}"),
            &format!(
                "filter add dev {{}} parent 1: protocol ip u32 match ip dst {address}/32 match ip protocol 17 0xff flowid 1:2"
            ),
        ] {
            run(&format!("tc {}", line.replace("{}", interface)));
        }
        loss
    }

    /// How many packets were lost.
    pub fn dropped(&self) -> u64 {
        let shown = run(&format!("tc -s qdisc show dev {} root", self.0));
        let (_, behind) = shown.split_once("(dropped ").unwrap();
        behind.split(',').next().unwrap().parse().unwrap()
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        let mut command = Command::new("tc");
        let _ = command.args(["qdisc", "del", "dev", self.0, "root"]).status();
    }
}

/// A pair takes less on an idle machine.
const USUAL: Duration = Duration::from_secs(10);
/// Where perftest's servers listen.
const PORT: u16 = 18515;

/// What perftest says where it cannot tell how fast its CPU's counter runs: it fits a line to two clocks, and does not
/// manage where the host takes the guest's CPU between two looks at them. It has no rates then.
pub const LOST_ITS_CLOCK: &str = "Correlation coefficient";

/// The GIDs that packets are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// With `-F` perftest goes on to its result, and ends well, where it [lost its clock](LOST_ITS_CLOCK).
fn start(end: End, family: Family, command: &str) -> Program {
    let (program, arguments) = command.split_once(' ').unwrap();
    let (address, gid_index) = match family {
        Family::V4 => (end.v4, "1"),
        Family::V6 => (end.v6, "2"),
    };
    if end == RXE {
        let options = format!("-F {arguments} -d {} -x {gid_index}", RXE.device);
        return Call::new(Command::new(program), &options).start();
    }
    // `env`, for `ip` itself is not to have the library.
    let words = format!("LD_PRELOAD={} {program} -F {arguments}", preload().display());
    Call::new(end.command_at("env", address), &words).start()
}

/// Runs a pair of perftest's programs, one end on the kernel's Soft-RoCE and one on the embedded device: the program and its
/// options, the server at the other end than `client`; both must end well. Returns bytes and
/// messages of the client's result.
pub fn pair(client: End, family: Family, words: &str) -> (u64, u64) {
    let server = start(client.other(), family, words);
    wait_or_tell(
        USUAL,
        || listens(server.pid(), PORT).then_some(()),
        || format!("{words} to listen: {:?}", server.lines()),
    );
    let client = start(client, family, &format!("{words} {}", client.other().v4));
    let ended = [client, server].map(|end| end.wait_for(USUAL));
    for end in &ended {
        let output = format!("{words}: {}\n{}\nrxe: {:?}", end.stdout, end.stderr(), counted());
        assert_eq!((end.code, end.signal), (Some(0), None), "{output}");
    }
    row(&ended[0].stdout)
        .unwrap_or_else(|| panic!("{words} printed no result: {}", ended[0].stdout))
}

/// Bytes and messages in the row behind the line of headings.
fn row(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(" #bytes"));
    let mut words = lines.nth(1)?.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// `ETH_P_ALL`, in network order as sockets of this family want it.
const ALL: u32 = 0x0003_u16.to_be() as u32;
const ETHERNET_BYTES: usize = 14;
const UDP_BYTES: usize = 8;
const UDP: u8 = 17;
/// Bytes that the kernel keeps for the capture.
const BUFFER_BYTES: usize = 256 << 20;

/// A capture of all packets that pass an interface of this network namespace, as a sniffer sees them (root only), and what
/// the embedded device's parser makes of those that are RoCEv2. Here the IPv4 identification is known, which a
/// UDP socket never shows, so the invariant CRC is checked against the real one. It goes on until [`Capture::stop`].
pub struct Capture {
    stop: Arc<AtomicBool>,
    reader: JoinHandle<Vec<Vec<u8>>>,
}

/// A RoCEv2 packet with what stood below it.
pub struct Captured<'a> {
    pub source: IpAddr,
    pub source_port: u16,
    /// The identification of an IPv4 header; IPv6 has none.
    pub identification: Option<u16>,
    pub packet: Packet<'a>,
}

impl Capture {
    /// Of all interfaces of this namespace.
    pub fn start() -> Capture {
        let protocol = std::num::NonZeroU32::new(ALL).map(Protocol::from_raw);
        let socket = rustix::net::socket_with(
            AddressFamily::PACKET,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )
        .unwrap();
        sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES).unwrap();
        let wait = Some(Duration::from_millis(50));
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, wait).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let reader = std::thread::spawn(move || {
            let mut frames = Vec::new();
            let mut buffer = vec![0; 1 << 16];
            loop {
                // Before the look: what has passed by then is read.
                let is_last = stops.load(Ordering::Relaxed);
                let received = rustix::net::recv(&socket, &mut *buffer, RecvFlags::empty());
                let Ok((bytes, _)) = received else {
                    if is_last {
                        break;
                    }
                    continue;
                };
                let frame = &buffer[..bytes];
                if roce(frame).is_some() {
                    frames.push(frame.to_vec());
                }
            }
            frames
        });
        Capture { stop, reader }
    }

    /// The RoCEv2 frames that passed.
    pub fn stop(self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.reader.join().unwrap()
    }
}

/// Writes frames where other programs can read them.
pub fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let mut file = std::io::BufWriter::new(fs::File::create(path).unwrap());
    // Magic number, version 2.4, two unused words, longest frame, Ethernet.
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1 << 16, 1];
    for value in header {
        file.write_all(&value.to_ne_bytes()).unwrap();
    }
    for (number, frame) in frames.iter().enumerate() {
        for value in [0, number as u32, frame.len() as u32, frame.len() as u32] {
            file.write_all(&value.to_ne_bytes()).unwrap();
        }
        file.write_all(frame).unwrap();
    }
    file.flush().unwrap();
}

struct Headers<'a> {
    addresses: IcrcAddresses,
    source_port: u16,
    udp_payload: &'a [u8],
}

fn two(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The headers of a frame to the RoCEv2 port.
fn roce(frame: &[u8]) -> Option<Headers<'_>> {
    let ip = frame.get(ETHERNET_BYTES..)?;
    let (addresses, udp) = match two(frame, 12)? {
        0x0800 if *ip.get(9)? == UDP => {
            let four = |at| Some(Ipv4Addr::from(*ip.get(at..)?.first_chunk::<4>()?));
            let addresses = IcrcAddresses::V4 {
                source: four(12)?,
                destination: four(16)?,
                identification: two(ip, 4)?,
                flags: two(ip, 6)?,
            };
            (addresses, ip.get(20..usize::from(two(ip, 2)?))?)
        }
        0x86dd if *ip.get(6)? == UDP => {
            let sixteen = |at| Some(Ipv6Addr::from(*ip.get(at..)?.first_chunk::<16>()?));
            let addresses = IcrcAddresses::V6 { source: sixteen(8)?, destination: sixteen(24)? };
            (addresses, ip.get(40..40 + usize::from(two(ip, 4)?))?)
        }
        _ => return None,
    };
    (two(udp, 2)? == UDP_PORT).then_some(Headers {
        addresses,
        source_port: two(udp, 0)?,
        udp_payload: udp.get(UDP_BYTES..)?,
    })
}

/// The packet in a frame, or why it is none.
pub fn decode(frame: &[u8]) -> Result<Captured<'_>, String> {
    let Headers { addresses, source_port, udp_payload } = roce(frame).ok_or("not RoCEv2")?;
    let packet = Packet::parse(udp_payload).map_err(|error| error.to_string())?;
    let (body, written) = udp_payload.split_last_chunk::<4>().ok_or("no CRC")?;
    let right = icrc(addresses, source_port, body);
    if right != *written {
        return Err(format!("invariant CRC {written:x?} instead of {right:x?}"));
    }
    let (source, identification) = match addresses {
        IcrcAddresses::V4 { source, identification, .. } => (source.into(), Some(identification)),
        IcrcAddresses::V6 { source, .. } => (source.into(), None),
    };
    Ok(Captured { source, source_port, identification, packet })
}
