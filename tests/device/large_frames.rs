//! A path that drops large frames between two hosts that can send them: small messages pass and large ones do not, and each
//! command says so.

use std::process::Command;

use testing::process::{Call, run};
use testing::program::{Server, program};

const CLIENT: &str = "10.77.1.1";
const SERVER: &str = "10.77.2.1";

/// Two hosts with an MTU of 9000 and a router between them whose links have 1500: three network namespaces.
struct Hosts;

impl Hosts {
    fn new() -> Hosts {
        let hosts = Hosts;
        for host in ["client", "router", "server"] {
            run(&format!("ip netns add {host}"));
            run(&format!("ip -n {host} link set lo up"));
        }
        for (host, address, gateway) in
            [("client", CLIENT, "10.77.1.2"), ("server", SERVER, "10.77.2.2")]
        {
            let (here, there) = (format!("{host}0"), format!("{host}1"));
            let ends = format!("{here} mtu 9000 type veth peer name {there} mtu 1500");
            run(&format!("ip -n {host} link add {ends} netns router"));
            // Each packet is a frame of its own, as on a cable.
            run(&format!("ip -n {host} link set {here} gso_max_segs 1 up"));
            run(&format!("ip -n router link set {there} up"));
            run(&format!("ip -n {host} address add {address}/24 dev {here}"));
            run(&format!("ip -n router address add {gateway}/24 dev {there}"));
            run(&format!("ip -n {host} route add default via {gateway}"));
        }
        let forward = "echo 1 >/proc/sys/net/ipv4/ip_forward";
        let mut shell = Command::new("ip");
        shell.args(["netns", "exec", "router", "sh", "-c", forward]);
        assert!(shell.status().unwrap().success());
        hosts
    }

    /// The program at the client's host, on the embedded device: the kernel's are seen there too.
    fn call(&self, words: &str) -> Call {
        Call::new(at("client", CLIENT), &format!("{words} -d soft0"))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in ["client", "router", "server"] {
            run(&format!("ip netns delete {host}"));
        }
    }
}

fn at(host: &str, address: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host]).arg(program());
    command.env("SOFTROCE_ADDRESS", address);
    command
}

#[test]
fn small_messages_pass_and_large_ones_do_not() {
    let hosts = Hosts::new();
    let folder = tempfile::tempdir().unwrap();
    let words =
        format!("serve -p 0 -d soft0 --bind {SERVER} --receive {}", folder.path().display());
    let server = Server::embedded_by(Call::new(at("server", SERVER), &words));
    let name = &server.name;
    // The connection arrays of 64 QPs are many frames of a control connection.
    let small = hosts.call(&format!("{name} --timeout 18 -q 64 -t 8 -r 16 -s 1K -n 2 --warmup 0"));
    small.passes();
    let large = "-s 64K --timeout 12 --retry-cnt 1";
    let is_told = ["RETRY_EXC_ERR", "drops frames above 1500 bytes"];
    for command in [
        format!("{name} -q 4 {large}"),
        format!("{name} --op connect -q 4 {large}"),
        format!("send {} {name} --timeout 12", program().display()),
    ] {
        hosts.call(&command).fails(&is_told);
    }
    let examined = hosts.call(&format!("doctor {name}")).run().exits(1);
    examined.shows(&["small messages pass, large ones do not (64 bytes, 64 KiB)"]);
    hosts.call(&format!("{name} -q 4 -s 64K -n 5 --mtu 1024 --timeout 18")).passes();
    server.end();
}
