//! What may keep packets from this host: packet filters, and programs that have UDP port 4791.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use protocol::node_report::{Check, Finding};
use settings::listed;

use super::Subject;
use crate::doctor::machine::Machine;

/// UDP destination port of RoCE v2.
const ROCE_PORT: u16 = 4791;

/// The capability to read and write rules.
const CAP_NET_ADMIN: u32 = 12;

/// Services that set firewall rules.
const SERVICES: [&str; 2] = ["firewalld", "ufw"];

const FIREWALL: Check = Check::new(
    "firewall",
    "the ends talk over a TCP port (--port), and RoCE v2 uses UDP port 4791. An adapter's packets bypass the host's firewall; \
     those of Soft-RoCE and the embedded device do not. Switches may filter too",
);

fn remedy(control_port: u16) -> String {
    format!(
        "sudo firewall-cmd --add-port={control_port}/tcp --add-port={ROCE_PORT}/udp, or sudo ufw allow \
         {control_port}/tcp and sudo ufw allow {ROCE_PORT}/udp, or the like in nft's input chain"
    )
}

/// Checks packet filters that may block the control connection (TCP) or RoCE v2 (UDP port 4791). Only root can read the
/// rules; without root, looks for the services that set them.
pub(super) fn check_firewall(subject: &Subject<'_>) -> Vec<Finding> {
    let port = subject.control_port;
    let running = services(subject);
    let rules = subject
        .machine
        .tool("nft", &["list", "ruleset"])
        .or_else(|| subject.machine.tool("iptables-save", &[]));
    let seen = rules.map(|text| judge_rules(&text, port));
    let by = match running.as_slice() {
        [] => String::new(),
        names => format!("{} runs; ", names.join(" and ")),
    };
    let without = if subject.machine.has_capability(CAP_NET_ADMIN) {
        ": neither nft nor iptables-save is installed"
    } else {
        " without root"
    };
    vec![match seen {
        Some(Rules::Open) => FIREWALL.ok(format!("{by}no rule drops incoming packets")),
        Some(Rules::Named) => FIREWALL.ok(format!("{by}the rules name both ports")),
        Some(Rules::Closed) => FIREWALL.warning(
            format!(
                "{by}rules drop incoming packets and do not name both TCP {port} and UDP {ROCE_PORT}"
            ),
            remedy(port),
        ),
        None if running.is_empty() => FIREWALL.unknown(format!(
            "rules could not be read{without}; neither firewalld nor ufw runs"
        )),
        None => {
            FIREWALL.warning(format!("{by}its rules could not be read{without}"), remedy(port))
        }
    }]
}

fn services(subject: &Subject<'_>) -> Vec<&'static str> {
    let machine = subject.machine;
    let processes = machine.processes();
    SERVICES
        .into_iter()
        .filter(|service| match *service {
            // The service sets its rules and ends; this file says whether it does so at boot.
            "ufw" => machine
                .text("etc/ufw/ufw.conf")
                .is_some_and(|conf| conf.lines().any(|line| line.trim() == "ENABLED=yes")),
            name => processes.iter().any(|(_, process)| process == name),
        })
        .collect()
}

#[derive(Debug, PartialEq)]
enum Rules {
    /// No rule drops incoming packets.
    Open,
    /// The rules drop packets, but name both ports.
    Named,
    /// The rules drop packets and do not name both ports.
    Closed,
}

/// Judges rules in the format of `nft list ruleset` or `iptables-save`. It is approximate: it does not evaluate what
/// a rule does to the port that it names.
fn judge_rules(rules: &str, control_port: u16) -> Rules {
    let mut drops = false;
    let mut chain_filters_input = false;
    for line in rules.lines().map(str::trim) {
        // nft: a chain's hook and policy, followed by its rules.
        if line.starts_with("chain ") {
            chain_filters_input = false;
        }
        if line.contains("hook input") || line.contains("hook prerouting") {
            chain_filters_input = true;
        }
        let words: Vec<&str> = line.split([' ', ';']).collect();
        let leads_on =
            chain_filters_input && words.iter().any(|word| matches!(*word, "jump" | "goto"));
        if chain_filters_input && words.iter().any(|word| matches!(*word, "drop" | "reject"))
            || leads_on
        {
            drops = true;
        }
        // iptables: `:INPUT DROP [0:0]`, `-A INPUT … -j DROP`.
        let of_input = line.starts_with("-A INPUT") || line.starts_with("-A PREROUTING");
        let accepts = line.ends_with("-j ACCEPT");
        if line.starts_with(":INPUT DROP") || of_input && !accepts && line.contains(" -j ") {
            drops = true;
        }
    }
    if !drops {
        Rules::Open
    } else if names_port(rules, control_port) && names_port(rules, ROCE_PORT) {
        Rules::Named
    } else {
        Rules::Closed
    }
}

fn names_port(rules: &str, port: u16) -> bool {
    let digits = port.to_string();
    rules.split(|c: char| !c.is_ascii_digit()).any(|number| number == digits)
}

const UDP: Check = Check::new(
    "UDP port 4791",
    "Soft-RoCE needs UDP port 4791 on all addresses, the embedded device on one; they cannot start if another program has it. \
     An adapter does not need the port",
);

/// The most processes named one by one.
const MOST_SHOWN: usize = 2;

/// Checks which process uses UDP port 4791: on one address only embedded devices of one user share it.
pub(super) fn check_udp_port(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    let (Some(v4), v6) =
        (machine.text("proc/net/udp"), machine.text("proc/net/udp6").unwrap_or_default())
    else {
        return vec![UDP.unknown("/proc/net/udp could not be read")];
    };
    let holders: Vec<Holder> =
        [v4, v6].iter().flat_map(|table| table.lines().filter_map(holder)).collect();
    vec![judge_holders(machine, &holders)]
}

fn judge_holders(machine: &Machine, holders: &[Holder]) -> Finding {
    if holders.is_empty() {
        return UDP.ok("no program has it");
    }
    let everywhere = holders.iter().any(|it| it.address.is_unspecified());
    let owners: Vec<Option<String>> =
        holders.iter().map(|holder| owner(machine, holder.inode)).collect();
    let unseen = owners.iter().all(Option::is_none);
    if everywhere && unseen && machine.has("sys/module/rdma_rxe") {
        return UDP.ok(
            "the kernel's Soft-RoCE (rdma_rxe) has it on all addresses; no embedded device can run beside it",
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
        UDP.warning(
            format!("{found}: no software RoCE device can start"),
            "end that program (`sudo ss -ulnp sport = :4791` shows it)",
        )
    } else {
        UDP.ok(format!("{found}; other addresses are free"))
    }
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
    use protocol::node_report::State;
    use results::sample::starts;

    use super::super::tests::*;
    use super::*;

    const CLOSED: &str = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\
         \t\tct state established accept\n\t\ttcp dport 22 accept\n\t}\n\tchain forward {\n\t\ttype filter hook forward priority 0; policy drop;\n\t}\n}\n";

    #[test]
    fn rules_of_nft() {
        assert_eq!(judge_rules("", 18515), Rules::Open);
        assert_eq!(judge_rules(CLOSED, 18515), Rules::Closed);
        // Forwarding does not matter.
        let open = CLOSED.replace("input priority filter; policy drop", "policy accept");
        assert_eq!(judge_rules(&open, 18515), Rules::Open);
        let named = CLOSED.replace("dport 22", "dport { 22, 18515 } accept\n udp dport 4791");
        assert_eq!(judge_rules(&named, 18515), Rules::Named);
        assert_eq!(judge_rules(&named, 18516), Rules::Closed);
    }

    #[test]
    fn rules_of_iptables() {
        let open = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\nCOMMIT\n";
        assert_eq!(judge_rules(open, 18515), Rules::Open);
        for closed in [
            ":INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n",
            ":INPUT ACCEPT [0:0]\n-A INPUT -j ufw-before-input\n",
        ] {
            assert_eq!(judge_rules(closed, 18515), Rules::Closed, "{closed}");
        }
    }

    #[test]
    fn without_root_services_are_looked_for() {
        let tree = Tree::new(&[("etc/ufw/ufw.conf", "# x\nENABLED=no\n")]);
        assert_eq!(findings(&tree, check_firewall)[0].state, State::Unknown);
        tree.add("proc/9", &[("comm", "firewalld\n")]);
        let found = &findings(&tree, check_firewall)[0];
        assert_eq!(found.state, State::Warning);
        starts(&found.found, "firewalld runs");
        let seen = Tree::new(&[]).with_tools(|name, _| (name == "nft").then(String::new));
        assert_eq!(findings(&seen, check_firewall)[0].state, State::Ok);
    }

    const HEAD: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";

    fn udp_line(address: &str, inode: u64) -> String {
        format!(
            "  377: {address} 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 {inode} 2 0000000000000000 0\n"
        )
    }

    #[test]
    fn addresses_as_the_kernel_writes_them() {
        let local = u32::from_ne_bytes([127, 0, 0, 1]);
        let expected = Holder { address: "127.0.0.1".parse().unwrap(), inode: 5 };
        assert_eq!(holder(&udp_line(&format!("{local:08X}:12B7"), 5)), Some(expected));
        let any = "00000000000000000000000000000000";
        let everywhere = holder(&udp_line(&format!("{any}:12B7"), 6)).unwrap();
        assert_eq!(everywhere.address, Ipv6Addr::UNSPECIFIED);
        assert_eq!(holder(&udp_line("00000000:12B8", 7)), None);
        assert_eq!(holder(HEAD), None);
    }

    #[test]
    fn holders_are_named_where_they_can_be_seen() {
        let of = |table: String, files: &[(&str, &str)]| {
            let tree = Tree::new(&[("proc/net/udp", &table)]);
            tree.add("", files);
            tree.link("proc/9/fd/3", "socket:[77]");
            tree.add("proc/9", &[("comm", "other\n")]);
            let found = findings(&tree, check_udp_port).remove(0);
            (found.state, found.found)
        };
        assert_eq!(of(HEAD.into(), &[]).1, "no program has it");
        let everywhere = format!("{HEAD}{}", udp_line("00000000:12B7", 77));
        let taken = "taken on 0.0.0.0 by other (process 9): no software RoCE device can start";
        assert_eq!(of(everywhere, &[]), (State::Warning, taken.into()));
        let kernels = format!("{HEAD}{}", udp_line("00000000:12B7", 78));
        let (state, text) = of(kernels, &[("sys/module/rdma_rxe/version", "")]);
        assert!(state == State::Ok && text.contains("Soft-RoCE"), "{text}");
        assert_eq!(findings(&Tree::new(&[]), check_udp_port)[0].state, State::Unknown);
    }
}
