//! Several programs that listen by rdma_cm at one address.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use testing::process::Program;
use testing::wait::wait_until;

use crate::child::{SOON, machine, start};
use crate::pair::{finish_well, free_port};

/// An address of 127.0.0.0/8 for a device, another one each time.
fn address() -> IpAddr {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    loop {
        let [_, high, low, _] = std::process::id().to_be_bytes().map(|byte| byte | 1);
        let last = ASKED.fetch_add(1, Relaxed) as u8;
        let address = Ipv4Addr::new(127, high, low, last);
        if UdpSocket::bind((address, 4791)).is_ok() {
            return address.into();
        }
    }
}

/// Servers that share an address, each at a port of its own; one of them at all addresses.
#[test]
fn several_servers_at_one_address() {
    let _machine = machine();
    let [there, here] = [address(), address()];
    let ports = [(); 3].map(|()| free_port());
    let serve = |port: u16, options: &str| {
        let program = format!("SOFTROCE_ADDRESS={there} rping");
        let mut server = start(&program, &format!("-s {options} -p {port} -C 3 -v"));
        wait_until("the server to listen", SOON, || !server.runs() || listens(there, port));
        server
    };
    let at_address = format!("-a {there}");
    let served = |server: Program, port: u16| {
        let program = format!("SOFTROCE_ADDRESS={here} rping");
        let client = start(&program, &format!("-c -a {there} -p {port} -C 3 -v"));
        let ended = finish_well(server, client.wait()).client;
        assert_eq!(ended.stdout.matches("ping data: ").count(), 3, "{}", ended.output());
    };
    let first = serve(ports[0], &at_address);
    let all_addresses = serve(ports[1], "");
    let third = serve(ports[2], &at_address);
    // A port is of one process, at one address or all.
    for port in [ports[0], ports[1]] {
        for options in [&*at_address, ""] {
            let refused = serve(port, options).wait();
            assert_ne!(refused.code, Some(0));
            let output = refused.output();
            assert!(output.contains("Address already in use"), "{output}");
        }
    }
    served(third, ports[2]);
    served(all_addresses, ports[1]);
    // One dies, the first that had the address; its port is free, and the others stay.
    let last = serve(ports[1], &at_address);
    first.kill();
    served(last, ports[1]);
    served(serve(ports[0], &at_address), ports[0]);
}

/// Set in a network namespace of its own.
const APART: &str = "APART";

/// All have `soft0`: one that is opened first by who only waits, a server, and a client that asks for 127.0.0.1. Nobody else
/// may have that address.
#[test]
fn the_order_in_which_programs_open_the_device_does_not_matter() {
    if std::env::var_os(APART).is_none() {
        let own = "rdma_cm::the_order_in_which_programs_open_the_device_does_not_matter";
        let ended = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net"])
            .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", own])
            .env(APART, "")
            .output()
            .expect("unshare, of the package util-linux");
        let text = String::from_utf8_lossy(&ended.stdout);
        let passed = ended.status.success() && text.contains("1 passed");
        return assert!(passed, "{text}{}", String::from_utf8_lossy(&ended.stderr));
    }
    let _machine = machine();
    let mut first = start("ibv_asyncwatch", "-d soft0");
    let has_port = || fs::read_to_string("/proc/net/udp").unwrap().contains("0100007F:12B7");
    wait_until("the first to open", SOON, || !first.runs() || has_port());
    let address = IpAddr::from(Ipv4Addr::LOCALHOST);
    let mut server = start("rping", "-s -p 7471 -C 3 -v");
    wait_until("the server to listen", SOON, || !server.runs() || listens(address, 7471));
    let client = start("rping", "-c -a 127.0.0.1 -p 7471 -C 3 -v");
    finish_well(server, client.wait());
    first.kill();
}

/// Whether a process has a port for connections at an address that several share (unix(7)).
fn listens(address: IpAddr, port: u16) -> bool {
    let service = 0x0106_0000 | u32::from(port);
    let name = format!("/{address}/service/{service:x}");
    let names = fs::read_to_string("/proc/net/unix").unwrap();
    names.lines().any(|line| line.ends_with(&name))
}
