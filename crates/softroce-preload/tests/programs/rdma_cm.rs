//! Programs that connect by rdma_cm: those of rdmacm-utils, and perftest's with `-R`. Nothing of them is seen in the
//! tables of TCP, so a client that comes before its server listens is rejected, and is started again.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::child::{Ended, SOON, machine, start};
use crate::pair::{finish_well, free_port};
use crate::perftest::rows;
use testing::wait::wait_for;

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
    let of_others = ["error 8", "Failed to connect"];
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
    ] {
        let words = format!("-F -R -p PORT {words}");
        let client = (program, &*format!("{words} SERVER"));
        let [_, client] = succeed((program, &words), client, "");
        assert!(!rows(&client.stdout).is_empty(), "{client}");
    }
}
