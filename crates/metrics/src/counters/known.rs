//! What the counters of a driver and `PortCounters` of the InfiniBand specification are: their width and what they mean.
//! Sources: the core's sysfs.c in Linux, and InfiniBand Architecture Specification Volume 1, 16.1.3.5 (`PortCounters`).

use report::results::model::PathEventKind;

use super::drivers::{DRIVERS, Driver};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It begins again at 0 after so many bits.
    Wraps(u32),
    /// It stays at its largest value of so many bits.
    Saturates(u32),
    /// What there is now, which falls too: not a counter at all.
    Gauge,
}

/// Bits of `PortCounters`, all of which saturate. Data and packets have 64 on most devices, and then show more than
/// these.
const PORT_COUNTERS: [(&str, u32); 17] = [
    ("symbol_error", 16),
    ("link_error_recovery", 8),
    ("link_downed", 8),
    ("port_rcv_errors", 16),
    ("port_rcv_remote_physical_errors", 16),
    ("port_rcv_switch_relay_errors", 16),
    ("port_xmit_discards", 16),
    ("port_xmit_constraint_errors", 8),
    ("port_rcv_constraint_errors", 8),
    ("local_link_integrity_errors", 4),
    ("excessive_buffer_overrun_errors", 4),
    ("VL15_dropped", 16),
    ("port_xmit_wait", 32),
    ("port_xmit_data", 32),
    ("port_rcv_data", 32),
    ("port_xmit_packets", 32),
    ("port_rcv_packets", 32),
];

/// What a driver shows that other functions of the card count.
const OF_VPORTS: &str = "vport_";

fn driver(name: &str) -> Option<&'static Driver> {
    // `mlx5_core.sf` drives a subfunction.
    let module = name.split('.').next().unwrap_or(name);
    DRIVERS.iter().find(|driver| driver.names.contains(&module))
}

pub(super) fn is_driver(name: &str) -> bool {
    driver(name).is_some()
}

/// Whether a counter counts TCP's segments.
pub(super) fn is_of_tcp(driver_name: &str, counter: &str) -> bool {
    driver(driver_name).is_some_and(|driver| driver.of_tcp.contains(&counter))
}

fn without_vport(counter: &str) -> &str {
    counter.strip_prefix(OF_VPORTS).unwrap_or(counter)
}

pub(super) fn driver_counter(driver_name: &str, counter: &str) -> Kind {
    let name = without_vport(counter);
    match driver(driver_name) {
        Some(driver) if driver.gauges.iter().any(|it| name.starts_with(it)) => Kind::Gauge,
        Some(driver) if driver.of_32_bits.contains(&name) => Kind::Wraps(32),
        _ => Kind::Wraps(64),
    }
}

pub(super) fn port_counter(counter: &str) -> Kind {
    let known = PORT_COUNTERS.iter().find(|(name, _)| *name == counter);
    Kind::Saturates(known.map_or(64, |(_, bits)| *bits))
}

pub(super) fn meaning(driver_name: &str, counter: &str) -> Option<PathEventKind> {
    let name = without_vport(counter);
    let meanings = driver(driver_name)?.meanings;
    meanings.iter().find(|(_, names)| names.contains(&name)).map(|(meaning, _)| *meaning)
}

pub(super) fn meaning_of_port_counter(counter: &str) -> Option<PathEventKind> {
    match counter {
        "port_rcv_errors" => Some(PathEventKind::BadPacket),
        "port_xmit_discards" | "excessive_buffer_overrun_errors" => Some(PathEventKind::Dropped),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_the_drivers() {
        for (driver, counter, kind) in [
            ("mlx5_core", "out_of_sequence", Kind::Wraps(32)),
            ("mlx5_core.sf", "vport_rx_write_requests", Kind::Wraps(32)),
            ("mlx5_core", "np_cnp_sent", Kind::Wraps(64)),
            ("bnxt_en", "out_of_sequence", Kind::Wraps(64)),
            ("bnxt_en", "active_qps", Kind::Gauge),
            ("", "out_of_sequence", Kind::Wraps(64)),
        ] {
            assert_eq!(driver_counter(driver, counter), kind, "{driver} {counter}");
        }
        assert_eq!(port_counter("port_rcv_errors"), Kind::Saturates(16));
        assert_eq!(port_counter("unicast_rcv_packets"), Kind::Saturates(64));
    }

    #[test]
    fn every_name_stands_once_in_a_driver() {
        for driver in &DRIVERS {
            let names = || driver.meanings.iter().flat_map(|(_, names)| *names);
            let different: std::collections::HashSet<_> = names().collect();
            assert_eq!(different.len(), names().count(), "{:?}", driver.names);
        }
    }
}
