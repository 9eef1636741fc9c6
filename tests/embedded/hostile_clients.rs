//! A server among clients that mean it no good, or are broken.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use rustix::net::{AddressFamily, SocketType, bind, socket};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use testing::process::memory_bytes;
use testing::program::Server;
use testing::sessions::{Wire, case};

/// A connection from an address of this machine, of which nothing comes.
fn idle(server: &Server, from: [u8; 4]) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::new(IpAddr::from(from), 0)).unwrap();
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.port);
    rustix::net::connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

#[test]
fn idle_connections_keep_nobody_out() {
    let server = Server::embedded("-d soft0");
    let mut idles: Vec<TcpStream> = (0..40).map(|_| idle(&server, [127, 0, 0, 1])).collect();
    idles.extend((0..64).map(|index| idle(&server, [127, 0, 1 + index / 4, 1])));
    // An idle one stays until a handshake takes too long: it is let go for this one.
    let wire = Wire::session(&server.name);
    server.says(0, "the oldest of too many");
    drop(wire);
    drop(idles);
}

#[test]
fn a_server_that_got_no_threads_for_a_while_serves_on() {
    let server = Server::embedded("-d soft0");
    let pid = server.program.pid();
    let process = Some(Pid::from_raw(pid as i32).unwrap());
    // Room for what a program allocates, but not for a stack, which has 2 MiB.
    let now = memory_bytes(pid, "VmSize:").unwrap();
    let none = Rlimit { current: Some(now + (15 << 17)), maximum: None };
    let before = prlimit(process, Resource::As, none).unwrap();
    // Some find the stack of a thread that has ended.
    let idles: Vec<TcpStream> = (0..64).map(|index| idle(&server, [127, 0, 1, index])).collect();
    server.says(0, "no resources for the connection of 127.0.1.63");
    drop(idles);
    prlimit(process, Resource::As, before).unwrap();
    server.serves_the_next();
}

#[test]
fn a_frame_of_many_small_things_takes_no_memory() {
    let server = Server::embedded("-d soft0");
    for piece in [r#"{"":0},"#, "0,", "[],"] {
        let mut wire = Wire::session(&server.name);
        let things = piece.repeat((15 << 20) / piece.len());
        let body = format!(
            r#"{{"type":"handshake","body":{{"type":"introduce","body":{{"host":[{things}0]}}}}}}"#
        );
        wire.raw(&(body.len() as u32).to_le_bytes());
        wire.raw(body.as_bytes());
        let reason = wire.abort();
        assert!(reason.contains("more than"), "{reason}");
        wire.is_closed();
    }
    let peak = memory_bytes(server.program.pid(), "VmHWM:").unwrap();
    assert!(peak < 256 << 20, "{peak} bytes");
}

#[test]
fn a_prepare_that_would_take_all_memory_is_refused_before_anything_is_made() {
    let server = Server::embedded("-d soft0 --memory 1G");
    let pid = server.program.pid();
    let before = memory_bytes(pid, "VmHWM:").unwrap();
    let mut wire = Wire::session(&server.name);
    wire.prepare(&case([
        ("qps", "16384"),
        ("cq", "per-qp"),
        ("size", "64"),
        ("tx-depth", "16384"),
        ("rx-depth", "16384"),
    ]));
    let answer = wire.recv().unwrap();
    assert_eq!(answer["type"], "abort", "{answer}");
    assert_eq!(answer["body"]["bad_input"], true, "{answer}");
    let reason = answer["body"]["reason"].as_str().unwrap();
    assert!(reason.contains("--memory leaves 1 GiB"), "{reason}");
    let grown = memory_bytes(pid, "VmHWM:").unwrap() - before;
    assert!(grown < 64 << 20, "{grown} bytes");
}
