//! One reading of a device's counters, from sysfs or from the embedded device; and whether it would show lost packets: the
//! one place that decides.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use results::model::{LossUnknownReason, PathEventKind};

use super::drivers::{self, EMBEDDED_DRIVER, Kind};

/// Where a counter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Driver,
    /// `PortCounters` of the InfiniBand specification, whose names and widths are the same for all drivers.
    PortCounters,
}

/// All counters of a port at one moment. Names and units are the driver's: `port_xmit_data` and `port_rcv_data`
/// count words of 4 bytes, for instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The kernel's driver, [`EMBEDDED_DRIVER`], or nothing where it is not known.
    driver: String,
    values: BTreeMap<String, (Source, u64)>,
}

impl Reading {
    /// What the kernel shows of a port and its device, in files below `root`. `driver` is the name of the driver there. `None`
    /// when the device shows none, as one that the kernel does not know.
    pub fn of_kernel(root: &Path, driver: Option<&str>, device: &str, port: u8) -> Option<Reading> {
        let device = root.join("sys/class/infiniband").join(device);
        let port = device.join("ports").join(port.to_string());
        let mut values = BTreeMap::new();
        // Where several have a name, the first one counts.
        for (folder, source) in [
            (port.join("hw_counters"), Source::Driver),
            // Some are of the whole device, as mana's of ECN.
            (device.join("hw_counters"), Source::Driver),
            (port.join("counters"), Source::PortCounters),
        ] {
            let Ok(entries) = fs::read_dir(folder) else {
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
                    values.entry(name).or_insert((source, value));
                }
            }
        }
        (!values.is_empty())
            .then(|| Reading { driver: driver.unwrap_or_default().to_owned(), values })
    }

    pub fn of_embedded(counters: Vec<(&'static str, u64)>) -> Reading {
        let values =
            counters.into_iter().map(|(name, value)| (name.to_owned(), (Source::Driver, value)));
        Reading { driver: EMBEDDED_DRIVER.to_owned(), values: values.collect() }
    }

    /// Whether some counter of the driver's own would show lost packets, TCP's or others.
    pub(super) fn shows_loss(&self, of_tcp: bool) -> bool {
        self.values
            .iter()
            .filter(|(_, (source, _))| *source == Source::Driver)
            .filter(|(name, _)| of_tcp || !drivers::is_of_tcp(&self.driver, name))
            .filter_map(|(name, _)| self.meaning(name))
            .any(PathEventKind::follows_loss)
    }

    /// Whether the names of the driver's counters are known.
    pub(super) fn is_of_known_driver(&self) -> bool {
        drivers::is_driver(&self.driver)
    }

    /// Counters with a known meaning that are not 0: meaning, name and value, by meaning.
    pub fn events(&self) -> Vec<(PathEventKind, &str, u64)> {
        let mut events: Vec<_> = self
            .values
            .iter()
            .filter(|(_, (_, value))| *value > 0)
            .filter_map(|(name, (_, value))| Some((self.meaning(name)?, name.as_str(), *value)))
            .collect();
        events.sort();
        events
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.values.keys()
    }

    /// A counter's value; `None` where it was not read.
    pub(super) fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).map(|(_, value)| *value)
    }

    pub(super) fn kind(&self, name: &str) -> Kind {
        match self.values.get(name) {
            Some((Source::PortCounters, _)) => drivers::port_counter(name),
            _ => drivers::driver_counter(&self.driver, name),
        }
    }

    /// What the growth of a counter says; `None` where that is not known.
    pub(super) fn meaning(&self, name: &str) -> Option<PathEventKind> {
        match self.values.get(name)?.0 {
            Source::PortCounters => drivers::meaning_of_port_counter(name),
            Source::Driver => drivers::meaning(&self.driver, name),
        }
    }
}

/// Why lost packets would not be seen in what a device shows, whose packets are TCP's if `is_iwarp`; `None` where they would.
pub fn why_loss_is_unknown(reading: Option<&Reading>, is_iwarp: bool) -> Option<LossUnknownReason> {
    let Some(reading) = reading else {
        return Some(LossUnknownReason::NoCounters);
    };
    match (reading.shows_loss(is_iwarp), reading.is_of_known_driver()) {
        (true, _) => None,
        (false, true) => Some(LossUnknownReason::NotCounted),
        (false, false) => Some(LossUnknownReason::UnknownDriver),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A sysfs in which port 1 of `device` shows these.
    pub(in super::super) fn sysfs(device: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), device, files);
        root
    }

    pub(in super::super) fn write(root: &Path, device: &str, files: &[(&str, &str)]) {
        let port = root.join("sys/class/infiniband").join(device).join("ports/1");
        for (path, text) in files {
            let path = port.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn both_folders_are_read_and_what_is_no_number_is_left_out() {
        let root = sysfs(
            "rxe0",
            &[
                ("counters/port_xmit_data", "120\n"),
                ("counters/excessive_buffer_overrun_errors", "N/A (no PMA)\n"),
                ("counters/link_downed", "255\n"),
                ("hw_counters/link_downed", "300\n"),
                ("hw_counters/sent_pkts", "7\n"),
                ("hw_counters/lifespan", "10\n"),
            ],
        );
        let reading = Reading::of_kernel(root.path(), Some("rdma_rxe"), "rxe0", 1).unwrap();
        let expected = [
            ("link_downed".to_owned(), (Source::Driver, 300)),
            ("port_xmit_data".to_owned(), (Source::PortCounters, 120)),
            ("sent_pkts".to_owned(), (Source::Driver, 7)),
        ];
        assert_eq!(reading.values, expected.into());
    }

    #[test]
    fn an_unknown_device_or_port_has_none() {
        let root = sysfs("rxe0", &[("hw_counters/sent_pkts", "7\n")]);
        assert_eq!(Reading::of_kernel(root.path(), None, "rxe0", 2), None);
        assert_eq!(Reading::of_kernel(root.path(), None, "soft0", 1), None);
    }

    #[test]
    fn a_name_means_what_the_driver_means_by_it() {
        let files = [
            ("hw_counters/out_of_sequence", "3\n"),
            ("hw_counters/oos_drop_count", "4\n"),
            ("hw_counters/completer_retry_err", "5\n"),
            ("hw_counters/RTO", "6\n"),
            ("hw_counters/duplicate_request", "0\n"),
        ];
        let root = sysfs("dev0", &files);
        let gaps = [("oos_drop_count", 4), ("out_of_sequence", 3)]
            .map(|(name, value)| (PathEventKind::SequenceGap, name, value));
        let resent = (PathEventKind::Resent, "completer_retry_err", 5);
        let timeout = (PathEventKind::AckTimeout, "RTO", 6);
        for (driver, told) in [
            (Some("mlx5_core"), &gaps[1..]),
            (Some("bnxt_en"), &gaps),
            (Some("rdma_rxe"), &[resent]),
            (Some("ice"), &[timeout]),
            (Some("hns3"), &[]),
            (None, &[]),
        ] {
            let reading = Reading::of_kernel(root.path(), driver, "dev0", 1).unwrap();
            assert_eq!(reading.events(), told, "{driver:?}");
        }
    }

    #[test]
    fn the_embedded_device_tells_what_it_counted() {
        let reading = Reading::of_embedded(vec![
            ("packets_sent", 9),
            ("timeouts", 2),
            ("out_of_sequence", 0),
        ]);
        let timeouts = (PathEventKind::AckTimeout, "timeouts", 2);
        assert_eq!(reading.events(), [timeouts]);
    }

    #[test]
    fn loss_is_known_where_a_counter_of_the_drivers_own_would_show_it() {
        use LossUnknownReason::{NoCounters, NotCounted, UnknownDriver};
        for (driver, counters, expected) in [
            ("mlx5_core", &["hw_counters/out_of_sequence"][..], None),
            ("rdma_rxe", &["hw_counters/rcvd_seq_err"], None),
            ("ice", &["hw_counters/RTO"], None),
            ("hns3", &["hw_counters/rx_err_pkt"], Some(NotCounted)),
            ("erdma", &["hw_counters/rx_bps_limit_drop_cnt"], Some(NotCounted)),
            ("mlx5_core", &["counters/port_rcv_errors"], Some(NotCounted)),
            ("qede", &["hw_counters/out_of_sequence"], Some(UnknownDriver)),
            ("qede", &["counters/port_rcv_errors"], Some(UnknownDriver)),
            ("mlx5_core", &["hw_counters/lifespan"], Some(NoCounters)),
            ("mlx5_core", &[], Some(NoCounters)),
        ] {
            let files: Vec<_> = counters.iter().map(|path| (*path, "0\n")).collect();
            let root = sysfs("dev0", &files);
            let reading = Reading::of_kernel(root.path(), Some(driver), "dev0", 1);
            let reason = why_loss_is_unknown(reading.as_ref(), false);
            assert_eq!(reason, expected, "{driver} {counters:?}");
        }
        let embedded = Reading::of_embedded(vec![("timeouts", 0)]);
        assert_eq!(why_loss_is_unknown(Some(&embedded), false), None);
    }

    #[test]
    fn retransmissions_of_tcp_are_iwarps() {
        let root = sysfs("dev0", &[("hw_counters/RetransSegs", "0\n")]);
        let reading = Reading::of_kernel(root.path(), Some("ice"), "dev0", 1);
        let expected = [None, Some(LossUnknownReason::NotCounted)];
        let reasons = [true, false].map(|is_iwarp| why_loss_is_unknown(reading.as_ref(), is_iwarp));
        assert_eq!(reasons, expected);
    }
}
