//! Measures plain UDP over loopback between two cores: the limit of a device on UDP sockets. Each measurement is a
//! function that returns a figure; any bench may include this file.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;

/// Bytes of the longest datagram.
const DATAGRAM_BYTES: usize = 65_507;

/// What arrived, per second.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// 10^9 bytes a second, UDP payload.
    pub gbyte_per_s: f64,
    /// 10^6 packets a second.
    pub mpackets_per_s: f64,
}

impl Rate {
    /// The rates of these counts.
    pub fn new(bytes: u64, packets: u64, time: Duration) -> Rate {
        Rate {
            gbyte_per_s: bytes as f64 / time.as_secs_f64() / 1e9,
            mpackets_per_s: packets as f64 / time.as_secs_f64() / 1e6,
        }
    }
}

/// The cores that the program started with.
fn cores() -> &'static [CoreId] {
    // Queried once: a pinned thread and its children see only their own core.
    static CORES: OnceLock<Vec<CoreId>> = OnceLock::new();
    CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default())
}

/// All of them but the one at this index.
#[allow(dead_code)] // the other bench has no devices
pub fn cores_but(index: usize) -> Vec<usize> {
    cores().iter().enumerate().filter(|(at, _)| *at != index).map(|(_, core)| core.id).collect()
}

/// Runs the rest of this thread on one of the cores that the program started with.
pub fn pin(core: usize) {
    let cores = cores();
    let core = cores.get(core % cores.len().max(1)).copied();
    let pinned = core.is_some_and(core_affinity::set_for_current);
    assert!(pinned, "cannot pin a thread to {core:?}");
}

fn set(socket: &UdpSocket, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer is to an int, as the length says.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<i32>() as u32,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Rate of segments of `segment_bytes`, `gso_batch` per datagram, that one thread sends and another receives. With 1
/// per datagram, without GSO and GRO.
pub fn one_way(segment_bytes: usize, gso_batch: usize, time: Duration) -> io::Result<Rate> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    receiver.set_nonblocking(true)?;
    if set(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 32 << 20).is_err() {
        set(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUF, 8 << 20)?;
    }
    let gso_batch = gso_batch.min(DATAGRAM_BYTES / segment_bytes);
    if gso_batch > 1 {
        set(&sender, libc::SOL_UDP, libc::UDP_SEGMENT, segment_bytes as i32)?;
        set(&receiver, libc::SOL_UDP, libc::UDP_GRO, 1)?;
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            pin(1);
            let datagram = vec![7; segment_bytes * gso_batch];
            while !over.load(Ordering::Relaxed) {
                sender.send(&datagram)?;
            }
            Ok(())
        });
        pin(0);
        let mut buffer = vec![0; 1 << 16];
        let (start, mut bytes, mut packets) = (Instant::now(), 0, 0);
        let received = loop {
            match receiver.recv(&mut buffer) {
                Ok(length) => {
                    bytes += length as u64;
                    packets += length.div_ceil(segment_bytes) as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => break Err(error),
            }
            if start.elapsed() >= time {
                break Ok(Rate::new(bytes, packets, start.elapsed()));
            }
        };
        over.store(true, Ordering::Relaxed);
        let sent: io::Result<()> = sending.join().unwrap_or_else(|_| Err(ErrorKind::Other.into()));
        sent.and(received)
    })
}

/// Round trips of a datagram between two threads that never sleep, in nanoseconds, in order of length.
pub fn ping_pong_ns(datagram_bytes: usize, rounds: usize) -> io::Result<Vec<u64>> {
    let (near, far) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    let await_one = |socket: &UdpSocket, buffer: &mut [u8]| loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            received => return received,
        }
    };
    thread::scope(|scope| {
        let echo = scope.spawn(|| -> io::Result<()> {
            pin(1);
            let mut buffer = vec![0; datagram_bytes];
            for _ in 0..rounds {
                await_one(&far, &mut buffer)?;
                far.send(&buffer)?;
            }
            Ok(())
        });
        pin(0);
        let mut buffer = vec![7; datagram_bytes];
        let mut trips = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let start = Instant::now();
            near.send(&buffer)?;
            await_one(&near, &mut buffer)?;
            trips.push(start.elapsed().as_nanos() as u64);
        }
        let echoed = echo.join().unwrap_or_else(|_| Err(ErrorKind::Other.into()));
        trips.sort_unstable();
        echoed.map(|()| trips)
    })
}

/// The value that this share of sorted values does not exceed, in microseconds; 0 for no values.
pub fn quantile_us(sorted_ns: &[u64], percent: usize) -> f64 {
    let at = (sorted_ns.len() * percent / 100).min(sorted_ns.len().saturating_sub(1));
    sorted_ns.get(at).copied().unwrap_or(0) as f64 / 1e3
}
