//! Counters of a port that count only once root has switched them on, such as mlx5's of packets with ECN's mark. The kernel
//! shows no file of them (Linux, drivers/infiniband/core: sysfs.c leaves them out): they come by RDMA netlink (nldev.c), which
//! needs no root to read.

use std::os::fd::OwnedFd;

use rustix::net::netlink::{RDMA, SocketAddrNetlink};
use rustix::net::{RecvFlags, SendFlags, recv, sendto};

use crate::device::{
    HEADER_BYTES, NLM_F_REQUEST, netlink_attributes, netlink_message, open_netlink, put_attribute,
};

// Numbers are those of `rdma/rdma_netlink.h` and `linux/netlink.h`.

/// `RDMA_NL_NLDEV`, in the upper bits of a message's type.
const NLDEV: u16 = 5 << 10;
/// `RDMA_NLDEV_CMD_GET`: numbers of the devices by name.
const GET: u16 = NLDEV | 1;
/// `RDMA_NLDEV_CMD_STAT_GET`: the values of those counters that count.
const STAT_GET: u16 = NLDEV | 17;
/// `RDMA_NLDEV_CMD_STAT_GET_STATUS`: the names of all, and which are on.
const STAT_GET_STATUS: u16 = NLDEV | 24;
const NLM_F_DUMP: u16 = 0x300;

const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const HWCOUNTERS: u16 = 80;
const HWCOUNTER_NAME: u16 = 82;
const HWCOUNTER_VALUE: u16 = 83;
/// A byte that only an optional counter has: whether it is on.
const HWCOUNTER_DYNAMIC: u16 = 95;

/// Answers that a list of devices may take.
const MOST_ANSWERS: usize = 64;

/// The optional counters of a port.
#[derive(Debug)]
pub struct OptionalCounters {
    socket: OwnedFd,
    device: u32,
    port: u8,
    /// Names, and whether each is on.
    pub status: Vec<(String, bool)>,
}

impl OptionalCounters {
    /// Those of a port of a device that the running kernel knows; `None` where it has none.
    pub fn open(device: &str, port: u8) -> Option<OptionalCounters> {
        let socket = open_netlink(Some(RDMA)).ok()?;
        ask(&socket, &netlink_message(GET, NLM_F_REQUEST | NLM_F_DUMP, &[]))?;
        let index = index_of(&socket, device)?;
        // What is left of the list is in the first socket.
        let mut own = OptionalCounters {
            socket: open_netlink(Some(RDMA)).ok()?,
            device: index,
            port,
            status: Vec::new(),
        };
        own.status = status(&own.answer_to(STAT_GET_STATUS)?);
        (!own.status.is_empty()).then_some(own)
    }

    /// Whether there is anything to read.
    pub fn are_on(&self) -> bool {
        self.status.iter().any(|(_, is_on)| *is_on)
    }

    /// The values of those that are on.
    pub fn values(&self) -> Vec<(String, u64)> {
        let mut found = self.answer_to(STAT_GET).map_or_else(Vec::new, |bytes| values(&bytes));
        found.retain(|(name, _)| self.status.iter().any(|(it, is_on)| it == name && *is_on));
        found
    }

    fn answer_to(&self, command: u16) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        put_attribute(&mut body, DEV_INDEX, &self.device.to_ne_bytes());
        put_attribute(&mut body, PORT_INDEX, &u32::from(self.port).to_ne_bytes());
        ask(&self.socket, &netlink_message(command, NLM_F_REQUEST, &body))?;
        answer(&self.socket)
    }
}

fn ask(socket: &OwnedFd, message: &[u8]) -> Option<()> {
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(socket, message, SendFlags::empty(), &kernel).ok().map(drop)
}

fn answer(socket: &OwnedFd) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 32 << 10];
    let (received, _) = recv(socket, &mut bytes[..], RecvFlags::empty()).ok()?;
    bytes.truncate(received);
    Some(bytes)
}

/// Types and attributes of messages, up to the first that does not fit.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
        let attributes = bytes.get(HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, attributes))
    })
}

/// The kernel's number of a device, from its list of them.
fn index_of(socket: &OwnedFd, device: &str) -> Option<u32> {
    for _ in 0..MOST_ANSWERS {
        let bytes = answer(socket)?;
        let index = device_index(&bytes, device);
        if index.is_some() || is_last(&bytes) {
            return index;
        }
    }
    None
}

/// Whether the list ends here, or in an error.
fn is_last(bytes: &[u8]) -> bool {
    messages(bytes).last().is_none_or(|(kind, _)| kind != GET)
}

fn device_index(bytes: &[u8], device: &str) -> Option<u32> {
    let mut devices = messages(bytes).filter(|(kind, _)| *kind == GET).map(|(_, body)| body);
    let own =
        devices.find(|body| attribute(body, DEV_NAME).map(name).as_deref() == Some(device))?;
    attribute(own, DEV_INDEX)?.first_chunk().map(|index| u32::from_ne_bytes(*index))
}

/// Names of optional counters, and whether each is on.
fn status(bytes: &[u8]) -> Vec<(String, bool)> {
    let optional = counters(bytes, STAT_GET_STATUS).filter_map(|entry| {
        let is_on = *attribute(entry, HWCOUNTER_DYNAMIC)?.first()? != 0;
        Some((name(attribute(entry, HWCOUNTER_NAME)?), is_on))
    });
    optional.collect()
}

fn values(bytes: &[u8]) -> Vec<(String, u64)> {
    let with_value = counters(bytes, STAT_GET).filter_map(|entry| {
        let value = attribute(entry, HWCOUNTER_VALUE)?.first_chunk()?;
        Some((name(attribute(entry, HWCOUNTER_NAME)?), u64::from_ne_bytes(*value)))
    });
    with_value.collect()
}

/// The attributes of each counter in the answer to a command.
fn counters(bytes: &[u8], command: u16) -> impl Iterator<Item = &[u8]> {
    let answers = messages(bytes).filter(move |(kind, _)| *kind == command);
    let tables = answers.filter_map(|(_, body)| attribute(body, HWCOUNTERS));
    tables.flat_map(netlink_attributes).map(|(_, entry)| entry)
}

fn attribute(body: &[u8], wanted: u16) -> Option<&[u8]> {
    netlink_attributes(body).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// A text, which ends with a zero.
fn name(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(rows: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, value) in rows {
            put_attribute(&mut bytes, *kind, value);
        }
        bytes
    }

    /// What `fill_nldev_handle` writes first.
    fn device(index: u32, name: &[u8]) -> Vec<u8> {
        attributes(&[(DEV_INDEX, &index.to_ne_bytes()), (DEV_NAME, name)])
    }

    /// What nldev writes for a port with these counters; tables are `nla_nest_start`'s, with its flag.
    fn port(command: u16, entries: &[Vec<u8>]) -> Vec<u8> {
        let rows: Vec<(u16, &[u8])> = entries.iter().map(|it| (0x8000 | 81, &**it)).collect();
        let table = attributes(&rows);
        let rest = attributes(&[(PORT_INDEX, &[1, 0, 0, 0]), (0x8000 | HWCOUNTERS, &table)]);
        netlink_message(command, 0, &[device(3, b"mlx5_0\0"), rest].concat())
    }

    #[test]
    fn a_device_has_its_index_in_the_list() {
        let of = |index, name| netlink_message(GET, 2, &device(index, name));
        let list = [of(0, b"rxe0\0"), of(3, b"mlx5_0\0")].concat();
        assert_eq!(device_index(&list, "mlx5_0"), Some(3));
        assert_eq!(device_index(&list, "mlx5"), None);
        // NLMSG_DONE is 3, NLMSG_ERROR 2.
        let ends = [3, 2].map(|kind| is_last(&netlink_message(kind, 2, &[0; 4])));
        assert_eq!((ends, is_last(&list), is_last(&[])), ([true; 2], false, true));
    }

    #[test]
    fn optional_counters_have_a_state_and_a_value_once_they_are_on() {
        let entry = |name: &[u8], state: &[(u16, &[u8])]| {
            attributes(&[&[(HWCOUNTER_NAME, name)], state].concat())
        };
        let [on, off]: [&[(u16, &[u8])]; 2] =
            [&[(HWCOUNTER_DYNAMIC, &[1])], &[(HWCOUNTER_DYNAMIC, &[0])]];
        let states = port(
            STAT_GET_STATUS,
            &[
                entry(b"np_cnp_sent\0", &[(94, &[0; 4])]),
                entry(b"cc_rx_ce_pkts\0", on),
                entry(b"cc_tx_cnp_pkts\0", off),
            ],
        );
        let [marked, sent] = ["cc_rx_ce_pkts", "cc_tx_cnp_pkts"].map(str::to_owned);
        assert_eq!(status(&states), [(marked.clone(), true), (sent, false)]);
        let count = (0x1_0000_0007_u64).to_ne_bytes();
        let counts = port(STAT_GET, &[entry(b"cc_rx_ce_pkts\0", &[(HWCOUNTER_VALUE, &count)])]);
        assert_eq!(values(&counts), [(marked, 0x1_0000_0007)]);
        for length in 0..counts.len() {
            assert!(values(&counts[..length]).is_empty() && status(&states[..length]).is_empty());
        }
        assert_eq!(values(&states), []);
    }

    #[test]
    fn a_device_that_the_kernel_does_not_know_has_none() {
        assert!(OptionalCounters::open("no such device", 1).is_none());
    }
}
