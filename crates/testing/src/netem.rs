//! Packets lost or held up on purpose.

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

/// How much passes out of a guest of several, until dropped.
pub struct Rate(&'static str);

impl Rate {
    /// So much of what `guest` sends, such as `1mbit` a second, and so much of it to one IPv4 address.
    pub fn of(guest: &'static str, rate: &str, to_one: Option<(&str, &str)>) -> Rate {
        let rates = Rate(guest);
        // All that no filter takes goes to the first band.
        rates.tc("qdisc replace dev eth0 root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
        rates.tc(&format!(
            "qdisc add dev eth0 parent 1:1 netem limit 100000 rate {rate}"
        ));
        if let Some((address, rate)) = to_one {
            rates.tc(&format!(
                "qdisc add dev eth0 parent 1:2 netem limit 100000 rate {rate}"
            ));
            rates.tc(&format!(
                "filter add dev eth0 parent 1: protocol ip u32 match ip dst {address}/32 flowid 1:2"
            ));
        }
        rates
    }

    fn run(&self, words: &str) -> bool {
        let here = self.0 == "client";
        let mut command = Command::new(if here { "tc" } else { "lab-peer" });
        let command = command.env("LAB_PEER", self.0);
        let command = if here { command } else { command.arg("tc") };
        command.args(words.split(' ')).status().unwrap().success()
    }

    fn tc(&self, words: &str) {
        assert!(self.run(words), "tc {words} at {}", self.0);
    }
}

impl Drop for Rate {
    fn drop(&mut self) {
        let _ = self.run("qdisc del dev eth0 root");
    }
}
