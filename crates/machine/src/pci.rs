//! How near two PCI devices are to each other, by their places in sysfs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::text;

settings::names! {
    /// What lies between two PCI devices, the nearest first.
    #[derive(PartialOrd, Ord)]
    Nearness {
        /// A switch.
        Switch = "same PCIe switch",
        /// A root complex, through which the CPU's part of PCIe passes data on.
        Root = "same PCIe root",
        /// Two root complexes of a NUMA node.
        NumaNode = "same NUMA node",
        /// The connection of two NUMA nodes.
        Far = "another NUMA node",
    }
}

/// How near the PCI device at `address` is to the RDMA device `name`, by files below `root`; `None` where one of them has no
/// place on PCIe.
pub fn nearness(root: &Path, address: &str, name: &str) -> Option<Nearness> {
    let one = place(&root.join("sys/bus/pci/devices").join(address))?;
    let other = place(&root.join("sys/class/infiniband").join(name).join("device"))?;
    let shared = one.0.iter().zip(&other.0).take_while(|(one, other)| one == other).count();
    Some(match shared {
        0 if one.1.is_some() && one.1 == other.1 => Nearness::NumaNode,
        0 => Nearness::Far,
        1 => Nearness::Root,
        _ => Nearness::Switch,
    })
}

/// The root complex and the bridges above a device and itself, and its NUMA node.
fn place(link: &Path) -> Option<(Vec<String>, Option<u32>)> {
    let folder: PathBuf = fs::canonicalize(link).ok()?;
    let names = folder.iter().map(|name| name.to_string_lossy().into_owned());
    let path: Vec<String> = names.skip_while(|name| !name.starts_with("pci")).collect();
    // -1 is a device without a node.
    let node = text(&folder.join("numa_node")).and_then(|node| node.parse().ok());
    (!path.is_empty()).then_some((path, node))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_nearest_is_below_the_same_switch() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        let devices = root.join("sys/devices");
        let links = root.join("sys/bus/pci/devices");
        fs::create_dir_all(&links).unwrap();
        let add = |path: &str, node: &str| {
            let folder = devices.join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("numa_node"), node).unwrap();
            let address = path.rsplit('/').next().unwrap();
            symlink(&folder, links.join(address)).unwrap();
            folder
        };
        let switch = "pci0000:10/0000:10:01.0/0000:11:00.0";
        let adapter = add(&format!("{switch}/0000:12:00.0/0000:13:00.0"), "0");
        let class = root.join("sys/class/infiniband/mlx5_0");
        fs::create_dir_all(&class).unwrap();
        symlink(adapter, class.join("device")).unwrap();
        add(&format!("{switch}/0000:12:01.0/0000:14:00.0"), "0");
        add("pci0000:10/0000:10:02.0/0000:15:00.0", "0");
        add("pci0000:40/0000:40:01.0/0000:41:00.0", "0");
        add("pci0000:80/0000:80:01.0/0000:81:00.0", "1");
        let near = |address| nearness(root, address, "mlx5_0");
        let addresses = ["0000:14:00.0", "0000:15:00.0", "0000:41:00.0", "0000:81:00.0"];
        assert_eq!(
            addresses.map(near),
            Nearness::ALL.iter().copied().map(Some).collect::<Vec<_>>()[..]
        );
        assert_eq!((near("0000:99:00.0"), nearness(root, "0000:14:00.0", "soft0")), (None, None));
        assert!(Nearness::Switch < Nearness::Far);
    }
}
