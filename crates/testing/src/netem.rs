//! Packets lost on purpose.

use std::process::Command;

use crate::program::run;

/// Loss on an interface's way out, until dropped.
pub struct Loss(&'static str);

impl Loss {
    /// This share of all packets.
    pub fn of_all(interface: &'static str, percent: &str) -> Loss {
        run(&format!("tc qdisc replace dev {interface} root netem limit 100000 loss {percent}"));
        Loss(interface)
    }

    /// This share of all packets of the wire of a guest that is alone, either way.
    pub fn of_both(percent: &str) -> [Loss; 2] {
        ["v0", "v1"].map(|interface| Loss::of_all(interface, percent))
    }

    /// This share of the RoCEv2 packets to one IPv4 address; the control connection loses none.
    pub fn of_roce_to(address: &str, interface: &'static str, percent: &str) -> Loss {
        let loss = Loss(interface);
        // All that no filter takes goes to the first band.
        for line in [
            "qdisc replace dev {} root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
            &format!("qdisc add dev {{}} parent 1:2 netem limit 100000 loss {percent}"),
            &format!(
                "filter add dev {{}} parent 1: protocol ip u32 match ip dst {address}/32 match ip protocol 17 0xff flowid 1:2"
            ),
        ] {
            run(&format!("tc {}", line.replace("{}", interface)));
        }
        loss
    }

    /// How many packets were lost.
    pub fn dropped(&self) -> u64 {
        let shown = run(&format!("tc -s qdisc show dev {} root", self.0));
        let (_, behind) = shown.split_once("(dropped ").unwrap();
        behind.split(',').next().unwrap().parse().unwrap()
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        let mut command = Command::new("tc");
        let _ = command.args(["qdisc", "del", "dev", self.0, "root"]).status();
    }
}
