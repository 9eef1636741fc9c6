//! What this machine's GPUs and their drivers do with memory for adapters, as lines of text. `scripts/on-gpu` runs it.

use std::error::Error;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};
use std::{fs, thread};

use gpu::{Export, Gpu, GpuMemory, Maker};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Lengths whose places and exports are shown: less than a page, pages, the driver's blocks, and a length of no pages.
const LENGTHS: [usize; 7] = [1, 4096, 65_536, 1 << 20, 2 << 20, (100 << 20) + 1, 1 << 30];

/// Bytes of copies that are timed.
const COPIES: [usize; 6] = [8, 4096, 65_536, 1 << 20, 64 << 20, 1 << 30];

fn main() -> Result<()> {
    let mut out = io::stdout().lock();
    for maker in Maker::ALL {
        writeln!(out, "# {maker}")?;
        let gpus = match maker.gpus() {
            Ok(gpus) => gpus,
            Err(error) => {
                writeln!(out, "no GPU: {error}\n  hint: {}", error.hint())?;
                continue;
            }
        };
        writeln!(out, "driver: {}", maker.version()?)?;
        for gpu in &gpus {
            describe(&mut out, *gpu)?;
        }
        if let Some(gpu) = gpus.first() {
            exports(&mut out, *gpu)?;
            copies(&mut out, *gpu)?;
            errors(&mut out, *gpu, gpus.len() as u32)?;
        }
    }
    Ok(())
}

fn describe(out: &mut impl Write, gpu: Gpu) -> Result<()> {
    let (free, total) = gpu.free_and_total_bytes()?;
    writeln!(out, "{gpu}: {} at {}", gpu.name()?, gpu.pci_address()?)?;
    let (integrated, exports) = (gpu.is_integrated()?, gpu.exports_dmabufs()?);
    writeln!(out, "  integrated {integrated}, dmabuf {exports}, free {free} of {total} bytes")?;
    Ok(())
}

/// Where allocations lie, what their dmabufs are, and whether a program can map them.
fn exports(out: &mut impl Write, gpu: Gpu) -> Result<()> {
    writeln!(out, "# memory and its export")?;
    // All at once, so that small ones lie beside each other.
    let memories: Vec<GpuMemory> =
        LENGTHS.iter().map(|bytes| gpu.allocate(*bytes)).collect::<std::result::Result<_, _>>()?;
    for (bytes, memory) in LENGTHS.iter().zip(&memories) {
        let address = memory.address();
        write!(out, "{bytes} bytes: {} at {address:#x}", memory.length_bytes())?;
        writeln!(out, ", aligned to {}", 1_u64 << address.trailing_zeros())?;
        let export = match memory.export() {
            Ok(export) => export,
            Err(error) => {
                writeln!(out, "  export: {error}\n  hint: {}", error.hint())?;
                continue;
            }
        };
        let (length, offset) = (export.exported_bytes(), export.offset());
        write!(out, "  exported {length} bytes, offset {offset}, ")?;
        writeln!(out, "descriptor of {:?} bytes", descriptor_bytes(&export))?;
        for (words, protection) in
            [("read and write", libc::PROT_READ | libc::PROT_WRITE), ("read", libc::PROT_READ)]
        {
            writeln!(out, "  mmap to {words}: {}", mapped(&export, protection))?;
        }
        if *bytes == 1 {
            let number = export.as_fd().as_raw_fd();
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
            writeln!(out, "  {}", info.split_whitespace().collect::<Vec<_>>().join(" "))?;
            let again = memory.export().map(|second| second.offset());
            writeln!(out, "  exported again: {again:?}")?;
        }
    }
    if let Some(memory) = memories.first() {
        let text = fs::read_to_string("/proc/self/maps")?;
        let address = memory.address();
        let line = text.lines().find(|line| {
            let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
            let [start, end] = range
                .map(|(start, end)| {
                    [start, end].map(|number| u64::from_str_radix(number, 16).unwrap_or(0))
                })
                .unwrap_or_default();
            (start..end).contains(&address)
        });
        writeln!(out, "in /proc/self/maps: {}", line.unwrap_or("not there"))?;
        writeln!(out, "as ordinary memory: {}", read_by_kernel(address))?;
    }
    Ok(())
}

/// The size that the descriptor has, by seeking.
fn descriptor_bytes(export: &Export) -> io::Result<i64> {
    // SAFETY: the descriptor is open.
    let end = unsafe { libc::lseek(export.as_fd().as_raw_fd(), 0, libc::SEEK_END) };
    if end < 0 { Err(io::Error::last_os_error()) } else { Ok(end) }
}

fn mapped(export: &Export, protection: i32) -> String {
    let length = export.exported_bytes();
    let descriptor = export.as_fd().as_raw_fd();
    // SAFETY: a new mapping touches no existing memory.
    let start = unsafe {
        libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, descriptor, 0)
    };
    if start == libc::MAP_FAILED {
        return io::Error::last_os_error().to_string();
    }
    // SAFETY: mapped above, with this length.
    unsafe { libc::munmap(start, length) };
    "works".to_owned()
}

/// Whether the kernel reads a byte there, as a registration as ordinary memory would.
fn read_by_kernel(address: u64) -> String {
    let mut byte = 0_u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: 1 };
    // SAFETY: the kernel checks the remote address, and writes one byte to the local one.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    if read == 1 {
        "the kernel reads it".to_owned()
    } else {
        io::Error::last_os_error().to_string()
    }
}

/// Bytes that go in come out, also from another thread and at odd offsets; and how long copies take.
fn copies(out: &mut impl Write, gpu: Gpu) -> Result<()> {
    writeln!(out, "# copies")?;
    let memory = gpu.allocate(1 << 30)?;
    let mut zeroes = vec![1; 65_536];
    memory.read_at(0, &mut zeroes)?;
    writeln!(out, "zeroed: {}", zeroes.iter().all(|byte| *byte == 0))?;
    let pattern: Vec<u8> = (0..1_000_003_u32).map(|at| (at % 251) as u8).collect();
    let mut back = vec![0; pattern.len()];
    memory.write_at(12_345, &pattern)?;
    thread::scope(|scope| scope.spawn(|| memory.read_at(12_345, &mut back)).join())
        .map_err(|_| "the thread panicked")??;
    writeln!(out, "pattern at an odd offset, read by another thread: {}", back == pattern)?;
    memory.fill(77, 0xa5, 1_000)?;
    memory.read_at(76, &mut back[..1_002])?;
    let is_filled = back[1..1_001].iter().all(|byte| *byte == 0xa5);
    let is_bounded = back[0] == 0 && back[1_001] == 0;
    writeln!(out, "filled within bounds: {}", is_filled && is_bounded)?;
    let mut buffer = vec![3; 1 << 30];
    for bytes in COPIES {
        let rounds = if bytes > 1 << 20 { 5 } else { 200 };
        let to = median(rounds, || memory.write_at(0, &buffer[..bytes]))?;
        let from = median(rounds, || memory.read_at(0, &mut buffer[..bytes]).map(|_| ()))?;
        let fill = median(rounds, || memory.fill(0, 3, bytes))?;
        write!(out, "{bytes} bytes:")?;
        for (words, time) in [("in", to), ("out", from), ("fill", fill)] {
            let rate = bytes as f64 / time.as_secs_f64() / 1e9;
            write!(out, " {words} {:.1} us ({rate:.2} GB/s)", time.as_secs_f64() * 1e6)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn median(
    rounds: usize,
    mut call: impl FnMut() -> std::result::Result<(), gpu::GpuError>,
) -> Result<Duration> {
    call()?;
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[rounds / 2])
}

/// The texts of errors that need no broken machine.
fn errors(out: &mut impl Write, gpu: Gpu, count: u32) -> Result<()> {
    writeln!(out, "# errors")?;
    let (_, total) = gpu.free_and_total_bytes()?;
    let beyond = gpu.allocate(total as usize + 1).err();
    let missing = Gpu::new(gpu.maker(), count).err();
    for error in [beyond, missing].into_iter().flatten() {
        writeln!(out, "{error}\n  hint: {}", error.hint())?;
    }
    Ok(())
}
