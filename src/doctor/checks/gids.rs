//! Checks that active RoCE ports have a RoCE v2 GID, preferably a routable one.

use verbs::GidType;

use super::super::entries::{DeviceEntry, PortEntry};
use super::subject::{Subject, port_name};
use protocol::finding::{Finding, State};

const WHY: &str = "GIDs are a port's RDMA addresses; the kernel makes them from its interface's IP addresses. Both \
                   ends must use RoCE v2 GIDs of one address family";

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    subject.of_active_roce_ports(judge)
}

fn judge(device: &DeviceEntry, port: &PortEntry) -> Finding {
    let netdev = port.netdev.as_deref().unwrap_or("NETDEV");
    let address =
        format!("sudo ip address add 192.0.2.1/24 dev {netdev} (an address of your network)");
    let v2: Vec<_> =
        port.table().into_iter().filter(|entry| entry.gid_type == GidType::RoceV2).collect();
    let routable = v2.iter().filter(|entry| !entry.gid.is_link_local()).count();
    match (port.gids.len(), v2.len(), routable) {
        (0, ..) => finding(device, port, State::Broken, "the table is empty (all entries are zero)".into()).remedy(address),
        (all, 0, _) => finding(device, port,
            State::Broken,
            format!("{all} entries, none is RoCE v2"),
        )
        .remedy(
            "enable RoCE v2 in the adapter's settings (`cma_roce_mode` or the vendor's tool), or update driver and \
             firmware; rocebench does not use v1, which is not routable",
        ),
        (_, v2, 0) => finding(device, port,
            State::Warning,
            format!("{v2} RoCE v2, all link-local: they reach only this network segment"),
        )
        .remedy(address),
        (all, v2, routable) => finding(device, port,
            State::Ok,
            format!("{all} entries, {v2} RoCE v2, {routable} of them routable"),
        ),
    }
}

fn finding(device: &DeviceEntry, port: &PortEntry, state: State, found: String) -> Finding {
    Finding::new("GIDs", state, found, WHY).of(port_name(device, port))
}

#[cfg(test)]
mod tests {
    use super::super::super::entries::GidRow;
    use super::super::tests::*;
    use super::*;

    fn of(rows: &[(&str, &str)]) -> State {
        let port = PortEntry {
            gids: rows
                .iter()
                .map(|(gid, gid_type)| GidRow {
                    gid: (*gid).into(),
                    gid_type: (*gid_type).into(),
                    ..GidRow::default()
                })
                .collect(),
            ..PortEntry::default()
        };
        judge(&DeviceEntry::default(), &port).state
    }

    #[test]
    fn tables_are_judged_by_their_best_entry() {
        let local = ("fe80::1", "RoCE v2");
        assert_eq!(of(&[]), State::Broken);
        assert_eq!(of(&[("::ffff:192.0.2.1", "RoCE v1")]), State::Broken);
        assert_eq!(of(&[local]), State::Warning);
        assert_eq!(of(&[local, ("2001:db8::1", "RoCE v2")]), State::Ok);
    }

    #[test]
    fn ports_that_are_down_are_left_out() {
        let found = findings(&tree(), check);
        assert_eq!(states(&found), [(State::Ok, "GIDs mlx5_0:1".into())]);
        assert!(found[0].found.starts_with("4 entries, 2 RoCE v2, 1 of"));
    }
}
