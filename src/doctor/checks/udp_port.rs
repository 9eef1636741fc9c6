//! Checks which process uses UDP port 4791: on one address only embedded devices of one
//! user share it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use settings::listed;

use super::super::machine::Machine;
use super::firewall::ROCE_PORT;
use super::subject::Subject;
use protocol::finding::{Finding, State};

const WHY: &str = "Soft-RoCE needs UDP port 4791 on all addresses, the embedded device on one; they cannot start if \
                   another program has it. An adapter does not need the port";

/// The most processes named one by one.
const MOST_SHOWN: usize = 2;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let (Some(v4), v6) =
        (machine.text("proc/net/udp"), machine.text("proc/net/udp6").unwrap_or_default())
    else {
        return vec![Finding::new(
            "UDP port 4791",
            State::Unknown,
            "/proc/net/udp could not be read",
            WHY,
        )];
    };
    let holders: Vec<Holder> =
        [v4, v6].iter().flat_map(|table| table.lines().filter_map(holder)).collect();
    vec![judge(machine, &holders)]
}

fn judge(machine: &Machine, holders: &[Holder]) -> Finding {
    if holders.is_empty() {
        return finding(State::Ok, "no program has it".into());
    }
    let everywhere = holders.iter().any(|it| it.address.is_unspecified());
    let owners: Vec<Option<String>> =
        holders.iter().map(|holder| owner(machine, holder.inode)).collect();
    let unseen = owners.iter().all(Option::is_none);
    if everywhere && unseen && machine.has("sys/module/rdma_rxe") {
        return finding(
            State::Ok,
            "the kernel's Soft-RoCE (rdma_rxe) has it on all addresses; no embedded device can run beside it".into(),
        );
    }
    let mut taken: Vec<String> = holders
        .iter()
        .zip(owners)
        .map(|(holder, owner)| {
            let who = owner.unwrap_or_else(|| "a program that only root can see".to_owned());
            format!("{} by {who}", holder.address)
        })
        .collect();
    let more = taken.len().saturating_sub(MOST_SHOWN);
    taken.truncate(MOST_SHOWN);
    if more > 0 {
        taken.push(format!("{more} more"));
    }
    let found = format!("taken on {}", listed(&taken));
    if everywhere {
        finding(State::Warning, format!("{found}: no software RoCE device can start"))
            .remedy("end that program (`sudo ss -ulnp sport = :4791` shows it)")
    } else {
        finding(State::Ok, format!("{found}; other addresses are free"))
    }
}

fn finding(state: State, found: String) -> Finding {
    Finding::new("UDP port 4791", state, found, WHY)
}

#[derive(Debug, PartialEq)]
struct Holder {
    address: IpAddr,
    inode: u64,
}

/// A line of `/proc/net/udp` or `udp6` of a socket on the port: `sl local_address … inode …` (proc(5)).
fn holder(line: &str) -> Option<Holder> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = words.get(1)?.split_once(':')?;
    if u16::from_str_radix(port, 16) != Ok(ROCE_PORT) {
        return None;
    }
    Some(Holder { address: parse_address(address)?, inode: words.get(9)?.parse().ok()? })
}

/// Decodes an address: the kernel prints each 32-bit word, which is in network order, as a host-order number.
fn parse_address(hex: &str) -> Option<IpAddr> {
    let words: Option<Vec<[u8; 4]>> = hex
        .as_bytes()
        .chunks(8)
        .map(|word| {
            let word = std::str::from_utf8(word).ok()?;
            Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
        })
        .collect();
    match words?.as_slice() {
        [v4] => Some(Ipv4Addr::from(*v4).into()),
        [a, b, c, d] => {
            let bytes: [u8; 16] = [*a, *b, *c, *d].concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// Name and number of the process that has a socket, among the processes that this user may inspect.
fn owner(machine: &Machine, inode: u64) -> Option<String> {
    let socket = format!("socket:[{inode}]");
    machine.processes().into_iter().find_map(|(pid, name)| {
        let folder = format!("proc/{pid}/fd");
        let files = machine.list(&folder);
        files
            .iter()
            .any(|file| machine.link_name(format!("{folder}/{file}")).as_deref() == Some(&socket))
            .then(|| format!("{name} (process {pid})"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    const HEAD: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";

    fn line(address: &str, inode: u64) -> String {
        format!(
            "  377: {address} 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 {inode} 2 0000000000000000 0\n"
        )
    }

    #[test]
    fn addresses_as_the_kernel_writes_them() {
        let local = u32::from_ne_bytes([127, 0, 0, 1]);
        let expected = Holder { address: "127.0.0.1".parse().unwrap(), inode: 5 };
        let found = holder(&line(&format!("{local:08X}:12B7"), 5));
        assert_eq!(found, Some(expected));
        let any = "00000000000000000000000000000000";
        let found = holder(&line(&format!("{any}:12B7"), 6)).unwrap();
        assert_eq!(found.address, Ipv6Addr::UNSPECIFIED);
        assert_eq!(holder(&line("00000000:12B8", 7)), None);
        assert_eq!(holder(HEAD), None);
    }

    #[test]
    fn holders_are_named_where_they_can_be_seen() {
        let of = |table: String, files: &[(&str, &str)]| {
            let tree = Tree::new(&[("proc/net/udp", &table)]);
            tree.add("", files);
            tree.link("proc/9/fd/3", "socket:[77]");
            tree.add("proc/9", &[("comm", "other\n")]);
            let found = findings(&tree, check).remove(0);
            (found.state, found.found)
        };
        assert_eq!(of(HEAD.into(), &[]).1, "no program has it");
        let everywhere = format!("{HEAD}{}", line("00000000:12B7", 77));
        let taken = "taken on 0.0.0.0 by other (process 9): no software RoCE device can start";
        assert_eq!(of(everywhere, &[]), (State::Warning, taken.into()));
        let kernels = format!("{HEAD}{}", line("00000000:12B7", 78));
        let (state, text) = of(kernels, &[("sys/module/rdma_rxe/version", "")]);
        assert!(state == State::Ok && text.contains("Soft-RoCE"), "{text}");
        assert_eq!(findings(&Tree::new(&[]), check)[0].state, State::Unknown);
    }
}
