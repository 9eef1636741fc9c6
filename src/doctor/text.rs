//! An examination and an inventory as text of at most 100 columns.

use std::fmt::Write as _;

use protocol::node_report::{Finding, State};

use super::examine::{ExaminationEvent, Report};
use super::inventory::{DeviceEntry, Inventory, PortEntry};

const STATE_WIDTH: usize = 9;
const LABEL_WIDTH: usize = 20;

/// Columns of a line at least: below them text would stand in a strip.
const LEAST_WIDTH: usize = 60;

/// The lines of an event: of a finding one with its state and what was found; for a problem also why it matters and how
/// to mend it. With `all_reasons` every finding has its reason. Lines fit a screen of `columns`, if that is not very narrow.
pub fn event_lines(event: &ExaminationEvent<'_>, all_reasons: bool, columns: usize) -> String {
    match event {
        ExaminationEvent::Section(text) => format!("\n{}\n", capitalised(text)),
        ExaminationEvent::Finding(finding) => {
            finding_text(finding, all_reasons, columns.clamp(LEAST_WIDTH, WIDTH))
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// The lines of a finding, of at most `width` columns.
pub(super) fn finding_text(finding: &Finding, all_reasons: bool, width: usize) -> String {
    let indent = STATE_WIDTH + LABEL_WIDTH + 1;
    let mut text =
        format!("{:<STATE_WIDTH$}{:<LABEL_WIDTH$} ", finding.state.name(), finding.label());
    let overlong = text.chars().count() > indent;
    let needs_mending = matches!(finding.state, State::Warning | State::Broken);
    let mut paragraphs = vec![("", finding.found.as_str())];
    if needs_mending || all_reasons {
        paragraphs.push(("why: ", &finding.why));
    }
    if let Some(remedy) = &finding.remedy {
        paragraphs.push(("try: ", remedy));
    }
    for (number, (head, paragraph)) in paragraphs.iter().enumerate() {
        let head_width = head.chars().count();
        let lines = wrapped(paragraph, width - indent - head_width);
        for (line_number, line) in lines.iter().enumerate() {
            // The first line continues after the label, unless the label is too long.
            if (number, line_number) != (0, 0) || overlong {
                text = text.trim_end().to_owned() + "\n" + &" ".repeat(indent);
            }
            text += &match line_number {
                0 => format!("{head}{line}"),
                _ => format!("{:head_width$}{line}", ""),
            };
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// The last line: the number of findings of each state.
pub fn summary(report: &Report) -> String {
    counted(|state| report.count(state))
}

/// As [`summary`], of the counts of any findings.
pub(super) fn counted(count: impl Fn(State) -> usize) -> String {
    let mut parts = Vec::new();
    for (state, one, many) in [
        (State::Ok, "ok", "ok"),
        (State::Warning, "warning", "warnings"),
        (State::Broken, "broken", "broken"),
        (State::Unknown, "unknown", "unknown"),
    ] {
        match count(state) {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            count => parts.push(format!("{count} {many}")),
        }
    }
    format!("\n{}\n", parts.join(", "))
}

/// A paragraph per device with its ports and their GID tables, which of them would be used, and the processor. `requested` is
/// the device named with `-d`.
pub fn inventory_text(inventory: &Inventory, requested: Option<&str>) -> String {
    let mut out = String::new();
    for device in &inventory.devices {
        device_text(&mut out, inventory, device);
    }
    out.push('\n');
    let host = &inventory.host;
    let machine =
        (!host.hostname.is_empty()).then(|| format!("{} has {}.", host.hostname, host.processor()));
    for paragraph in choice_paragraphs(inventory, requested).into_iter().chain(machine) {
        for line in wrapped(&paragraph, WIDTH) {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

fn device_text(out: &mut String, inventory: &Inventory, device: &DeviceEntry) {
    let mut facts: Vec<String> = Vec::new();
    if device.is_embedded() {
        facts.push("embedded in rocebench, software".to_owned());
        facts.push(match device.address {
            Some(address) => address.to_string(),
            None => "loopback: a free address of 127.0.0.0/8 at each opening".to_owned(),
        });
    } else {
        facts.extend(device.driver.clone());
        if device.software {
            facts.push("software".to_owned());
        }
        facts.extend(device.firmware.iter().map(|version| format!("firmware {version}")));
        facts.extend(device.pci_address.iter().map(|address| {
            match (device.pci_gtransfer_per_s, device.pci_width_lanes) {
                (Some(speed), Some(width)) => format!("PCI {address} ({speed} GT/s x{width})"),
                _ => format!("PCI {address}"),
            }
        }));
        facts.extend(device.numa_node.map(|node| format!("NUMA node {node}")));
    }
    let _ = writeln!(out, "{}  {}", device.name, facts.join(", "));
    if let Some(note) = &device.note {
        for line in wrapped(&format!("note: {note}"), WIDTH - 2) {
            let _ = writeln!(out, "  {line}");
        }
    }
    for port in &device.ports {
        port_text(out, inventory, device, port);
    }
}

fn port_text(out: &mut String, inventory: &Inventory, device: &DeviceEntry, port: &PortEntry) {
    let mut facts: Vec<String> = Vec::new();
    facts.extend(port.state.clone());
    facts.extend(port.link_layer.clone());
    facts.extend(port.link_gbit_per_s.map(|speed| match port.width_lanes {
        Some(1) => format!("{speed} Gb/s (1 lane)"),
        Some(lanes) => format!("{speed} Gb/s ({lanes} lanes)"),
        None => format!("{speed} Gb/s"),
    }));
    facts.push(match (port.active_mtu_bytes, port.max_mtu_bytes) {
        (Some(active), Some(max)) => format!("MTU {active} of at most {max}"),
        (Some(active), None) => format!("MTU {active}"),
        (None, _) => "MTU unknown".to_owned(),
    });
    if let Some(netdev) = &port.netdev {
        facts.push(match port.netdev_mtu_bytes {
            Some(bytes) => format!("on {netdev} (MTU {bytes})"),
            None => format!("on {netdev}"),
        });
    }
    facts.extend(port.other_function.iter().map(|other| format!("its cable is also {other}'s")));
    facts.extend(
        port.bond
            .as_ref()
            .map(|bond| format!("{} members of {} Gb/s", bond.members, bond.gbit_per_s_of_member)),
    );
    for (number, line) in wrapped(&facts.join(", "), WIDTH - 10).iter().enumerate() {
        let head = if number == 0 { format!("port {}:", port.port) } else { String::new() };
        let _ = writeln!(out, "  {head:<7} {line}");
    }
    if port.gids.is_empty() {
        let _ = writeln!(out, "    no GID");
        return;
    }
    let types = column_width("type", &mut port.gids.iter().map(|it| it.gid_type.len()));
    let families = column_width("family", &mut port.gids.iter().map(|it| it.family.len()));
    let netdevs =
        column_width("netdev", &mut port.gids.iter().map(|it| netdev_text(&it.netdev).len()));
    let _ = writeln!(
        out,
        "    index  {:<types$}  {:<families$}  {:<netdevs$}  GID",
        "type", "family", "netdev"
    );
    for gid in &port.gids {
        let is_chosen = inventory
            .choice
            .as_ref()
            .is_some_and(|choice| choice.is(&device.name, port.port, gid.index));
        let mark = if is_chosen { '*' } else { ' ' };
        let _ = writeln!(
            out,
            "  {mark} {:>5}  {:<types$}  {:<families$}  {:<netdevs$}  {}",
            gid.index,
            gid.gid_type,
            gid.family,
            netdev_text(&gid.netdev),
            gid.gid
        );
    }
}

fn netdev_text(netdev: &Option<String>) -> String {
    netdev.clone().unwrap_or_else(|| "-".to_owned())
}

fn column_width(head: &str, cells: &mut dyn Iterator<Item = usize>) -> usize {
    cells.max().unwrap_or(0).max(head.chars().count())
}

/// The choice and its reasons, one paragraph each.
fn choice_paragraphs(inventory: &Inventory, requested: Option<&str>) -> Vec<String> {
    let with = match requested {
        Some(name) => format!("with -d {name}"),
        None => "by default".to_owned(),
    };
    let Some(choice) = &inventory.choice else {
        let none = inventory.no_choice.clone().unwrap_or_default();
        let mut paragraphs =
            vec![format!("rocebench can use none of them {with}: {}.", none.because)];
        paragraphs.extend(none.remedy.map(|remedy| format!("Try: {remedy}")));
        return paragraphs;
    };
    let takes = match choice.gid_index {
        Some(_) => "* marks the GID that rocebench takes",
        None => "No GID is needed for the port that rocebench takes",
    };
    let mut text = format!(
        "{takes} {with}. {} port {}: {}.",
        choice.device, choice.port, choice.device_because
    );
    if let Some(index) = choice.gid_index {
        text += &format!(" GID index {index}: {}.", choice.gid_because);
    }
    let mut paragraphs = vec![text];
    if requested.is_none() {
        paragraphs.push(
            "With HOST rocebench takes the port and the GID with the control connection's address, or else in the \
             other end's network, if there are any."
                .to_owned(),
        );
    }
    paragraphs
}

/// Columns of a line of a report about one machine.
pub(super) const WIDTH: usize = 100;

/// Lines of at most `width` characters; a longer word gets its own line.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        let taken = line.chars().count();
        if taken > 0 && taken + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if taken > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use protocol::node_report::Check;

    use super::super::inventory::tests::tree;
    use super::super::inventory::{Choice, EMBEDDED, NoChoice, kernel_devices};
    use super::*;

    #[test]
    fn what_is_well_takes_one_line_and_the_rest_says_why() {
        let well = Check::new("port", "it must").ok("ACTIVE").about("rxe0:1");
        let short = "ok       port rxe0:1          ACTIVE\n";
        assert_eq!(finding_text(&well, false, WIDTH), short);
        assert!(finding_text(&well, true, WIDTH).ends_with("why: it must\n"));
        let why = "the Ethernet driver alone gives no RDMA device, and so on and on until the line is full";
        let found = "mlx5_core drives 2 PCI functions, and mlx5_ib is not loaded";
        let ill = Check::new("kernel module", why)
            .warning(found, "sudo modprobe mlx5_ib")
            .about("mlx5_ib");
        let text = finding_text(&ill, false, WIDTH);
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_machine_at_a_glance() {
        let tree = tree();
        let mut devices = kernel_devices(&tree.machine);
        devices[0].ports[0].active_mtu_bytes = Some(4096);
        devices[0].ports[0].max_mtu_bytes = Some(4096);
        devices[1].note = Some("open rxe0: Permission denied".into());
        devices.push(DeviceEntry {
            name: "soft0".into(),
            library: EMBEDDED.into(),
            ..DeviceEntry::default()
        });
        let inventory = Inventory {
            devices,
            choice: Some(Choice {
                device: "mlx5_0".into(),
                library: "libibverbs".into(),
                port: 1,
                gid_index: Some(3),
                device_because: "it is the first active port with a RoCE v2 GID".into(),
                gid_because: "it is the first RoCE v2 GID with an IPv4 address".into(),
                ..Choice::default()
            }),
            ..Inventory::default()
        };
        let text = inventory_text(&inventory, None);
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn nothing_usable_is_said_with_the_reason() {
        let inventory = Inventory {
            no_choice: Some(NoChoice {
                because: "UDP port 4791 is taken".into(),
                remedy: Some("end it".into()),
            }),
            ..Inventory::default()
        };
        let paragraphs =
            "rocebench can use none of them with -d soft0: UDP port 4791 is taken.\nTry: end it";
        assert_eq!(inventory_text(&inventory, Some("soft0")).trim(), paragraphs);
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("µµµ µµµ", 7), ["µµµ µµµ"]);
        assert_eq!(wrapped("much-too-long a", 4), ["much-too-long", "a"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
