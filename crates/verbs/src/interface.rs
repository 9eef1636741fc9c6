//! Counters of the network interface below an adapter's port, from the kernel (`ethtool -S`; ethtool.h).

use std::ffi::{c_char, c_void};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::kernel::{device_folder, interface_folder, netdev, port_folder};

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_SET_SIZES: u32 = 0x37;
/// The set of strings that names the statistics.
const STATISTICS: u32 = 1;
const NAME_BYTES: usize = 32;
/// Room for counters that a driver gets between two requests, as with more channels: the kernel writes as many as there are.
const MORE: usize = 1024;

/// The wanted counters of the interface below port `port` of `device`. None of software, of a bond, of an interface that is in
/// another network namespace, or where `root` is not the kernel's that runs.
pub fn interface_counters(
    root: &Path,
    device: &str,
    port: u8,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<(String, u64)> {
    let Some(name) = netdev(&port_folder(root, device, port), 0) else {
        return Vec::new();
    };
    // An interface of this namespace may have the name of one in another.
    let [of_device, of_interface] = [device_folder(root, device), interface_folder(root, &name)]
        .map(|folder| fs::canonicalize(folder.join("device")).ok());
    if root != Path::new("/") || of_device.is_none() || of_device != of_interface {
        return Vec::new();
    }
    read(&name, is_wanted).unwrap_or_default()
}

fn read(netdev: &str, is_wanted: impl Fn(&str) -> bool) -> io::Result<Vec<(String, u64)>> {
    let interface = Interface::new(netdev)?;
    // The command, a reserved word, the sets as 64 bits, and the size of each.
    let mut sizes = request(GET_SET_SIZES, 0, 1);
    sizes[1] = 1 << STATISTICS;
    interface.ask(&mut sizes)?;
    let count = low_half(sizes[2]) as usize;
    let room = 2 * count + MORE;
    let mut strings = request(GET_STRINGS, STATISTICS, room * NAME_BYTES / size_of::<u64>());
    interface.ask(&mut strings)?;
    let mut statistics = request(GET_STATISTICS, 0, room);
    interface.ask(&mut statistics)?;
    // The command, the set, the number of names, and they.
    let words = (12 + count * NAME_BYTES).div_ceil(size_of::<u64>());
    let bytes: Vec<u8> =
        strings.iter().take(words).flat_map(|word| word.to_ne_bytes()).skip(12).collect();
    let names = bytes.chunks_exact(NAME_BYTES).map(|name| {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&name[..end]).trim().to_owned()
    });
    let wanted = names.zip(statistics.into_iter().skip(1));
    Ok(wanted.filter(|(name, _)| is_wanted(name)).collect())
}

/// A request of two words of 32 bits, and room behind it for so many words of 64 bits and two more.
fn request(command: u32, argument: u32, words: usize) -> Vec<u64> {
    let mut request = vec![0; words + 3];
    let [a, b, c, d] = command.to_ne_bytes();
    let [e, f, g, h] = argument.to_ne_bytes();
    request[0] = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
    request
}

fn low_half(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// A network interface that is asked through a socket.
struct Interface {
    socket: OwnedFd,
    name: [c_char; libc::IFNAMSIZ],
}

impl Interface {
    fn new(name: &str) -> io::Result<Interface> {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        let mut of_request = [0; libc::IFNAMSIZ];
        for (to, from) in of_request[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        Ok(Interface { socket, name: of_request })
    }

    fn ask(&self, request: &mut [u64]) -> io::Result<()> {
        // SAFETY: bytes, integers and pointers, for which zero is a value.
        let mut of_interface: libc::ifreq = unsafe { std::mem::zeroed() };
        of_interface.ifr_name = self.name;
        of_interface.ifr_ifru.ifru_data = request.as_mut_ptr().cast::<c_void>().cast();
        // SAFETY: an open socket; `request` has room for twice as many counters as there were a moment ago, and `MORE`.
        let code =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut of_interface) };
        if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_interface_of_an_adapter_has_none() {
        assert!(read("no such one", |_| true).is_err());
        for root in ["/", "/nowhere"] {
            assert_eq!(interface_counters(Path::new(root), "no_device", 1, |_| true), []);
        }
    }

    #[test]
    fn a_request_begins_with_its_command_and_its_argument() {
        let words = request(GET_STRINGS, STATISTICS, 4);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!((words.len(), low_half(words[0])), (7, GET_STRINGS));
        assert_eq!(bytes[4..8], STATISTICS.to_ne_bytes());
    }
}
