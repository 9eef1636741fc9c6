//! A capture of all packets in a file that Wireshark opens: pcap with nanoseconds, of raw IP packets. A thread writes
//! it, so that a slow file keeps no packet waiting; what does not fit into its buffer is missing, and counted.
//!
//! The IP and UDP headers are made here, as they are on the wire: the sockets show none of them.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Once, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use std::{io, mem, process, thread};

use provider::Lock;

use super::gso_batch::DONT_FRAGMENT;
use super::sockets::block_signals;
use crate::wire::as_ipv6;

/// The file's header (draft-ietf-opsawg-pcap): nanoseconds, version 2.4, whole packets, LINKTYPE_RAW.
const FILE_HEADER: [u32; 6] = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 1 << 18, 101];
/// The most bytes that wait to be written.
const MOST_BYTES: usize = 8 << 20;
/// So many are written at once.
const ENOUGH_BYTES: usize = 256 << 10;
/// How long fewer may wait.
const PATIENCE: Duration = Duration::from_millis(20);

/// The captures of this process, which are completed when it exits.
static CAPTURES: Lock<Vec<Weak<Shared>>> = Lock::new(Vec::new());

/// A capture; it is complete when it is dropped.
pub struct Capture {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    path: PathBuf,
    /// The process that writes it; one that is forked has neither the thread nor a part in the file.
    process: u32,
    on: AtomicBool,
    /// Whoever locks both locks this before `buffer`.
    output: Lock<Output>,
    buffer: Lock<Buffer>,
    changed: Condvar,
}

struct Output {
    file: File,
    /// Memory that takes turns with the buffer's.
    written: Vec<u8>,
}

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    missing: u64,
    ends: bool,
}

/// The file for the device at `address`: each has its own, since several devices, also of several processes, may have
/// been told the same path. Of processes that share the address, the `slot` tells all but the first apart.
pub fn file_of(path: &Path, address: IpAddr, slot: Option<u8>) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{address}"));
    if let Some(slot) = slot.filter(|slot| *slot > 0) {
        name.push(format!("-{slot}"));
    }
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

impl Capture {
    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be written, or there is no thread for it.
    pub fn create(path: PathBuf) -> io::Result<Capture> {
        let file = File::create(&path)?;
        Capture::to(file, path)
    }

    fn to(mut file: File, path: PathBuf) -> io::Result<Capture> {
        file.write_all(&FILE_HEADER.map(u32::to_ne_bytes).concat())?;
        let shared = Arc::new(Shared {
            path,
            process: process::id(),
            on: AtomicBool::new(true),
            output: Lock::new(Output { file, written: Vec::new() }),
            buffer: Lock::default(),
            changed: Condvar::new(),
        });
        let own = Arc::clone(&shared);
        let writer =
            thread::Builder::new().name("softroce-pcap".into()).spawn(move || own.run())?;
        complete_at_exit(&shared);
        let writer = Some(writer);
        Ok(Capture { shared, writer })
    }

    /// Adds the packets of a datagram, from the base transport headers to the CRCs, with their IPv4 identifications.
    #[cold]
    pub fn add<'a>(&self, route: &Route, packets: impl Iterator<Item = (u16, &'a [u8])>) {
        if !self.shared.on.load(Ordering::Relaxed) {
            return;
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut buffer = self.shared.buffer.lock();
        let before = buffer.bytes.len();
        for (identification, packet) in packets {
            let (longest, used) = route.headers(identification, packet);
            let headers = longest.get(..used).unwrap_or_default();
            let whole = (headers.len() + packet.len()) as u32;
            if buffer.bytes.len() + whole as usize > MOST_BYTES {
                buffer.missing += 1;
                continue;
            }
            for field in [now.as_secs() as u32, now.subsec_nanos(), whole, whole] {
                buffer.bytes.extend_from_slice(&field.to_ne_bytes());
            }
            buffer.bytes.extend_from_slice(headers);
            buffer.bytes.extend_from_slice(packet);
        }
        let after = buffer.bytes.len();
        drop(buffer);
        if before == 0 || before < ENOUGH_BYTES && after >= ENOUGH_BYTES {
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if self.shared.process != process::id() {
            // There is no such thread here.
            return mem::forget(self.writer.take());
        }
        self.shared.buffer.lock().ends = true;
        self.shared.changed.notify_one();
        if let Some(writer) = self.writer.take() {
            // The thread has already reported a panic.
            drop(writer.join());
        }
        self.shared.finish();
    }
}

impl Shared {
    fn run(&self) {
        // Signals are for the program's threads; so is that of a pipe that nobody reads any more.
        block_signals();
        loop {
            let begun = self
                .changed
                .wait_while(self.buffer.lock(), |it: &mut Buffer| it.bytes.is_empty() && !it.ends)
                .unwrap_or_else(PoisonError::into_inner);
            let enough = self.changed.wait_timeout_while(begun, PATIENCE, |buffer: &mut Buffer| {
                buffer.bytes.len() < ENOUGH_BYTES && !buffer.ends
            });
            let ends = enough.unwrap_or_else(PoisonError::into_inner).0.ends;
            self.write_out();
            if ends {
                return;
            }
        }
    }

    /// Writes what waits. The first error ends the capture.
    fn write_out(&self) {
        let mut output = self.output.lock();
        let Output { file, written } = &mut *output;
        written.clear();
        mem::swap(written, &mut self.buffer.lock().bytes);
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = file.write_all(written) {
            self.on.store(false, Ordering::Relaxed);
            self.say(format_args!("ends here: {error}; make room there or name another file"));
        }
    }

    /// Writes the rest, and says what is missing.
    fn finish(&self) {
        self.write_out();
        let missing = mem::take(&mut self.buffer.lock().missing);
        if missing > 0 && self.on.swap(false, Ordering::Relaxed) {
            self.say(format_args!(
                "lacks {missing} packets, which came faster than the file could be written; send less, or write to a \
                 faster disk"
            ));
        }
    }

    fn say(&self, what: std::fmt::Arguments<'_>) {
        let path = self.path.display();
        // Without stderr it is not said.
        let _ = writeln!(io::stderr().lock(), "softroce: the capture {path} {what}");
    }
}

/// Many programs exit without closing their devices.
fn complete_at_exit(shared: &Arc<Shared>) {
    extern "C" fn complete_all() {
        // Whoever holds the lock at exit may never give it back.
        let Some(captures) = CAPTURES.try_lock() else {
            return;
        };
        for capture in captures.iter().filter_map(Weak::upgrade) {
            if capture.process == process::id() {
                capture.finish();
            }
        }
    }
    static REGISTERED: Once = Once::new();
    let mut captures = CAPTURES.lock();
    captures.retain(|capture| capture.strong_count() > 0);
    captures.push(Arc::downgrade(shared));
    drop(captures);
    REGISTERED.call_once(|| {
        // SAFETY: a function of the C ABI that does not unwind. Failing means that the last packets may be missing.
        unsafe { libc::atexit(complete_all) };
    });
}

/// Bytes of the longest: an IPv6 and a UDP header.
pub const LONGEST_HEADERS: usize = 40 + UDP_BYTES;
const UDP_BYTES: usize = 8;
const UDP_PROTOCOL: u8 = 17;

/// What a packet's headers say besides its length.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Type of service or traffic class.
    pub traffic_class: u8,
    /// Time to live or hop limit.
    pub hop_limit: u8,
}

impl Route {
    /// The headers of a packet with this payload of UDP, and their length. IPv6 has no `identification`.
    pub fn headers(&self, identification: u16, payload: &[u8]) -> ([u8; LONGEST_HEADERS], usize) {
        let mut headers = [0; LONGEST_HEADERS];
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(to) = headers.get_mut(length..length + bytes.len()) {
                to.copy_from_slice(bytes);
            }
            length += bytes.len();
        };
        let udp_bytes = ((UDP_BYTES + payload.len()) as u16).to_be_bytes();
        let mut udp_sum = Sum::default();
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut ip = [0; 20];
                let whole = (20 + UDP_BYTES + payload.len()) as u16;
                ip[..2].copy_from_slice(&[0x45, self.traffic_class]);
                ip[2..4].copy_from_slice(&whole.to_be_bytes());
                ip[4..6].copy_from_slice(&identification.to_be_bytes());
                ip[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
                ip[8..10].copy_from_slice(&[self.hop_limit, UDP_PROTOCOL]);
                ip[12..16].copy_from_slice(&source.octets());
                ip[16..].copy_from_slice(&destination.octets());
                let sum = Sum::default().add(&ip).checksum();
                ip[10..12].copy_from_slice(&sum);
                put(&ip);
                udp_sum = udp_sum.add(&ip[12..]);
            }
            (source, destination) => {
                let [source, destination] = [source, destination].map(|it| as_ipv6(it).octets());
                let class = self.traffic_class;
                put(&[0x60 | class >> 4, class << 4, 0, 0]);
                put(&udp_bytes);
                put(&[UDP_PROTOCOL, self.hop_limit]);
                put(&source);
                put(&destination);
                udp_sum = udp_sum.add(&source).add(&destination);
            }
        }
        let source_port = self.source.port().to_be_bytes();
        let destination_port = self.destination.port().to_be_bytes();
        // Over a pseudo header, the header and the payload (RFC 768, RFC 8200 8.1).
        let sum = udp_sum
            .add(&[0, UDP_PROTOCOL])
            .add(&udp_bytes)
            .add(&source_port)
            .add(&destination_port)
            .add(&udp_bytes)
            .add(payload);
        let checksum = match sum.checksum() {
            [0, 0] => [0xff, 0xff],
            checksum => checksum,
        };
        put(&source_port);
        put(&destination_port);
        put(&udp_bytes);
        put(&checksum);
        (headers, length)
    }
}

/// The Internet checksum in progress (RFC 1071). All parts but the last have an even length.
#[derive(Clone, Copy, Default)]
struct Sum(u64);

impl Sum {
    fn add(self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<2>();
        let whole: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
        let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
        Sum(self.0 + whole + last)
    }

    fn checksum(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        (!(sum as u16)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn add(capture: &Capture, packet: &[u8]) {
        let address = |last| SocketAddr::from(([127, 0, 0, last], 4791));
        let route =
            Route { source: address(1), destination: address(2), traffic_class: 0, hop_limit: 64 };
        capture.add(&route, std::iter::once((0, packet)));
    }

    fn into_pipe() -> (io::PipeReader, Capture) {
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        (reader, Capture::to(file, "a pipe".into()).unwrap())
    }

    #[test]
    fn each_device_has_a_file() {
        for (path, address, slot, file) in [
            ("run.pcap", "127.0.0.2", None, "run-127.0.0.2.pcap"),
            ("run.pcap", "127.0.0.2", Some(0), "run-127.0.0.2.pcap"),
            ("run.pcap", "127.0.0.2", Some(3), "run-127.0.0.2-3.pcap"),
            ("/tmp/a.b/run", "10.0.0.7", None, "/tmp/a.b/run-10.0.0.7"),
            ("run.v1.pcap", "fd00::7", None, "run.v1-fd00::7.pcap"),
        ] {
            let found = file_of(Path::new(path), address.parse().unwrap(), slot);
            assert_eq!(found, Path::new(file));
        }
    }

    #[test]
    fn a_full_disk_is_an_error_at_once() {
        let full = Capture::create("/dev/full".into());
        assert_eq!(full.err().unwrap().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_broken_file_ends_the_capture_and_nothing_else() {
        let (reader, capture) = into_pipe();
        drop(reader);
        while capture.shared.on.load(Ordering::Relaxed) {
            add(&capture, &[0; 100]);
        }
        let shared = Arc::clone(&capture.shared);
        drop(capture);
        assert!(shared.buffer.lock().bytes.is_empty());
    }

    /// Set in a process that exits without closing its capture.
    const EXITS: &str = "SOFTROCE_TEST_EXITS";

    #[test]
    fn what_a_process_captured_before_it_exits_is_in_the_file() {
        if let Some(path) = std::env::var_os(EXITS) {
            let capture = Capture::create(path.into()).unwrap();
            add(&capture, &[7; 100]);
            mem::forget(capture);
            process::exit(0);
        }
        let path = std::env::temp_dir().join(format!("softroce-exits-{}", process::id()));
        let thread = thread::current();
        let status = process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", thread.name().unwrap()])
            .env(EXITS, &path)
            .status();
        assert!(status.unwrap().success());
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + 28 + 100);
        assert!(bytes.ends_with(&[7; 100]));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_takes_nothing_costs_no_more_than_the_buffer() {
        // Nobody empties it.
        let (reader, capture) = into_pipe();
        let packet = [0; 4096];
        let packets = 3 * MOST_BYTES / packet.len();
        (0..packets).for_each(|_| add(&capture, &packet));
        let buffer = capture.shared.buffer.lock();
        assert!(buffer.bytes.len() <= MOST_BYTES, "{}", buffer.bytes.len());
        assert!(buffer.missing as usize > packets / 4, "{}", buffer.missing);
        drop(buffer);
        drop(reader);
    }

    #[test]
    fn checksums_fit_and_fields_are_where_they_belong() {
        for (addresses, length) in [("192.0.2.1 192.0.2.2", 28), ("2001:db8::1 2001:db8::2", 48)] {
            let (source, destination) = addresses.split_once(' ').unwrap();
            let route = Route {
                source: (source.parse::<IpAddr>().unwrap(), 0xc001).into(),
                destination: (destination.parse::<IpAddr>().unwrap(), 4791).into(),
                traffic_class: 0x6a,
                hop_limit: 9,
            };
            for payload in [&[1, 2, 3, 4, 5][..], &[0xff; 64], &[]] {
                let (headers, used) = route.headers(0x1234, payload);
                assert_eq!(used, length);
                let (ip, udp) = headers[..used].split_at(length - 8);
                assert_eq!(udp[..4], [0xc0, 0x01, 0x12, 0xb7]);
                let udp_bytes = (8 + payload.len()) as u16;
                assert_eq!(udp[4..6], udp_bytes.to_be_bytes());
                // A sum over everything, its checksum included, is zero.
                let pseudo = Sum::default()
                    .add(&ip[if length == 28 { 12 } else { 8 }..])
                    .add(&[0, 17])
                    .add(&udp_bytes.to_be_bytes());
                assert_eq!(pseudo.add(udp).add(payload).checksum(), [0, 0]);
                if length == 28 {
                    assert_eq!(ip[..2], [0x45, 0x6a]);
                    assert_eq!(ip[2..4], (28 + payload.len() as u16).to_be_bytes());
                    assert_eq!(ip[4..10], [0x12, 0x34, 0x40, 0, 9, 17]);
                    assert_eq!(Sum::default().add(ip).checksum(), [0, 0]);
                } else {
                    assert_eq!(ip[..4], [0x66, 0xa0, 0, 0]);
                    assert_eq!(ip[4..6], udp_bytes.to_be_bytes());
                    assert_eq!(ip[6..8], [17, 9]);
                }
            }
        }
    }
}
