//! Measures the cost of the lowest layer: plain UDP over loopback between two cores, and the device's GSO batches
//! with headers and invariant CRCs. Nothing else should run on the two cores.

#![allow(clippy::print_stdout)] // printing is what it is for

#[path = "support/plain_udp.rs"]
mod plain_udp;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plain_udp::{Rate, pin};
use softroce::net::{self, Faults, Flow, GsoBatch, Outgoing, Port, Receiver, Transmitter};
use softroce::wire::Bth;

/// Segments per datagram.
const GSO_BATCH: usize = 64;

const TIME: Duration = Duration::from_millis(500);
const ROUNDS: usize = 3;
const TRIPS: usize = 20_000;

/// Length of the headers of a WRITE's first packet.
const LONG_HEADERS: usize = Bth::BYTES + 16;

fn main() -> io::Result<()> {
    // 4,096 bytes behind a base transport header and before a CRC; 64 behind a WRITE's headers.
    let plain = |bytes, gso_batch| move || plain_udp::one_way(bytes, gso_batch, TIME);
    let gso_batches = |headers, payload, gso_batch| move || one_way(headers, payload, gso_batch);
    println!("median of {ROUNDS} rounds             GB/s   M packets/s");
    line("UDP, 4112 B, GSO and GRO", plain(4112, GSO_BATCH))?;
    line("gso_batches of 4112 B", gso_batches(Bth::BYTES, 4096, GSO_BATCH))?;
    line("UDP, 4112 B, one by one", plain(4112, 1))?;
    line("packets of 4112 B, one by one", gso_batches(Bth::BYTES, 4096, 1))?;
    line("UDP, 32 x 96 B, GSO and GRO", plain(96, 32))?;
    line("gso_batches of 32 x 96 B", gso_batches(LONG_HEADERS, 64, 32))?;
    println!();
    println!("round trip of 92 bytes, p50 in us");
    let mut bare = Vec::new();
    let mut ours = Vec::new();
    for _ in 0..ROUNDS {
        bare.extend(plain_udp::ping_pong_ns(92, TRIPS)?);
        ours.extend(ping_pong_ns(TRIPS)?);
    }
    for (name, trips) in [("UDP", &mut bare), ("gso_batches of one packet", &mut ours)] {
        trips.sort_unstable();
        println!("{name:<32} {:>6.2}", plain_udp::quantile_us(trips, 50));
    }
    Ok(())
}

/// Prints the median round by bytes.
fn line(name: &str, measure: impl Fn() -> io::Result<Rate>) -> io::Result<()> {
    let rounds: io::Result<Vec<Rate>> = (0..ROUNDS).map(|_| measure()).collect();
    let mut rounds = rounds?;
    rounds.sort_by(|a, b| a.gbyte_per_s.total_cmp(&b.gbyte_per_s));
    if let Some(rate) = rounds.get(ROUNDS / 2) {
        let (gbytes, packets) = (rate.gbyte_per_s, rate.mpackets_per_s);
        println!("{name:<32} {gbytes:>6.2} {packets:>10.2}");
    }
    Ok(())
}

fn port() -> io::Result<Port> {
    net::open(None, &Faults::default(), None)
}

fn flow(from: &Transmitter, to: IpAddr) -> Flow {
    from.flow(to, 1, 0, 0)
}

fn send(
    transmitter: &Transmitter,
    gso_batch: &mut GsoBatch,
    flow: &Flow,
    packet: (&[u8], &[u8]),
    count: usize,
) {
    let (headers, payload) = packet;
    gso_batch.begin(flow);
    while gso_batch.packets() < count && gso_batch.takes(headers.len(), payload.len()) {
        // SAFETY: the payload is borrowed until the GSO batch is sent below.
        unsafe {
            gso_batch.push(
                headers,
                payload.len(),
                std::iter::once((payload.as_ptr(), payload.len())),
                false,
            );
        };
    }
    transmitter.send(gso_batch);
}

/// As [`plain_udp::one_way`], with a transmitter and a receiver.
fn one_way(header_bytes: usize, payload_bytes: usize, count: usize) -> io::Result<Rate> {
    let (from, mut to) = (port()?, port()?);
    let flow = flow(&from.transmitter, to.common.address);
    let over = AtomicBool::new(false);
    let rate = thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let (headers, payload) = (vec![0; header_bytes], vec![7; payload_bytes]);
            let mut gso_batch = GsoBatch::new();
            while !over.load(Ordering::Relaxed) {
                send(&from.transmitter, &mut gso_batch, &flow, (&headers, &payload), count);
            }
        });
        pin(0);
        let (start, mut bytes, mut packets) = (Instant::now(), 0, 0);
        while start.elapsed() < TIME {
            packets +=
                to.receiver.receive(|_| true, |it| bytes += it.bytes.len() as u64 + 4) as u64;
        }
        over.store(true, Ordering::Relaxed);
        Rate::new(bytes, packets, start.elapsed())
    });
    assert_eq!(to.common.counters.bad_icrc.get(), 0);
    Ok(rate)
}

fn await_one(receiver: &mut Receiver) {
    while receiver.receive(|_| true, |_| ()) == 0 {}
}

/// As [`plain_udp::ping_pong_ns`], for a packet with a WRITE's headers and 64 bytes less the CRC.
fn ping_pong_ns(rounds: usize) -> io::Result<Vec<u64>> {
    let (mut near, mut far) = (port()?, port()?);
    let there = flow(&near.transmitter, far.common.address);
    let back = flow(&far.transmitter, near.common.address);
    let packet: (&[u8], &[u8]) = (&[0; LONG_HEADERS], &[7; 60]);
    Ok(thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let mut gso_batch = GsoBatch::new();
            for _ in 0..rounds {
                await_one(&mut far.receiver);
                send(&far.transmitter, &mut gso_batch, &back, packet, 1);
            }
        });
        pin(0);
        let mut gso_batch = GsoBatch::new();
        let mut trips = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let start = Instant::now();
            send(&near.transmitter, &mut gso_batch, &there, packet, 1);
            await_one(&mut near.receiver);
            trips.push(start.elapsed().as_nanos() as u64);
        }
        trips
    }))
}
