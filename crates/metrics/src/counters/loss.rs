//! Whether a device's counters would show lost packets: the one place that decides.

use report::results::model::LossUnknownReason;

use super::reading::Reading;

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
mod tests {
    use super::super::reading::tests::sysfs;
    use super::*;

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
            let told = why_loss_is_unknown(reading.as_ref(), false);
            assert_eq!(told, expected, "{driver} {counters:?}");
        }
        let embedded = Reading::of_embedded(vec![("timeouts", 0)]);
        assert_eq!(why_loss_is_unknown(Some(&embedded), false), None);
    }

    #[test]
    fn retransmissions_of_tcp_are_iwarps() {
        let root = sysfs("dev0", &[("hw_counters/RetransSegs", "0\n")]);
        let reading = Reading::of_kernel(root.path(), Some("ice"), "dev0", 1);
        let why = |is_iwarp| why_loss_is_unknown(reading.as_ref(), is_iwarp);
        let expected = [None, Some(LossUnknownReason::NotCounted)];
        assert_eq!([true, false].map(why), expected);
    }
}
