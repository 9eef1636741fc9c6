//! Programs that connect by rdma_cm: those of rdmacm-utils, and perftest's with `-R`. Nothing of them is seen in the
//! tables of TCP, so a client that comes before its server listens is rejected, and is started again.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::child::{Ended, Running, SOON, machine, start};
use crate::pair::{finish_well, free_port};
use crate::perftest::rows;
use testing::wait::{wait_for, wait_until};

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

fn was_rejected(client: &Ended) -> bool {
    let text = client.to_string();
    let of_rping = ["REJECTED", "Connection refused"];
    let of_others = ["error 8", "error: 1", "Failed to connect"];
    let mut words = of_rping.into_iter().chain(of_others);
    !client.succeeded() && words.any(|word| text.contains(word))
}

/// Runs a server and its client until they end, which both have to do well. In their arguments SERVER and CLIENT stand
/// for the addresses, PORT for the port.
fn succeed(server: (&str, &str), client: (&str, &str), faults: &str) -> [Ended; 2] {
    let _machine = machine();
    let [here, there] = [address(), address()].map(|it| it.to_string());
    let port = free_port().to_string();
    let begin = |(program, words): (&str, &str), own: &str| {
        let words = words.replace("SERVER", &there).replace("CLIENT", &here);
        let program = format!("SOFTROCE_ADDRESS={own} SOFTROCE_FAULTS={faults} {program}");
        start(&program, &words.replace("PORT", &port))
    };
    let mut server = begin(server, &there);
    let client = wait_for("the server to listen", SOON, || {
        let ended = begin(client, &here).end();
        (!was_rejected(&ended) || !server.runs()).then_some(ended)
    });
    let pair = finish_well(server, client);
    [pair.server, pair.client]
}

#[test]
fn rping() {
    for (options, times, faults) in [
        ("-C 20 -S 4000", 20, ""),
        ("-C 5", 5, "drop=10%,duplicate=5%,seed=3"),
    ] {
        let both = format!("-a SERVER -p PORT -v {options}");
        let server = ("rping", &*format!("-s {both}"));
        let client = ("rping", &*format!("-c -V {both}"));
        for end in succeed(server, client, faults) {
            let pings = end.stdout.matches("ping data: ").count();
            assert_eq!(pings, times, "{end}");
        }
    }
}

#[test]
fn ucmatose() {
    for more in ["", "-m"] {
        let both = format!("-p PORT -c 10 -C 20 -S 1000 {more}");
        let server = ("ucmatose", &*format!("-b SERVER {both}"));
        let client = ("ucmatose", &*format!("-s SERVER -b CLIENT {both}"));
        let [_, client] = succeed(server, client, "");
        assert!(client.stdout.contains("return status 0"), "{client}");
    }
}

/// It knows no other port than 7174, and repeats no datagram: these fit into the smallest socket.
#[test]
fn udaddy() {
    let both = "-c 3 -C 10 -S 1000";
    let server = ("udaddy", &*format!("-b SERVER {both}"));
    let client = ("udaddy", &*format!("-s SERVER -b CLIENT {both}"));
    for end in succeed(server, client, "") {
        assert!(end.stdout.contains("data transfers complete"), "{end}");
        assert!(end.stdout.contains("return status 0"), "{end}");
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
        wait_until("the server to listen", SOON, || {
            !server.runs() || listens(there, port)
        });
        server
    };
    let at_address = format!("-a {there}");
    let served = |server: Running, port: u16| {
        let program = format!("SOFTROCE_ADDRESS={here} rping");
        let client = start(&program, &format!("-c -a {there} -p {port} -C 3 -v"));
        let pair = finish_well(server, client.end());
        assert_eq!(
            pair.client.stdout.matches("ping data: ").count(),
            3,
            "{pair}"
        );
    };
    let first = serve(ports[0], &at_address);
    let all_addresses = serve(ports[1], "");
    let third = serve(ports[2], &at_address);
    // A port is of one process, at one address or all.
    for port in [ports[0], ports[1]] {
        for options in [&*at_address, ""] {
            let refused = serve(port, options).end();
            assert!(!refused.succeeded(), "{refused}");
            assert!(
                refused.to_string().contains("Address already in use"),
                "{refused}"
            );
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

/// Whether a process has a port for connections at an address that several share (unix(7)).
fn listens(address: IpAddr, port: u16) -> bool {
    let service = 0x0106_0000 | u32::from(port);
    let name = format!("/{address}/service/{service:x}");
    let names = fs::read_to_string("/proc/net/unix").unwrap();
    names.lines().any(|line| line.ends_with(&name))
}

#[test]
fn rdma_server_and_client() {
    let server = ("rdma_server", "-p PORT");
    let client = ("rdma_client", "-s SERVER -p PORT");
    for end in succeed(server, client, "") {
        assert!(end.stdout.contains("end 0"), "{end}");
    }
}

#[test]
fn perftest_by_rdma_cm() {
    for (program, words) in [
        ("ib_send_bw", "-n 1000 -q 4 -b -e"),
        ("ib_write_bw", "-n 1000 -q 4"),
        ("ib_read_bw", "-n 1000"),
        ("ib_send_lat", "-n 1000 -s 100"),
        // More than the socket holds would be lost.
        ("ib_send_bw", "-n 100 -c UD -s 1024"),
        ("ib_send_lat", "-n 500 -c UD"),
    ] {
        let words = format!("-F -R -p PORT {words}");
        let client = (program, &*format!("{words} SERVER"));
        let [_, client] = succeed((program, &words), client, "");
        assert!(!rows(&client.stdout).is_empty(), "{client}");
    }
}
