//! What Linux would show of the devices in files below `/dev` and `/sys`, for programs that look there although verbs
//! would tell them. It must not know how such a program gets to see the file.

use std::os::raw::c_char;

use super::device::{Device, devices};
use super::gid;
use super::port::DEFAULT_PKEY;

/// A file of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelFile {
    /// The character device by which programs without this library open the device; everybody may.
    Device,
    /// A text in sysfs, to be read only.
    Text(String),
}

/// The file of this path, if it is about one of the devices: `/dev/infiniband/NAME`, and in
/// `/sys/class/infiniband/NAME/ports/1` the type and network interface of the GID and the partition key (Linux'
/// `Documentation/ABI/stable/sysfs-class-infiniband`). Any other path costs two comparisons.
pub fn kernel_file(path: &[u8]) -> Option<KernelFile> {
    if let Some(name) = path.strip_prefix(b"/dev/infiniband/") {
        return named(name).map(|_| KernelFile::Device);
    }
    let below = path.strip_prefix(b"/sys/class/infiniband/")?;
    let slash = below.iter().position(|byte| *byte == b'/')?;
    let (name, attribute) = below.split_at(slash);
    let attribute =
        str::from_utf8(attribute).ok()?.strip_prefix(&format!("/ports/{}/", gid::PORT))?;
    let (kind, index) = attribute.rsplit_once('/')?;
    if index != gid::INDEX.to_string() {
        return None;
    }
    let device = named(name)?;
    let text = match kind {
        "gid_attrs/types" => "RoCE v2".to_owned(),
        "gid_attrs/ndevs" => interface_name(device.place.interface_index)?,
        // Their table too has one entry.
        "pkeys" => format!("{DEFAULT_PKEY:#06x}"),
        _ => return None,
    };
    Some(KernelFile::Text(text + "\n"))
}

fn named(name: &[u8]) -> Option<&'static Device> {
    let mut devices = devices().ok()?.iter();
    devices.find(|device| device.name().as_bytes() == name)
}

/// The interface's current name, which may differ from the one at the start.
fn interface_name(index: u32) -> Option<String> {
    let mut name: [c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    // SAFETY: there is room for the longest name.
    if unsafe { libc::if_indextoname(index, name.as_mut_ptr()) }.is_null() {
        return None;
    }
    Some(
        name.iter()
            .take_while(|byte| **byte != 0)
            .flat_map(|byte| byte.to_ne_bytes())
            .map(char::from)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_not_its() {
        for path in [
            "",
            "/dev/null",
            "/dev/infiniband/",
            "/dev/infiniband/soft",
            "/dev/infiniband/soft0/",
            "/dev/infiniband/uverbs0",
            "/sys/class/infiniband/soft0",
            "/sys/class/infiniband/soft0/ports/1/gid_attrs/types/1",
            "/sys/class/infiniband/soft0/ports/2/gid_attrs/types/0",
            "/sys/class/infiniband/soft0/ports/1/gid_attrs/gids/0",
            "/sys/class/infiniband/soft0/ports/1/pkeys/1",
            "/sys/class/infiniband/soft0/ports/1/pkeys",
            "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0",
        ] {
            assert_eq!(kernel_file(path.as_bytes()), None, "{path}");
        }
    }
}
