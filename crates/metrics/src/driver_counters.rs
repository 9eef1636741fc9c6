//! What counters mean, how wide they are, and which of them count pause frames, by driver and by the names that it gives
//! them.
//!
//! Sources: the drivers' `hw_counters` in Linux (`drivers/infiniband`: mlx5/counters.c, bnxt_re/hw_counters.c,
//! irdma/verbs.c, mana/counters.c, ionic/ionic_hw_stats.c, hns/hns_roce_hw_v2.c, efa/efa_verbs.c, erdma/erdma_verbs.c,
//! rxe/rxe_hw_counters.c); the core's sysfs.c, and InfiniBand Architecture Specification Volume 1, 16.1.3.5
//! (`PortCounters`); of a network interface (`ethtool -S`), below `drivers/net/ethernet`: mellanox/mlx5/core/en_stats.c,
//! broadcom/bnxt/bnxt_ethtool.c, intel/ice/ice_ethtool.c, intel/i40e/i40e_ethtool.c, pensando/ionic/ionic_stats.c,
//! hisilicon/hns3/hns3pf/hclge_main.c, microsoft/mana/mana_ethtool.c, and of mlx5's
//! Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst.

use results::model::PathEventKind::{
    self, AckTimeout, BadPacket, Congestion, Dropped, GaveUp, PausedByHost, PausedByNetwork,
    ReceiverNotReady, Resent, SequenceGap, SequenceNak,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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

pub(crate) fn is_driver(name: &str) -> bool {
    driver(name).is_some()
}

/// Whether a counter counts TCP's segments.
pub(crate) fn is_of_tcp(driver_name: &str, counter: &str) -> bool {
    driver(driver_name).is_some_and(|driver| driver.of_tcp.contains(&counter))
}

fn without_vport(counter: &str) -> &str {
    counter.strip_prefix(OF_VPORTS).unwrap_or(counter)
}

pub(crate) fn driver_counter(driver_name: &str, counter: &str) -> Kind {
    let name = without_vport(counter);
    match driver(driver_name) {
        Some(driver) if driver.gauges.iter().any(|part| name.starts_with(part)) => Kind::Gauge,
        Some(driver) if driver.of_32_bits.contains(&name) => Kind::Wraps(32),
        _ => Kind::Wraps(64),
    }
}

pub(crate) fn port_counter(counter: &str) -> Kind {
    let known = PORT_COUNTERS.iter().find(|(name, _)| *name == counter);
    Kind::Saturates(known.map_or(64, |(_, bits)| *bits))
}

pub(crate) fn meaning(driver_name: &str, counter: &str) -> Option<PathEventKind> {
    let name = without_vport(counter);
    let meanings = driver(driver_name)?.meanings;
    meanings.iter().find(|(_, names)| names.contains(&name)).map(|(meaning, _)| *meaning)
}

pub(crate) fn meaning_of_port_counter(counter: &str) -> Option<PathEventKind> {
    match counter {
        "port_rcv_errors" => Some(BadPacket),
        "port_xmit_discards" | "excessive_buffer_overrun_errors" => Some(Dropped),
        // Ticks in which there was something to send and no credit, or no turn.
        "port_xmit_wait" => Some(PausedByNetwork),
        _ => None,
    }
}

/// How names end that count the pause frames of all priorities together: those of each one have a counter too.
const OF_ALL_PRIORITIES: [&str; 3] = ["_pause_ctrl_phy", "_pfc_frames", "_pfc_pkt_num"];

/// What the growth of a counter of a network interface (`ethtool -S`) says.
pub(crate) fn meaning_of_interface_counter(counter: &str) -> Option<PathEventKind> {
    match counter {
        // Seconds in which the adapter had to wait for PCIe in more than a third of the time.
        "outbound_pci_stalled_rd_events" | "outbound_pci_stalled_wr_events" => Some(PausedByHost),
        "rx_discards_phy" | "outbound_pci_buffer_overflow" => Some(Dropped),
        _ if !counts_pauses(counter) => None,
        _ if OF_ALL_PRIORITIES.iter().any(|end| counter.ends_with(end)) => None,
        _ => counter.split(['_', '.']).find_map(|part| match part {
            "rx" => Some(PausedByNetwork),
            "tx" => Some(PausedByHost),
            _ => None,
        }),
    }
}

/// Whether a counter of a network interface may tell something of RDMA's packets: of pauses, losses, or of one priority.
pub fn concerns_rdma(counter: &str) -> bool {
    let parts = ["pause", "pfc", "xoff", "prio", "_pri"];
    meaning_of_interface_counter(counter).is_some()
        || parts.iter().any(|part| counter.contains(part))
}

/// Driver name of the embedded device.
pub const EMBEDDED_DRIVER: &str = "softroce";

pub(crate) struct Driver {
    /// The names under which sysfs shows it. That is the driver of the PCI device, which is not always the one of
    /// the RDMA device.
    pub(crate) names: &'static [&'static str],
    pub(crate) meanings: &'static [(PathEventKind, &'static [&'static str])],
    /// Those of them that count TCP's segments, of iWARP.
    pub(crate) of_tcp: &'static [&'static str],
    /// Counters of 32 bits that wrap; all others have 64.
    pub(crate) of_32_bits: &'static [&'static str],
    /// How names begin that are no counters: objects that there are, and the most that ever were.
    pub(crate) gauges: &'static [&'static str],
}

pub(crate) const DRIVERS: [Driver; 10] =
    [MLX5, BNXT_RE, IRDMA, MANA, IONIC, HNS, EFA, ERDMA, RXE, EMBEDDED];

const WITHOUT: Driver =
    Driver { names: &[], meanings: &[], of_tcp: &[], of_32_bits: &[], gauges: &[] };

const MLX5: Driver = Driver {
    names: &["mlx5_core"],
    meanings: &[
        (SequenceGap, &["out_of_sequence"]),
        (SequenceNak, &["packet_seq_err", "implied_nak_seq_err"]),
        (AckTimeout, &["local_ack_timeout_err", "roce_adp_retrans_to"]),
        (Resent, &["duplicate_request", "roce_adp_retrans", "roce_slow_restart"]),
        (GaveUp, &["req_transport_retries_exceeded"]),
        (ReceiverNotReady, &["rnr_nak_retry_err", "out_of_buffer", "req_rnr_retries_exceeded"]),
        (BadPacket, &["rx_icrc_encapsulated"]),
        (
            Congestion,
            &[
                "np_ecn_marked_roce_packets",
                "np_cnp_sent",
                "rp_cnp_handled",
                "rp_cnp_ignored",
                "cc_rx_ce_pkts",
                "cc_rx_cnp_pkts",
                "cc_tx_cnp_pkts",
            ],
        ),
    ],
    // The Q counters: `query_q_counter` answers in words of 32 bits.
    of_32_bits: &[
        "rx_write_requests",
        "rx_read_requests",
        "rx_atomic_requests",
        "rx_dct_connect",
        "out_of_buffer",
        "out_of_sequence",
        "duplicate_request",
        "rnr_nak_retry_err",
        "packet_seq_err",
        "implied_nak_seq_err",
        "local_ack_timeout_err",
        "resp_local_length_error",
        "resp_cqe_error",
        "req_cqe_error",
        "req_remote_invalid_request",
        "req_remote_access_errors",
        "resp_remote_access_errors",
        "resp_cqe_flush_error",
        "req_cqe_flush_error",
        "req_transport_retries_exceeded",
        "req_rnr_retries_exceeded",
        "roce_adp_retrans",
        "roce_adp_retrans_to",
        "roce_slow_restart",
        "roce_slow_restart_cnps",
        "roce_slow_restart_trans",
    ],
    ..WITHOUT
};

// Its firmware's are of 64 bits. Newer releases have taken mlx5's names for some.
const BNXT_RE: Driver = Driver {
    names: &["bnxt_en", "bnxt_re"],
    meanings: &[
        (SequenceGap, &["oos_drop_count", "out_of_sequence"]),
        (
            SequenceNak,
            &["seq_err_naks_rcvd", "packet_seq_err", "missing_resp", "implied_nak_seq_err"],
        ),
        (AckTimeout, &["to_retransmits", "local_ack_timeout_err", "roce_adp_retrans_to"]),
        (Resent, &["dup_req", "duplicate_request", "roce_adp_retrans", "roce_slow_restart"]),
        (GaveUp, &["max_retry_exceeded", "req_transport_retries_exceeded"]),
        (
            ReceiverNotReady,
            &["rnr_naks_rcvd", "rnr_nak_retry_err", "rx_out_of_buffer", "out_of_buffer"],
        ),
        (BadPacket, &["rx_roce_errors"]),
        (Dropped, &["rx_roce_discards"]),
        (
            Congestion,
            &[
                "rx_ecn_marked_pkts",
                "tx_cnp_pkts",
                "rx_cnp_pkts",
                "np_ecn_marked_roce_packets",
                "np_cnp_sent",
                "np_cnp_pkts",
                "rp_cnp_handled",
                "rp_cnp_ignored",
            ],
        ),
    ],
    gauges: &["active_", "watermark_"],
    ..WITHOUT
};

// Its registers are narrower, but the driver adds them up in 64 bits. What sysfs names is the driver of the network
// card. Of RoCE an E810 counts nothing that follows a loss, later adapters do.
const IRDMA: Driver = Driver {
    names: &["ice", "i40e", "idpf", "irdma"],
    meanings: &[
        (SequenceGap, &["Rcvd Out of order packets"]),
        (SequenceNak, &["Nak Sequence Error", "Nak Sequence Error Implied"]),
        (AckTimeout, &["RTO"]),
        (Resent, &["RetransSegs", "tcpRetransSegs"]),
        (ReceiverNotReady, &["RNR sent", "RNR received"]),
        (BadPacket, &["CRC errors"]),
        (Dropped, &["ip4InDiscards", "ip6InDiscards"]),
        (Congestion, &["RxECNMrkd", "cnpSent", "cnpHandled", "cnpIgnored"]),
    ],
    of_tcp: &["RetransSegs", "tcpRetransSegs"],
    ..WITHOUT
};

const MANA: Driver = Driver {
    names: &["mana"],
    meanings: &[
        (SequenceGap, &["responder_oos"]),
        (SequenceNak, &["requester_oos_nak", "requester_implicit_nak"]),
        (AckTimeout, &["requester_timeout"]),
        (Resent, &["responder_dup_request", "dup_rx_requests"]),
        (GaveUp, &["requester_retries_exceeded"]),
        (
            ReceiverNotReady,
            &["requester_rnr_nak", "responder_rnr_nak", "requester_rnr_nak_retries_exceeded"],
        ),
        (Congestion, &["received_ecns", "sent_cnps", "received_cnps"]),
    ],
    gauges: &["current_rate", "num_qps_"],
    ..WITHOUT
};

// The names come from its firmware; `outouf` is one of them.
const IONIC: Driver = Driver {
    names: &["ionic"],
    meanings: &[
        (SequenceGap, &["resp_rx_outouf_seq"]),
        (SequenceNak, &["req_rx_pkt_seq_err", "req_rx_impl_nak_seq_err"]),
        (AckTimeout, &["tx_rdma_ack_timeout"]),
        (Resent, &["resp_rx_dup_request", "req_rx_dup_response"]),
        (GaveUp, &["req_tx_retry_excd_err"]),
        (ReceiverNotReady, &["req_rx_rnr_retry_err", "resp_tx_rnr_retry_err", "resp_rx_outof_buf"]),
        (Dropped, &["rx_rdma_mtu_discard_pkts"]),
        (Congestion, &["rx_rdma_cnp_pkts", "tx_rdma_cnp_pkts"]),
    ],
    ..WITHOUT
};

// It counts no retransmissions.
const HNS: Driver = Driver {
    names: &["hns3", "hns_roce_hw_v2"],
    meanings: &[(BadPacket, &["rx_err_pkt"]), (Congestion, &["rx_cnp_pkt", "tx_cnp_pkt"])],
    ..WITHOUT
};

const EFA: Driver = Driver {
    names: &["efa"],
    meanings: &[
        (AckTimeout, &["retrans_timeout_events"]),
        (Resent, &["retrans_pkts"]),
        (GaveUp, &["unresponsive_remote_events"]),
        (Dropped, &["rx_drops"]),
    ],
    ..WITHOUT
};

// What the cloud drops above the rate that was bought.
const ERDMA: Driver = Driver {
    names: &["erdma"],
    meanings: &[(
        Dropped,
        &[
            "tx_bps_limit_drop_cnt",
            "tx_pps_limit_drop_cnt",
            "tx_disable_drop_cnt",
            "rx_bps_limit_drop_cnt",
            "rx_pps_limit_drop_cnt",
            "rx_disable_drop_cnt",
        ],
    )],
    ..WITHOUT
};

const RXE: Driver = Driver {
    names: &["rdma_rxe"],
    meanings: &[
        (SequenceGap, &["out_of_seq_request"]),
        (SequenceNak, &["rcvd_seq_err"]),
        // The completer counts what it sends again after a NAK as well as after a time-out.
        (Resent, &["completer_retry_err", "duplicate_request"]),
        (GaveUp, &["retry_exceeded_err"]),
        (ReceiverNotReady, &["rcvd_rnr_err", "send_rnr_err", "retry_rnr_exceeded_err"]),
        (Dropped, &["send_err"]),
    ],
    ..WITHOUT
};

const EMBEDDED: Driver = Driver {
    names: &[EMBEDDED_DRIVER],
    meanings: &[
        (SequenceGap, &["out_of_sequence"]),
        (SequenceNak, &["go_backs"]),
        (AckTimeout, &["timeouts"]),
        (Resent, &["duplicate_requests"]),
        (ReceiverNotReady, &["rnr_naks_sent"]),
        (BadPacket, &["bad_icrc", "short_packets", "unparsed"]),
        (Dropped, &["send_errors", "dropped_datagrams", "socket_drops"]),
        (
            Congestion,
            &["np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored"],
        ),
        (PausedByNetwork, &["rx_global_pause"]),
        (PausedByHost, &["tx_global_pause"]),
    ],
    ..WITHOUT
};

// Of the counters of congestion, those that tell its steps apart, whatever the driver.

/// Names of counters of packets that came with ECN's mark.
pub const ECN_MARKED: &[&str] = &[
    "np_ecn_marked_roce_packets",
    "cc_rx_ce_pkts",
    "rx_ecn_marked_pkts",
    "RxECNMrkd",
    "received_ecns",
];
/// Of congestion notifications that this end sent.
pub const CNPS_SENT: &[&str] =
    &["np_cnp_sent", "cc_tx_cnp_pkts", "np_cnp_pkts", "tx_cnp_pkts", "cnpSent", "sent_cnps"];
/// Of those that it obeyed.
pub const CNPS_OBEYED: &[&str] = &["rp_cnp_handled", "cnpHandled"];
/// Of those that it ignored.
pub const CNPS_IGNORED: &[&str] = &["rp_cnp_ignored", "cnpIgnored"];

/// Parts of names, and whether a counter with such a name counts pause frames; the first one that fits decides.
const PAUSE_COUNTERS: [(&str, bool); 10] = [
    // For how long there was a pause.
    ("duration", false),
    ("xoff_time", false),
    ("1us_count", false),
    // How often one began, and frames that end one.
    ("transition", false),
    ("xon_2_xoff", false),
    ("resume", false),
    // Plain pause frames, PFC of a priority or class, and both.
    ("pause", true),
    ("pfc", true),
    // Intel's names.
    ("xoff", true),
    ("", false),
];

/// Whether a counter of this name counts pause frames: those of PFC, or plain ones.
pub fn counts_pauses(name: &str) -> bool {
    let row = PAUSE_COUNTERS.iter().find(|(part, _)| name.contains(part));
    row.is_some_and(|(_, counts)| *counts)
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
    fn steps_of_congestion_are_counters_of_congestion() {
        let steps = [ECN_MARKED, CNPS_SENT, CNPS_OBEYED, CNPS_IGNORED];
        for name in steps.into_iter().flatten() {
            let mut meanings = DRIVERS.iter().flat_map(|driver| driver.meanings);
            let is_known =
                meanings.any(|(kind, names)| *kind == Congestion && names.contains(name));
            assert!(is_known, "{name}");
        }
    }

    #[test]
    fn every_name_stands_once_in_a_driver() {
        for driver in &DRIVERS {
            let names: Vec<_> = driver.meanings.iter().flat_map(|(_, names)| *names).collect();
            let different: std::collections::HashSet<_> = names.iter().collect();
            assert_eq!(different.len(), names.len(), "{:?}", driver.names);
        }
    }

    #[test]
    fn pause_frames_have_many_names() {
        for (driver, names) in [
            (
                "mlx5",
                "rx_prio3_pause tx_prio3_pause rx_pause_ctrl_phy tx_pause_ctrl_phy rx_global_pause tx_global_pause \
                 tx_pause_storm_warning_events tx_pause_storm_error_events",
            ),
            (
                "bnxt",
                "rx_pause_frames tx_pause_frames rx_pfc_frames tx_pfc_frames rx_pfc_ena_frames_pri3 tx_pfc_ena_frames_pri3 \
                 continuous_pause_events continuous_roce_pause_events",
            ),
            (
                "ice",
                "link_xoff_rx.nic link_xoff_tx.nic rx_priority_3_xoff.nic tx_priority_3_xoff.nic",
            ),
            (
                "i40e",
                "port.link_xoff_rx port.rx_priority_3_xoff port.tx_priority_3_xoff port.rx_priority_3_xoff_rx",
            ),
            ("ionic", "frames_rx_pause frames_tx_pause frames_rx_pripause frames_tx_pripause"),
            (
                "hns3",
                "mac_tx_mac_pause_num mac_rx_mac_pause_num mac_tx_pfc_pkt_num mac_rx_pfc_pkt_num mac_tx_pfc_pri3_pkt_num \
                 mac_rx_pfc_pri3_pkt_num",
            ),
            ("mana", "hc_tc3_rx_pause_phy hc_tc3_tx_pause_phy"),
        ] {
            for name in names.split_whitespace() {
                assert!(counts_pauses(name), "{driver} {name}");
            }
        }
    }

    #[test]
    fn received_pauses_are_the_networks_and_sent_ones_this_hosts() {
        for (meaning, names) in [
            (
                Some(PausedByNetwork),
                "rx_prio3_pause rx_global_pause rx_pfc_ena_frames_pri3 link_xoff_rx.nic port.rx_priority_3_xoff_rx \
                 frames_rx_pripause mac_rx_pfc_pri3_pkt_num hc_tc3_rx_pause_phy",
            ),
            (
                Some(PausedByHost),
                "tx_prio3_pause tx_global_pause tx_priority_3_xoff.nic mac_tx_mac_pause_num tx_pause_storm_error_events \
                 outbound_pci_stalled_wr_events",
            ),
            (Some(Dropped), "rx_discards_phy"),
            // The same frames again, times, and what is no counter of this port's packets.
            (
                None,
                "rx_pause_ctrl_phy tx_pfc_frames mac_rx_pfc_pkt_num rx_prio3_pause_duration outbound_pci_stalled_wr \
                 continuous_pause_events rx_prio3_packets rx_out_of_buffer",
            ),
        ] {
            for name in names.split_whitespace() {
                assert_eq!(meaning_of_interface_counter(name), meaning, "{name}");
            }
        }
        assert_eq!(meaning_of_port_counter("port_xmit_wait"), Some(PausedByNetwork));
        let kept = ["rx_prio3_pause_duration", "tx_prio0_bytes", "rx_packets_pri3", "rx_packets"];
        assert_eq!(kept.map(concerns_rdma), [true, true, true, false]);
    }

    #[test]
    fn times_ends_of_pauses_and_other_counters_are_none() {
        for (driver, names) in [
            (
                "mlx5",
                "rx_prio3_pause_duration rx_prio3_pause_transition rx_global_pause_duration rx_global_pause_transition \
                 rx_prio3_packets rx_prio3_buf_discard rx_prio3_marked rx_discards_phy",
            ),
            (
                "bnxt",
                "pfc_pri3_rx_duration_us pfc_pri3_rx_transitions resume_pause_events resume_roce_pause_events \
                 rx_eee_lpi_duration rx_packets_pri3 rx_ctrl_frames",
            ),
            ("ice", "link_xon_rx.nic rx_priority_3_xon.nic rx_dropped.nic"),
            ("i40e", "port.rx_priority_3_xon_2_xoff port.tx_priority_3_xon"),
            (
                "ionic",
                "rx_pripause_3_1us_count rx_pause_1us_count frames_rx_pri_3 frames_rx_dropped",
            ),
            ("hns3", "mac_tx_pfc_pri3_xoff_time mac_tx_control_pkt_num mac_tx_good_pkt_num"),
            ("mana", "hc_tc3_rx_pkt_phy stop_queue wake_queue"),
        ] {
            for name in names.split_whitespace() {
                assert!(!counts_pauses(name), "{driver} {name}");
            }
        }
    }
}
