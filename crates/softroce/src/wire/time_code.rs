//! Times as codes of five bits.

/// A time in the five-bit code that ACK timeouts (InfiniBand specification 9.7.6.1.3) and managers' messages (12.7.26) have,
/// in nanoseconds: 4.096 µs × 2^`code`.
pub const fn time_of_code_ns(code: u8) -> u64 {
    4096_u64 << (code & 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_powers_of_two() {
        assert_eq!(time_of_code_ns(0), 4_096);
        assert_eq!(time_of_code_ns(16) / 1_000_000, 268);
        assert_eq!(time_of_code_ns(20) / 1_000_000, 4294);
        assert_eq!(time_of_code_ns(31), 4096 << 31);
    }
}
