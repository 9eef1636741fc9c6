//! Counters are read, subtracted and summed as their driver means them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use testing::wait::wait_until;

use super::*;

/// A sysfs in which port 1 of `device` shows these.
fn sysfs(device: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), device, files);
    root
}

fn write(root: &Path, device: &str, files: &[(&str, &str)]) {
    let port = root.join("sys/class/infiniband").join(device).join("ports/1");
    for (file, text) in files {
        let path = port.join(file);
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
fn an_interface_adds_what_the_device_does_not_have() {
    let root =
        sysfs("dev0", &[("hw_counters/rx_prio3_pause", "1"), ("hw_counters/lifespan", "250")]);
    assert_eq!(lifespan_ns(root.path(), "dev0", 1), 250_000_000);
    assert_eq!(lifespan_ns(root.path(), "dev1", 1), 0);
    let reading = Reading::of_kernel(root.path(), Some("mlx5_core"), "dev0", 1).unwrap();
    let counters =
        ["rx_prio3_pause", "tx_prio3_pause", "tx_prio3_bytes"].map(|name| (name.to_owned(), 7));
    let expected = [(PathEventKind::PausedByHost, "tx_prio3_pause", 7)];
    let with_interface = reading.with_interface(&counters);
    assert_eq!(with_interface.events(), expected);
    assert_eq!(with_interface.kind("tx_prio3_bytes"), Kind::Wraps(64));
    assert_eq!(
        why_loss_is_unknown(Some(&with_interface), false),
        Some(LossUnknownReason::NotCounted)
    );
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
    for (driver, expected) in [
        (Some("mlx5_core"), &gaps[1..]),
        (Some("bnxt_en"), &gaps),
        (Some("rdma_rxe"), &[resent]),
        (Some("ice"), &[timeout]),
        (Some("hns3"), &[]),
        (None, &[]),
    ] {
        let reading = Reading::of_kernel(root.path(), driver, "dev0", 1).unwrap();
        assert_eq!(reading.events(), expected, "{driver:?}");
    }
}

#[test]
fn the_embedded_device_tells_what_it_counted() {
    let reading =
        Reading::of_embedded(vec![("packets_sent", 9), ("timeouts", 2), ("out_of_sequence", 0)]);
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

/// What a port's counters grew by over readings of these files.
fn growth(driver: &str, readings: &[&[(&str, &str)]]) -> Growth {
    let root = sysfs("dev0", readings[0]);
    let read = || Reading::of_kernel(root.path(), Some(driver), "dev0", 1).unwrap();
    let mut growth = Growth::since(read());
    for files in &readings[1..] {
        let _ = fs::remove_dir_all(root.path().join("sys"));
        write(root.path(), "dev0", files);
        growth.add(read());
    }
    growth
}

fn by_counter(growth: &Growth) -> Vec<(String, Option<u64>)> {
    growth.by_counter().into_iter().collect()
}

fn grown(driver: &str, path: &str, values: &[&str]) -> Option<u64> {
    let readings: Vec<_> = values.iter().map(|value| [(path, *value)]).collect();
    let slices: Vec<&[_]> = readings.iter().map(|reading| &reading[..]).collect();
    by_counter(&growth(driver, &slices))[0].1
}

#[test]
fn a_counter_of_32_bits_wraps_where_the_driver_says_so_and_a_cleared_one_is_not_told() {
    let (narrow, wide) = ("hw_counters/out_of_sequence", "hw_counters/np_cnp_sent");
    let (errors, data) = ("counters/port_rcv_errors", "counters/port_xmit_data");
    for (driver, counter, values, expected) in [
        ("mlx5_core", narrow, &["4294967290", "4"][..], Some(10)),
        ("mlx5_core", narrow, &["4294967295", "0", "0"], Some(1)),
        ("bnxt_en", narrow, &["4294967290", "4"], None),
        ("bnxt_en", narrow, &["4294967290", "4294967300"], Some(10)),
        ("mlx5_core", wide, &["4294967290", "4"], None),
        ("mlx5_core", narrow, &["9", "2"], None),
        ("mlx5_core", narrow, &["9", "2", "700"], None),
        ("rdma_rxe", "hw_counters/sent_pkts", &["9", "2"], None),
        ("mlx5_core", "counters/port_rcv_data", &["9", "2"], None),
        ("mlx5_core", errors, &["65500", "65534"], Some(34)),
        ("mlx5_core", data, &["4294967295", "4294967299"], Some(4)),
        // The driver's own of the same name is another, and does not saturate.
        ("rdma_rxe", "hw_counters/link_downed", &["3", "255"], Some(252)),
    ] {
        let growth = grown(driver, counter, values);
        assert_eq!(growth, expected, "{driver} {counter} {values:?}");
    }
}

#[test]
fn what_wrapped_past_its_start_counts_in_full_when_it_was_read_in_between() {
    let counter = "hw_counters/rx_write_requests";
    let often = ["4000000000", "1000000000", "3000000000", "500000000", "2500000000", "4100000000"];
    let whole = 2 * (1_u64 << 32) + 4_100_000_000 - 4_000_000_000;
    assert_eq!(grown("mlx5_core", counter, &often), Some(whole));
    // Two wraps between two readings leave no trace: only half a range apart are they told from each other.
    let seldom = [often[0], often[5]];
    assert_eq!(grown("mlx5_core", counter, &seldom), Some(100_000_000));
}

#[test]
fn a_counter_at_its_largest_value_is_not_told() {
    for (name, before, largest) in [
        ("port_rcv_errors", "65500", "65535"),
        ("port_rcv_errors", "65535", "65535"),
        ("link_downed", "3", "255"),
        ("local_link_integrity_errors", "1", "15"),
        ("port_xmit_data", "9", "4294967295"),
        ("unicast_xmit_packets", "9", "18446744073709551615"),
    ] {
        let path = format!("counters/{name}");
        for driver in ["mlx5_core", "an unknown one"] {
            assert_eq!(grown(driver, &path, &[before, largest]), None, "{name}");
        }
    }
}

#[test]
fn what_was_not_there_all_the_time_is_not_told_and_a_gauge_never() {
    let [packets, gone, new, gauge] =
        ["rx_pkts", "gone", "new", "active_qps"].map(|name| format!("hw_counters/{name}"));
    let growth = growth(
        "bnxt_en",
        &[
            &[(&packets, "5"), (&gone, "1"), (&gauge, "7")],
            &[(&packets, "12"), (&new, "4"), (&gauge, "2")],
            &[(&packets, "12"), (&new, "6"), (&gone, "3")],
        ],
    );
    let expected = [("gone", None), ("new", None), ("rx_pkts", Some(7))];
    assert_eq!(by_counter(&growth), expected.map(|(name, grown)| (name.to_owned(), grown)));
}

#[test]
fn growth_is_summed_by_meaning() {
    let readings = [["5", "1", "7", "7"], ["8", "3", "99", "7"]].map(|values| {
        let [retries, duplicates, sent, not_ready] = values;
        [
            ("hw_counters/completer_retry_err", retries),
            ("hw_counters/duplicate_request", duplicates),
            ("hw_counters/sent_pkts", sent),
            ("hw_counters/send_rnr_err", not_ready),
        ]
    });
    let growth = growth("rdma_rxe", &[&readings[0], &readings[1]]);
    let names = ["completer_retry_err", "duplicate_request"].map(str::to_owned);
    let resent = [(PathEventKind::Resent, (5, names.to_vec()))];
    assert_eq!(growth.by_meaning(), resent.into());
}

const COUNTER: &str = "hw_counters/rx_write_requests";

#[test]
fn a_counter_that_wraps_twice_in_a_window_counts_in_full() {
    let root = sysfs("mlx5_0", &[(COUNTER, "0")]);
    let path = root.path().to_owned();
    let reads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&reads);
    let watch = CounterWatch::every(Duration::from_millis(1), move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Reading::of_kernel(&path, Some("mlx5_core"), "mlx5_0", 1)
    })
    .unwrap();
    let total = 10_000_000_000_u64;
    for step in 1..=10_u64 {
        let value = (total / 10 * step) & u64::from(u32::MAX);
        // Whole or not at all, as a file of the kernel is.
        write(root.path(), "mlx5_0", &[("next", &value.to_string())]);
        let port = root.path().join("sys/class/infiniband/mlx5_0/ports/1");
        fs::rename(port.join("next"), port.join(COUNTER)).unwrap();
        // The second reading from now on begins when the first has been added.
        let before = reads.load(Ordering::SeqCst);
        wait_until("two readings", Duration::from_secs(1), || {
            reads.load(Ordering::SeqCst) >= before + 2
        });
    }
    let grown = watch.finish().unwrap().by_counter();
    assert_eq!(grown["rx_write_requests"], Some(total));
}

#[test]
fn counters_that_never_wrap_are_read_twice() {
    let reads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&reads);
    let watch = CounterWatch::every(Duration::from_millis(1), move || {
        let so_far = counted.fetch_add(1, Ordering::SeqCst);
        Some(Reading::of_embedded(vec![("timeouts", 10 + so_far * 3)]))
    })
    .unwrap();
    assert!(matches!(watch.growth, Growing::Here(_)));
    assert_eq!(watch.finish().unwrap().by_counter()["timeouts"], Some(3));
    assert_eq!(reads.load(Ordering::SeqCst), 2);
}

#[test]
fn a_device_without_counters_is_not_watched() {
    assert!(CounterWatch::start(|| None).is_none());
}
