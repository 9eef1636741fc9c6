//! What a network interface does so that no packet of RoCE is lost: priorities with PFC, ECN, and by what a packet gets
//! its priority.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::dcb::Bridging;
use super::host::text;

/// What a network interface does so that no packet is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lossless {
    /// Priorities with PFC (IEEE 802.1Qbb), in order.
    pub pfc_priorities: Option<Vec<u8>>,
    /// Pause frames (IEEE 802.3x) are on, in one direction at least.
    pub pause_frames: Option<bool>,
    /// Priorities on which the adapter both sends congestion notifications and obeys them.
    pub ecn_priorities: Option<Vec<u8>>,
    /// By which field a packet gets its priority: `dscp` or `pcp`.
    pub trust: Option<String>,
    /// DSCP with the priority that it stands for, in order of DSCP.
    pub dscp_priorities: Option<Vec<(u8, u8)>>,
    /// The traffic class of all packets of the device, whatever a QP asks for.
    pub traffic_class: Option<u8>,
}

/// What becomes of packets on their way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// The traffic class that they have.
    pub traffic_class: u8,
    /// Their priority, where it is known.
    pub priority: Option<u8>,
    pub is_lossless: Option<bool>,
}

impl Lossless {
    /// Of a port of a device and the interface below it, by files below `root` and by what the kernel tells of PFC. Pause frames
    /// need a tool, and are left out.
    pub fn read(root: &Path, device: (&str, u8), netdev: &str, bridging: Bridging) -> Lossless {
        let net = root.join("sys/class/net").join(netdev);
        Lossless {
            pfc_priorities: bridging.pfc_priorities,
            pause_frames: None,
            ecn_priorities: ecn_priorities(&net),
            // MLNX_OFED's file, where the kernel is older than the netlink table (6.2).
            trust: bridging.trust.map(str::to_owned).or_else(|| text(&net.join("qos/trust"))),
            dscp_priorities: bridging.dscp_priorities,
            traffic_class: global_traffic_class(root, device),
        }
    }

    /// What becomes of packets whose QP asks for this traffic class and this service level.
    pub fn treatment(&self, traffic_class: u8, service_level: u8) -> Treatment {
        let traffic_class = self.traffic_class.unwrap_or(traffic_class);
        let priority = match self.trust.as_deref() {
            // The VLAN tag's priority is made of the service level.
            Some("pcp") => Some(service_level & 7),
            _ => self.priority_of_dscp(traffic_class >> 2),
        };
        let pfc = self.pfc_priorities.as_ref();
        Treatment {
            traffic_class,
            priority,
            is_lossless: match pfc {
                Some(pfc) if pfc.is_empty() => Some(false),
                _ => priority.map(|priority| pfc.is_some_and(|pfc| pfc.contains(&priority))),
            },
        }
    }

    fn priority_of_dscp(&self, dscp: u8) -> Option<u8> {
        let (_, priority) =
            self.dscp_priorities.as_ref()?.iter().find(|(entry, _)| *entry == dscp)?;
        Some(*priority)
    }

    /// What gives packets a priority with PFC.
    pub fn advice(&self) -> String {
        let pfc = self.pfc_priorities.as_ref();
        let first = pfc.and_then(|pfc| pfc.first()).copied().unwrap_or(3);
        match (self.lossless_dscp(), self.traffic_class) {
            (Some(dscp), _) => format!("give --dscp {dscp}, whose packets have PFC here"),
            (None, Some(class)) => format!(
                "change the device's file tc/PORT/traffic_class: it gives all packets traffic class {class}, whatever --traffic-class says"
            ),
            (None, None) if self.trust.as_deref() == Some("pcp") => format!(
                "give --service-level {first} on a VLAN's interface, whose tag sets the priority, or have the \
                 adapter trust DSCP (`dcb apptrust set dev ETH order dscp`)"
            ),
            (None, None) => format!(
                "map a DSCP to the priority (`dcb app add dev ETH dscp-prio 26:{first}`), then give --dscp 26"
            ),
        }
    }

    /// A DSCP whose priority has PFC, 26 if it is one.
    fn lossless_dscp(&self) -> Option<u8> {
        let by_dscp = self.trust.as_deref() != Some("pcp") && self.traffic_class.is_none();
        [26].into_iter()
            .chain(0..64)
            .find(|dscp| by_dscp && self.treatment(dscp << 2, 0).is_lossless == Some(true))
    }
}

impl fmt::Display for Treatment {
    /// As the second half of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packets of DSCP {} have ", self.traffic_class >> 2)?;
        match (self.priority, self.is_lossless) {
            (Some(priority), Some(true)) => write!(f, "priority {priority}, with PFC"),
            (Some(priority), Some(false)) => {
                write!(f, "priority {priority}, without PFC: they can be lost")
            }
            (None, Some(false)) => f.write_str("no PFC: they can be lost"),
            (_, _) => f.write_str("a priority that the driver does not report"),
        }
    }
}

/// Of MLNX_OFED's files: a priority counts where the adapter notifies (`roce_np`) and reacts (`roce_rp`).
fn ecn_priorities(net: &Path) -> Option<Vec<u8>> {
    is_ecn_on(net, "roce_np", 0)?;
    Some(
        (0..8)
            .filter(|priority| {
                is_ecn_on(net, "roce_np", *priority) == Some(true)
                    && is_ecn_on(net, "roce_rp", *priority) == Some(true)
            })
            .collect(),
    )
}

fn is_ecn_on(net: &Path, role: &str, priority: u8) -> Option<bool> {
    let flag = text(&net.join(format!("ecn/{role}/enable/{priority}")))?;
    Some(flag.parse::<u8>().ok()? != 0)
}

/// Of MLNX_OFED's file: `Global tclass=106`.
fn global_traffic_class(root: &Path, (device, port): (&str, u8)) -> Option<u8> {
    let folder = root.join("sys/class/infiniband").join(device);
    let content = text(&folder.join(format!("tc/{port}/traffic_class")))?;
    let line = content.lines().find_map(|line| line.strip_prefix("Global tclass="))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tests::machine;

    #[test]
    fn means_against_loss_are_read_without_root() {
        let read = |files: &[(&str, &str)], bridging| {
            Lossless::read(machine(files).path(), ("mlx5_0", 1), "eth2", bridging)
        };
        assert_eq!(read(&[], Bridging::default()), Lossless::default());
        let net = "sys/class/net/eth2";
        let mut files = vec![
            (format!("{net}/qos/trust"), "dscp\n"),
            ("sys/class/infiniband/mlx5_0/tc/1/traffic_class".to_owned(), "Global tclass=106\n"),
        ];
        for priority in 0..8 {
            let on = |on| if on { "1\n" } else { "0\n" };
            let enable = |role: &str| format!("{net}/ecn/roce_{role}/enable/{priority}");
            files.extend([(enable("np"), on(priority > 2)), (enable("rp"), on(priority < 5))]);
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        let bridging = Bridging { pfc_priorities: Some(vec![3]), ..Bridging::default() };
        let expected = Lossless {
            pfc_priorities: Some(vec![3]),
            ecn_priorities: Some(vec![3, 4]),
            trust: Some("dscp".into()),
            traffic_class: Some(106),
            ..Lossless::default()
        };
        assert_eq!(read(&files, bridging), expected);
    }

    fn usual() -> Lossless {
        Lossless {
            pfc_priorities: Some(vec![3]),
            trust: Some("dscp".into()),
            dscp_priorities: Some(vec![(0, 0), (24, 3), (26, 3)]),
            ..Lossless::default()
        }
    }

    #[test]
    fn a_dscp_gives_the_priority_and_pfc_makes_it_lossless() {
        let of = |lossless: &Lossless, class, level| {
            let found = lossless.treatment(class, level);
            (found.traffic_class, found.priority, found.is_lossless)
        };
        assert_eq!(of(&usual(), 0, 5), (0, Some(0), Some(false)));
        assert_eq!(of(&usual(), 106, 0), (106, Some(3), Some(true)));
        assert_eq!(of(&usual(), 4, 0), (4, None, None));
        let forced = Lossless { traffic_class: Some(106), ..usual() };
        assert_eq!(of(&forced, 0, 0), (106, Some(3), Some(true)));
        let by_tag = Lossless { trust: Some("pcp".into()), ..usual() };
        assert_eq!(of(&by_tag, 106, 3), (106, Some(3), Some(true)));
        assert_eq!(of(&by_tag, 106, 0), (106, Some(0), Some(false)));
        let without = Lossless { pfc_priorities: Some(Vec::new()), ..Lossless::default() };
        assert_eq!(of(&without, 106, 0), (106, None, Some(false)));
        assert_eq!(of(&Lossless::default(), 106, 0), (106, None, None));
    }

    #[test]
    fn the_dscp_of_lossless_packets_is_found() {
        assert_eq!(usual().lossless_dscp(), Some(26));
        let other = Lossless { dscp_priorities: Some(vec![(0, 0), (24, 3)]), ..usual() };
        assert_eq!(other.lossless_dscp(), Some(24));
        assert_eq!(Lossless::default().lossless_dscp(), None);
        let told = usual().treatment(0, 0).to_string();
        assert_eq!(told, "packets of DSCP 0 have priority 0, without PFC: they can be lost");
        assert!(usual().advice().starts_with("give --dscp 26"));
        let forced = Lossless { traffic_class: Some(0), ..usual() };
        assert!(forced.advice().contains("whatever --traffic-class says"));
    }
}
