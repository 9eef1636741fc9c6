//! The kernel's files of a device, its ports and the interfaces below their GIDs. `root` is [`VerbsLibrary::root`], that of the
//! library which has the device.
//!
//! [`VerbsLibrary::root`]: super::VerbsLibrary::root

use std::fs;
use std::path::{Path, PathBuf};

use super::driver::SOFT_ROCE;

/// The text of a file without white space around it; `None` where it cannot be read, or is empty.
pub(super) fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The folder of a device.
pub(super) fn device(root: &Path, device: &str) -> PathBuf {
    root.join("sys/class/infiniband").join(device)
}

/// Name of a device's kernel driver: that of its PCI device. Soft-RoCE belongs to none, and its devices alone have a `parent`.
pub fn driver(root: &Path, name: &str) -> Option<String> {
    let folder = device(root, name);
    if let Ok(link) = fs::read_link(folder.join("device/driver")) {
        return Some(link.file_name()?.to_string_lossy().into_owned());
    }
    let has_parent = folder.join("parent").exists();
    has_parent.then(|| SOFT_ROCE.to_owned())
}

/// The folder of a port.
pub(super) fn port(root: &Path, name: &str, port: u8) -> PathBuf {
    device(root, name).join(format!("ports/{port}"))
}

/// Name of the network interface below an entry of the GID table of the port that has this folder.
pub(super) fn netdev(port: &Path, gid_index: u8) -> Option<String> {
    text(&port.join(format!("gid_attrs/ndevs/{gid_index}")))
}

/// The folder of a network interface, which is there if it is in this network namespace.
pub(super) fn interface(root: &Path, netdev: &str) -> PathBuf {
    root.join("sys/class/net").join(netdev)
}

/// Index of a network interface of this network namespace.
pub(super) fn interface_index(root: &Path, netdev: &str) -> Option<u32> {
    text(&interface(root, netdev).join("ifindex"))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_driver_is_that_of_the_pci_device_or_soft_roce() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = device(root.path(), name);
            fs::create_dir_all(folder.join("device")).unwrap();
            folder
        };
        let drivers = "/sys/bus/pci/drivers/mlx5_core";
        symlink(drivers, folder("mlx5_0").join("device/driver")).unwrap();
        fs::write(folder("rxe0").join("parent"), "v0\n").unwrap();
        folder("siw0");
        let of = |name| driver(root.path(), name);
        assert_eq!(of("mlx5_0").as_deref(), Some("mlx5_core"));
        assert_eq!(of("rxe0").as_deref(), Some("rdma_rxe"));
        assert_eq!((of("siw0"), of("soft0")), (None, None));
    }
}
