//! The output of the programs that list devices, and files of the kernel that programs look for: the device has some, and
//! the others are as ever.

use crate::child::run_alone as run;

fn output(program: &str, arguments: &str) -> String {
    let ended = run(program, arguments).exits(0);
    assert_eq!(ended.stderr(), "");
    ended.stdout
}

#[test]
fn ibv_devices_lists_soft0_with_its_guid() {
    let text = output("ibv_devices", "");
    let mut words = text.split_whitespace().skip_while(|it| *it != "soft0");
    let guid = words.nth(1).map(|guid| u64::from_str_radix(guid, 16));
    assert!(matches!(guid, Some(Ok(1..))), "{text}");
}

#[test]
fn ibv_devinfo_describes_an_active_ethernet_port_with_a_roce_v2_gid() {
    let text = output("ibv_devinfo", "-v -d soft0");
    let squeezed: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for wanted in [
        "hca_id: soft0",
        "state: PORT_ACTIVE (4)",
        "active_mtu: 4096 (5)",
        "link_layer: Ethernet",
        "vendor_id: 0xffffff",
        "active_width: 1X (1)",
        "active_speed: 2.5 Gbps (1)",
        "atomic_cap: ATOMIC_HCA (1)",
        "max_qp_rd_atom: 128",
    ] {
        let has = squeezed.iter().any(|line| line == wanted);
        assert!(has, "no {wanted}:\n{text}");
    }
    for (index, start) in [(0, "fe80::ff:7f"), (1, "::ffff:127.0.0.")] {
        let gid = squeezed.iter().find(|line| line.starts_with(&format!("GID[ {index}]:")));
        let gid = gid.unwrap_or_else(|| panic!("{text}"));
        assert!(gid.contains(start) && gid.ends_with("RoCE v2"), "{text}");
    }
}

const PORT: &str = "/sys/class/infiniband/soft0/ports/1";
const ATTRIBUTES: &str = "/sys/class/infiniband/soft0/ports/1/gid_attrs";

#[test]
fn texts_are_read() {
    let files = format!("{ATTRIBUTES}/types/1 {ATTRIBUTES}/ndevs/1 {PORT}/pkeys/0 /proc/self/comm");
    assert_eq!(output("cat", &files), "RoCE v2\nlo\n0xffff\ncat\n");
    run("cat", &format!("{ATTRIBUTES}/types/2")).exits(1);
}

#[test]
fn files_are_of_their_kind() {
    for (test, code) in [
        ("-c /dev/infiniband/soft0", 0),
        ("-c /dev/null", 0),
        ("-d /proc", 0),
        (&format!("-f {ATTRIBUTES}/types/0"), 0),
        ("-c /dev/infiniband/soft", 1),
        ("-f /dev/infiniband/soft0", 1),
        ("-c /proc", 1),
    ] {
        run("test", test).exits(code);
    }
}

#[test]
fn a_device_is_not_opened_as_a_file() {
    run("cat", "/dev/infiniband/soft0").exits(1).says(&["No such device or address"]);
}
