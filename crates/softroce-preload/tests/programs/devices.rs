//! The output of the programs that list devices.

use crate::child::succeed_alone;

fn output(program: &str, arguments: &str) -> String {
    let ended = succeed_alone(program, arguments);
    assert_eq!(ended.stderr, "", "{ended}");
    ended.stdout
}

#[test]
fn ibv_devices_lists_soft0_with_its_guid() {
    let text = output("ibv_devices", "");
    let device = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&"soft0"));
    let guid = device.and_then(|fields| u64::from_str_radix(fields[1], 16).ok());
    assert!(guid.is_some_and(|guid| guid != 0), "{text}");
}

#[test]
fn ibv_devinfo_describes_an_active_ethernet_port_with_a_roce_v2_gid() {
    let text = output("ibv_devinfo", "-v -d soft0");
    let squeezed: Vec<_> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for wanted in [
        "hca_id: soft0",
        "state: PORT_ACTIVE (4)",
        "active_mtu: 4096 (5)",
        "link_layer: Ethernet",
        "active_width: 1X (1)",
        "atomic_cap: ATOMIC_HCA (1)",
        "max_qp_rd_atom: 128",
    ] {
        assert!(
            squeezed.iter().any(|line| line == wanted),
            "no {wanted}:\n{text}"
        );
    }
    let gid = squeezed.iter().find(|line| line.starts_with("GID[ 0]:"));
    assert!(
        gid.is_some_and(|gid| gid.contains("::ffff:127.0.0.") && gid.ends_with("RoCE v2")),
        "{text}"
    );
}
