//! What is known of adapters by their kernel driver, because no call tells it: whether a driver passes relaxed ordering on, and
//! how it chooses the UDP source port of RoCE v2. Read in Linux 7.2, drivers/infiniband/hw and sw.

/// A kernel driver, by the name of the driver of the PCI device.
#[derive(Debug)]
pub struct Driver {
    pub name: &'static str,
    /// Whether it asks the adapter for relaxed ordering; whether the adapter obeys depends on firmware and slot.
    pub relaxed_ordering: bool,
    /// Whether its library has a call for a QP's UDP source port.
    pub takes_udp_ports: bool,
    /// Whether it makes the UDP source port of connected QPs by the kernel's function (`rdma_get_udp_sport` of rdma/ib_verbs.h);
    /// else the firmware chooses it, or there is none.
    computes_port: bool,
}

const fn driver(name: &'static str, relaxed_ordering: bool, computes_port: bool) -> Driver {
    Driver { name, relaxed_ordering, takes_udp_ports: false, computes_port }
}

static DRIVERS: [Driver; 13] = [
    // mlx5/mr.c, set_mkc_access_pd_addr_fields; mlx5/qp.c, mlx5_set_path_udp_sport; rdma-core's
    // mlx5dv_modify_qp_udp_sport.
    Driver { takes_udp_ports: true, ..driver("mlx5_core", true, true) },
    // bnxt_re/ib_verbs.c, bnxt_re_check_and_set_relaxed_ordering.
    driver("bnxt_en", true, false),
    // irdma/verbs.c, irdma_modify_qp_roce.
    driver("ice", false, true),
    driver("idpf", false, true),
    driver("i40e", false, false),
    // hns_roce_hw_v2.c, hns_roce_v2_set_path.
    driver("hns3", false, true),
    // mana/qp.c, mana_ib_gd_modify_qp.
    driver("mana", false, true),
    // ionic_controlpath.c, ionic_modify_qp_cmd.
    driver("ionic", false, true),
    // erdma_verbs.c, in its RoCE v2 mode.
    driver("erdma", false, true),
    driver("efa", false, false),
    driver("qede", false, false),
    driver("cxgb4", false, false),
    // rxe_verbs.c, rxe_modify_qp, since Linux 5.17.
    driver(SOFT_ROCE, false, true),
];

/// The kernel's Soft-RoCE, which belongs to no PCI device.
pub(super) const SOFT_ROCE: &str = "rdma_rxe";

/// The first UDP source port that RoCE v2 uses (`IB_ROCE_UDP_ENCAP_VALID_PORT_MIN`), and how many bits choose among them.
const FIRST_PORT: u32 = 0xc000;
const PORT_BITS: u32 = 14;

/// Bits of a flow label.
const LABEL_BITS: u32 = 20;

impl Driver {
    /// The driver of this name; `None` for one of which nothing is known.
    pub fn from_name(name: &str) -> Option<&'static Driver> {
        // `mlx5_core.sf` drives a subfunction.
        let module = name.split('.').next().unwrap_or(name);
        DRIVERS.iter().find(|driver| driver.name == module)
    }

    /// Whether its devices have no hardware.
    pub fn is_software(&self) -> bool {
        self.name == SOFT_ROCE
    }

    /// The UDP source port of packets from connected QP `own` to QP `peer`, sent with this flow label.
    pub fn udp_source_port(&self, flow_label: u32, own: u32, peer: u32) -> Option<u16> {
        let label = match flow_label {
            0 => label_of_qps(own, peer),
            label => label,
        };
        self.computes_port.then(|| of_label(label))
    }
}

/// `rdma_flow_label_to_udp_sport`: the label's high bits are folded into the low ones.
fn of_label(label: u32) -> u16 {
    let low = (label ^ label >> PORT_BITS) & ((1 << PORT_BITS) - 1);
    // 14 bits above 0xc000 end at 0xffff.
    (FIRST_PORT | low) as u16
}

/// `rdma_calc_flow_label`.
fn label_of_qps(own: u32, peer: u32) -> u32 {
    let product = u64::from(own) * u64::from(peer);
    let once = product ^ product >> LABEL_BITS;
    let folded = once ^ once >> (2 * LABEL_BITS);
    (folded & ((1 << LABEL_BITS) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, label: u32, own: u32, peer: u32) -> Option<u16> {
        Driver::from_name(name)?.udp_source_port(label, own, peer)
    }

    #[test]
    fn a_label_is_folded_into_the_port() {
        assert_eq!(of("mlx5_core", 1, 0x11, 0x12), Some(0xc001));
        assert_eq!(of("mlx5_core", 0xf_ffff, 0x11, 0x12), Some(0xffc0));
        assert_eq!(of("mana", 0x4000, 0x11, 0x12), Some(0xc001));
        assert_eq!(of("mlx5_core.sf", 1, 0x11, 0x12), Some(0xc001));
    }

    #[test]
    fn without_a_label_the_qps_choose_the_same_port_both_ways() {
        assert_eq!(of("mlx5_core", 0, 0x11, 0x12), Some(0xc000 | 0x132));
        let far = (0x00ff_fffe, 0x00ab_cdef);
        assert_eq!(of("hns3", 0, far.0, far.1), of("hns3", 0, far.1, far.0));
    }

    #[test]
    fn what_the_firmware_chooses_is_not_known() {
        assert_eq!(of("bnxt_en", 7, 0x11, 0x12), None);
        assert_eq!(of("a new one", 7, 0x11, 0x12), None);
    }
}
