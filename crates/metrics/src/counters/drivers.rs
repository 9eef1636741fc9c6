//! The counters of each driver by the names that it gives them. Sources: the drivers' `hw_counters` in Linux
//! (`drivers/infiniband`: mlx5/counters.c, bnxt_re/hw_counters.c, irdma/verbs.c, mana/counters.c,
//! ionic/ionic_hw_stats.c, hns/hns_roce_hw_v2.c, efa/efa_verbs.c, erdma/erdma_verbs.c, rxe/rxe_hw_counters.c).

use report::results::model::PathEventKind::{
    self, AckTimeout, BadPacket, Congestion, Dropped, GaveUp, ReceiverNotReady, Resent,
    SequenceGap, SequenceNak,
};

/// Driver name of the embedded device.
pub const EMBEDDED_DRIVER: &str = "softroce";

pub(super) struct Driver {
    /// The names under which sysfs shows it. That is the driver of the PCI device, which is not always the one of
    /// the RDMA device.
    pub(super) names: &'static [&'static str],
    pub(super) meanings: &'static [(PathEventKind, &'static [&'static str])],
    /// Those of them that count TCP's segments, of iWARP.
    pub(super) of_tcp: &'static [&'static str],
    /// Counters of 32 bits that wrap; all others have 64.
    pub(super) of_32_bits: &'static [&'static str],
    /// How names begin that are no counters: objects that there are, and the most that ever were.
    pub(super) gauges: &'static [&'static str],
}

pub(super) const DRIVERS: [Driver; 10] =
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
            &["np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored"],
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
        (AckTimeout, &["timeouts"]),
        (Resent, &["go_backs", "duplicate_requests"]),
        (ReceiverNotReady, &["rnr_naks_sent"]),
        (BadPacket, &["bad_icrc", "short_packets", "unparsed"]),
        (Dropped, &["send_errors", "dropped_datagrams", "socket_drops"]),
        (
            Congestion,
            &["np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored"],
        ),
    ],
    ..WITHOUT
};
