//! The counters of each driver by the names that it gives them. Sources: the drivers' `hw_counters` in Linux
//! (`drivers/infiniband`: mlx5/counters.c, bnxt_re/hw_counters.c, irdma/verbs.c, mana/counters.c,
//! ionic/ionic_hw_stats.c, hns/hns_roce_hw_v2.c, efa/efa_verbs.c, erdma/erdma_verbs.c, rxe/rxe_hw_counters.c).

use report::results::model::PathEventKind;

/// Driver name of the embedded device.
pub const EMBEDDED_DRIVER: &str = "softroce";

/// A driver.
pub(super) struct Driver {
    /// The names under which sysfs shows it. That is the driver of the PCI device, which is not always the one of
    /// the RDMA device.
    pub(super) names: &'static [&'static str],
    /// Counters with a meaning.
    pub(super) meanings: &'static [(PathEventKind, &'static [&'static str])],
    /// Those of them that count TCP's segments, of iWARP.
    pub(super) of_tcp: &'static [&'static str],
    /// Counters of 32 bits that wrap; all others have 64.
    pub(super) of_32_bits: &'static [&'static str],
    /// How names begin that are no counters: objects that there are, and the most that ever were.
    pub(super) gauges: &'static [&'static str],
}

pub(super) const DRIVERS: [Driver; 10] = [
    MLX5, BNXT_RE, IRDMA, MANA, IONIC, HNS, EFA, ERDMA, RXE, EMBEDDED,
];

const MLX5: Driver = Driver {
    names: &["mlx5_core"],
    meanings: &[
        (PathEventKind::SequenceGap, &["out_of_sequence"]),
        (
            PathEventKind::SequenceNak,
            &["packet_seq_err", "implied_nak_seq_err"],
        ),
        (
            PathEventKind::AckTimeout,
            &["local_ack_timeout_err", "roce_adp_retrans_to"],
        ),
        (
            PathEventKind::Resent,
            &["duplicate_request", "roce_adp_retrans", "roce_slow_restart"],
        ),
        (PathEventKind::GaveUp, &["req_transport_retries_exceeded"]),
        (
            PathEventKind::ReceiverNotReady,
            &[
                "rnr_nak_retry_err",
                "out_of_buffer",
                "req_rnr_retries_exceeded",
            ],
        ),
        (PathEventKind::BadPacket, &["rx_icrc_encapsulated"]),
        (
            PathEventKind::Congestion,
            &[
                "np_ecn_marked_roce_packets",
                "np_cnp_sent",
                "rp_cnp_handled",
                "rp_cnp_ignored",
            ],
        ),
    ],
    of_tcp: &[],
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
    gauges: &[],
};

// Its firmware's are of 64 bits. Newer releases have taken mlx5's names for some.
const BNXT_RE: Driver = Driver {
    names: &["bnxt_en", "bnxt_re"],
    meanings: &[
        (
            PathEventKind::SequenceGap,
            &["oos_drop_count", "out_of_sequence"],
        ),
        (
            PathEventKind::SequenceNak,
            &[
                "seq_err_naks_rcvd",
                "packet_seq_err",
                "missing_resp",
                "implied_nak_seq_err",
            ],
        ),
        (
            PathEventKind::AckTimeout,
            &[
                "to_retransmits",
                "local_ack_timeout_err",
                "roce_adp_retrans_to",
            ],
        ),
        (
            PathEventKind::Resent,
            &[
                "dup_req",
                "duplicate_request",
                "roce_adp_retrans",
                "roce_slow_restart",
            ],
        ),
        (
            PathEventKind::GaveUp,
            &["max_retry_exceeded", "req_transport_retries_exceeded"],
        ),
        (
            PathEventKind::ReceiverNotReady,
            &[
                "rnr_naks_rcvd",
                "rnr_nak_retry_err",
                "rx_out_of_buffer",
                "out_of_buffer",
            ],
        ),
        (PathEventKind::BadPacket, &["rx_roce_errors"]),
        (PathEventKind::Dropped, &["rx_roce_discards"]),
        (
            PathEventKind::Congestion,
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
    of_tcp: &[],
    of_32_bits: &[],
    gauges: &["active_", "watermark_"],
};

// Its registers are narrower, but the driver adds them up in 64 bits. What sysfs names is the driver of the network
// card. Of RoCE an E810 counts nothing that follows a loss, later adapters do.
const IRDMA: Driver = Driver {
    names: &["ice", "i40e", "idpf", "irdma"],
    meanings: &[
        (PathEventKind::SequenceGap, &["Rcvd Out of order packets"]),
        (
            PathEventKind::SequenceNak,
            &["Nak Sequence Error", "Nak Sequence Error Implied"],
        ),
        (PathEventKind::AckTimeout, &["RTO"]),
        (PathEventKind::Resent, &["RetransSegs", "tcpRetransSegs"]),
        (
            PathEventKind::ReceiverNotReady,
            &["RNR sent", "RNR received"],
        ),
        (PathEventKind::BadPacket, &["CRC errors"]),
        (PathEventKind::Dropped, &["ip4InDiscards", "ip6InDiscards"]),
        (
            PathEventKind::Congestion,
            &["RxECNMrkd", "cnpSent", "cnpHandled", "cnpIgnored"],
        ),
    ],
    of_tcp: &["RetransSegs", "tcpRetransSegs"],
    of_32_bits: &[],
    gauges: &[],
};

const MANA: Driver = Driver {
    names: &["mana"],
    meanings: &[
        (PathEventKind::SequenceGap, &["responder_oos"]),
        (
            PathEventKind::SequenceNak,
            &["requester_oos_nak", "requester_implicit_nak"],
        ),
        (PathEventKind::AckTimeout, &["requester_timeout"]),
        (
            PathEventKind::Resent,
            &["responder_dup_request", "dup_rx_requests"],
        ),
        (PathEventKind::GaveUp, &["requester_retries_exceeded"]),
        (
            PathEventKind::ReceiverNotReady,
            &[
                "requester_rnr_nak",
                "responder_rnr_nak",
                "requester_rnr_nak_retries_exceeded",
            ],
        ),
        (
            PathEventKind::Congestion,
            &["received_ecns", "sent_cnps", "received_cnps"],
        ),
    ],
    of_tcp: &[],
    of_32_bits: &[],
    gauges: &["current_rate", "num_qps_"],
};

// The names come from its firmware; `outouf` is one of them.
const IONIC: Driver = Driver {
    names: &["ionic"],
    meanings: &[
        (PathEventKind::SequenceGap, &["resp_rx_outouf_seq"]),
        (
            PathEventKind::SequenceNak,
            &["req_rx_pkt_seq_err", "req_rx_impl_nak_seq_err"],
        ),
        (PathEventKind::AckTimeout, &["tx_rdma_ack_timeout"]),
        (
            PathEventKind::Resent,
            &["resp_rx_dup_request", "req_rx_dup_response"],
        ),
        (PathEventKind::GaveUp, &["req_tx_retry_excd_err"]),
        (
            PathEventKind::ReceiverNotReady,
            &[
                "req_rx_rnr_retry_err",
                "resp_tx_rnr_retry_err",
                "resp_rx_outof_buf",
            ],
        ),
        (PathEventKind::Dropped, &["rx_rdma_mtu_discard_pkts"]),
        (
            PathEventKind::Congestion,
            &["rx_rdma_cnp_pkts", "tx_rdma_cnp_pkts"],
        ),
    ],
    of_tcp: &[],
    of_32_bits: &[],
    gauges: &[],
};

// It counts no retransmissions.
const HNS: Driver = Driver {
    names: &["hns3", "hns_roce_hw_v2"],
    meanings: &[
        (PathEventKind::BadPacket, &["rx_err_pkt"]),
        (PathEventKind::Congestion, &["rx_cnp_pkt", "tx_cnp_pkt"]),
    ],
    of_tcp: &[],
    of_32_bits: &[],
    gauges: &[],
};

const EFA: Driver = Driver {
    names: &["efa"],
    meanings: &[
        (PathEventKind::AckTimeout, &["retrans_timeout_events"]),
        (PathEventKind::Resent, &["retrans_pkts"]),
        (PathEventKind::GaveUp, &["unresponsive_remote_events"]),
        (PathEventKind::Dropped, &["rx_drops"]),
    ],
    of_tcp: &[],
    of_32_bits: &[],
    gauges: &[],
};

// What the cloud drops above the rate that was bought.
const ERDMA: Driver = Driver {
    names: &["erdma"],
    meanings: &[(
        PathEventKind::Dropped,
        &[
            "tx_bps_limit_drop_cnt",
            "tx_pps_limit_drop_cnt",
            "tx_disable_drop_cnt",
            "rx_bps_limit_drop_cnt",
            "rx_pps_limit_drop_cnt",
            "rx_disable_drop_cnt",
        ],
    )],
    of_tcp: &[],
    of_32_bits: &[],
    gauges: &[],
};

const RXE: Driver = Driver {
    names: &["rdma_rxe"],
    meanings: &[
        (PathEventKind::SequenceGap, &["out_of_seq_request"]),
        (PathEventKind::SequenceNak, &["rcvd_seq_err"]),
        // The completer counts what it sends again after a NAK as well as after a time-out.
        (
            PathEventKind::Resent,
            &["completer_retry_err", "duplicate_request"],
        ),
        (PathEventKind::GaveUp, &["retry_exceeded_err"]),
        (
            PathEventKind::ReceiverNotReady,
            &["rcvd_rnr_err", "send_rnr_err", "retry_rnr_exceeded_err"],
        ),
        (PathEventKind::Dropped, &["send_err"]),
    ],
    of_tcp: &[],
    of_32_bits: &[],
    gauges: &[],
};

const EMBEDDED: Driver = Driver {
    names: &[EMBEDDED_DRIVER],
    meanings: &[
        (PathEventKind::SequenceGap, &["out_of_sequence"]),
        (PathEventKind::AckTimeout, &["timeouts"]),
        (PathEventKind::Resent, &["go_backs", "duplicate_requests"]),
        (PathEventKind::ReceiverNotReady, &["rnr_naks_sent"]),
        (
            PathEventKind::BadPacket,
            &["bad_icrc", "short_packets", "unparsed"],
        ),
        (
            PathEventKind::Dropped,
            &["send_errors", "dropped_datagrams", "socket_drops"],
        ),
        (
            PathEventKind::Congestion,
            &[
                "np_ecn_marked_roce_packets",
                "np_cnp_sent",
                "rp_cnp_handled",
                "rp_cnp_ignored",
            ],
        ),
    ],
    of_tcp: &[],
    of_32_bits: &[],
    gauges: &[],
};
