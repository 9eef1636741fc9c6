//! A process that has no core for a while.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use softroce::transport::{Operation, Status};
use softroce::wire::{Aeth, Extended, Opcode, Packet, Psn, Service, Syndrome, UDP_PORT};

use crate::child::{end, is_child, start};
use crate::counter::counter;
use crate::end::Plan;
use crate::exit::{MARK, child_end, words};
use crate::peer::{Peer, QPN, wire};

/// 268 ms: the child is stopped before.
const TIMEOUT: u8 = 16;
const STOPPED: Duration = Duration::from_millis(400);
/// GSO batches of packets to no QP: more packets than are handled in one go, and fewer bytes than the socket of a process
/// without rights holds.
const NOISE_BATCHES: usize = 128;
const NOISE_PACKETS: usize = 64;

/// Posts a WRITE, and tells how many time-outs it had when it completes.
fn write_and_tell(plan: &Plan) -> ! {
    let one = child_end(plan);
    let target = Operation::Write {
        address: 0,
        rkey: 1,
    };
    one.post(0, target, &[one.sge(0, 8)]);
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut status = None;
    while status.is_none() {
        one.cq
            .poll(1, |completion| status = Some(completion.status))
            .unwrap();
        assert!(Instant::now() < deadline);
    }
    assert_eq!(status, Some(Status::Success));
    println!("\n{MARK} {}", counter(&one.nic, "timeouts"));
    std::process::exit(0)
}

/// Has the kernel split what the socket sends into packets of this length; 0 leaves it whole.
fn split_into(socket: &UdpSocket, packet_bytes: usize) {
    let value = packet_bytes as libc::c_int;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer is to an int.
    let outcome = unsafe {
        let value = (&raw const value).cast();
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            value,
            length,
        )
    };
    assert_eq!(outcome, 0);
}

#[test]
fn an_answer_that_waits_in_the_socket_is_in_time() {
    let mut plan = Plan::default();
    plan.deliveries.timeout = TIMEOUT;
    if is_child() {
        write_and_tell(&plan);
    }
    let peer = Peer::new();
    let mut child = start("stopped::an_answer_that_waits_in_the_socket_is_in_time");
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines().filter_map(|line| {
        let line = line.unwrap();
        line.strip_prefix(MARK).map(str::to_owned)
    });
    let (to, qpn) = words(&lines.next().unwrap());
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{} {QPN}", peer.address).unwrap();
    peer.one_answer();
    let process = libc::pid_t::try_from(child.id()).unwrap();
    let signal = |number| {
        // SAFETY: the child, which was not waited for.
        assert_eq!(unsafe { libc::kill(process, number) }, 0);
    };
    signal(libc::SIGSTOP);
    let mut status = 0;
    // SAFETY: as above, and a writable int; returns when all threads of the child have stopped.
    let stopped = unsafe { libc::waitpid(process, &raw mut status, libc::WUNTRACED) };
    assert!(stopped == process && libc::WIFSTOPPED(status));
    let acknowledge = |destination_qpn| Packet {
        service: Service::Rc,
        opcode: Opcode::Acknowledge,
        solicited: false,
        pkey: 0xffff,
        destination_qpn,
        ack_request: false,
        psn: Psn::new(plan.first_psn),
        extended: Extended {
            aeth: Some(Aeth {
                syndrome: Syndrome::Ack { credits: 31 },
                msn: 1,
            }),
            ..Extended::default()
        },
        payload: &[],
    };
    let mut noise = wire(&acknowledge(qpn ^ 1));
    noise.extend([0; 4]);
    split_into(&peer.sender, noise.len());
    for _ in 0..NOISE_BATCHES {
        let batch = noise.repeat(NOISE_PACKETS);
        peer.sender.send_to(&batch, (to, UDP_PORT)).unwrap();
    }
    split_into(&peer.sender, 0);
    peer.send(to, &acknowledge(qpn));
    sleep(STOPPED);
    signal(libc::SIGCONT);
    assert_eq!(lines.next().unwrap().trim(), "0", "time-outs");
    assert!(end(child).success());
}
