//! The device's own counters, as the kernel shows them in sysfs. Names and units are the driver's:
//! `port_xmit_data` and `port_rcv_data` count words of 4 bytes, for instance. It must not know which of
//! them matter.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Counters by name.
pub type Counters = BTreeMap<String, u64>;

/// Reads all counters of a port, those of `counters` and `hw_counters`. `None` when the device shows
/// none, as one that the kernel does not know.
pub fn read(device: &str, port: u8) -> Option<Counters> {
    read_below(Path::new("/sys"), device, port)
}

/// As [`read`], with sysfs mounted at `sysfs`.
pub fn read_below(sysfs: &Path, device: &str, port: u8) -> Option<Counters> {
    let port = sysfs
        .join("class/infiniband")
        .join(device)
        .join("ports")
        .join(port.to_string());
    let mut counters = Counters::new();
    for folder in ["counters", "hw_counters"] {
        let Ok(entries) = fs::read_dir(port.join(folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // `lifespan` is how long the kernel caches the others, in milliseconds.
            if name == "lifespan" {
                continue;
            }
            // Some counters cannot be read on some devices (EINVAL), or are no number ("N/A").
            let Ok(text) = fs::read_to_string(entry.path()) else {
                continue;
            };
            if let Ok(value) = text.trim().parse() {
                counters.entry(name).or_insert(value);
            }
        }
    }
    (!counters.is_empty()).then_some(counters)
}

/// What each counter grew by. A counter that is in one reading only, or that went back because
/// someone cleared it, is left out: its growth is unknown.
pub fn difference(before: &Counters, after: &Counters) -> Counters {
    let grown = after.iter().filter_map(|(name, after)| {
        let before = before.get(name)?;
        Some((name.clone(), after.checked_sub(*before)?))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysfs(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join("class/infiniband/rxe0/ports/1").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn both_folders_are_read_and_what_is_no_number_is_left_out() {
        let root = sysfs(&[
            ("counters/port_xmit_data", "120\n"),
            ("counters/excessive_buffer_overrun_errors", "N/A (no PMA)\n"),
            ("hw_counters/sent_pkts", "7\n"),
            ("hw_counters/lifespan", "10\n"),
        ]);
        let expected = [
            ("port_xmit_data".to_owned(), 120),
            ("sent_pkts".to_owned(), 7),
        ];
        assert_eq!(read_below(root.path(), "rxe0", 1), Some(expected.into()));
    }

    #[test]
    fn an_unknown_device_or_port_has_none() {
        let root = sysfs(&[("hw_counters/sent_pkts", "7\n")]);
        assert_eq!(read_below(root.path(), "rxe0", 2), None);
        assert_eq!(read_below(root.path(), "soft0", 1), None);
    }

    #[test]
    fn growth_is_told_where_it_is_known() {
        let reading = |values: &[(&str, u64)]| -> Counters {
            values
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect()
        };
        let before = reading(&[("sent_pkts", 5), ("cleared", 9), ("gone", 1), ("idle", 3)]);
        let after = reading(&[("sent_pkts", 12), ("cleared", 2), ("new", 4), ("idle", 3)]);
        assert_eq!(
            difference(&before, &after),
            reading(&[("sent_pkts", 7), ("idle", 0)])
        );
    }
}
