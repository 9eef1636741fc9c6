//! Checks whether an adapter's writes may pass each other on PCIe, which the setting `ordering` asks for by default: whether its
//! driver passes that on, and whether the system has the device's relaxed ordering on.

use verbs::Driver;

use super::super::entries::DeviceEntry;
use super::super::machine::Machine;
use super::subject::Subject;
use protocol::finding::{Finding, State};

const WHY: &str = "on hosts with AMD processors an adapter of 200 Gb/s and more reaches its rate only if its writes may \
     pass each other (relaxed ordering); perftest and MPI ask for it";

/// Offsets and numbers of the PCI Local Bus and PCI Express specifications: the first capability's place, the number of that
/// of PCI Express, its Device Control register and the bit in there.
const FIRST_CAPABILITY: usize = 0x34;
const PCI_EXPRESS: u8 = 0x10;
const DEVICE_CONTROL: usize = 8;
const RELAXED_ORDERING: u8 = 1 << 4;

/// The most capabilities that fit behind the header, so that a circle ends.
const MOST_CAPABILITIES: usize = 48;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let machine = subject.machine;
    // Others are on no PCIe bus.
    subject
        .adapters()
        .filter(|it| it.pci_address.is_some())
        .map(|device| judge(machine, device))
        .collect()
}

fn judge(machine: &Machine, device: &DeviceEntry) -> Finding {
    let name = device.driver.as_deref().unwrap_or("(unknown)");
    let known = device.driver.as_deref().and_then(Driver::from_name);
    match known.map(|driver| driver.relaxed_ordering) {
        None => finding(device,
            State::Unknown,
            format!("rocebench asks for relaxed; unknown whether driver {name} does it"),
        ),
        Some(false) => finding(device,
            State::Ok,
            format!("strict: driver {name} has no relaxed ordering"),
        ),
        Some(true) => match is_on(machine, &device.name) {
            Some(false) => finding(device,
                State::Warning,
                "strict: the system has turned the device's relaxed ordering off".into(),
            )
            .remedy(
                "turn it on in the BIOS (`PCIe relaxed ordering`), and look at `sudo lspci -vv`: DevCtl should show RlxdOrd+",
            ),
            Some(true) => finding(device, State::Ok, format!("relaxed, by driver {name}")),
            None => finding(device,
                State::Ok,
                format!("relaxed, by driver {name}, if the firmware has it and the BIOS leaves it on"),
            ),
        },
    }
}

fn finding(device: &DeviceEntry, state: State, found: String) -> Finding {
    Finding::new("PCIe ordering", state, found, WHY).of(&device.name)
}

/// Whether the system leaves the device's relaxed ordering on; `None` where that cannot be read, as without root.
fn is_on(machine: &Machine, device: &str) -> Option<bool> {
    let config = machine.bytes(format!("sys/class/infiniband/{device}/device/config"))?;
    let mut place = usize::from(*config.get(FIRST_CAPABILITY)?);
    for _ in 0..MOST_CAPABILITIES {
        if *config.get(place)? == PCI_EXPRESS {
            return Some(config.get(place + DEVICE_CONTROL)? & RELAXED_ORDERING != 0);
        }
        place = usize::from(*config.get(place + 1)?);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    fn found(driver: &str, config: &[u8]) -> (State, String) {
        let tree = tree();
        let device = "sys/class/infiniband/mlx5_0/device";
        tree.add_bytes(&format!("{device}/config"), config);
        let found = findings_with(&tree, check, |all| all[0].driver = Some(driver.to_owned()));
        (found[0].state, found[0].found.clone())
    }

    /// A configuration space with two capabilities, the second of which is PCI Express'.
    fn config(control: u8) -> Vec<u8> {
        let mut config = vec![0; 256];
        (config[FIRST_CAPABILITY], config[0x40], config[0x41]) = (0x40, 0x05, 0x60);
        (config[0x60], config[0x68]) = (PCI_EXPRESS, control);
        config
    }

    #[test]
    fn what_is_asked_for_is_what_driver_and_system_allow() {
        let told = |text: &str| text.to_owned();
        assert_eq!(
            found("mlx5_core", &config(0x10)),
            (State::Ok, told("relaxed, by driver mlx5_core"))
        );
        let (state, off) = found("mlx5_core", &config(0));
        assert_eq!(state, State::Warning);
        assert!(off.contains("turned"), "{off}");
        let (state, strict) = found("ice", &config(0x10));
        assert_eq!((state, &*strict), (State::Ok, "strict: driver ice has no relaxed ordering"));
        assert_eq!(found("a_new_one", &config(0x10)).0, State::Unknown);
    }

    #[test]
    fn a_configuration_space_that_is_cut_off_or_goes_in_circles_tells_nothing() {
        let mut circle = config(0x10);
        circle[0x41] = 0x40;
        for config in [&config(0x10)[..64], &[], &circle] {
            let (state, text) = found("mlx5_core", config);
            assert_eq!(state, State::Ok);
            assert!(text.contains("if the firmware has it"), "{text}");
        }
    }
}
