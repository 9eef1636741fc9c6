//! Files of the kernel that programs look for: the device has some, and the others are as ever.

use crate::child::run_alone as run;

const ATTRIBUTES: &str = "/sys/class/infiniband/soft0/ports/1/gid_attrs";

#[test]
fn texts_are_read() {
    let files = format!("{ATTRIBUTES}/types/0 {ATTRIBUTES}/ndevs/0 /proc/self/comm");
    let ended = run("cat", &files);
    assert!(ended.succeeded(), "{ended}");
    assert_eq!(ended.stdout, "RoCE v2\nlo\ncat\n");
    let absent = run("cat", &format!("{ATTRIBUTES}/types/1"));
    assert!(!absent.succeeded(), "{absent}");
}

#[test]
fn files_are_of_their_kind() {
    for there in [
        "-c /dev/infiniband/soft0",
        "-c /dev/null",
        "-d /proc",
        &format!("-f {ATTRIBUTES}/types/0"),
    ] {
        assert!(run("test", there).succeeded(), "{there}");
    }
    for not_there in [
        "-c /dev/infiniband/soft",
        "-f /dev/infiniband/soft0",
        "-c /proc",
    ] {
        let ended = run("test", not_there);
        assert_eq!(ended.status.code(), Some(1), "{not_there}");
    }
}

#[test]
fn a_device_is_not_opened_as_a_file() {
    let ended = run("cat", "/dev/infiniband/soft0");
    assert!(
        ended.stderr.contains("No such device or address"),
        "{ended}"
    );
}
