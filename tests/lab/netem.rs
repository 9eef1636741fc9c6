//! Packets lost on purpose.

use std::process::Command;

/// Loss on an interface's way out, until dropped.
pub struct Loss(&'static str);

fn tc(arguments: &[&str]) {
    assert!(
        Command::new("tc")
            .args(arguments)
            .status()
            .unwrap()
            .success(),
        "tc {arguments:?}"
    );
}

impl Loss {
    /// This share of all packets.
    pub fn of_all(interface: &'static str, percent: &str) -> Loss {
        tc(&[
            "qdisc", "replace", "dev", interface, "root", "netem", "limit", "100000", "loss",
            percent,
        ]);
        Loss(interface)
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        let _ = Command::new("tc")
            .args(["qdisc", "del", "dev", self.0, "root"])
            .status();
    }
}
