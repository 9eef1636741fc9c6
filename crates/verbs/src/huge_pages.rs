//! How large this kernel's huge pages are: 2 MiB on x86-64, 512 MiB where usual pages have 64 KiB. It must not know what is on them.

use std::fs;
use std::sync::OnceLock;

/// Bytes of a huge page where the kernel does not tell.
const USUAL_BYTES: usize = 2 << 20;

/// Bytes of the huge pages that are reserved by `/proc/sys/vm/nr_hugepages`.
pub(super) fn reserved_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        reserved(&meminfo).unwrap_or(USUAL_BYTES)
    })
}

/// Bytes of the huge pages that the kernel gives without a reservation.
pub(super) fn transparent_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        transparent(&text.unwrap_or_default()).unwrap_or(USUAL_BYTES)
    })
}

/// Of `/proc/meminfo`: the default size.
fn reserved(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    page(kib.checked_mul(1024)?)
}

fn transparent(text: &str) -> Option<usize> {
    page(text.trim().parse().ok()?)
}

fn page(bytes: usize) -> Option<usize> {
    bytes.is_power_of_two().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_kernels() {
        let told = |kib| format!("HugePages_Total:       0\nHugepagesize:   {kib} kB\n");
        assert_eq!(reserved(&told("    2048")), Some(2 << 20));
        assert_eq!(reserved(&told("  524288")), Some(512 << 20));
        assert_eq!(transparent("536870912\n"), Some(512 << 20));
        for text in ["", "Hugepagesize: 0 kB", "Hugepagesize: x kB", "Hugepagesize: 3 kB"] {
            assert_eq!(reserved(text), None, "{text}");
        }
        assert_eq!(transparent("0"), None);
    }
}
