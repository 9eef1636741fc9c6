//! Lists the versions of this program, the kernel, rdma-core and the operating system, and the adapters' firmware.

use super::subject::Subject;
use protocol::finding::{Finding, State};

const WHY: &str =
    "most driver faults are known faults of old versions; name these versions in every bug report";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let host = &subject.inventory.host;
    let mut parts =
        vec![format!("rocebench {}", env!("CARGO_PKG_VERSION")), format!("Linux {}", host.kernel)];
    parts.extend(host.rdma_core.iter().map(|version| format!("rdma-core {version}")));
    parts.extend(host.os.clone());
    for device in subject.adapters() {
        if let Some(firmware) = &device.firmware {
            parts.push(format!("{} firmware {firmware}", device.name));
        }
    }
    vec![Finding::new("versions", State::Ok, parts.join(", "), WHY)]
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;

    #[test]
    fn firmware_of_adapters_is_told() {
        let found = &findings(&tree(), check)[0].found;
        assert!(found.contains("mlx5_0 firmware 22.31.1014"), "{found}");
        assert!(found.contains("rocebench "));
    }
}
