//! Which device is taken, and that everybody is told.

use std::net::UdpSocket;

use testing::program::call;

fn kernel_has_a_device() -> bool {
    std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some())
}

#[test]
fn without_a_device_the_embedded_one_is_taken_and_says_so() {
    let ended = call("-n 20 --timeout 18 --warmup 0").passes();
    if kernel_has_a_device() {
        assert_eq!(ended.json()["nodes"][0]["devices"][0]["library"], "libibverbs");
        return;
    }
    let ended = ended.says(&[
        "no RDMA device on this machine: taking soft0, the embedded software device",
        "not of a network adapter",
    ]);
    let notes = ended.stderr().lines().filter(|line| line.contains("embedded"));
    assert_eq!(notes.count(), 1, "{}", ended.stderr());
}

#[test]
fn results_are_marked() {
    let ended = call("--device soft0 -n 20 --timeout 18 --warmup 0 --csv -")
        .passes()
        .says(&[
            "soft0 is the embedded software device: figures are those",
            "no figure here is a network adapter's",
        ])
        .all_whole(1);
    let result = ended.result();
    let device = &result.nodes[0].devices[0];
    let named = (&*device.name, &*device.library, device.software);
    assert_eq!(named, ("soft0", "embedded", true));
    assert_eq!((device.link_gbit_per_s, &device.faults), (None, &None));
    let gid = device.gid.as_ref().unwrap();
    assert!(gid.starts_with("::ffff:127."), "{gid}");
    let counters = ended.runs()[0].nodes[0].counters.clone().unwrap();
    assert!(counters["packets_sent"] > Some(0), "{counters:?}");
}

#[test]
fn an_address_that_no_interface_has_is_named() {
    call("-d soft0 -n 1 --quiet")
        .env("SOFTROCE_ADDRESS", "192.0.2.77")
        .fails(&["of 192.0.2.77", "hint: choose an address of this machine"]);
}

#[test]
fn an_address_that_is_taken_is_named() {
    let _taken = UdpSocket::bind("127.77.2.1:4791").unwrap();
    call("-d soft0 -n 1 --quiet").env("SOFTROCE_ADDRESS", "127.77.2.1").fails(&[
        "soft0 (UDP port 4791 of 127.77.2.1)",
        "in use",
        "hint: end the program that has this port",
    ]);
}
