//! Network namespaces in place of machines whose interfaces, addresses and defaults are others; and small file systems.

use std::process::Command;

/// Set in the process that is in a namespace.
const INSIDE: &str = "TEST_IN_OWN_NETWORK";

/// Loopback in the namespace of [`in_own_network`], and `"$@"` for the test.
pub const LOOPBACK: &str = "ip link set lo up && exec \"$@\"";

/// Mounts so little memory at `/mnt`, which is then a disk that becomes full.
pub const SMALL_DISK: &str = "mount -t tmpfs -o size=1m tmpfs /mnt && exec \"$@\"";

/// Runs `body` in namespaces of the network and of mounts that a shell has set up with `script`, in which `"$@"` is the test: this test program,
/// with the test of this name alone.
///
/// # Panics
/// Where it fails there, or users get no namespaces.
pub fn in_own_network(test: &str, script: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let ended = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(INSIDE, "")
        .output()
        .expect("unshare, of the package util-linux");
    let output = [ended.stdout, ended.stderr].concat();
    let text = String::from_utf8_lossy(&output);
    // A test that is not found succeeds too.
    assert!(
        ended.status.success() && text.contains("1 passed"),
        "needs iproute2, and a kernel that gives users namespaces:\n{text}"
    );
}
