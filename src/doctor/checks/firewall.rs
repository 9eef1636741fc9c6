//! Packet filters that may block the control connection (TCP) or RoCE v2 (UDP port 4791). Only root can read the
//! rules; without root, looks for the services that set them.

use super::subject::Subject;
use protocol::finding::{Finding, State};

/// UDP destination port of RoCE v2.
pub(super) const ROCE_PORT: u16 = 4791;

/// The capability to read and write rules.
const CAP_NET_ADMIN: u32 = 12;

/// Services that set firewall rules.
const SERVICES: [&str; 2] = ["firewalld", "ufw"];

fn why(control_port: u16) -> String {
    format!(
        "the ends talk over TCP port {control_port}, and RoCE v2 uses UDP port {ROCE_PORT}. An adapter's packets \
         bypass the host's firewall; those of Soft-RoCE and the embedded device do not. Switches may filter too"
    )
}

fn remedy(control_port: u16) -> String {
    format!(
        "sudo firewall-cmd --add-port={control_port}/tcp --add-port={ROCE_PORT}/udp, or sudo ufw allow \
         {control_port}/tcp and sudo ufw allow {ROCE_PORT}/udp, or the like in nft's input chain"
    )
}

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let port = subject.control_port;
    let running = services(subject);
    let rules = subject
        .machine
        .tool("nft", &["list", "ruleset"])
        .or_else(|| subject.machine.tool("iptables-save", &[]));
    let seen = rules.map(|text| judge(&text, port));
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
        Some(Rules::Open) => finding(port, State::Ok, format!("{by}no rule drops incoming packets")),
        Some(Rules::Named) => finding(port,
            State::Ok,
            format!("{by}the rules name both ports"),
        ),
        Some(Rules::Closed) => finding(port,
            State::Warning,
            format!(
                "{by}rules drop incoming packets and do not name both TCP {port} and UDP {ROCE_PORT}"
            ),
        )
        .remedy(remedy(port)),
        None if running.is_empty() => finding(port,
            State::Unknown,
            format!("rules could not be read{without}; neither firewalld nor ufw runs"),
        ),
        None => finding(port,
            State::Warning,
            format!("{by}its rules could not be read{without}"),
        )
        .remedy(remedy(port)),
    }]
}

fn finding(port: u16, state: State, found: String) -> Finding {
    Finding::new("firewall", state, found, why(port))
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
    /// The rules drop nothing.
    Open,
    /// The rules drop packets, but name both ports.
    Named,
    /// The rules drop packets and do not name both ports.
    Closed,
}

/// Judges rules in the format of `nft list ruleset` or `iptables-save`. It is approximate: it does not evaluate what
/// a rule does to the port that it names.
fn judge(rules: &str, control_port: u16) -> Rules {
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

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;
    use results::sample::starts;

    const CLOSED: &str = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\
         \t\tct state established accept\n\t\ttcp dport 22 accept\n\t}\n\tchain forward {\n\t\ttype filter hook forward priority 0; policy drop;\n\t}\n}\n";

    #[test]
    fn rules_of_nft() {
        assert_eq!(judge("", 18515), Rules::Open);
        assert_eq!(judge(CLOSED, 18515), Rules::Closed);
        // Forwarding does not matter.
        let open = CLOSED.replace("input priority filter; policy drop", "policy accept");
        assert_eq!(judge(&open, 18515), Rules::Open);
        let named = CLOSED.replace("dport 22", "dport { 22, 18515 } accept\n udp dport 4791");
        assert_eq!(judge(&named, 18515), Rules::Named);
        assert_eq!(judge(&named, 18516), Rules::Closed);
    }

    #[test]
    fn rules_of_iptables() {
        let open = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\nCOMMIT\n";
        assert_eq!(judge(open, 18515), Rules::Open);
        for closed in [
            ":INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n",
            ":INPUT ACCEPT [0:0]\n-A INPUT -j ufw-before-input\n",
        ] {
            assert_eq!(judge(closed, 18515), Rules::Closed, "{closed}");
        }
    }

    #[test]
    fn without_root_services_are_looked_for() {
        let tree = Tree::new(&[("etc/ufw/ufw.conf", "# x\nENABLED=no\n")]);
        assert_eq!(findings(&tree, check)[0].state, State::Unknown);
        tree.add("proc/9", &[("comm", "firewalld\n")]);
        let found = &findings(&tree, check)[0];
        assert_eq!(found.state, State::Warning);
        starts(&found.found, "firewalld runs");
        let seen = Tree::new(&[]).with_tools(|name, _| (name == "nft").then(String::new));
        assert_eq!(findings(&seen, check)[0].state, State::Ok);
    }
}
