//! Which counters of a network interface (`ethtool -S`) count pause frames, by all names that drivers give them. Sources, in
//! Linux below `drivers/net/ethernet`: mellanox/mlx5/core/en_stats.c, broadcom/bnxt/bnxt_ethtool.c,
//! intel/ice/ice_ethtool.c, intel/i40e/i40e_ethtool.c, pensando/ionic/ionic_stats.c,
//! hisilicon/hns3/hns3pf/hclge_main.c, microsoft/mana/mana_ethtool.c.

/// Parts of names, and whether a counter with such a name counts pause frames; the first one that fits decides.
const ROWS: [(&str, bool); 10] = [
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
    let row = ROWS.iter().find(|(part, _)| name.contains(part));
    row.is_some_and(|(_, counts)| *counts)
}

#[cfg(test)]
mod tests {
    use super::*;

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
