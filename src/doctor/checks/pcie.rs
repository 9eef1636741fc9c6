//! Checks the PCIe link of each adapter: whether it has its full width and speed, and is fast enough for the network
//! link.

use super::super::entries::DeviceEntry;
use super::subject::Subject;
use protocol::finding::{Finding, State};

const WHY: &str = "all payload crosses the adapter's PCIe link once; a narrow or slow one is the usual reason why \
     a fast adapter stops at half its rate";

/// The share of a packet of 256 bytes that is payload, after headers and flow control: a TLP has some 26 bytes
/// besides its payload (PCI Express Base Specification, chapters 2 and 3).
const PAYLOAD_SHARE: f64 = 0.9;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    subject.adapters().filter_map(judge).collect()
}

fn judge(device: &DeviceEntry) -> Option<Finding> {
    // Skips devices without a PCI bus, as in some virtual machines.
    device.pci_address.as_ref()?;
    let (Some(speed), Some(width)) = (device.pci_gtransfer_per_s, device.pci_width_lanes) else {
        return Some(finding(
            device,
            State::Unknown,
            "the kernel does not report the link's width and speed (as in virtual machines)".into(),
        ));
    };
    let gbit_per_s = gbit_per_s(speed, width);
    let mut found = format!("{speed} GT/s x{width}, about {gbit_per_s:.0} Gb/s");
    let slow = device.pci_max_gtransfer_per_s.is_some_and(|max| max > speed);
    let narrow = device.pci_max_width_lanes.is_some_and(|max| max > width);
    let network: f64 = device
        .ports
        .iter()
        .filter(|port| port.is_active())
        .filter_map(|port| port.link_gbit_per_s)
        .sum();
    if slow || narrow {
        let max = (device.pci_max_gtransfer_per_s, device.pci_max_width_lanes);
        if let (Some(speed), Some(width)) = max {
            found += &format!("; the adapter can do {speed} GT/s x{width}");
        }
    }
    if network > gbit_per_s {
        return Some(
            finding(device,
                State::Warning,
                format!("{found}; less than the {network} Gb/s of its ports"),
            )
            .remedy(
                "move the adapter to a wider slot of this speed, or look for a bifurcated or shared one (`sudo lspci \
                 -vv` shows LnkCap and LnkSta; the BIOS sets the slot)",
            ),
        );
    }
    // Fast enough for the network link.
    Some(finding(device, State::Ok, found))
}

fn finding(device: &DeviceEntry, state: State, found: String) -> Finding {
    Finding::new("PCIe", state, found, WHY).of(&device.name)
}

/// Payload rate of the lanes: 8b/10b coding up to 5 GT/s, 128b/130b from 8 GT/s.
fn gbit_per_s(gtransfer_per_s: f64, lanes: u32) -> f64 {
    let coding = if gtransfer_per_s <= 5.0 { 0.8 } else { 128.0 / 130.0 };
    gtransfer_per_s * coding * f64::from(lanes) * PAYLOAD_SHARE
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    #[test]
    fn a_link_that_is_slower_than_the_port_is_found() {
        let found = findings(&tree(), check);
        let words = "8 GT/s x8, about 57 Gb/s; the adapter can do 16 GT/s x16; less than the 100 Gb/s of its ports";
        assert_eq!(outcome(&found[0]), (State::Warning, words));
        assert_eq!(found.len(), 1, "Soft-RoCE has none");
    }

    #[test]
    fn enough_is_enough() {
        for (lanes, state) in [(Some(16), State::Ok), (None, State::Unknown)] {
            let found = findings_with(&tree(), check, |all| all[0].pci_width_lanes = lanes);
            assert_eq!(found[0].state, state);
        }
        assert!((gbit_per_s(5.0, 8) - 28.8).abs() < 1e-9);
    }
}
