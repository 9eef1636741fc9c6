//! How much memory this machine can still give. It must not know what for.

use std::fs;

/// Bytes that new allocations can have without swapping, as the kernel estimates (`MemAvailable` of
/// `/proc/meminfo`, proc_meminfo(5)); `None` where it does not say.
pub fn available_bytes() -> Option<u64> {
    parse(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_estimate_is_read() {
        let text = "MemTotal:       24552456 kB\nMemFree: 1 kB\nMemAvailable:   23000000 kB\n";
        assert_eq!(parse(text), Some(23_000_000 * 1024));
        assert_eq!(parse("MemTotal: 1 kB\n"), None);
        assert_eq!(parse("MemAvailable: lots kB\n"), None);
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
